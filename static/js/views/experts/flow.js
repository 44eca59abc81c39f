/**
 * The flow of all tokens through the experts of all layers, the chosen token emphasised: columns
 * are layers, nodes are experts, the width of a ribbon is the weight of its tokens.
 */

import { counted } from '../../words/lists.js';
import { percent, share } from '../../words/numbers.js';
import { named, quoted } from '../../words/tokens.js';
import { hasTwoSides } from '../../trace/attention.js';
import { chart } from '../../plot/chart.js';
import { css, inkOn, sequential, translucent } from '../../plot/colour.js';
import { flow } from '../../plot/marks/flow.js';
import { pixels } from '../../plot/scales.js';
import {
  choicesAt,
  flowBetween,
  pathInWords,
  pathOverlap,
  tintOf,
  weightByExpert,
} from './routing.js';

/**
 * @import { Trace } from '../../trace/trace.js'
 * @import { Figure, Frame } from '../../plot/figure.js'
 * @import { Scene } from './experts.js'
 * @import { Routing, Stage } from './routing.js'
 */

const NODE_LEVEL = 128;
const RIBBON_LEVEL = 72;
const RIBBON_STRENGTH = 0.4;
/** The least total width of the chosen token's ribbons, in pixels. */
const LEAST_ROUTE = 8;
const EXPERT_HEIGHT = 48;
const HEIGHT = { least: 280, most: 640 };

/** @param {Trace} trace @param {Frame} state @param {Scene} scene @returns {Figure} */
export function flowFigure(trace, state, scene) {
  const { stages, tokens, query, stack, side, stage, expert } = scene;
  const most = Math.max(...stages.map(({ routing }) => routing.load.length));
  const height = Math.max(HEIGHT.least, Math.min(HEIGHT.most, most * EXPERT_HEIGHT));
  const emphasis = Math.max(1, (LEAST_ROUTE * tokens.length) / height);
  return {
    title: hasTwoSides(trace) ? `Through the layers of the ${stack}` : 'Through the layers',
    summary: `The path of ${counted(tokens.length, 'token')} through the experts of ${counted(stages.length, 'layer')}, as ribbons from layer to layer.`,
    ...chart(
      {
        x: pixels([0, 1]),
        y: pixels([0, 1]),
        marks: [ribbonsOf(scene, most, emphasis, state)],
        size: { height },
        table: {
          rows: {
            title: 'expert',
            labels: Array.from({ length: most }, (_, row) => `expert ${row}`),
          },
          columns: { title: 'layer', labels: stages.map(({ layer }) => `layer ${layer}`) },
          quantity: 'share of the weight of all tokens that goes through an expert',
          request: { capture: stages.map(({ routing }) => `${routing.stem}*`) },
        },
        sentence: {
          sides: { rows: side, columns: side },
          tint: (row, column) => tintOf(stages[column].routing, row),
          ofToken: (token) => ({
            readout: pathInWords(tokens, token, stages),
            tint: pathOverlap(stages, token),
          }),
          rest: { readout: pathInWords(tokens, query, stages) },
          ceiling: 1,
        },
        cursor: {
          chooseHint: 'Enter shows the expert’s share of the training text',
          note: noteOf(emphasis),
          start: { row: expert, column: stages.indexOf(stage) },
        },
      },
      state,
    ),
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

/**
 * @param {Scene} scene
 * @param {number} rows the most experts of a layer
 * @param {number} emphasis
 * @param {Frame} state
 */
function ribbonsOf(scene, rows, emphasis, { palette }) {
  const { stages, tokens, query } = scene;
  const taken = stages.map(({ routing }) =>
    weightByExpert(routing).map((part) => part / tokens.length),
  );
  /** @param {{row: number, column: number}} of */
  const value = ({ row, column }) => taken[column][row] ?? NaN;
  const scale = sequential(palette.theme);
  const pale = translucent(css(scale, RIBBON_LEVEL), RIBBON_STRENGTH);
  return flow(buildNetwork(stages, query, tokens.length, emphasis), {
    table: { rows, columns: stages.map(({ layer }) => `layer ${layer}`) },
    row: ({ expert }) => expert,
    fill: ({ isChosen }) => (isChosen ? palette.query : css(scale, NODE_LEVEL)),
    ribbon: ({ isChosen }) => (isChosen ? palette.query : pale),
    rim: ({ isChosen }) => (isChosen ? 1 : 0),
    entry: ({ isChosen }) =>
      isChosen
        ? { text: quoted(tokens[query]), ink: palette.query }
        : { text: counted(tokens.length - 1, 'other'), ink: palette.muted },
    text: ({ expert }) => String(expert),
    ink: inkOn(scale, NODE_LEVEL),
    value,
    format: (part) => percent(part),
    name: ({ row, column }) => `expert ${row}, layer ${stages[column].layer}`,
    number: (of) => percent(value(of)),
    say: (of) => sentence(scene, value(of), of.row, of.column),
    choose: ({ row, column }) => ({
      experts_show: 'specialities',
      layer: stages[column].layer,
      experts_expert: row,
    }),
  });
}

/** @param {Scene} scene @param {number} value @param {number} row @param {number} column */
function sentence({ stages, tokens, query, nameOf }, value, row, column) {
  const { layer, routing } = stages[column];
  const weight = routing.weightOf(row, query);
  const chosen =
    weight === undefined
      ? `nothing of ${named(tokens, query)}`
      : `${named(tokens, query)} with ${share(weight, 2)}`;
  const most = neighbours(stages, row, column).join(' and ');
  return `Expert ${row} of ${nameOf(layer)} takes ${percent(value)} of the weight of ${counted(tokens.length, 'token')}, ${chosen}${most && `; most ${most}`}`;
}

/**
 * Return the largest source and the largest target of a node.
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
        Array.from({ length: before.rows }, (_, from) => before.data[from * before.columns + row]),
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

/** @typedef {(column: number, expert: number|null) => number} Find the index of a node */

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
export function buildNetwork(stages, query, nTokens, emphasis = 1) {
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
 * Return the load of the first layer without the chosen token.
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
