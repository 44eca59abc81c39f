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
import { expertOf, stagesOf } from './routing.js';
import { kindsFigure, expertFigure } from './specialities.js';
import { choicesFigure } from './choices.js';
import { entryOf } from '../registry.js';

const SHOWS = [
  { id: 'routing', title: 'Routing', help: 'The decisions of the routers of all layers' },
  { id: 'route', title: 'Route', help: 'The path of the tokens through the layers' },
  {
    id: 'specialities',
    title: 'Specialities',
    help: 'The share of the training text that each expert takes',
  },
];

const EXPERT = ['expert', 'one of the parallel feed-forward networks of a layer'];
const TERMS = {
  routing: [
    EXPERT,
    ['load', 'share of all choices that fell on an expert; the line marks an even share'],
    [
      'router entropy',
      '−Σ p·ln p over the experts: 0 if the router is certain, ln n_experts if all are equally likely',
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
const HELP = {
  routing:
    'In a mixture of experts, a router sends each token through a few of several small networks. Chosen experts are marked, each with the weight of its output.',
  route:
    'In each layer a token goes through different experts, and their outputs are mixed by weight, so its path splits and joins.',
  specialities:
    'Experts specialise during training, without being assigned a subject: these are the tokens that the router sends to each more often than to the others.',
};

const FIGURES = { routing: routingFigure, flow: flowFigure, ways: choicesFigure };
const SPECIALITIES = { kinds: kindsFigure, taken: expertFigure };

/** @type {import('../../plot/figure.js').View} */
export const experts = {
  ...entryOf('experts'),
  help: HELP.routing,
  terms: TERMS.routing,
  wording: (trace, { experts_show: show = 'routing' }) =>
    isDense(trace) ? {} : { help: HELP[show], terms: TERMS[show] },
  places: (trace) => (isDense(trace) ? [] : stacksOf(trace)),
  place: (trace, state) => stackOf(state, trace),
  arrangement: (_, { experts_show: show }) => (show === 'specialities' ? 'pair' : undefined),
  controls,
  asks,
  panels,
  figure,
};

function isDense({ tensors }) {
  return layersWith(tensors, 'experts.router_probs').length === 0;
}

/**
 * Only the full card says what the experts take.
 * @param {import('../../data/trace.js').Trace} trace
 * @param {Record<string, any>} state
 */
function asks(trace, { experts_show: show }) {
  return show === 'specialities' && !isDense(trace) ? { card: { card: trace.model } } : {};
}

/** @returns {import('../../ui/controls.js').Control[]} */
function controls(trace, state) {
  const scene = sceneOf(trace, state);
  if (scene.stages.length === 0) return [];
  const { experts_show: show = 'routing' } = state;
  const kinds = {
    kind: 'choice',
    name: 'experts_show',
    label: 'Show',
    options: SHOWS,
    value: show,
  };
  if (show !== 'specialities') return [kinds];
  const layers = scene.stages.map(({ layer }) => ({ id: layer, title: String(layer) }));
  const all = scene.stage.routing.load.map((_, expert) => ({
    id: expert,
    title: `Expert ${expert}`,
  }));
  return [
    kinds,
    { kind: 'choice', name: 'layer', label: 'Layer', options: layers, value: scene.stage.layer },
    { kind: 'choice', name: 'experts_expert', label: 'Expert', options: all, value: scene.expert },
  ];
}

/** One panel for each layer that routes; a dense model has one, with a notice. */
function panels(trace, state) {
  const { stages, stack } = sceneOf(trace, state);
  if (stages.length === 0) return [{ id: 'dense', state: { stack } }];
  const part = (name) => ({ id: name, state: { part: name, stack } });
  if (state.experts_show === 'route') return ['flow', 'ways'].map(part);
  if (state.experts_show === 'specialities') return ['kinds', 'taken'].map(part);
  return stages.map(({ layer }) => ({
    id: `layer-${layer}`,
    state: { part: 'routing', stack, drawn: layer },
  }));
}

/**
 * The data that all figures of the view share.
 * @typedef {Object} Scene
 * @property {'encoder'|'decoder'} stack
 * @property {import('../../data/attention.js').Side} side
 * @property {import('../../data/trace.js').Token[]} tokens
 * @property {number} query the chosen token
 * @property {import('./routing.js').Stage[]} stages
 * @property {import('./routing.js').Stage} stage the layer that is looked at
 * @property {number} expert the one that is looked at
 * @property {(layer: number) => string} nameOf a layer in a sentence
 * @property {(token: number) => Partial<import('../../state/state.js').State>} choose what changes when a token is chosen
 */

/** @returns {Scene} */
function sceneOf(trace, state) {
  const stack = state.stack ?? stackOf(state, trace);
  const side = sideOf(stack, trace);
  const query = queryOf(state, trace, side);
  const stages = stagesOf(trace, stack);
  const stage = stages.find(({ layer }) => layer === state.layer) ?? stages[0];
  const nameOf = (layer) => (hasTwoSides(trace) ? `${stack}, layer ${layer}` : `layer ${layer}`);
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
 * @param {import('../../data/trace.js').Trace} trace
 * @param {import('../../plot/figure.js').ViewState} state with the panel’s `part`, `stack`, `drawn`
 * @returns {import('../../plot/figure.js').Figure}
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
