/** The sentence on the next word: the likeliest tokens, and the number of the verbs among them. */

import { isFilling, predictingSide, tokensOf } from '../../trace/attention.js';
import { matrixAt, rowOf } from '../../trace/trace.js';
import { isMask } from '../../trace/words.js';
import { placeInWords } from '../../trace/word_names.js';
import { enumerated } from '../../words/lists.js';
import { percent } from '../../words/numbers.js';
import { guessInWords } from '../../words/tokens.js';

/** @typedef {{text: string, probability: number}} Guess */

/** Masks of which the guesses are told. */
const MOST_MASKS = 3;
/** Guesses that are told of each place. */
const MOST_GUESSES = 2;
const MASK_NAMES = ['At the first mask', 'At the second mask', 'At the third mask'];

/** @param {Trace} trace @param {{query: number|null}} chosen */
export function explainNext(trace, { query }) {
  const side = predictingSide(trace);
  const tokens = tokensOf(trace, side);
  const masks = tokens.flatMap((token, index) => (isMask(token) ? [index] : []));
  if (isFilling(trace) && masks.length > 1)
    return masks
      .slice(0, MOST_MASKS)
      .map((mask, index) => likeliest(trace, mask, MASK_NAMES[index]))
      .join(' ');
  const place = query ?? masks[0] ?? (isFilling(trace) ? null : tokens.length - 1);
  if (place === null || place >= tokens.length) return '';
  const where = `${isFilling(trace) ? 'At' : 'After'} ${placeInWords(trace, side, place)}`;
  return [likeliest(trace, place, where), agreement(trace, place)].filter(Boolean).join(' ');
}

/**
 * Return the listed tokens at a place.
 * @param {Trace} trace
 * @param {number} place
 * @returns {Guess[]} likeliest first
 */
function guessesAt({ analyses: { next_token: prediction } }, place) {
  if (!prediction?.probabilities) return [];
  const probabilities = rowOf(matrixAt(prediction.probabilities), place);
  return Array.from(probabilities, (probability, rank) => ({
    text: prediction.texts[place][rank],
    probability,
  }));
}

/** @param {Trace} trace @param {number} place @param {string} where */
function likeliest(trace, place, where) {
  const guesses = guessesAt(trace, place).slice(0, MOST_GUESSES);
  if (guesses.length === 0) return '';
  const [first, ...others] = guesses.map(
    ({ text, probability }) => `“${guessInWords(text)}” (${percent(probability)})`,
  );
  return `${where}, the model expects ${first}${others.length > 0 ? `, then ${enumerated(others)}` : ''}.`;
}

/** Forms of “to be” in the singular and in the plural. */
const FORMS = [
  ['is', 'was'],
  ['are', 'were'],
];
/** The probability of such forms from which they are compared. */
const TELLING = 0.05;

/**
 * Return the probabilities of the forms of “to be”, where they are expected.
 * @param {Trace} trace
 * @param {number} place
 */
function agreement(trace, place) {
  const guesses = guessesAt(trace, place);
  const told = FORMS.map((forms) => {
    const listed = guesses.filter(({ text }) => text[0] === ' ' && forms.includes(text.slice(1)));
    const sum = listed.reduce((all, { probability }) => all + probability, 0);
    return { sum, names: listed.map(({ text }) => `“${text.slice(1)}”`) };
  }).sort((a, b) => b.sum - a.sum);
  if (told[0].sum + told[1].sum < TELLING) return '';
  const said = told
    .filter(({ names }) => names.length > 0)
    .map(({ names, sum }) =>
      names.length > 1
        ? `${enumerated(names)} have ${percent(sum)} together`
        : `${names[0]} has ${percent(sum)}`,
    );
  return `${said.join('; ')}.`;
}
