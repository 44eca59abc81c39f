/** Whether a text does what the label of a head says that the head does over many sentences. */

import { isHeld } from './layered.js';
import { highestIn, matrixAt, range, rowOf } from './trace.js';

/** @import { Place } from './attention.js' */

/** @typedef {{tokens: Token[], isOneText: boolean, query: number, key: number, weight: number}} Row the tokens that it reads, if they are those that read, and the key with its greatest weight */

/** By label: whether a row does it; null: the label says nothing of this row. @type {Record<string, (row: Row) => boolean|null>} */
const HERE = {
  previous: ({ query, key, isOneText }) => (isOneText && query > 0 ? key === query - 1 : null),
  next: ({ tokens, query, key, isOneText }) =>
    isOneText && query + 1 < tokens.length ? key === query + 1 : null,
  current: ({ query, key, isOneText }) => (isOneText && query > 0 ? key === query : null),
  sink: ({ tokens, query, key, isOneText }) =>
    isOneText && (query === 0 || key === query) ? null : isResting(tokens, key),
  punctuation: ({ tokens, query, key, isOneText }) =>
    isOneText && query === 0
      ? null
      : !tokens[key].is_special && !/[\p{L}\p{N}]/u.test(tokens[key].text),
  induction: followsSame,
  repetition: followsSame,
  broad: ({ query, weight }) => (query > 0 ? weight < 0.5 : null),
};

/** @param {Token[]} tokens @param {number} key */
function isResting(tokens, key) {
  const first = tokens.find(({ word }) => word !== null)?.word ?? NaN;
  const isEnd = key === tokens.length - 1 && tokens[key].is_special;
  return key === 0 || tokens[key].word === first || isEnd;
}

/** @param {Row} row */
function followsSame({ tokens, query, key, isOneText }) {
  if (!isOneText) return null;
  /** @param {number} at */
  const follows = (at) => at > 0 && at < query && tokens[at - 1].id === tokens[query].id;
  return tokens.some((_, at) => follows(at)) ? follows(key) : null;
}

/** @type {WeakMap<NamedArray, Map<string, (boolean|null)[]>>} */
const known = new WeakMap();

/**
 * Return for each row of a head whether it does what a label says; null: the label says nothing of it.
 * @param {Trace} trace @param {Place} place @param {string} site of the weights @param {number} head @param {string} id
 * @returns {(boolean|null)[]} empty if the weights are not here, or no row can tell
 */
export function rowsDoing(trace, place, site, head, id) {
  const weights = trace.tensors[site];
  if (!HERE[id] || !isHeld(weights)) return [];
  const kept = known.get(weights) ?? new Map();
  known.set(weights, kept);
  const name = `${id} ${head}`;
  if (kept.has(name)) return kept.get(name) ?? [];
  const isOneText = place.rows === place.columns;
  const tokens = (place.columns === 'target' ? trace.target_tokens : trace.tokens) ?? [];
  const matrix = matrixAt(weights, head);
  const does = range(matrix.rows).map((query) => {
    const row = rowOf(matrix, query);
    const key = highestIn(row);
    return HERE[id]({ tokens, isOneText, query, key, weight: row[key] });
  });
  kept.set(name, does);
  return does;
}

/** Return true unless most rows of a text that a label speaks of do something else. @param {(boolean|null)[]} rows */
export function agrees(rows) {
  const told = rows.filter((does) => does !== null);
  return 2 * told.filter(Boolean).length >= told.length;
}
