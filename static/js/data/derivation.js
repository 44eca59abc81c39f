/**
 * One attention weight worked out anew, step by step and in float64, from the tensors that the model
 * computed with: softmax(q·k/√d_head + bias)·v.
 */

import { entropyOf, softmaxSteps } from './distribution.js';
import { anglesOf, turned } from './rotation.js';
import { isCausal } from './sites.js';
import { matrixAt, rowOf } from './trace.js';

/**
 * @typedef {Object} Row the keys as one query sees them
 * @property {Float64Array} products q·k
 * @property {Float64Array|null} biases what ALiBi adds; null: nothing
 * @property {Float64Array} scores −∞ where a key is hidden
 * @property {number} greatest score
 * @property {Float64Array} powers e to the score less the greatest
 * @property {number} total of the powers
 * @property {Float64Array} weights
 * @property {number} entropy in bits
 */

/**
 * @typedef {Object} Derivation
 * @property {number} query
 * @property {number} key
 * @property {boolean} isHidden whether the key comes later than the query may see
 * @property {boolean} isTurned whether positions are turned into queries and keys
 * @property {{query: Float64Array, key: Float64Array}} projected as the projections give them
 * @property {{query: Float64Array, key: Float64Array}} met as they meet, turned by their positions where those are rotary
 * @property {Float64Array} products dimension by dimension
 * @property {number} divisor of the product: √d_head, or 1 where the scaling is left out
 * @property {number} temperature
 * @property {Row} row
 * @property {Float64Array} value of the key
 * @property {Float64Array} weighted the value times the weight
 * @property {Float64Array} context the sum of all of them
 */

/**
 * The sites that a derivation reads.
 * @param {string} path of an attention: `decoder.layers.0.self_attention`
 * @param {string} [positional] the model's scheme
 * @returns {string[]}
 */
export function sitesOf(path, positional) {
  const own = path.endsWith('self_attention')
    ? { rotary: ['rotated_queries', 'rotated_keys'], alibi: ['bias'] }[positional]
    : null;
  return [
    'queries',
    'keys',
    ...(own ?? []),
    'scores',
    'weights',
    'values',
    'context',
    'output',
  ].map((part) => `${path}.${part}`);
}

/**
 * @param {import('./trace.js').Trace} trace with the sites of `sitesOf`, of one head
 * @param {string} path
 * @param {{query: number, key: number}} cell
 * @param {{isScaled?: boolean, temperature?: number}} [softmax]
 * @returns {Derivation}
 */
export function derive(
  { tensors },
  path,
  { query, key },
  { isScaled = true, temperature = 1 } = {},
) {
  const part = (name) => matrixAt(tensors[`${path}.${name}`], 0);
  const [queries, keys, values] = ['queries', 'keys', 'values'].map(part);
  const isTurned = `${path}.rotated_keys` in tensors;
  const projected = { query: rowOf(queries, query), key: rowOf(keys, key) };
  const met = isTurned
    ? { query: turnedBy(projected.query, query), key: turnedBy(projected.key, key) }
    : projected;
  const divisor = isScaled ? Math.sqrt(keys.columns) : 1;
  const row = rowFor(path, {
    query,
    products: Float64Array.from({ length: keys.rows }, (_, at) =>
      dot(met.query, isTurned ? turnedBy(rowOf(keys, at), at) : rowOf(keys, at)),
    ),
    biases: `${path}.bias` in tensors ? rowOf(part('bias'), query) : null,
    divisor,
    temperature,
  });
  return {
    query,
    key,
    isTurned,
    projected,
    met,
    divisor,
    temperature,
    row,
    isHidden: row.scores[key] === -Infinity,
    products: met.query.map((number, at) => number * met.key[at]),
    value: rowOf(values, key),
    weighted: rowOf(values, key).map((number) => number * row.weights[key]),
    context: mixed(values, row.weights),
  };
}

function rowFor(path, { query, products, biases, divisor, temperature }) {
  const scores = products.map((product, key) => {
    if (isCausal(`${path}.scores`) && key > query) return -Infinity;
    return (product / divisor + (biases?.[key] ?? 0)) / temperature;
  });
  const steps = softmaxSteps(scores);
  return { products, biases, scores, ...steps, entropy: entropyOf(steps.weights, Math.log2) };
}

/**
 * A query or key turned by its position: each pair of dimensions by position / 10000^(2i/d_head), the
 * other way round than the pairs of sine and cosine that a sinusoidal encoding adds.
 * Su et al. 2021, https://arxiv.org/abs/2104.09864, section 3.2.
 * @param {Float64Array} vector
 * @param {number} position
 */
export function turnedBy(vector, position) {
  return turned(vector, anglesOf(-position, vector.length));
}

/** The values of all keys, each as much as its weight says. */
function mixed(values, weights) {
  return Float64Array.from({ length: values.columns }, (_, at) =>
    weights.reduce((sum, weight, key) => sum + weight * values.data[key * values.columns + at], 0),
  );
}

function dot(a, b) {
  let sum = 0;
  for (let at = 0; at < a.length; at += 1) sum += a[at] * b[at];
  return sum;
}

/** @param {ArrayLike<number>} vector */
export function lengthOf(vector) {
  return Math.sqrt(dot(vector, vector));
}

/**
 * How far what was worked out here is from what the model computed: the largest difference of each.
 * @param {Derivation} derivation
 * @param {import('./trace.js').Trace} trace
 * @param {string} path
 * @returns {{score: number, weight: number, context: number, turn: number}} of this cell, of this query
 */
export function differences(derivation, { tensors }, path) {
  const { query, key, row, met } = derivation;
  const captured = (name, at) => rowOf(matrixAt(tensors[`${path}.${name}`], 0), at);
  const [score, weight] = [captured('scores', query)[key], captured('weights', query)[key]];
  return {
    score: score === row.scores[key] ? 0 : Math.abs(score - row.scores[key]),
    weight: Math.abs(weight - row.weights[key]),
    context: furthest(captured('context', query), derivation.context),
    turn: derivation.isTurned
      ? Math.max(
          furthest(captured('rotated_queries', query), met.query),
          furthest(captured('rotated_keys', key), met.key),
        )
      : 0,
  };
}

function furthest(a, b) {
  return a.reduce((most, number, at) => Math.max(most, Math.abs(number - b[at])), 0);
}

/**
 * What a head's output is to the whole attention's.
 * @param {import('./trace.js').Trace} trace with the analysis `head_outputs`
 * @param {string} path
 * @param {number} query
 * @returns {{head: Float64Array, whole: Float64Array, cosine: number, share: number}} `share`: how much of the whole the head gives along the whole's direction
 */
export function shareOf({ tensors, analyses }, path, query) {
  const head = rowOf(matrixAt(analyses.head_outputs[path], 0), query);
  const whole = rowOf(matrixAt(tensors[`${path}.output`]), query);
  const along = dot(head, whole);
  return {
    head,
    whole,
    cosine: along / (lengthOf(head) * lengthOf(whole)) || 0,
    share: along / dot(whole, whole) || 0,
  };
}
