/**
 * The predictions of a model at one token: the likeliest tokens, and which of them is right.
 */

import { isMask, wordBehind } from './words.js';
import { bytesInWords, visible } from './text.js';
import { isFilling } from './attention.js';
import { matrixAt, rowOf } from './trace.js';

/**
 * @typedef {Object} Guess a token, with what is said of it
 * @property {string} text
 * @property {string} name
 * @property {number} probability
 * @property {string} mark text beside the right one
 * @property {string} markInWords
 */

/**
 * @typedef {Object} Words
 * @property {string} preposition
 * @property {string} event whose probability it is
 * @property {string} came
 * @property {string} cameInWords
 */

/** A model that fills in predicts the token at a place; the others predict the token after it. */
const FILLING = {
  preposition: 'At',
  event: 'standing here',
  came: 'stands here',
  cameInWords: '; this token stands there',
};
const GOING_ON = {
  preposition: 'After',
  event: 'coming next',
  came: 'came next',
  cameInWords: '; this token came next',
};

/**
 * @param {import('./trace.js').Trace} trace
 * @returns {Words}
 */
export function wordsFor(trace) {
  return isFilling(trace) ? FILLING : GOING_ON;
}

/**
 * The guesses of one row of an analysis.
 * @param {{ids: import('./trace.js').NamedArray, probabilities: import('./trace.js').NamedArray, texts: string[]}} found `texts` of that row
 * @param {number[]} leading index of the row on every axis but the last
 * @param {(id: number, text: string) => {mark: string, markInWords: string}} mark
 * @param {number} most
 * @returns {Guess[]} likeliest first
 */
export function guessesIn({ ids, probabilities, texts }, leading, mark, most) {
  const at = (array) => rowOf(matrixAt(array, ...leading.slice(0, -1)), leading.at(-1));
  const chosen = at(ids);
  return Array.from(at(probabilities).subarray(0, most), (probability, rank) => ({
    text: texts[rank],
    name: nameOfGuess(texts[rank]),
    probability,
    ...mark(chosen[rank], texts[rank]),
  }));
}

/**
 * @param {string} text
 * @returns {string} the token with its spaces shown, or the bytes that it is
 */
export function nameOfGuess(text) {
  return bytesInWords(text) ?? visible(text);
}

/**
 * The mark of the right prediction: that the token follows, stands there, or was masked.
 * @param {import('./trace.js').Trace} trace
 * @param {import('./trace.js').Token[]} tokens
 * @param {number} query the token at which it is predicted
 * @param {string} hidden the words behind masks
 * @returns {(id: number, text: string) => {mark: string, markInWords: string}} nothing of any other guess
 */
export function marker(trace, tokens, query, hidden) {
  const nothing = { mark: '', markInWords: '' };
  const word = isFilling(trace) && isMask(tokens[query]) ? wordBehind(tokens, query, hidden) : '';
  if (word !== '')
    return (_, text) =>
      text.trim() === word
        ? { mark: 'was here', markInWords: '; it is the word behind the mask' }
        : nothing;
  const { came, cameInWords } = wordsFor(trace);
  const right = isFilling(trace) ? tokens[query].id : tokens[query + 1]?.id;
  const isKnown = right !== undefined && !isMask(tokens[query]);
  return (id) => (isKnown && id === right ? { mark: came, markInWords: cameInWords } : nothing);
}
