/**
 * The flow of all tokens through the experts of all layers, the chosen token emphasised: columns
 * are layers, nodes are experts, the width of a ribbon is the weight of its tokens.
 */

import {
  counted,
  percent,
  share,
  escapeForPlotly,
  named,
  quoted,
  shortened,
} from '../../data/format.js';
import { hasTwoSides } from '../../data/attention.js';
import { css, inkOn, sequential, translucent } from '../../plot/colour.js';
import { baseLayout, isNarrow, labelWidth, letteringFor } from '../../plot/figure.js';
import {
  choicesAt,
  flowBetween,
  pathOverlap,
  weightByExpert,
  tintOf,
  pathInWords,
} from './routing.js';

/**
 * @import { Trace } from '../../data/trace.js'
 * @import { Figure, Frame, Palette } from '../../plot/figure.js'
 * @import { Box, Geometry, Grid } from '../../plot/grid.js'
 * @import { Scene } from './experts.js'
 * @import { Routing, Stage } from './routing.js'
 */

const NODE_LEVEL = 128;
const RIBBON_LEVEL = 72;
const RIBBON_STRENGTH = 0.4;
/** The least total width of the chosen token's ribbons, in pixels. */
const LEAST_ROUTE = 8;
const THICKNESS = { roomy: 20, tight: 16 };
const EXPERT_HEIGHT = 48;
const HEIGHT = { least: 280, most: 640 };
const PAD = 10;
const ROOM_FOR_NUMBER = 12;
const NEAR = 6;

/** @param {Trace} trace @param {Frame} state @param {Scene} scene @returns {Figure} */
export function flowFigure(trace, state, scene) {
  const { stages, tokens, query, stack } = scene;
  const names = [quoted(tokens[query]), others(tokens.length - 1)];
  const box = boxOf(state, stages, names);
  const emphasis = Math.max(1, (LEAST_ROUTE * tokens.length) / box.down);
  const network = networkOf(stages, query, tokens.length, emphasis);
  const boxes = placed(network.nodes, box);
  return {
    title: hasTwoSides(trace) ? `Through the layers of the ${stack}` : 'Through the layers',
    summary: `The path of ${counted(tokens.length, 'token')} through the experts of ${counted(stages.length, 'layer')}, as ribbons from layer to layer.`,
    data: [sankey(network, boxes, state.palette, box), anchor()],
    layout: layoutOf({ stages, network, boxes, names }, state.palette, box),
    grid: { ...gridOf(scene, network, boxes), note: noteOf(emphasis) },
  };
}

/** @param {number} emphasis */
function noteOf(emphasis) {
  const wider =
    emphasis > 1
      ? ' With this many tokens the blue ribbon is drawn wider than its share, so that it stays visible.'
      : '';
  return `Choose an expert to see its share of the training text.${wider}`;
}

/** @param {number} count */
function others(count) {
  return count === 0 ? '' : counted(count, 'other');
}

/** @param {Frame} state @param {Stage[]} stages @param {string[]} names */
function boxOf({ width }, stages, names) {
  const lettering = letteringFor(width);
  const most = Math.max(...stages.map(({ routing }) => routing.load.length));
  const height = Math.max(HEIGHT.least, Math.min(HEIGHT.most, most * EXPERT_HEIGHT));
  const margin = { l: labelWidth(names, lettering) + 12, r: 4, t: 28, b: 8 };
  return {
    width,
    height: height + margin.t + margin.b,
    margin,
    lettering,
    across: width - margin.l - margin.r,
    down: height,
    thickness: isNarrow(width) ? THICKNESS.tight : THICKNESS.roomy,
    pad: Math.min(PAD, height / Math.max(1, 2 * (most - 1))),
  };
}

/**
 * Nodes have fixed positions, so that an expert keeps its height from sentence to sentence.
 * @param {{nodes: Node[], links: Link[]}} of
 * @param {Box[]} boxes
 * @param {Palette} palette
 * @param {ReturnType<typeof boxOf>} box
 */
function sankey({ nodes, links }, boxes, palette, { across, down, thickness, pad }) {
  const scale = sequential(palette.theme);
  const ribbon = translucent(css(scale, RIBBON_LEVEL), RIBBON_STRENGTH);
  return {
    type: 'sankey',
    arrangement: 'fixed',
    hoverinfo: 'none',
    domain: { x: [0, 1], y: [0, 1] },
    node: {
      label: nodes.map(() => ''),
      x: boxes.map(({ x0, x1 }) => (x0 + x1) / 2 / across),
      y: boxes.map(({ y0, y1 }) => (y0 + y1) / 2 / down),
      color: nodes.map(({ isChosen }) => (isChosen ? palette.query : css(scale, NODE_LEVEL))),
      pad,
      thickness,
      line: { width: 0 },
      hoverinfo: 'none',
    },
    link: {
      source: links.map(({ source }) => source),
      target: links.map(({ target }) => target),
      value: links.map(({ value }) => value),
      color: links.map(({ isChosen }) => (isChosen ? palette.query : ribbon)),
      hoverinfo: 'none',
    },
  };
}

/** Pixel axes for the cursor; Plotly keeps them only if something is drawn on them. */
function anchor() {
  return {
    type: 'scatter',
    mode: 'markers',
    x: [0],
    y: [0],
    marker: { opacity: 0 },
    hoverinfo: 'none',
  };
}

/** @typedef {{stages: Stage[], network: Network, boxes: Box[], names: string[]}} Subject what is drawn */
/** @typedef {{nodes: Node[], links: Link[]}} Network */
/** @typedef {(column: number, expert: number|null) => number} Find the index of a node */

/** @param {Subject} subject @param {Palette} palette @param {ReturnType<typeof boxOf>} box */
function layoutOf(subject, palette, box) {
  const axis = { visible: false, fixedrange: true };
  return {
    ...baseLayout(palette, box),
    xaxis: { ...axis, range: [0, box.across] },
    yaxis: { ...axis, range: [box.down, 0] },
    annotations: [
      ...layerTitles(subject, palette, box),
      ...tokenNames(subject, palette, box),
      ...numbers(subject, palette),
    ],
  };
}

const PLAIN = { showarrow: false, xref: 'x', yref: 'y', borderpad: 0 };

/** @param {Subject} subject @param {Palette} palette @param {ReturnType<typeof boxOf>} box */
function layerTitles({ stages, network: { nodes }, boxes }, palette, { across }) {
  return stages.map(({ layer }, index) => {
    const at = boxes[nodes.findIndex(({ column }) => column === index + 1)];
    const isLast = index === stages.length - 1;
    return {
      ...PLAIN,
      text: `layer ${layer}`,
      x: isLast ? across : (at.x0 + at.x1) / 2,
      xanchor: isLast ? 'right' : 'center',
      y: 0,
      yanchor: 'bottom',
      yshift: 8,
      font: { size: 12, color: palette.muted },
    };
  });
}

/** @param {Subject} subject @param {Palette} palette @param {ReturnType<typeof boxOf>} box */
function tokenNames({ network: { nodes }, boxes, names }, palette, { lettering }) {
  return nodes.flatMap(({ column }, index) =>
    column > 0
      ? []
      : [
          {
            ...PLAIN,
            text: escapeForPlotly(shortened(names[index], lettering.letters)),
            x: 0,
            xanchor: 'right',
            xshift: -8,
            y: (boxes[index].y0 + boxes[index].y1) / 2,
            yanchor: 'middle',
            font: { size: lettering.size, color: index === 0 ? palette.query : palette.muted },
          },
        ],
  );
}

/** @param {Subject} subject @param {Palette} palette */
function numbers({ network: { nodes }, boxes }, palette) {
  const onNode = inkOn(sequential(palette.theme), NODE_LEVEL);
  return nodes.flatMap(({ column, expert }, index) => {
    const { x0, x1, y0, y1 } = boxes[index];
    if (column === 0) return [];
    const hasRoom = y1 - y0 >= ROOM_FOR_NUMBER;
    const place = hasRoom
      ? { x: (x0 + x1) / 2, xanchor: 'center' }
      : { x: x0, xanchor: 'right', xshift: -3 };
    return [
      {
        ...PLAIN,
        ...place,
        text: String(expert),
        y: (y0 + y1) / 2,
        yanchor: 'middle',
        font: { size: 11, color: hasRoom ? onNode : palette.ink },
      },
    ];
  });
}

/**
 * @param {Scene} scene
 * @param {{nodes: Node[], links: Link[]}} network
 * @param {Box[]} boxes
 * @returns {Grid}
 */
function gridOf(scene, network, boxes) {
  const { stages, tokens, query, side, stage } = scene;
  const taken = stages.map(({ routing }) =>
    weightByExpert(routing).map((part) => part / tokens.length),
  );
  /** @param {number} row @param {number} column */
  const value = (row, column) => taken[column][row] ?? NaN;
  const rows = Math.max(...taken.map(({ length }) => length));
  const column = stages.indexOf(stage);
  return {
    rows,
    columns: stages.length,
    sides: { rows: side, columns: side },
    rowTitle: 'expert',
    columnTitle: 'layer',
    rowLabels: Array.from({ length: rows }, (_, expert) => `expert ${expert}`),
    columnLabels: stages.map(({ layer }) => `layer ${layer}`),
    quantity: 'share of the weight of all tokens that goes through an expert',
    kind: 'flow diagram',
    request: { capture: stages.map(({ routing }) => `${routing.stem}*`) },
    value,
    format: (part) => percent(part),
    describe: (row, at) => sentence(scene, value, row, at),
    tip: (row, at) => [`expert ${row}, layer ${stages[at].layer}`, percent(value(row, at))],
    tokens: () => ({}),
    tint: (row, at) => tintOf(stages[at].routing, row),
    ofToken: (token) => ({
      readout: pathInWords(tokens, token, stages),
      tint: pathOverlap(stages, token),
    }),
    choose: (row, at) => ({
      experts_show: 'specialities',
      layer: stages[at].layer,
      experts_expert: row,
    }),
    chooseHint: 'Enter shows the expert’s share of the training text',
    start: { row: scene.expert, column },
    rest: { readout: pathInWords(tokens, query, stages) },
    ceiling: 1,
    geometry: geometryOf(network.nodes, boxes),
  };
}

/** @param {Node[]} nodes @param {Box[]} boxes @returns {Geometry} */
function geometryOf(nodes, boxes) {
  /** @type {Geometry['box']} */
  const find = (row, column = -1) =>
    boxes[nodes.findIndex((node) => node.column === column + 1 && node.expert === row)] ?? null;
  /** @param {Box} box @param {number} x @param {number} y */
  const holds = ({ x0, x1, y0, y1 }, x, y) =>
    x >= x0 - NEAR && x <= x1 + NEAR && y >= y0 - NEAR / 2 && y <= y1 + NEAR / 2;
  return {
    box: find,
    at: (x, y) => {
      const node = nodes[boxes.findIndex((box) => holds(box, x, y))];
      if (!node || node.expert === null) return null;
      return { row: node.expert, column: node.column - 1 };
    },
  };
}

/**
 * @param {Scene} scene
 * @param {(row: number, column: number) => number} value
 * @param {number} row
 * @param {number} column
 */
function sentence({ stages, tokens, query, nameOf }, value, row, column) {
  const { layer, routing } = stages[column];
  const weight = routing.weightOf(row, query);
  const chosen =
    weight === undefined
      ? `nothing of ${named(tokens, query)}`
      : `${named(tokens, query)} with ${share(weight, 2)}`;
  const most = neighbours(stages, row, column).join(' and ');
  return `Expert ${row} of ${nameOf(layer)} takes ${percent(value(row, column))} of the weight of ${counted(tokens.length, 'token')}, ${chosen}${most && `; most ${most}`}`;
}

/**
 * The largest source and the largest target of a node.
 * @param {Stage[]} stages
 * @param {number} row
 * @param {number} column
 */
function neighbours(stages, row, column) {
  const before =
    column > 0 && flowBetween(stages[column - 1].routing, stages[column].routing, () => true);
  const after =
    column + 1 < stages.length &&
    flowBetween(stages[column].routing, stages[column + 1].routing, () => true);
  return [
    before &&
      mostOf(
        Array.from(
          { length: before.rows },
          (_, other) => before.data[other * before.columns + row],
        ),
        'comes from',
      ),
    after && mostOf(after.data.slice(row * after.columns, (row + 1) * after.columns), 'goes on to'),
  ].filter(Boolean);
}

/** @param {number[]|Float64Array} parts @param {string} words */
function mostOf(parts, words) {
  const total = [...parts].reduce((sum, part) => sum + part, 0);
  if (total === 0) return '';
  const most = Math.max(...parts);
  return `${words} expert ${parts.indexOf(most)} (${percent(most / total, 0)})`;
}

/**
 * @typedef {{column: number, expert: number|null, value: number, isChosen: boolean}} Node column 0 has the tokens, the chosen one first
 * @typedef {{source: number, target: number, value: number, isChosen: boolean}} Link between nodes by index; the chosen token's are last
 */

/**
 * @param {Stage[]} stages
 * @param {number} query the chosen token
 * @param {number} nTokens
 * @param {number} [emphasis] as how many tokens the chosen one counts, to be seen among very many
 * @returns {{nodes: Node[], links: Link[]}}
 */
export function networkOf(stages, query, nTokens, emphasis = 1) {
  const nodes = [
    { column: 0, expert: null, value: emphasis, isChosen: true },
    ...(nTokens > 1 ? [{ column: 0, expert: null, value: nTokens - 1, isChosen: false }] : []),
    ...stages.flatMap(({ routing }, index) => nodesOf(routing, index + 1, query, emphasis)),
  ];
  /** @type {Find} */
  const find = (column, expert) =>
    nodes.findIndex((node) => node.column === column && node.expert === expert);
  return {
    nodes,
    links: [...linksOfOthers(stages, query, find), ...linksOfChosen(stages, query, emphasis, find)],
  };
}

/**
 * @param {Routing} routing
 * @param {number} column
 * @param {number} query
 * @param {number} emphasis
 */
function nodesOf(routing, column, query, emphasis) {
  /** @param {number} taken @param {number} expert */
  const valueOf = (taken, expert) =>
    taken + (emphasis - 1) * (routing.weightOf(expert, query) ?? 0);
  return Array.from(weightByExpert(routing), (taken, expert) => ({
    column,
    expert,
    value: valueOf(taken, expert),
    isChosen: false,
  })).filter(({ value }) => value > 0);
}

/** @param {Stage[]} stages @param {number} query @param {Find} find */
function linksOfOthers(stages, query, find) {
  /** @param {number} token */
  const isOther = (token) => token !== query;
  /** @type {Link[]} */
  const links = [];
  stages.forEach(({ routing }, index) => {
    const flow =
      index === 0
        ? entering(routing, query)
        : flowBetween(stages[index - 1].routing, routing, isOther);
    for (let from = 0; from < flow.rows; from += 1) {
      for (let to = 0; to < flow.columns; to += 1) {
        const value = flow.data[from * flow.columns + to];
        if (value > 0)
          links.push({
            source: index === 0 ? 1 : find(index, from),
            target: find(index + 1, to),
            value,
            isChosen: false,
          });
      }
    }
  });
  return links;
}

/**
 * The load of the first layer without the chosen token.
 * @param {Routing} routing
 * @param {number} query
 */
function entering(routing, query) {
  const data = weightByExpert(routing);
  for (const { expert, weight } of choicesAt(routing, query)) data[expert] -= weight;
  return { rows: 1, columns: data.length, data: data.map((value) => (value < 1e-9 ? 0 : value)) };
}

/** @param {Stage[]} stages @param {number} query @param {number} emphasis @param {Find} find */
function linksOfChosen(stages, query, emphasis, find) {
  const steps = stages.map(({ routing }) => choicesAt(routing, query));
  return steps.flatMap((to, index) => {
    const from = index === 0 ? [{ expert: null, weight: 1 }] : steps[index - 1];
    return from.flatMap((first) =>
      to.map((second) => ({
        source: find(index, first.expert),
        target: find(index + 1, second.expert),
        value: emphasis * first.weight * second.weight,
        isChosen: true,
      })),
    );
  });
}

/**
 * The layout of the nodes: evenly spaced columns, node heights in proportion to their values.
 * @param {Node[]} nodes
 * @param {{across: number, down: number, thickness: number, pad: number}} box
 * @returns {{x0: number, x1: number, y0: number, y1: number}[]} in the order of the nodes
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
