/**
 * Which tokens of A are which of B: all of them where both read the same, or else those that the two
 * share in the same order.
 */

import { commonPairs } from '../../data/sequences.js';
import { tokensOf } from '../../data/places.js';
import { alone, merged, wordsOf } from '../../data/words.js';

/** @typedef {import('../../data/words.js').Unit} Unit */

/**
 * @typedef {Object} Match
 * @property {Unit[]} a
 * @property {Unit[]} b
 * @property {[number, number][]} pairs
 * @property {boolean} isByWord two tokenizers cut one text differently, so its words are compared
 * @property {boolean} isWhole nothing on either side is without its like
 */

/**
 * @param {import('./sides.js').Side} a
 * @param {import('./sides.js').Side} b
 * @param {import('../../data/places.js').Side} side
 * @returns {Match}
 */
export function matchOf(a, b, side) {
  const isOtherModel = a.trace.model !== b.trace.model;
  const tokens = [a, b].map(({ trace }) => alone(tokensOf(trace, side)));
  const byToken = matched(tokens, isOtherModel ? spanOf : ({ id }) => String(id), false);
  if (byToken.isWhole || !isOtherModel) return byToken;
  const words = [a, b].map(({ trace }) =>
    wordsOf(tokensOf(trace, side), side === 'target' ? trace.target : trace.text),
  );
  return matched(words, spanOf, true);
}

function matched([a, b], keyOf, isByWord) {
  const pairs = commonPairs(a.map(keyOf), b.map(keyOf));
  return { a, b, pairs, isByWord, isWhole: pairs.length === a.length && pairs.length === b.length };
}

/** What a token stands for in a text, whoever cut it. */
function spanOf({ text, start, end, is_special: isSpecial }) {
  return isSpecial ? text : `${start} ${end}`;
}

/**
 * @param {import('../../data/trace.js').Matrix} matrix by tokens
 * @param {Unit[]} rows
 * @param {Unit[]} columns
 * @returns {import('../../data/trace.js').Matrix} by what is compared
 */
export function byUnits(matrix, rows, columns) {
  const isByToken = rows.length === matrix.rows && columns.length === matrix.columns;
  return isByToken ? matrix : merged(matrix, rows, columns);
}

/**
 * A token of A as the token of B that stands for the same.
 * @param {Match} match
 * @param {number} index of a token of A
 * @returns {number} −1: there is none
 */
export function counterpart({ a, b, pairs }, index) {
  const unit = a.findIndex(({ first, last }) => first <= index && index <= last);
  const pair = pairs.find(([left]) => left === unit);
  return pair ? b[pair[1]].last : -1;
}
