/**
 * The tokens of A with their counterparts in B, in the order of both; or the words, if two tokenizers
 * cut one text differently. Of two texts, a token may be the counterpart of the one it replaced.
 */

import { tokensOf } from '../../trace/attention.js';
import { range } from '../../trace/trace.js';
import { alone, merged, sharedLength, groupIntoWords } from '../../trace/words.js';

/** @import { Side } from './sides.js' */

/**
 * @typedef {Object} Match
 * @property {Unit[]} a
 * @property {Unit[]} b
 * @property {[number, number][]} pairs
 * @property {boolean} isByWord two tokenizers cut one text differently, so its words are compared
 * @property {boolean} isWhole every unit has a counterpart
 * @property {number} nReplaced pairs of two different tokens
 */

/**
 * @param {Side} a
 * @param {Side} b
 * @param {import('../../trace/attention.js').Side} side
 * @returns {Match}
 */
export function alignTokens(a, b, side) {
  const isOtherModel = a.trace.model !== b.trace.model;
  const [tokensA, tokensB] = [a, b].map(({ trace }) => alone(tokensOf(trace, side)));
  const byToken = matched(
    tokensA,
    tokensB,
    isOtherModel ? spanOf : (/** @type {Token} */ { id }) => String(id),
    false,
    !isOtherModel,
  );
  if (byToken.isWhole || !isOtherModel) return byToken;
  const [wordsA, wordsB] = [a, b].map(({ trace }) =>
    groupIntoWords(tokensOf(trace, side), (side === 'target' ? trace.target : trace.text) ?? ''),
  );
  return matched(wordsA, wordsB, spanOf, true);
}

/**
 * @param {Unit[]} a
 * @param {Unit[]} b
 * @param {(unit: Unit) => string} keyOf
 * @param {boolean} isByWord
 * @param {boolean} [isReplacing] a token is compared with the one that it replaced
 * @returns {Match}
 */
function matched(a, b, keyOf, isByWord, isReplacing = false) {
  const [keysA, keysB] = [a.map(keyOf), b.map(keyOf)];
  const common = commonPairs(keysA, keysB);
  const pairs = isReplacing ? withReplaced(common, a.length, b.length) : common;
  const isWhole = pairs.length === a.length && pairs.length === b.length;
  const nReplaced = pairs.filter(([i, j]) => keysA[i] !== keysB[j]).length;
  return { a, b, pairs, isByWord, isWhole, nReplaced };
}

/**
 * Return the pairs with those that one text has in the other’s place: of texts of one length by
 * position, else of equally many tokens between two pairs.
 * @param {[number, number][]} pairs ascending
 * @param {number} lengthA
 * @param {number} lengthB
 * @returns {[number, number][]}
 */
export function withReplaced(pairs, lengthA, lengthB) {
  let [i, j] = [0, 0];
  /** @param {number} count @returns {[number, number][]} */
  const next = (count) => range(count).map((step) => [i + step, j + step]);
  if (lengthA === lengthB) return next(lengthA);
  return [...pairs, [lengthA, lengthB]].flatMap(([left, right]) => {
    const between = left - i === right - j ? next(left - i) : [];
    [i, j] = [left + 1, right + 1];
    return left < lengthA ? [...between, [left, right]] : between;
  });
}

/** Return the span of a token, independent of its tokenizer. @param {Token} token */
function spanOf({ text, start, end, is_special: isSpecial }) {
  return isSpecial ? text : `${start} ${end}`;
}

/**
 * @param {Matrix} matrix by tokens
 * @param {Unit[]} rows
 * @param {Unit[]} columns
 * @returns {Matrix} by what is compared
 */
export function byUnits(matrix, rows, columns) {
  const isByToken = rows.length === matrix.rows && columns.length === matrix.columns;
  return isByToken ? matrix : merged(matrix, rows, columns);
}

/**
 * The token of B that corresponds to a token of A.
 * @param {Match} match
 * @param {number} index of a token of A
 * @returns {number} −1: there is none
 */
export function counterpart({ a, b, pairs }, index) {
  const unit = a.findIndex(({ first, last }) => first <= index && index <= last);
  const pair = pairs.find(([left]) => left === unit);
  return pair ? b[pair[1]].last : -1;
}

/**
 * Return the longest common subsequence (Wagner and Fischer 1974); of several, the one with the
 * earliest pairs.
 * @param {string[]} a
 * @param {string[]} b
 * @returns {[number, number][]} indices into both, ascending
 */
export function commonPairs(a, b) {
  // Compared sentences mostly share their beginning and their end.
  const start = sharedLength(a, b);
  const end = Math.min(
    sharedLength([...a].reverse(), [...b].reverse()),
    Math.min(a.length, b.length) - start,
  );
  const middle = pairsWithin(a.slice(start, a.length - end), b.slice(start, b.length - end));
  /** @type {[number, number][]} */
  const pairs = [];
  for (let at = 0; at < start; at += 1) pairs.push([at, at]);
  for (const [i, j] of middle) pairs.push([start + i, start + j]);
  for (let at = end; at > 0; at -= 1) pairs.push([a.length - at, b.length - at]);
  return pairs;
}

/** @param {string[]} a @param {string[]} b */
function pairsWithin(a, b) {
  const width = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] =
        a[i] === b[j]
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return pairs;
}
