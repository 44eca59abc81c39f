/**
 * Where a mixture of experts sent each token, from the arrays of one layer.
 */

import { entropyOf } from './distribution.js';
import { transposed } from './matrix.js';
import { layersWith } from './sites.js';
import { matrixAt, rowOf } from './trace.js';

/** @typedef {{expert: number, token: number, weight: number}} Choice */

/**
 * @typedef {Object} Routing
 * @property {import('./trace.js').Matrix} probabilities expert × token
 * @property {Choice[]} choices what was chosen, with the weight of its answer
 * @property {(expert: number, token: number) => number|undefined} weightOf undefined: not chosen
 * @property {import('./trace.js').Matrix} weights token × expert; 0 where not chosen
 * @property {number[]} load share of all choices that fell on each expert; they sum to 1
 * @property {Float64Array} entropies of the router’s probabilities, token by token, in nats
 * @property {number} mostEntropy ln of the number of experts: all equally likely
 * @property {number} meanEntropy over the tokens
 * @property {number} balanceLoss 1 where load and probabilities are even, the number of experts where one takes all
 * @property {number} topK experts chosen for each token
 * @property {string} stem of the sites these arrays are from
 */

/**
 * @param {Record<string, import('./trace.js').NamedArray>} tensors
 * @param {number} layer
 * @param {string} [stack] `encoder` or `decoder`, where there are both
 * @returns {Routing|null} null where the layer is dense
 */
export function routingOf(tensors, layer, stack) {
  const found = layersWith(tensors, 'experts.router_probs', stack).find(
    (candidate) => candidate.layer === layer,
  );
  if (!found) return null;
  const beside = (name) => matrixAt(tensors[found.site.replace(/router_probs$/, name)]);
  const byToken = beside('router_probs');
  const indices = beside('expert_indices');
  const choices = choicesOf(indices, beside('expert_weights'));
  const weights = new Map(
    choices.map(({ expert, token, weight }) => [`${expert},${token}`, weight]),
  );
  const load = loadOf(choices, byToken.columns);
  const entropies = Float64Array.from({ length: byToken.rows }, (_, token) =>
    entropyOf(rowOf(byToken, token)),
  );
  return {
    probabilities: transposed(byToken),
    choices,
    weights: weightsOf(choices, byToken),
    entropies,
    mostEntropy: Math.log(byToken.columns),
    meanEntropy: entropies.reduce((sum, entropy) => sum + entropy, 0) / entropies.length,
    balanceLoss: balanceLossOf(load, byToken),
    weightOf: (expert, token) => weights.get(`${expert},${token}`),
    load,
    topK: indices.columns,
    stem: found.site.replace(/router_probs$/, ''),
  };
}

function choicesOf(indices, weights) {
  return Array.from(indices.data, (expert, at) => ({
    expert,
    token: Math.floor(at / indices.columns),
    weight: weights.data[at],
  }));
}

function loadOf(choices, nExperts) {
  const counts = new Array(nExperts).fill(0);
  for (const { expert } of choices) counts[expert] += 1;
  return counts.map((count) => count / choices.length);
}

function weightsOf(choices, { rows, columns }) {
  const data = new Float64Array(rows * columns);
  for (const { token, expert, weight } of choices) data[token * columns + expert] = weight;
  return { rows, columns, data };
}

/** n·Σ f·P over the experts: f is the load, P the mean probability. Fedus et al. 2021, section 2.2. */
function balanceLossOf(load, { rows, columns, data }) {
  const means = load.map((_, expert) => {
    let sum = 0;
    for (let token = 0; token < rows; token += 1) sum += data[token * columns + expert];
    return sum / rows;
  });
  return columns * load.reduce((sum, part, expert) => sum + part * means[expert], 0);
}
