/** Whether a text does what the label of a head says that the head does over many sentences. */

import { isHeld } from './layered.js';
import { highestIn } from './trace.js';

/** @import { NamedArray, Token } from './trace.js' */

/** @typedef {{tokens: Token[], isOneText: boolean}} Keys the tokens that are read, and whether they are those that read */
/** @typedef {Keys & {query: number, key: number, weight: number}} Row of one head, and the key with its greatest weight */

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
 * @param {NamedArray} weights head × query × key
 * @param {Keys} keys
 * @param {number} head
 * @param {string} id of the label
 * @returns {(boolean|null)[]} empty if the weights are not here, or no row can tell
 */
export function rowsDoing(weights, keys, head, id) {
  if (!HERE[id] || !isHeld(weights)) return [];
  const kept = known.get(weights) ?? new Map();
  known.set(weights, kept);
  const name = `${id} ${head}`;
  if (!kept.has(name)) kept.set(name, readRows(weights, keys, head, HERE[id]));
  return kept.get(name) ?? [];
}

/** @param {NamedArray} weights @param {Keys} keys @param {number} head @param {(row: Row) => boolean|null} does */
function readRows({ shape: [, rows, columns], data, scale }, keys, head, does) {
  return Array.from({ length: rows }, (_, query) => {
    const start = (head * rows + query) * columns;
    const key = highestIn(Array.from({ length: columns }, (__, at) => data[start + at]));
    return does({ ...keys, query, key, weight: data[start + key] * scale });
  });
}

/**
 * Return true unless most rows of a text that a label speaks of, or the open one, do something else.
 * @param {(boolean|null)[]} rows
 * @param {number} query the open row; −1: none
 */
export function agrees(rows, query) {
  const told = rows.filter((does) => does !== null);
  return rows[query] !== false && 2 * told.filter(Boolean).length >= told.length;
}
