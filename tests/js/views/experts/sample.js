/**
 * A trace whose two layers route differently, and a card that says what the experts take.
 */

import { sampleTrace, tensor, TOKENS } from '../../sample.js';

export const N_EXPERTS = 4;

/** The experts of each token in each layer, the weightier first. */
export const CHOSEN = [
  [
    [0, 1],
    [0, 1],
    [2, 3],
    [3, 0],
    [0, 2],
  ],
  [
    [3, 2],
    [1, 0],
    [1, 0],
    [2, 3],
    [1, 3],
  ],
];
export const WEIGHTS = [
  [0.75, 0.6, 0.9, 0.5, 0.8],
  [0.7, 0.625, 0.95, 0.55, 0.65],
];

const named = (axes, columns, Kind, valueOf) =>
  tensor(
    axes,
    [TOKENS.length, columns],
    (at) => valueOf(Math.floor(at / columns), at % columns),
    Kind,
  );

function probability(layer, token, expert) {
  const rank = CHOSEN[layer][token].indexOf(expert);
  if (rank < 0) return 0.05;
  return 0.9 * (rank === 0 ? WEIGHTS[layer][token] : 1 - WEIGHTS[layer][token]);
}

function arraysOf(layer) {
  const stem = `decoder.layers.${layer}.experts.`;
  return {
    [`${stem}router_probs`]: named(['query', 'expert'], N_EXPERTS, Float64Array, (token, expert) =>
      probability(layer, token, expert),
    ),
    [`${stem}expert_indices`]: named(
      ['query', 'top_k'],
      2,
      Int32Array,
      (token, rank) => CHOSEN[layer][token][rank],
    ),
    [`${stem}expert_weights`]: named(['query', 'top_k'], 2, Float64Array, (token, rank) =>
      rank === 0 ? WEIGHTS[layer][token] : 1 - WEIGHTS[layer][token],
    ),
  };
}

const TAKES = [
  {
    share: 0.6,
    kinds: { punctuation: 0.9, start_of_word: 0.2, other: 0.1 },
    tokens: [
      { text: ' it', share: 0.98, count: 1200 },
      { text: ' <b>', share: 0.9, count: 30 },
      { text: '\n', share: 0.7, count: 20 },
    ],
  },
  {
    share: 0.5,
    kinds: { punctuation: 0.1, start_of_word: 0.8, other: 0.9 },
    tokens: [{ text: ' and', share: 1, count: 700 }],
  },
  { share: 0.5, kinds: { punctuation: 0.5, start_of_word: 0.5, other: 0.5 }, tokens: [] },
  {
    share: 0.4,
    kinds: { punctuation: 0.5, start_of_word: 0.5, other: 0.5 },
    tokens: [{ text: ' saw', share: 0.75, count: 40 }],
  },
];

export const CARD = {
  kind: 'decoder',
  positional: 'sinusoidal',
  expert_tokens: {
    text: ['books.txt'],
    tokens: 12345,
    least_count: 20,
    kinds: { punctuation: 0.25, start_of_word: 0.7, other: 0.05 },
    layers: { 'decoder.layers.0': TAKES, 'decoder.layers.1': [...TAKES].reverse() },
  },
};

/** @returns {import('../../../../static/js/trace/trace.js').Trace} */
export function routedTrace() {
  const trace = sampleTrace({ isDense: true });
  return { ...trace, card: CARD, tensors: { ...trace.tensors, ...arraysOf(0), ...arraysOf(1) } };
}
