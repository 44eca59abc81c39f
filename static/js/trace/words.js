/**
 * Words of a sentence: the tokens they consist of, merged into one unit of an axis, and the words
 * that masks hide. Merging follows Clark et al. 2019, https://arxiv.org/abs/1906.04341, section 4.1:
 * attention to a word is the sum over its pieces, attention from a word their mean, so that rows
 * still sum to 1.
 */

import { named, tokenLabels, tokenName } from '../words/tokens.js';
import { buildMatrix } from './trace.js';

/** @typedef {Token & {first: number, last: number, isTwin?: boolean}} Unit tokens `first` to `last`, read as one */

/** @param {Token[]} tokens @returns {Unit[]} every token as one unit */
export function alone(tokens) {
  return tokens.map((token, index) => ({ ...token, first: index, last: index }));
}

/** Return some units; one that is called like one that is left out is its twin. @param {Unit[]} units @param {number[]} kept @returns {Unit[]} */
export function someOf(units, kept) {
  const left = new Set(units.filter((_, at) => !kept.includes(at)).map(tokenName));
  return kept.map((at) => ({ ...units[at], isTwin: left.has(tokenName(units[at])) }));
}

/** Scripts without spaces between words, of which a “word” is a whole clause. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/u;

/** Return true if a script without spaces between words is in a text. @param {string} text */
export function isUnspaced(text) {
  return UNSPACED.test(text);
}

/**
 * @param {Unit[]} units
 * @param {number} index of a token
 * @returns {number} of the unit that holds it; −1: it is hidden
 */
export function findUnit(units, index) {
  return units.findIndex(({ first, last }) => first <= index && index <= last);
}

/**
 * Return a value for each unit as one for each of its tokens; of tokens that are hidden there is
 * none.
 * @param {Unit[]} units
 * @param {ArrayLike<number>} values
 * @param {number} count of tokens
 * @returns {Float64Array} NaN where a token is hidden
 */
export function spread(units, values, count) {
  const byToken = new Float64Array(count).fill(NaN);
  units.forEach(({ first, last }, index) => byToken.fill(values[index], first, last + 1));
  return byToken;
}

/**
 * Sum the columns and average the rows of each word. A hidden cell counts as 0; a merged cell is
 * NaN if all of its cells are hidden.
 * @param {Matrix} matrix by token
 * @param {Unit[]} rows
 * @param {Unit[]} columns
 * @returns {Matrix} by unit
 */
export function merged(matrix, rows, columns) {
  return buildMatrix(rows.length, columns.length, (row, column) =>
    mergedCell(matrix, rows[row], columns[column]),
  );
}

/** @param {Matrix} matrix @param {Unit} row @param {Unit} column */
function mergedCell({ columns, data }, row, column) {
  let sum = 0;
  let isSeen = false;
  for (let y = row.first; y <= row.last; y += 1) {
    for (let x = column.first; x <= column.last; x += 1) {
      const value = data[y * columns + x];
      if (Number.isNaN(value)) continue;
      sum += value;
      isSeen = true;
    }
  }
  return isSeen ? sum / (row.last - row.first + 1) : NaN;
}

/** @param {Unit} unit */
const firstOf = ({ first }) => first;

/**
 * Return the labels of an axis: names, and in a long text the index of the first token.
 * @param {Unit[]} units
 */
export function unitLabels(units) {
  return tokenLabels(units, firstOf);
}

/**
 * Return one of them in a sentence: in quotation marks, and with its place where the name is not
 * enough.
 * @param {Unit[]} units
 * @param {number} index
 */
export function namedUnit(units, index) {
  return named(units, index, firstOf);
}

/** @param {Unit} unit @returns {number|number[]} the index of its token, or of each of them */
export function tokensIn({ first, last }) {
  return first === last
    ? first
    : Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

export const MASK = '[MASK]';
const TYPED = /\[MASK\]/g;

/** @param {Token} token */
export function isMask({ is_special: isSpecial, text }) {
  return Boolean(isSpecial) && text === MASK;
}

/**
 * @param {string} words the state's: separated by spaces, nothing for a mask that was typed
 * @returns {string[]}
 */
function wordList(words) {
  return words.split(' ');
}

/** @param {string[]} words */
function joinWords(words) {
  return words.join(' ').trimEnd();
}

/**
 * Return the word that a mask hides, if known.
 * @param {Token[]} tokens
 * @param {number} index of the mask
 * @param {string} words
 * @returns {string} '' if unknown
 */
export function wordBehind(tokens, index, words) {
  return wordList(words)[masksBefore(tokens, index)] ?? '';
}

/** @param {Token[]} tokens @param {number} index */
function masksBefore(tokens, index) {
  return tokens.slice(0, index).filter(isMask).length;
}

/**
 * Return the text with a word put behind a mask, or with the mask's word brought back.
 * @param {{text: string, tokens: Token[]}} trace
 * @param {number} index of a token of the word, or of the mask
 * @param {string} words
 * @returns {{text: string, words: string, query: number}|null} null if there is no word
 */
export function toggled(trace, index, words) {
  const token = trace.tokens[index];
  if (isMask(token)) {
    const word = wordBehind(trace.tokens, index, words);
    const space = [...trace.text][token.start] === ' ' ? ' ' : ''; // which the mask takes in
    return word === '' ? null : filled(trace, index, space + word, words);
  }
  return masked(trace, index, words);
}

/**
 * Put a word behind a mask. A special token has no pieces, and so no word to hide.
 * @param {{text: string, tokens: Token[]}} of
 * @param {number} index
 * @param {string} words
 */
function masked({ text, tokens }, index, words) {
  const { word } = tokens[index];
  const pieces = tokens.filter((token) => token.word === word && !token.is_special);
  const characters = [...text];
  const [start, end] = [
    Math.min(...pieces.map((piece) => piece.start)),
    Math.max(...pieces.map((piece) => piece.end)),
  ];
  const spelled = characters.slice(start, end).join('');
  if (spelled.trim() === '' || /\s/.test(spelled.trim())) return null;
  const list = wordList(words);
  const before = masksBefore(tokens, index);
  while (list.length < before) list.push('');
  list.splice(before, 0, spelled.trim());
  return {
    text: replaced(
      characters,
      start,
      end,
      spelled.replace(spelled.trim(), () => MASK),
    ),
    words: joinWords(list),
    query: tokens.indexOf(pieces[0]),
  };
}

/**
 * Return the text with a mask replaced by a piece of text.
 * @param {{text: string, tokens: Token[]}} trace
 * @param {number} index of the mask
 * @param {string} piece with the space before it, if it has one
 * @param {string} words
 * @returns {{text: string, words: string, query: number}}
 */
export function filled({ text, tokens }, index, piece, words) {
  const { start, end } = tokens[index];
  const list = wordList(words);
  list.splice(masksBefore(tokens, index), 1);
  return {
    text: replaced([...text], start, end, start === 0 ? piece.trimStart() : piece),
    words: joinWords(list),
    query: index,
  };
}

/** @param {string[]} characters @param {number} start @param {number} end @param {string} piece */
function replaced(characters, start, end, piece) {
  return characters.slice(0, start).join('') + piece + characters.slice(end).join('');
}

/**
 * Return the words behind the masks of a text after an edit: masks that did not change keep theirs.
 * @param {string} before
 * @param {string} after
 * @param {string} words
 * @returns {string}
 */
export function wordsAfter(before, after, words) {
  const known = new Map(
    [...before.matchAll(TYPED)].map(({ index }, mask) => [index, wordList(words)[mask] ?? '']),
  );
  const start = sharedLength(before, after);
  const end = sharedLength([...before.slice(start)].reverse(), [...after.slice(start)].reverse());
  return joinWords(
    [...after.matchAll(TYPED)].map(({ index }) => {
      if (index + MASK.length <= start) return known.get(index) ?? '';
      if (index >= after.length - end) return known.get(index - after.length + before.length) ?? '';
      return '';
    }),
  );
}

/**
 * Return how far two lists begin alike.
 * @param {ArrayLike<unknown>} a
 * @param {ArrayLike<unknown>} b
 */
export function sharedLength(a, b) {
  let length = 0;
  while (length < Math.min(a.length, b.length) && a[length] === b[length]) length += 1;
  return length;
}
