/**
 * Nodes joined by curves, over bare scales: the width of a curve is its size, its colour its sign.
 * The cursor reads the curves, one row of the table each.
 */

import { escapeForPlotly, shortened } from '../../words/text.js';
import { axesOf, nearest, scatter } from './mark.js';

/** @typedef {{x: number, y: number, name: string, isUsed: boolean, isColumn?: boolean}} Node `isColumn`: its name is the title of a column, below it, and it has no dot */
/** @typedef {{from: number, to: number, width: number, isCut?: boolean}} Curve between nodes by index */
/** @typedef {{row: number, column: number}} Datum */

const STEPS = 14;
/** The curve leaves the straight line by this share of its length. */
const BEND = 0.12;
const NODE = { used: 9, idle: 5 };
const LINK = 1.5;
/** Letters of a column's title on a narrow drawing. */
const NARROW = { width: 500, letters: 6 };
/** Pixels around the middle of a curve in which a pointer means it. */
const NEAR = 14;

/**
 * @param {{nodes: Node[], curves: Curve[], links?: {from: number, to: number}[]}} network the last curve is drawn on top; links are thin and dotted, and not in the table
 * @param {{stroke: (curve: Curve, row: number) => string, idle: string} & Meaning<Datum>} look
 * @returns {Mark<Datum>}
 */
export function network({ nodes, curves, links = [] }, { stroke, idle, ...meaning }) {
  const paths = curves.map(({ from, to }) => pathOf(nodes[from], nodes[to]));
  return {
    kind: 'network',
    reach: { x: [], y: [] },
    meaning,
    table: {
      rows: curves.length,
      columns: 1,
      kind: 'drawing of edges',
      datum: (row, column) => ({ row, column }),
    },
    draw: (plan) => ({
      traces: [
        ...links.map(({ from, to }) =>
          scatter('lines', pathOf(nodes[from], nodes[to]), {
            line: { color: idle, width: LINK, dash: 'dot' },
          }),
        ),
        ...curves.map((curve, row) =>
          scatter('lines', paths[row], {
            line: {
              color: curve.isCut ? idle : stroke(curve, row),
              width: curve.width,
              ...(curve.isCut && { dash: 'dot' }),
            },
            opacity: curve.isCut ? 0.6 : 0.8,
          }),
        ),
        dotsOf(nodes, plan, idle),
        ...columnsOf(nodes, plan),
      ],
      notes: namesOf(nodes, plan),
    }),
    hits: (plan) => hitsOf(paths, plan),
  };
}

/** Return the points of a curve, bent to the right of its way. @param {Node} from @param {Node} to */
function pathOf(from, to) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const middle = { x: from.x + dx / 2 + BEND * dy, y: from.y + dy / 2 - BEND * dx };
  /** @type {{x: number[], y: number[]}} */
  const points = { x: [], y: [] };
  for (let step = 0; step <= STEPS; step += 1) {
    const t = step / STEPS;
    for (const axis of /** @type {const} */ (['x', 'y']))
      points[axis].push(
        (1 - t) ** 2 * from[axis] + 2 * t * (1 - t) * middle[axis] + t ** 2 * to[axis],
      );
  }
  return points;
}

/** @param {Node[]} all @param {Plan} plan @param {string} idle */
function dotsOf(all, { palette }, idle) {
  const nodes = all.filter(({ isColumn }) => !isColumn);
  const marker = {
    size: nodes.map(({ isUsed }) => (isUsed ? NODE.used : NODE.idle)),
    color: nodes.map(({ isUsed }) => (isUsed ? palette.ink : idle)),
  };
  return scatter('markers', axesOf(nodes), { marker });
}

/** Return the names, each on a ground of its own, as lines pass under it. @param {Node[]} nodes @param {Plan} plan */
function namesOf(nodes, { palette, names }) {
  return nodes
    .filter(({ isUsed, isColumn }) => isUsed && !isColumn)
    .map(({ x, y, name }) => ({
      xref: names.x,
      yref: names.y,
      x,
      y,
      text: escapeForPlotly(name),
      showarrow: false,
      xanchor: 'left',
      xshift: NODE.used / 2 + 2,
      bgcolor: palette.surface,
      borderpad: 0,
      opacity: 0.9,
      font: { size: 13, color: palette.ink },
    }));
}

/** @param {Node[]} nodes @param {Plan} plan */
function columnsOf(nodes, { palette, width }) {
  const titles = nodes.filter(({ isColumn }) => isColumn);
  if (titles.length === 0) return [];
  const isNarrow = width < NARROW.width;
  return [
    scatter('text', axesOf(titles), {
      text: titles.map(({ name }) =>
        escapeForPlotly(isNarrow ? shortened(name, NARROW.letters) : name),
      ),
      textposition: 'bottom center',
      textfont: { size: 13, color: palette.ink },
    }),
  ];
}

/** @param {{x: number[], y: number[]}[]} paths @param {Plan} plan @returns {Hits} */
function hitsOf(paths, { inner }) {
  const half = { x: NEAR / inner.width, y: NEAR / inner.height };
  const points = paths.flatMap(({ x, y }, row) =>
    x.slice(2, -2).map((value, at) => ({ x: value, y: y[at + 2], row, column: 0 })),
  );
  const all = nearest(points, half, { x: 1, y: 1 });
  const middles = paths.map(({ x, y }, row) => ({
    x: x[STEPS / 2],
    y: y[STEPS / 2],
    row,
    column: 0,
  }));
  return { at: all.at, box: nearest(middles, half, { x: 1, y: 1 }).box };
}
