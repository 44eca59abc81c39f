/** The routing of a mixture of experts, from the arrays of its layers. */

import { entropyInBits } from '../../trace/arithmetic.js';
import { transposed, layersWith, columnOf, matrixAt, rowOf } from '../../trace/trace.js';
import { share, shortShare } from '../../words/numbers.js';
import { named } from '../../words/tokens.js';

/** @typedef {{expert: number, token: number, weight: number}} Choice */

/**
 * @typedef {Object} Routing
 * @property {Matrix} probabilities expert × token
 * @property {Choice[]} choices what was chosen, with the weight of its answer
 * @property {(expert: number, token: number) => number|undefined} weightOf undefined: not chosen
 * @property {Matrix} weights token × expert; 0 if not chosen
 * @property {number[]} load share of all choices that fell on each expert; they sum to 1
 * @property {Float64Array} entropies of the router’s probabilities, token by token, in bits
 * @property {number} mostEntropy log₂ of the number of experts: all equally likely
 * @property {number} meanEntropy over the tokens
 * @property {number} balanceLoss 1 if load and probabilities are uniform, n_experts if one expert takes all
 * @property {number} topK experts chosen for each token
 * @property {string} stem of the sites these arrays are from
 */

/**
 * @param {Record<string, NamedArray>} tensors
 * @param {number} layer
 * @param {string} [stack] `encoder` or `decoder`, if there are both
 * @returns {Routing|null} null if the layer is dense
 */
export function readRouting(tensors, layer, stack) {
  const router = layersWith(tensors, 'experts.router_probs', stack).find(
    (candidate) => candidate.layer === layer,
  );
  if (!router) return null;
  /** @param {string} name */
  const arrayOf = (name) => matrixAt(tensors[router.site.replace(/router_probs$/, name)]);
  const byToken = arrayOf('router_probs');
  const indices = arrayOf('expert_indices');
  const choices = choicesOf(indices, arrayOf('expert_weights'));
  const weights = new Map(
    choices.map(({ expert, token, weight }) => [`${expert},${token}`, weight]),
  );
  const load = loadOf(choices, byToken.columns);
  const entropies = Float64Array.from({ length: byToken.rows }, (_, token) =>
    entropyInBits(rowOf(byToken, token)),
  );
  return {
    probabilities: transposed(byToken),
    choices,
    weights: weightsOf(choices, byToken),
    entropies,
    mostEntropy: Math.log2(byToken.columns),
    meanEntropy: entropies.reduce((sum, entropy) => sum + entropy, 0) / entropies.length,
    balanceLoss: balanceLossOf(load, byToken),
    weightOf: (expert, token) => weights.get(`${expert},${token}`),
    load,
    topK: indices.columns,
    stem: router.site.replace(/router_probs$/, ''),
  };
}

/** @param {Matrix} indices @param {Matrix} weights */
function choicesOf(indices, weights) {
  return Array.from(indices.data, (expert, at) => ({
    expert,
    token: Math.floor(at / indices.columns),
    weight: weights.data[at],
  }));
}

/** @param {Choice[]} choices @param {number} nExperts */
function loadOf(choices, nExperts) {
  const counts = new Array(nExperts).fill(0);
  for (const { expert } of choices) counts[expert] += 1;
  return counts.map((count) => count / choices.length);
}

/** @param {Choice[]} choices @param {Matrix} matrix */
function weightsOf(choices, { rows, columns }) {
  const data = new Float64Array(rows * columns);
  for (const { token, expert, weight } of choices) data[token * columns + expert] = weight;
  return { rows, columns, data };
}

/**
 * n·Σ f·P over the experts: f is the load, P the mean probability. Fedus et al. 2021, section 2.2.
 * @param {number[]} load
 * @param {Matrix} matrix
 */
function balanceLossOf(load, { rows, columns, data }) {
  const means = load.map((_, expert) => {
    let sum = 0;
    for (let token = 0; token < rows; token += 1) sum += data[token * columns + expert];
    return sum / rows;
  });
  return columns * load.reduce((sum, part, expert) => sum + part * means[expert], 0);
}

/** @typedef {{layer: number, routing: Routing}} Stage a layer that routes */
/** @typedef {{expert: number, weight: number}} Share */

/**
 * @param {Trace} trace
 * @param {string} [stack]
 * @returns {Stage[]} the layers that route, in order
 */
export function listStages({ tensors }, stack) {
  return layersWith(tensors, 'experts.router_probs', stack).flatMap(({ layer }) => {
    const routing = readRouting(tensors, layer, stack);
    return routing ? [{ layer, routing }] : [];
  });
}

/**
 * Return the experts of a token in a layer, the largest weight first.
 * @param {Routing} routing
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
 * Return the overlap of each token's path with that of one token: the mean over layers of Σ
 * min(weight, weight).
 * @param {Stage[]} stages
 * @param {number} token
 * @returns {Float64Array} by token, 1 for the same way
 */
export function pathOverlap(stages, token) {
  const [
    {
      routing: {
        weights: { rows },
      },
    },
  ] = stages;
  return Float64Array.from({ length: rows }, (_, row) => {
    const shared = stages.map(({ routing: { weights } }) => {
      const mine = rowOf(weights, token);
      return rowOf(weights, row).reduce(
        (sum, weight, expert) => sum + Math.min(weight, mine[expert]),
        0,
      );
    });
    return shared.reduce((sum, part) => sum + part, 0) / stages.length;
  });
}

/**
 * Return the weight of an expert for each token.
 * @param {Routing} routing
 * @param {number} expert
 */
export function tintOf({ weights }, expert) {
  return columnOf(weights, expert);
}

/**
 * `“it” goes through expert 3 with weight 0.625 and expert 0 with weight 0.375 (layer 1)`
 * @param {Token[]} tokens
 * @param {number} token
 * @param {Routing} routing
 * @param {string} where
 */
export function choicesInWords(tokens, token, routing, where) {
  const parts = choicesAt(routing, token).map(
    ({ expert, weight }) => `expert ${expert} with weight ${share(weight)}`,
  );
  return `${named(tokens, token)} goes through ${parts.join(' and ')} (${where})`;
}

/**
 * `“it” goes through experts 3 (.63) and 0 (.38) in layer 0, 2 (.90) and 1 (.10) in layer 1`
 * @param {Token[]} tokens
 * @param {number} token
 * @param {Stage[]} stages
 */
export function pathInWords(tokens, token, stages) {
  const parts = stages.map(({ layer, routing }) => {
    const experts = choicesAt(routing, token).map(
      ({ expert, weight }) => `${expert} (${shortShare(weight)})`,
    );
    return `${experts.join(' and ')} in layer ${layer}`;
  });
  return `${named(tokens, token)} goes through ${stages.length * stages[0].routing.topK === 1 ? 'expert' : 'experts'} ${parts.join(', ')}`;
}

/**
 * Say what a router gives an expert, within a sentence.
 * @param {string} name of the token
 * @param {number} expert
 * @param {number} probability
 * @param {number|undefined} weight
 */
export function routeInWords(name, expert, probability, weight) {
  const verdict = weight === undefined ? 'not chosen' : `chosen, with weight ${share(weight)}`;
  return `the router gives expert ${expert} probability ${share(probability)} for ${name}: ${verdict}`;
}
