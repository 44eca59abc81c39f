/**
 * The derivation of one attention weight in float64 from the captured tensors: softmax(q·k/√d_head
 * + bias)·v, or with the scale, cap, window and sink on the model's card.
 */

import {
  computeAngles,
  entropyInBits,
  frequencies,
  softmaxSteps,
  turned,
} from '../../trace/arithmetic.js';
import { counted } from '../../words/lists.js';
import { isCausal, matrixAt, rowOf } from '../../trace/trace.js';

/** @import { SoftmaxTerms } from '../../trace/card.js' */

/**
 * @typedef {Object} Row the keys as one query sees them
 * @property {Float64Array} products q·k
 * @property {Float64Array} scaled the products with their scale, before a cap, a bias and a temperature
 * @property {Float64Array|null} biases what is added by position; null: nothing
 * @property {Float64Array} scores −∞ if a key is masked
 * @property {number} greatest score
 * @property {Float64Array} powers e to the score less the greatest
 * @property {number} total of the powers, that of the sink included
 * @property {Float64Array} weights
 * @property {number} sinkWeight what the sink takes; 0 without one
 * @property {number} entropy in bits
 */

/**
 * @typedef {Object} Derivation
 * @property {number} query
 * @property {number} key
 * @property {boolean} isHidden whether the key comes later than the query may see
 * @property {boolean} isTurned whether positions are turned into queries and keys
 * @property {{query: Float64Array, key: Float64Array}} projected as the projections give them
 * @property {{query: Float64Array, key: Float64Array}} met as multiplied: rotated by their positions under rotary encoding
 * @property {Matrix} metKeys every key as multiplied, a row each
 * @property {Float64Array} products dimension by dimension
 * @property {number} divisor of the product: √d_head, 1 / the model's own scale, or 1 without scaling
 * @property {boolean} isRoot whether the divisor is √d_head
 * @property {Terms} terms
 * @property {number} temperature
 * @property {Row} row
 * @property {Float64Array} value of the key
 * @property {Float64Array} weighted the value times the weight
 * @property {Float64Array} context the sum of all of them
 */

/** A scale that a self-check fitted is exact to rounding. */
const SAME_SCALE = 1e-6;

/**
 * @typedef {Object} Terms of the softmax of one head, as its model has them
 * @property {number|null} scale null: 1/√d_head
 * @property {number|null} softcap
 * @property {number|null} window
 * @property {number|null} chunk
 * @property {number|null} sink the score of the sink
 * @property {boolean} isCausal
 * @property {boolean} isForeign whether rotation and mask are taken as captured
 */

/**
 * Return the terms of a head's softmax by the card; those of the models of this project are not on
 * it.
 * @param {Partial<Card>|undefined} card
 * @param {string} path of an attention
 * @param {number} head
 * @returns {Terms}
 */
export function termsOf(card, path, head) {
  const facts = factsOf(card, path);
  return {
    scale: Math.abs((facts?.scale ?? 0) - 1) < SAME_SCALE ? 1 : (facts?.scale ?? null),
    softcap: facts?.softcap ?? null,
    window: facts?.window ?? null,
    chunk: facts?.chunk ?? null,
    sink: facts?.sinks?.[head] ?? null,
    isCausal: facts?.is_causal ?? isCausal(`${path}.`),
    isForeign: isForeign(card),
  };
}

/** @param {Partial<Card>|undefined} card @param {string} path @returns {SoftmaxTerms|undefined} */
function factsOf(card, path) {
  if (!isForeign(card)) return undefined;
  return card?.attentions?.find((facts) => facts.path === path);
}

/** @param {Partial<Card>|undefined} card */
export function isForeign(card) {
  return (card?.architecture ?? 'headlight') !== 'headlight';
}

/** @type {Record<string, string[]>} */
const OWN_SITES = { rotary: ['rotated_queries', 'rotated_keys'], alibi: ['bias'] };

/**
 * Return the sites that a derivation reads.
 * @param {string} path of an attention: `decoder.layers.0.self_attention`
 * @param {Partial<Card>} [card]
 * @returns {string[]}
 */
export function listSites(path, card) {
  return [
    'queries',
    'keys',
    ...optionalSites(path, card),
    'scores',
    'weights',
    'values',
    'context',
    'output',
  ].map((part) => `${path}.${part}`);
}

/**
 * Return the sites of the position, which only some attentions have.
 * @param {string} path
 * @param {Partial<Card>} [card]
 */
function optionalSites(path, card) {
  if (!isForeign(card))
    return path.endsWith('self_attention') ? (OWN_SITES[card?.positional ?? ''] ?? []) : [];
  const known = new Set(card?.sites?.map(({ name: site }) => site));
  return Object.values(OWN_SITES)
    .flat()
    .filter((part) => known.has(`${path}.${part}`));
}

/**
 * @param {Trace} trace with the sites of `listSites`, of one head
 * @param {string} path
 * @param {{query: number, key: number}} cell
 * @param {{isScaled?: boolean, temperature?: number, terms?: Terms}} [softmax]
 * @returns {Derivation}
 */
export function derive(
  { tensors },
  path,
  { query, key },
  { isScaled = true, temperature = 1, terms = termsOf(undefined, path, 0) } = {},
) {
  /** @param {string} name */
  const part = (name) => matrixAt(tensors[`${path}.${name}`], 0);
  const [queries, keys, values] = ['queries', 'keys', 'values'].map(part);
  const isTurned = `${path}.rotated_keys` in tensors;
  /** @param {Matrix} all */
  const metOf = (all) => {
    if (!isTurned) return all;
    return terms.isForeign ? part('rotated_keys') : turnedRows(all);
  };
  const projected = { query: rowOf(queries, query), key: rowOf(keys, key) };
  const metKeys = metOf(keys);
  const met = isTurned
    ? {
        query: terms.isForeign
          ? rowOf(part('rotated_queries'), query)
          : turnedBy(projected.query, query),
        key: rowOf(metKeys, key),
      }
    : projected;
  const ownScale = terms.scale ?? 1 / Math.sqrt(keys.columns);
  const divisor = isScaled ? 1 / ownScale : 1;
  const row = rowFor({
    query,
    terms,
    captured: terms.isForeign ? rowOf(part('scores'), query) : null,
    products: Float64Array.from({ length: keys.rows }, (_, at) =>
      dot(met.query, rowOf(metKeys, at)),
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
    metKeys,
    isRoot: isScaled && Math.abs(divisor / Math.sqrt(keys.columns) - 1) < SAME_SCALE,
    terms,
    divisor,
    temperature,
    row,
    isHidden: row.scores[key] === -Infinity,
    products: met.query.map((number, at) => number * met.key[at]),
    value: rowOf(values, key),
    weighted: rowOf(values, key).map((number) => number * row.weights[key]),
    context: Float64Array.from({ length: values.columns }, (_, at) =>
      row.weights.reduce(
        (sum, weight, key) => sum + weight * values.data[key * values.columns + at],
        0,
      ),
    ),
  };
}

/**
 * A key is hidden by the terms, or by a mask of the pass that they do not tell. The sink takes part
 * in the softmax like one more key.
 * @param {{query: number, terms: Terms, captured: Float64Array|null, products: Float64Array, biases: Float64Array|null, divisor: number, temperature: number}} of
 * @returns {Row}
 */
function rowFor({ query, terms, captured, products, biases, divisor, temperature }) {
  const scaled = products.map((product) => product / divisor);
  const scores = scaled.map((product, key) => {
    if (captured?.[key] === -Infinity || isOutOfSight(terms, query, key)) return -Infinity;
    return (capped(product, terms) + (biases?.[key] ?? 0)) / temperature;
  });
  const sinks = terms.sink === null ? [] : [terms.sink];
  const { greatest, powers, total, weights } = softmaxSteps([...scores, ...sinks]);
  return {
    products,
    scaled,
    biases,
    scores,
    greatest,
    powers: powers.slice(0, scores.length),
    total,
    weights: weights.slice(0, scores.length),
    sinkWeight: weights[scores.length] ?? 0,
    entropy: entropyInBits(weights),
  };
}

/** @param {Terms} terms @param {number} query @param {number} key */
function isOutOfSight({ isCausal: hidesLater, window, chunk }, query, key) {
  if (hidesLater && key > query) return true;
  if (window !== null && Math.abs(query - key) >= window) return true;
  return chunk !== null && Math.floor(query / chunk) !== Math.floor(key / chunk);
}

/** @param {number} product @param {Terms} terms */
function capped(product, { softcap }) {
  return softcap === null ? product : softcap * Math.tanh(product / softcap);
}

/**
 * Rotate a query or key by its position: each pair of dimensions by position / 10000^(2i/d_head),
 * opposite in sense to the pairs of a sinusoidal encoding. Su et al. 2021,
 * https://arxiv.org/abs/2104.09864, section 3.2.
 * @param {Float64Array} vector
 * @param {number} position
 */
function turnedBy(vector, position) {
  return turned(vector, computeAngles(-position, frequencies(vector.length)));
}

/** @param {Matrix} keys @returns {Matrix} */
function turnedRows(keys) {
  const data = new Float64Array(keys.data.length);
  for (let at = 0; at < keys.rows; at += 1)
    data.set(turnedBy(rowOf(keys, at), at), at * keys.columns);
  return { ...keys, data };
}

/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
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
 * Return the largest differences between the derivation and the captured tensors.
 * @param {Derivation} derivation
 * @param {Trace} trace
 * @param {string} path
 * @returns {{score: number, weight: number, context: number, turn: number}} of this cell, of this query
 */
export function differences(derivation, { tensors }, path) {
  const { query, key, row, met } = derivation;
  /** @param {string} name @param {number} at */
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

/** @param {Float64Array} a @param {Float64Array} b */
function furthest(a, b) {
  return a.reduce((most, number, at) => Math.max(most, Math.abs(number - b[at])), 0);
}

/**
 * Return the output of a head relative to that of the whole attention.
 * @param {Trace} trace with the analysis `head_outputs`
 * @param {string} path
 * @param {number} query
 * @returns {{head: Float64Array, whole: Float64Array, cosine: number, share: number}} `share`: how much of the whole the head gives along the whole's direction
 */
export function measureShare({ tensors, analyses }, path, query) {
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

/**
 * Return the reason that a query does not see a key.
 * @param {Pick<Derivation, 'query'|'terms'>} derivation
 * @param {number} key
 */
export function hiddenReason({ query, terms: { isCausal: hidesLater, window, chunk } }, key) {
  if (hidesLater && key > query) return 'comes later';
  if (window !== null && Math.abs(query - key) >= window)
    return `lies outside the window of ${counted(window, 'token')}`;
  return chunk === null ? 'is not visible' : `lies in another chunk of ${counted(chunk, 'token')}`;
}
