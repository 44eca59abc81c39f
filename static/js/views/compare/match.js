/**
 * The tokens of A with their counterparts in B, in the order of both. Two texts are aligned word by
 * word: a word may be the counterpart of the one it replaced, and is whole where the two have another
 * number of tokens; so are all words if two tokenizers cut one text differently.
 */

import { range } from '../../trace/trace.js';
import { wordUnits } from '../../trace/word_names.js';
import { alone, findUnit, merged, sharedLength } from '../../trace/words.js';
import { tokensOf } from '../../trace/attention.js';
import { tokenName } from '../../words/tokens.js';

/** @import { Side } from './sides.js' */

/** @typedef {[number, number][]} Pairs index in A and index in B of the same thing, ascending */

/**
 * @typedef {Object} Match
 * @property {Unit[]} a
 * @property {Unit[]} b
 * @property {Pairs} pairs
 * @property {boolean} isByWord two tokenizers cut one text differently, so its words are compared
 * @property {boolean} isWhole every unit has a counterpart
 * @property {number} nReplaced pairs of two different names
 */

/**
 * @param {Side} a
 * @param {Side} b
 * @param {import('../../trace/attention.js').Side} side
 * @returns {Match}
 */
export function alignTokens(a, b, side) {
  const [tokensA, tokensB] = [a, b].map(({ trace }) => alone(tokensOf(trace, side)));
  const [wordsA, wordsB] = [a, b].map(({ trace }) => wordUnits(trace, side));
  if (a.trace.model === b.trace.model) return byPieces(wordsA, wordsB, tokensA, tokensB);
  const byToken = matched(tokensA, tokensB, commonSpans(tokensA, tokensB));
  return byToken.isWhole
    ? byToken
    : { ...matched(wordsA, wordsB, commonSpans(wordsA, wordsB)), isByWord: true };
}

/** @param {Unit[]} a @param {Unit[]} b @param {Pairs} pairs @returns {Match} */
function matched(a, b, pairs) {
  const isWhole = pairs.length === a.length && pairs.length === b.length;
  const nReplaced = pairs.filter(([i, j]) => tokenName(a[i]) !== tokenName(b[j])).length;
  return { a, b, pairs, isByWord: false, isWhole, nReplaced };
}

/**
 * Return the tokens of aligned words, and a word where its counterpart has more or fewer.
 * @param {Unit[]} wordsA
 * @param {Unit[]} wordsB
 * @param {Unit[]} tokensA
 * @param {Unit[]} tokensB
 */
function byPieces(wordsA, wordsB, tokensA, tokensB) {
  /** @param {Unit} word */
  const length = ({ first, last }) => last + 1 - first;
  const ofWords = pairWords(wordsA.map(tokenName), wordsB.map(tokenName));
  const alike = ofWords.filter(([i, j]) => length(wordsA[i]) === length(wordsB[j]));
  /** @param {Unit[]} words @param {Unit[]} tokens @param {0|1} of */
  const cut = (words, tokens, of) => {
    const inPieces = new Set(alike.map((pair) => pair[of]));
    return words.flatMap((word, at) =>
      inPieces.has(at) ? tokens.slice(word.first, word.last + 1) : [word],
    );
  };
  const [a, b] = [cut(wordsA, tokensA, 0), cut(wordsB, tokensB, 1)];
  /** @type {Pairs} */
  const pairs = ofWords.flatMap((pair) => {
    const [one, other] = [wordsA[pair[0]], wordsB[pair[1]]];
    return range(alike.includes(pair) ? length(one) : 1).map((step) => [
      findUnit(a, one.first + step),
      findUnit(b, other.first + step),
    ]);
  });
  return matched(a, b, pairs);
}

/** @param {Unit[]} a @param {Unit[]} b @returns {Pairs} what two tokenizers cut alike */
function commonSpans(a, b) {
  /** @param {Token} token */
  const spanOf = ({ text, start, end, is_special: isSpecial }) =>
    isSpecial ? text : `${start} ${end}`;
  const inB = new Map(b.map((unit, at) => [spanOf(unit), at]));
  return a.flatMap((unit, at) => {
    const there = inB.get(spanOf(unit));
    return there === undefined ? [] : [/** @type {[number, number]} */ ([at, there])];
  });
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
  const pair = pairs.find(([left]) => left === findUnit(a, index));
  return pair ? b[pair[1]].last : -1;
}

/** The weight of a pair of equal words against pairs of others, which weigh 1 to 3. */
const SAME = 3;

/**
 * Pair the words of two texts: those of texts of one length by position, else so that most are equal,
 * or alike where one replaced the other (Needleman and Wunsch 1970).
 * @param {string[]} a
 * @param {string[]} b
 * @returns {Pairs}
 */
export function pairWords(a, b) {
  /** @param {number} count @param {number} inA @param {number} inB @returns {Pairs} */
  const run = (count, inA, inB) => range(count).map((step) => [inA + step, inB + step]);
  if (a.length === b.length) return run(a.length, 0, 0);
  // Compared sentences mostly share their beginning and their end.
  const start = sharedLength(a, b);
  const end = sharedLength(a.slice(start).reverse(), b.slice(start).reverse());
  const [midA, midB] = [a, b].map((words) => words.slice(start, words.length - end));
  return [
    ...run(start, 0, 0),
    ...pairsWithin(midA, midB).flatMap(([i, j]) => run(1, start + i, start + j)),
    ...run(end, a.length - end, b.length - end),
  ];
}

/** @param {string} a @param {string} b @returns {number} letters that both begin or end with, as a share */
function likeness(a, b) {
  const ends = [...a].reverse();
  const most = Math.max(sharedLength(a, b), sharedLength(ends, [...b].reverse()));
  return most / Math.max(a.length, b.length);
}

/** @param {string[]} a @param {string[]} b */
function pairsWithin(a, b) {
  const width = b.length + 1;
  const best = new Float64Array((a.length + 1) * width);
  /** @param {number} i @param {number} j */
  const paired = (i, j) =>
    best[(i + 1) * width + j + 1] + (a[i] === b[j] ? SAME : 1 + 2 * likeness(a[i], b[j]));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const [skipsA, skipsB] = [best[(i + 1) * width + j], best[i * width + j + 1]];
      best[i * width + j] = Math.max(paired(i, j), skipsA, skipsB);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    const most = best[i * width + j];
    if (most === paired(i, j)) pairs.push([i++, j++]);
    else if (most === best[(i + 1) * width + j]) i += 1;
    else j += 1;
  }
  return pairs;
}
