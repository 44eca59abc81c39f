/**
 * Experts: the routing of each token in a mixture of experts, its path through all layers, and the
 * share of the training text that each expert takes.
 */

import { modelName } from '../../api/calls.js';
import { noticeOf } from '../../api/request_cache.js';
import { hasTwoSides, sideOf, stackOf, stacksOf, tokensOf } from '../../data/attention.js';
import { layersWith } from '../../data/trace.js';
import { choosing, queryOf } from '../../state/state.js';
import { flowFigure } from './flow.js';
import { routingFigure } from './router_map.js';
import { expertOf, stagesOf, choicesAt, pathOverlap, pathInWords } from './routing.js';
import { kindsFigure, expertFigure } from './specialities.js';
import { entryOf } from '../registry.js';
import { share, named, tokenLabels } from '../../data/format.js';
import { isNarrow } from '../../plot/figure.js';
import { stepMap } from '../../plot/map.js';
import { transposedGrid } from '../../plot/grid.js';
import { choice, numbered } from '../../ui/controls.js';

/**
 * @import { Side } from '../../data/attention.js'
 * @import { Ask, Token, Trace } from '../../data/trace.js'
 * @import { Drawing, Figure, Frame, View, ViewState } from '../../plot/figure.js'
 * @import { Grid } from '../../plot/grid.js'
 * @import { State } from '../../state/state.js'
 * @import { Control } from '../../ui/controls.js'
 * @import { Share, Stage } from './routing.js'
 */

const SHOWS = [
  {
    id: 'specialities',
    title: 'Specialities',
    help: 'The share of the training text that each expert takes',
  },
  { id: 'routing', title: 'Routing', help: 'The decisions of the routers of all layers' },
  { id: 'route', title: 'Route', help: 'The path of the tokens through the layers' },
];

const EXPERT = ['expert', 'one of the parallel feed-forward networks of a layer'];
/** @type {Record<string, string[][]>} */
const TERMS = {
  routing: [
    EXPERT,
    ['load', 'share of all choices that fell on an expert; the line marks an even share'],
    [
      'router entropy',
      '−Σ p·log₂ p over the experts, in bits: 0 if the router is certain, log₂ n_experts if all are equally likely',
    ],
    [
      'balance loss',
      'n_experts · Σ load · mean probability: 1 if both are uniform, n_experts if one expert takes all; training keeps it low (Fedus et al. 2021, section 2.2)',
    ],
  ],
  route: [
    EXPERT,
    ['ribbon', 'as wide as the weight of the tokens that go along it; the chosen token’s is blue'],
  ],
  specialities: [
    EXPERT,
    ['kind', 'the class of a token, by its spelling and the token before it'],
    ['share', 'the share of a token’s occurrences that go to the expert'],
  ],
};
/** @type {Record<string, string>} */
const HELP = {
  routing:
    'In a mixture of experts, a router sends each token through a few of several small networks. Chosen experts are marked, each with the weight of its output.',
  route:
    'In each layer a token goes through different experts, and their outputs are mixed by weight, so its path splits and joins.',
  specialities:
    'Experts specialise during training, without being assigned a subject: these are the tokens that the router sends to each more often than to the others.',
};

/** @type {Record<string, (trace: Trace, state: ViewState, scene: Scene) => Figure>} */
const FIGURES = { routing: routingFigure, flow: flowFigure, ways: choicesFigure };
/** @type {typeof FIGURES} */
const SPECIALITIES = { kinds: kindsFigure, taken: expertFigure };

/** @type {View} */
export const experts = {
  ...entryOf('experts'),
  help: HELP.routing,
  terms: TERMS.routing,
  wording: (trace, { experts_show: show = 'routing' }) =>
    isDense(trace) ? {} : { help: HELP[show], terms: TERMS[show] },
  places: (trace) => (isDense(trace) ? [] : stacksOf(trace)),
  place: (trace, state) => stackOf(state, trace),
  arrangement: (_, { experts_show: show }) => (show === 'specialities' ? 'pair' : ''),
  controls,
  asks,
  panels,
  figure,
};

/** @param {Trace} trace */
function isDense({ tensors }) {
  return layersWith(tensors, 'experts.router_probs').length === 0;
}

/**
 * Only the full card says what the experts take.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Record<string, Ask>}
 */
function asks(trace, { experts_show: show }) {
  return show === 'specialities' && !isDense(trace) ? { card: { card: trace.model } } : {};
}

/** @param {Trace} trace @param {ViewState} state @returns {Control[]} */
function controls(trace, state) {
  const scene = sceneOf(trace, state);
  if (scene.stages.length === 0) return [];
  const { experts_show: show = 'routing' } = state;
  const kinds = choice('experts_show', 'Show', show, SHOWS);
  if (show !== 'specialities') return [kinds];
  const layers = numbered(scene.stages.map(({ layer }) => layer));
  const all = scene.stage.routing.load.map((_, expert) => ({
    id: expert,
    title: `Expert ${expert}`,
  }));
  return [
    kinds,
    choice('layer', 'Layer', scene.stage.layer, layers),
    choice('experts_expert', 'Expert', scene.expert, all),
  ];
}

/**
 * One panel for each layer that routes; a dense model has one, with a notice.
 * @param {Trace} trace
 * @param {ViewState} state
 */
function panels(trace, state) {
  const { stages, stack } = sceneOf(trace, state);
  if (stages.length === 0) return [{ id: 'dense', state: { stack } }];
  /** @param {string} name */
  const part = (name) => ({ id: name, state: { part: name, stack } });
  if (state.experts_show === 'route') return ['flow', 'ways'].map(part);
  if (state.experts_show === 'specialities') return ['kinds', 'taken'].map(part);
  return chosenFirst(stages, state.layer).map(({ layer }) => ({
    id: `layer-${layer}`,
    state: { part: 'routing', stack, drawn: layer },
  }));
}

/**
 * The layer that is looked at, and then the others in order.
 * @param {Stage[]} stages
 * @param {number} chosen
 */
function chosenFirst(stages, chosen) {
  return [
    ...stages.filter(({ layer }) => layer === chosen),
    ...stages.filter(({ layer }) => layer !== chosen),
  ];
}

/**
 * The data that all figures of the view share.
 * @typedef {Object} Scene
 * @property {'encoder'|'decoder'} stack
 * @property {Side} side
 * @property {Token[]} tokens
 * @property {number} query the chosen token
 * @property {Stage[]} stages
 * @property {Stage} stage the layer that is looked at
 * @property {number} expert the one that is looked at
 * @property {(layer: number) => string} nameOf a layer in a sentence
 * @property {(token: number) => Partial<State>} choose what changes when a token is chosen
 */

/** @param {Trace} trace @param {ViewState} state @returns {Scene} */
function sceneOf(trace, state) {
  const stack = state.stack ?? stackOf(state, trace);
  const side = sideOf(stack, trace);
  const query = queryOf(state, trace, side);
  const stages = stagesOf(trace, stack);
  const stage = stages.find(({ layer }) => layer === state.layer) ?? stages[0];
  /** @param {number} layer */
  const nameOf = (layer) => (hasTwoSides(trace) ? `${stack}, layer ${layer}` : `layer ${layer}`);
  /** @param {number} token */
  const choose = (token) => choosing(trace, side, token);
  return {
    stack,
    side,
    query,
    stages,
    stage,
    nameOf,
    choose,
    tokens: tokensOf(trace, side),
    expert: stage && expertOf(state, stage, query),
  };
}

/**
 * @param {Trace} trace
 * @param {ViewState} state with the panel’s `part`, `stack`, `drawn`
 * @returns {Figure}
 */
function figure(trace, state) {
  const scene = sceneOf(trace, state);
  if (scene.stages.length === 0) return dense(trace, scene);
  const { part = 'routing' } = state;
  if (!(part in SPECIALITIES)) return FIGURES[part](trace, state, scene);
  const answer = state.answers.card;
  if (!answer?.trace) return { title: 'Specialities', notice: noticeOf(answer) };
  return SPECIALITIES[part]({ ...trace, card: answer.trace.card }, state, scene);
}

/** @param {Trace} trace @param {Scene} scene */
function dense(trace, { stack }) {
  if (!isDense(trace))
    return {
      title: 'Dense',
      notice: `The ${stack} is dense: no routing. The other stack has experts.`,
    };
  return {
    title: 'Dense',
    notice: `${modelName(trace.card, trace.model)} is dense: no routing. Every token goes through the same feed-forward network in each layer, so there are no experts to show.`,
  };
}

const ROOM_FOR_EXPERT = 14;

/** @param {Trace} trace @param {Frame} state @param {Scene} scene @returns {Figure} */
function choicesFigure(trace, state, scene) {
  const { stages, tokens } = scene;
  const choices = choicesOf(stages, tokens.length);
  const grid = choicesGrid(scene, choices);
  return {
    title: 'Token by token',
    help: 'The number is the expert, the colour its weight; within a layer the largest weight comes first.',
    summary: `The experts that ${tokens.length} tokens go through in each of ${stages.length} layers.`,
    ...choicesDrawing(tokens, choices, state),
    grid: isNarrow(state.width) ? transposedGrid(grid) : grid,
  };
}

/** @typedef {{stage: Stage, rank: number, label: string, shares: Share[]}} Choices of one rank in one layer, by token */

/** @param {Stage[]} stages @param {number} nTokens @returns {Choices[]} */
function choicesOf(stages, nTokens) {
  return stages.flatMap((stage) => {
    const byToken = Array.from({ length: nTokens }, (_, token) => choicesAt(stage.routing, token));
    return Array.from({ length: stage.routing.topK }, (_, rank) => ({
      stage,
      rank,
      label: `layer ${stage.layer}, choice ${rank + 1}`,
      shares: byToken.map((found) => found[rank]),
    }));
  });
}

/** @param {Token[]} tokens @param {Choices[]} choices @param {Frame} state @returns {Drawing} */
function choicesDrawing(tokens, choices, state) {
  const weights = choices.flatMap(({ shares }) => shares.map(({ weight }) => weight));
  const { data, layout } = stepMap(
    { rows: choices.length, columns: tokens.length, data: Float64Array.from(weights) },
    {
      steps: choices.map(({ label }) => label),
      tokens,
      scale: {
        least: 0,
        most: 1,
        short: (_, row, token) => String(choices[row].shares[token].expert),
        room: ROOM_FOR_EXPERT,
      },
      quantity: 'weight',
    },
    state,
  );
  return { data, layout: { ...layout, shapes: bounds(choices, state) } };
}

/** Lines between layers. @param {Choices[]} choices @param {Frame} state */
function bounds(choices, { palette, width }) {
  return choices.flatMap(({ rank }, row) => {
    if (rank !== 0 || row === 0) return [];
    const at = row - 0.5;
    const ends = isNarrow(width)
      ? { xref: 'x', yref: 'paper', x0: at, x1: at, y0: 0, y1: 1 }
      : { xref: 'paper', yref: 'y', x0: 0, x1: 1, y0: at, y1: at };
    return [{ type: 'line', ...ends, line: { color: palette.ink, width: 1 } }];
  });
}

/** @param {Scene} scene @param {Choices[]} choices @returns {Grid} */
function choicesGrid({ stages, tokens, query, side, stage, nameOf, choose }, choices) {
  /** @param {number} row @param {number} column */
  const found = (row, column) => choices[row].shares[column];
  const isExpert = Number.isInteger;
  return {
    rows: choices.length,
    columns: tokens.length,
    sides: { rows: side, columns: side },
    rowTitle: 'layer, choice',
    columnTitle: 'token',
    rowLabels: choices.map(({ label }) => label),
    columnLabels: tokenLabels(tokens),
    quantity: 'expert that a token goes through',
    request: { capture: stages.map(({ routing }) => `${routing.stem}*`) },
    value: (row, column) => found(row, column).expert,
    format: (number) => (isExpert(number) ? String(number) : share(number, 4)),
    describe: (row, column) =>
      `${pathInWords(tokens, column, [choices[row].stage])}; choice ${choices[row].rank + 1} is expert ${found(row, column).expert}`,
    tip: (row, column) => [
      `${named(tokens, column)}, ${nameOf(choices[row].stage.layer)}`,
      `expert ${found(row, column).expert}, weight ${share(found(row, column).weight)}`,
    ],
    tokens: (_, column) => ({ query: column }),
    tint: (_, column) => pathOverlap(stages, column),
    ofToken: (token) => ({
      readout: pathInWords(tokens, token, stages),
      tint: pathOverlap(stages, token),
    }),
    choose: (row, column) => ({ ...choose(column), layer: choices[row].stage.layer }),
    chosen: { column: query },
    start: { row: choices.findIndex((choice) => choice.stage === stage), column: query },
    rest: { readout: pathInWords(tokens, query, stages) },
    ceiling: 1,
    chosenWeight: (row, column) => found(row, column).weight,
  };
}
