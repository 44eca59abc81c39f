/**
 * The way of tokens through the experts of all layers.
 */

import { routingOf } from './routing.js';
import { layersWith } from './sites.js';
import { rowOf } from './trace.js';

/** @typedef {{layer: number, routing: import('./routing.js').Routing}} Stage a layer that routes */
/** @typedef {{expert: number, weight: number}} Share */

/**
 * @param {import('./trace.js').Trace} trace
 * @param {string} [stack]
 * @returns {Stage[]} the layers that route, in order
 */
export function stagesOf({ tensors }, stack) {
  return layersWith(tensors, 'experts.router_probs', stack).map(({ layer }) => ({
    layer,
    routing: routingOf(tensors, layer, stack),
  }));
}

/**
 * The experts a token goes through in a layer, the weightiest first.
 * @param {import('./routing.js').Routing} routing
 * @param {number} token
 * @returns {Share[]}
 */
export function choicesAt({ choices, topK }, token) {
  return choices
    .slice(token * topK, (token + 1) * topK)
    .map(({ expert, weight }) => ({ expert, weight }))
    .sort((a, b) => b.weight - a.weight);
}

/**
 * What each expert takes of all tokens, by the weight of its answers; a layer's sum to the number of tokens.
 * @param {import('./routing.js').Routing} routing
 * @returns {Float64Array} by expert
 */
export function takenBy({ weights }) {
  const taken = new Float64Array(weights.columns);
  for (let at = 0; at < weights.data.length; at += 1)
    taken[at % weights.columns] += weights.data[at];
  return taken;
}

/**
 * How much goes from each expert of a layer to each of another: Σ over tokens of weight · weight.
 * What an expert takes is what comes to it and what goes on from it, as a token's weights sum to 1.
 * @param {import('./routing.js').Routing} from
 * @param {import('./routing.js').Routing} to
 * @param {(token: number) => boolean} counts which tokens
 * @returns {import('./trace.js').Matrix} expert × expert
 */
export function flowBetween(from, to, counts) {
  const rows = from.weights.columns;
  const columns = to.weights.columns;
  const data = new Float64Array(rows * columns);
  for (let token = 0; token < from.weights.rows; token += 1) {
    if (!counts(token)) continue;
    for (const first of choicesAt(from, token)) {
      for (const second of choicesAt(to, token))
        data[first.expert * columns + second.expert] += first.weight * second.weight;
    }
  }
  return { rows, columns, data };
}

/**
 * How much of its way each token shares with one of them: the mean over layers of Σ min(weight, weight).
 * @param {Stage[]} stages
 * @param {number} token
 * @returns {Float64Array} by token, 1 for the same way
 */
export function sharedWay(stages, token) {
  const [
    {
      routing: {
        weights: { rows },
      },
    },
  ] = stages;
  return Float64Array.from({ length: rows }, (_, other) => {
    const shared = stages.map(({ routing: { weights } }) => {
      const mine = rowOf(weights, token);
      return rowOf(weights, other).reduce(
        (sum, weight, expert) => sum + Math.min(weight, mine[expert]),
        0,
      );
    });
    return shared.reduce((sum, part) => sum + part, 0) / stages.length;
  });
}
