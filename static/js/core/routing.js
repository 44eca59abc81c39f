/**
 * Where a mixture of experts sent each token, from the arrays of one layer.
 */

import { layersWith } from './sites.js';
import { matrixAt } from './trace.js';

/** @typedef {{expert: number, token: number, weight: number}} Choice */

/**
 * @typedef {Object} Routing
 * @property {import('./trace.js').Matrix} probabilities expert × token
 * @property {Choice[]} choices what was chosen, with the weight of its answer
 * @property {(expert: number, token: number) => number|undefined} weightOf undefined: not chosen
 * @property {number[]} load share of all choices that fell on each expert; they sum to 1
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
  const found = layersWith(tensors, 'experts.router_probs', stack).find((candidate) => candidate.layer === layer);
  if (!found) return null;
  const beside = (name) => matrixAt(tensors[found.site.replace(/router_probs$/, name)]);
  const byToken = beside('router_probs');
  const indices = beside('expert_indices');
  const choices = choicesOf(indices, beside('expert_weights'));
  const weights = new Map(choices.map(({ expert, token, weight }) => [`${expert},${token}`, weight]));
  return {
    probabilities: transposed(byToken),
    choices,
    weightOf: (expert, token) => weights.get(`${expert},${token}`),
    load: loadOf(choices, byToken.columns),
    topK: indices.columns,
    stem: found.site.replace(/router_probs$/, ''),
  };
}

function transposed({ rows, columns, data }) {
  const turned = new Float64Array(data.length);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) turned[column * rows + row] = data[row * columns + column];
  }
  return { rows: columns, columns: rows, data: turned };
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
