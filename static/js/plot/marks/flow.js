/**
 * A flow through columns of nodes, over bare scales from 0 to 1: the height of a node is its value, and
 * ribbons as wide as theirs lead to the next column.
 */

import { escapeForPlotly, shortened } from '../../words/text.js';
import { isNarrow, labelWidth, letteringFor, ticksFor } from '../scales.js';
import { SILENT } from './mark.js';

/**
 * @import { Hits, Mark, Meaning, Plan } from './mark.js'
 */

/** @typedef {{column: number, value: number}} Node column 0 is where the flow begins */
/** @typedef {{source: number, target: number, value: number}} Link between nodes by index */
/** @typedef {{x0: number, x1: number, y0: number, y1: number}} Box */
/** @typedef {{row: number, column: number}} Datum */

/**
 * @template {Node} N, L
 * @typedef {Object} Look
 * @property {{rows: number, columns: string[]}} table its size; the names of all columns but the first
 * @property {(node: N) => number|null} row of the table; null: none
 * @property {(node: N) => string} fill
 * @property {(link: L) => string} ribbon its colour
 * @property {(link: L) => number} [rim] pixels of a line around a ribbon, so that a steep one stays visible
 * @property {(node: N) => {text: string, ink: string}} entry the name of a node of the first column
 * @property {(node: N) => string} text of any other node
 * @property {string} ink of the text on a node
 */

const THICKNESS = { roomy: 20, tight: 16 };
const PAD = 10;
const ROOM_FOR_TEXT = 12;
const HEAD = 20;
/** Pixels around a node in which a pointer means it. */
const NEAR = 6;

/**
 * @template {Node} N
 * @template {Link} L
 * @param {{nodes: N[], links: L[]}} network the last link is drawn on top
 * @param {Look<N, L> & Meaning<Datum>} channels
 * @returns {Mark<Datum>}
 */
export function flow(network, { table, row, fill, ribbon, rim, entry, text, ink, ...meaning }) {
  const { nodes } = network;
  const names = nodes.filter(({ column }) => column === 0).map(entry);
  return {
    kind: 'flow',
    reach: { x: [], y: [] },
    meaning,
    table: {
      rows: table.rows,
      columns: table.columns.length,
      kind: 'flow diagram',
      datum: (at, column) => ({ row: at, column }),
    },
    room: { left: labelWidth(names.map((each) => each.text)) + 12, top: HEAD },
    draw(plan) {
      const boxes = boxesOf(nodes, plan);
      return {
        traces: [textsOf(nodes, boxes, plan, { text, ink })],
        shapes: [
          ...grouped(network, boxes, { ribbon, rim }),
          ...boxes.map((box, at) => shape({ type: 'rect', ...box, fillcolor: fill(nodes[at]) })),
        ],
        notes: [
          ...columnNotes(table.columns, nodes, boxes, plan),
          ...nodes.flatMap((node, at) =>
            node.column === 0 ? [nameNote(entry(node), boxes[at], plan.width)] : [],
          ),
        ],
      };
    },
    hits: (plan) => hitsOf(nodes, boxesOf(nodes, plan), { row, inner: plan.inner }),
  };
}

/** @param {Record<string, unknown>} of */
function shape(of) {
  return { layer: 'below', line: { width: 0 }, ...of };
}

/**
 * The ribbons of one colour that leave one node are one shape: Plotly takes a millisecond for each.
 * @template {Link} L
 * @param {{nodes: Node[], links: L[]}} network
 * @param {Box[]} boxes
 * @param {Pick<Look<any, L>, 'ribbon'|'rim'>} look
 */
function grouped(network, boxes, { ribbon, rim = () => 0 }) {
  const paths = drawRibbons(network, boxes);
  /** @type {Map<string, {fillcolor: string, width: number, paths: string[]}>} */
  const groups = new Map();
  network.links.forEach((link, at) => {
    const [fillcolor, width] = [ribbon(link), rim(link)];
    const name = `${link.source} ${width} ${fillcolor}`;
    const group = groups.get(name) ?? { fillcolor, width, paths: [] };
    group.paths.push(paths[at]);
    groups.set(name, group);
  });
  return [...groups.values()].map(({ fillcolor, width, paths: each }) =>
    shape({ type: 'path', path: each.join(' '), fillcolor, line: { width, color: fillcolor } }),
  );
}

/** @param {Node[]} nodes @param {Plan} plan @returns {Box[]} in shares of the plot */
function boxesOf(nodes, { inner, width }) {
  const most = Math.max(
    ...nodes.map(({ column }) => nodes.filter((node) => node.column === column).length),
  );
  const boxes = placed(nodes, {
    across: inner.width,
    down: inner.height,
    thickness: isNarrow(width) ? THICKNESS.tight : THICKNESS.roomy,
    pad: Math.min(PAD, inner.height / Math.max(1, 2 * (most - 1))),
  });
  return boxes.map(({ x0, x1, y0, y1 }) => ({
    x0: x0 / inner.width,
    x1: x1 / inner.width,
    y0: y0 / inner.height,
    y1: y1 / inner.height,
  }));
}

/**
 * Return the layout of the nodes: evenly spaced columns, node heights in proportion to their values.
 * @param {Node[]} nodes
 * @param {{across: number, down: number, thickness: number, pad: number}} room
 * @returns {Box[]} in the order of the nodes
 */
export function placed(nodes, { across, down, thickness, pad }) {
  const columns = Array.from(
    { length: Math.max(...nodes.map(({ column }) => column)) + 1 },
    (_, column) => nodes.filter((node) => node.column === column),
  );
  /** @param {Node[]} column */
  const total = (column) => column.reduce((sum, { value }) => sum + value, 0);
  const unit = Math.min(
    ...columns.map((column) => (down - (column.length - 1) * pad) / total(column)),
  );
  const boxes = new Map();
  columns.forEach((column, index) => {
    const x0 = (index / (columns.length - 1)) * (across - thickness);
    const gap = index === 0 ? pad : (down - total(column) * unit) / Math.max(1, column.length - 1);
    let y0 = 0;
    for (const node of column) {
      boxes.set(node, { x0, x1: x0 + thickness, y0, y1: y0 + node.value * unit });
      y0 += node.value * unit + gap;
    }
  });
  return nodes.map((node) => boxes.get(node));
}

/**
 * Return the outlines of the ribbons. They leave and enter a node in the order of the nodes at
 * their other ends, so that few of them cross.
 * @param {{nodes: Node[], links: Link[]}} network
 * @param {Box[]} boxes
 * @returns {string[]} link by link
 */
export function drawRibbons({ nodes, links }, boxes) {
  const unit = (boxes[0].y1 - boxes[0].y0) / nodes[0].value;
  /** @param {'source'|'target'} end @param {'source'|'target'} opposite */
  const startsAt = (end, opposite) => {
    const next = boxes.map(({ y0 }) => y0);
    const starts = new Array(links.length);
    links
      .map((link, at) => ({ link, at }))
      .sort((a, b) => boxes[a.link[opposite]].y0 - boxes[b.link[opposite]].y0 || a.at - b.at)
      .forEach(({ link, at }) => {
        starts[at] = next[link[end]];
        next[link[end]] += link.value * unit;
      });
    return starts;
  };
  const [leave, enter] = [startsAt('source', 'target'), startsAt('target', 'source')];
  return links.map(({ source, target, value }, at) => {
    const [x0, x1, wide] = [boxes[source].x1, boxes[target].x0, value * unit];
    const [from, to, middle] = [leave[at], enter[at], (x0 + x1) / 2];
    const there = `M${x0},${from} C${middle},${from} ${middle},${to} ${x1},${to}`;
    const back = `L${x1},${to + wide} C${middle},${to + wide} ${middle},${from + wide} ${x0},${from + wide}`;
    return `${there} ${back} Z`;
  });
}

/**
 * Return the words on the nodes, or before them if they are too low for it.
 * @template {Node} N
 * @param {N[]} nodes
 * @param {Box[]} boxes
 * @param {Plan} plan
 * @param {Pick<Look<N, any>, 'text'|'ink'>} look
 */
function textsOf(nodes, boxes, { palette, inner }, { text, ink }) {
  const written = nodes.flatMap((node, at) => {
    if (node.column === 0) return [];
    const { x0, x1, y0, y1 } = boxes[at];
    const hasRoom = (y1 - y0) * inner.height >= ROOM_FOR_TEXT;
    return [{ node, hasRoom, x: hasRoom ? (x0 + x1) / 2 : x0, y: (y0 + y1) / 2 }];
  });
  return {
    type: 'scatter',
    mode: 'text',
    x: written.map(({ x }) => x),
    y: written.map(({ y }) => y),
    text: written.map(({ node }) => escapeForPlotly(text(node))),
    textposition: written.map(({ hasRoom }) => (hasRoom ? 'middle center' : 'middle left')),
    textfont: { size: 12, color: written.map(({ hasRoom }) => (hasRoom ? ink : palette.ink)) },
    ...SILENT,
  };
}

const PLAIN = { showarrow: false, xref: 'x', yref: 'y', borderpad: 0 };

/**
 * Return the names above the columns, as many as there is room for.
 * @param {string[]} columns
 * @param {Node[]} nodes
 * @param {Box[]} boxes
 * @param {Plan} plan
 */
function columnNotes(columns, nodes, boxes, { palette, inner }) {
  const shown = ticksFor(0, columns.length - 1, inner.width, labelWidth(columns) + 8);
  return shown.map((index) => {
    const { x0, x1 } = boxes[nodes.findIndex(({ column }) => column === index + 1)];
    const isLast = index === columns.length - 1;
    return {
      ...PLAIN,
      text: escapeForPlotly(columns[index]),
      x: isLast ? 1 : (x0 + x1) / 2,
      xanchor: isLast ? 'right' : 'center',
      y: 0,
      yanchor: 'bottom',
      yshift: 8,
      font: { size: 12, color: palette.muted },
    };
  });
}

/** @param {{text: string, ink: string}} name @param {Box} box @param {number} width of the drawing */
function nameNote({ text, ink }, { y0, y1 }, width) {
  const { size, letters } = letteringFor(width);
  return {
    ...PLAIN,
    text: escapeForPlotly(shortened(text, letters)),
    x: 0,
    xanchor: 'right',
    xshift: -8,
    y: (y0 + y1) / 2,
    yanchor: 'middle',
    font: { size, color: ink },
  };
}

/**
 * @template {Node} N
 * @param {N[]} nodes
 * @param {Box[]} boxes
 * @param {{row: (node: N) => number|null, inner: {width: number, height: number}}} of
 * @returns {Hits}
 */
function hitsOf(nodes, boxes, { row: rowOf, inner }) {
  const [wide, high] = [NEAR / inner.width, NEAR / 2 / inner.height];
  /** @param {Box} box @param {number} x @param {number} y */
  const holds = ({ x0, x1, y0, y1 }, x, y) =>
    x >= x0 - wide && x <= x1 + wide && y >= y0 - high && y <= y1 + high;
  return {
    box: (row, column = -1) =>
      boxes[nodes.findIndex((node) => node.column === column + 1 && rowOf(node) === row)] ?? null,
    at(x, y) {
      const node = nodes[boxes.findIndex((box) => holds(box, x, y))];
      const row = node ? rowOf(node) : null;
      return row === null ? null : { row, column: node.column - 1 };
    },
  };
}
