/**
 * Experts: the routing of each token in a mixture of experts, its path through all layers, and the
 * share of the training text that each expert takes.
 */

import { modelName } from '../../api/calls.js';
import { noticeOf } from '../../api/answers.js';
import { hasTwoSides, sideOf, chooseStack, findStacks, tokensOf } from '../../trace/attention.js';
import { layersWith, matrixFrom } from '../../trace/trace.js';
import { choosing, queryOf } from '../../state/state.js';
import { routingFigure } from './router_map.js';
import { listStages, choicesAt, pathOverlap, pathInWords } from './routing.js';
import { kindsFigure } from './specialities.js';
import { share } from '../../words/numbers.js';
import { named } from '../../words/tokens.js';
import { chart } from '../../plot/chart.js';
import { isTurned, band, tokenBand } from '../../plot/scales.js';
import { cell } from '../../plot/marks/mark.js';
import { ruleAt } from '../../plot/marks/decorations.js';
import { choice, numbered } from '../../ui/controls.js';

/** @import { Side } from '../../trace/attention.js' @import { Share, Stage } from './routing.js' */

/** A label of a layer and a choice is never cut. */
const LABEL_LETTERS = 24;

const SHOWS = [
  {
    id: 'specialities',
    title: 'Specialities',
    help: 'The share of the training text that each expert takes',
  },
  { id: 'routing', title: 'Routing', help: 'The decisions of the routers of all layers' },
  { id: 'route', title: 'Route', help: 'The path of the tokens through the layers' },
];

const EXPERT = { expert: 'one of the parallel feed-forward networks of a layer' };
/** @type {Record<string, Record<string, string>>} */
const TERMS = {
  routing: {
    ...EXPERT,
    load: 'share of all choices that fell on an expert; the line marks an even share',
    'router entropy':
      '−Σ p·log₂ p over the experts, in bits: 0 if the router is certain, log₂ n_experts if all are equally likely',
    'balance loss':
      'n_experts · Σ load · mean probability: 1 if both are uniform, n_experts if one expert takes all; training keeps it low (Fedus et al. 2021, section 2.2)',
  },
  route: EXPERT,
  specialities: {
    ...EXPERT,
    kind: 'the class of a token, by its spelling and the token before it',
    share: 'the share of a token’s occurrences that go to the expert',
  },
};
/** @type {Record<string, string>} */
const HELP = {
  routing:
    'In a mixture of experts, a router sends each token through a few of several small networks. Chosen experts are marked, each with the weight of its output.',
  route:
    'In each layer a token goes through different experts, and their outputs are mixed by weight, so each token has a path of its own: every layer is a row for each of its choices.',
  specialities:
    'Experts specialise during training, without being assigned a subject: each row is what the router sends to one of them.',
};

/** @type {Record<string, (trace: Trace, state: ViewState, scene: Scene) => Figure>} */
const FIGURES = { routing: routingFigure, ways: choicesFigure };

/** @type {ViewCode} */
export const experts = {
  help: HELP.routing,
  terms: TERMS.routing,
  wording: (trace, { experts_show: show = 'routing' }) =>
    isDense(trace) ? {} : { help: HELP[show], terms: TERMS[show] },
  places: (trace) => (isDense(trace) ? [] : findStacks(trace)),
  place: (trace, state) => chooseStack(state, trace),

  controls(trace, state) {
    const scene = sceneOf(trace, state);
    if (scene.stages.length === 0) return [];
    const { experts_show: show = 'routing' } = state;
    const kinds = choice('experts_show', 'Show', show, SHOWS);
    if (show !== 'specialities') return [kinds];
    const layers = numbered(scene.stages.map(({ layer }) => layer));
    return [kinds, choice('layer', 'Layer', scene.stage.layer, layers)];
  },

  /** Only the full card says what the experts take. */
  asks(trace, { experts_show: show }) {
    const isAsked = show === 'specialities' && !isDense(trace);
    return { ...(isAsked && { card: { card: trace.model } }) };
  },

  /** Return one panel for each layer that routes; a dense model has one, with a notice. */
  panels(trace, state) {
    const { stages, stack } = sceneOf(trace, state);
    if (stages.length === 0) return [{ id: 'dense', state: { stack } }];
    /** @param {string} name */
    const part = (name) => ({ id: name, state: { part: name, stack } });
    if (state.experts_show === 'route') return [part('ways')];
    if (state.experts_show === 'specialities') return [part('kinds')];
    return [
      ...stages.filter(({ layer }) => layer === state.layer),
      ...stages.filter(({ layer }) => layer !== state.layer),
    ].map(({ layer }) => ({
      id: `layer-${layer}`,
      state: { part: 'routing', stack, drawn: layer },
    }));
  },

  /** The state has the panel’s `part`, `stack`, `drawn`. */
  figure(trace, state) {
    const scene = sceneOf(trace, state);
    if (scene.stages.length === 0) return dense(trace, scene);
    const { part = 'routing' } = state;
    if (part !== 'kinds') return FIGURES[part](trace, state, scene);
    const answer = state.answers.card;
    if (!answer?.trace) return { title: 'Specialities', notice: noticeOf(answer) };
    return kindsFigure({ ...trace, card: answer.trace.card }, state, scene);
  },
};

/** @param {Trace} trace */
function isDense({ tensors }) {
  return layersWith(tensors, 'experts.router_probs').length === 0;
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
 * @property {(layer: number) => string} nameOf a layer in a sentence
 * @property {(token: number) => Partial<State>} choose what changes when a token is chosen
 */

/** @param {Trace} trace @param {ViewState} state @returns {Scene} */
function sceneOf(trace, state) {
  const stack = state.stack ?? chooseStack(state, trace);
  const side = sideOf(stack, trace);
  const query = queryOf(state, trace, side);
  const stages = listStages(trace, stack);
  const stage = stages.find(({ layer }) => layer === state.layer) ?? stages[0];
  /** @param {number} layer */
  const nameOf = (layer) => (hasTwoSides(trace) ? `${stack}, layer ${layer}` : `layer ${layer}`);
  /** @param {number} token */
  const choose = (token) => choosing(trace, side, token);
  return { stack, side, query, stages, stage, nameOf, choose, tokens: tokensOf(trace, side) };
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

/** @param {Trace} _ @param {Frame} state @param {Scene} scene @returns {Figure} */
function choicesFigure(_, state, scene) {
  const { stages, stage, tokens, query, side } = scene;
  const choices = choicesOf(stages, tokens.length);
  const ways = {
    readout: (/** @type {number} */ token) => pathInWords(tokens, token, stages),
    tint: (/** @type {number} */ token) => pathOverlap(stages, token),
  };
  return {
    title: 'Token by token',
    help: 'The number is the expert, the colour its weight; within a layer the largest weight comes first.',
    summary: `The experts that ${tokens.length} tokens go through in each of ${stages.length} layers.`,
    ...chart(
      {
        x: tokenBand(tokens, { side, query }, { side: 'top', isSlanted: true }),
        y: band(
          choices.map(({ label }) => label),
          { side: 'top', isSlanted: true, letters: LABEL_LETTERS },
        ),
        isSwapped: isTurned(state),
        marks: [
          cellsOf(scene, choices),
          ...choices.flatMap(({ rank }, row) =>
            rank === 0 && row > 0
              ? [ruleAt(row - 0.5, { of: 'y', stroke: state.palette.ink, dash: 'solid' })]
              : [],
          ),
        ],
        table: {
          rows: { title: 'layer, choice' },
          columns: { title: 'token' },
          quantity: 'expert that a token goes through',
          request: { capture: stages.map(({ routing }) => `${routing.stem}*`) },
        },
        sentence: {
          tint: (_row, token) => ways.tint(token),
          ofToken: (token) => ({ readout: ways.readout(token), tint: ways.tint(token) }),
          rest: { readout: ways.readout(query) },
          ceiling: 1,
        },
        cursor: {
          start: { row: choices.findIndex((choice) => choice.stage === stage), column: query },
        },
      },
      state,
    ),
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
      shares: byToken.map((shares) => shares[rank]),
    }));
  });
}

/** Return the expert of every choice, in the colour of its weight. @param {Scene} scene @param {Choices[]} choices */
function cellsOf({ tokens, nameOf, choose }, choices) {
  const chosen = matrixFrom(choices.map(({ shares }) => shares.map(({ expert }) => expert)));
  /** @param {{row: number, column: number}} of */
  const weightOf = ({ row, column }) => choices[row].shares[column].weight;
  return cell(chosen, {
    ramp: { title: 'weight', domain: [0, 1] },
    fill: weightOf,
    text: ({ value }) => String(value),
    format: (number) => (Number.isInteger(number) ? String(number) : share(number, 4)),
    name: ({ row, column }) => `${named(tokens, column)}, ${nameOf(choices[row].stage.layer)}`,
    number: (of) => `expert ${of.value}, weight ${share(weightOf(of))}`,
    say: ({ row, column, value }) =>
      `${pathInWords(tokens, column, [choices[row].stage])}; choice ${choices[row].rank + 1} is expert ${value}`,
    choose: ({ row, column }) => ({ ...choose(column), layer: choices[row].stage.layer }),
    weight: weightOf,
  });
}
