/**
 * The sentence that introduces a model to a text that falls apart in it: what the model learned, and
 * how it reads this; and a model that fits better.
 */

import { readSide } from '../../trace/word_names.js';
import { asQuestion, isCalculation, isLearnedQuestion, multiplies } from '../product.js';

/** The share of a text's words that are in pieces, from which it is said. */
const MOST = 1 / 3;
/** Letters of a token on average, below which a model reads nearly letter by letter. */
const FEW_LETTERS = 1.5;

/** @param {Pick<Card, 'id'|'title'>} card */
const nameOf = ({ id, title }) => `“${title || id}”`;

/** @param {Trace} trace @returns {string} empty if most words are whole */
export function introduce(trace) {
  const { card } = trace;
  const how = card && howRead(trace);
  if (!how)
    return card?.learned && isForSums(trace) ? `${nameOf(card)} learned ${card.learned}.` : '';
  return card.learned
    ? `${nameOf(card)} learned ${card.learned}; it reads ${how}.`
    : `${nameOf(card)} reads ${how}.`;
}

/** Return true if a calculation is typed into a model that was not made for any. @param {Trace} trace */
export const isForSums = ({ card, text }) => !multiplies(card ?? null) && isCalculation(text);

/**
 * Return how a model reads a text of which more than a third is in pieces. A letter of which tokens
 * have some bytes counts as a word; digits are whole to a model that multiplies.
 * @param {Trace} trace
 * @returns {string} empty if less is
 */
function howRead(trace) {
  const { tokens, words, at } = readSide(trace, 'source');
  const isOfDigits = multiplies(trace.card ?? null);
  const counted = words.filter(({ isNumber, first }) => first >= 0 && !(isOfDigits && isNumber));
  const isEnding = (/** @type {number} */ last) => /^['’]\p{L}/u.test(tokens[last].text);
  const inPieces = counted.filter(({ first, last }) => last - (isEnding(last) ? 1 : 0) > first);
  const letters = tokens.filter(({ part }, index) => at[index] === null && part?.from === 1).length;
  const all = counted.length + letters;
  if (inPieces.length + letters <= all * MOST) return '';
  const typed = tokens.filter(({ is_special: isSpecial }) => !isSpecial);
  if (2 * typed.filter(({ part }) => part).length > typed.length)
    return 'most of this byte by byte';
  const [nLetters, nTokens] = counted.reduce(
    ([characters, pieces], { name, first, last }) => [
      characters + [...name].length,
      pieces + last - first + 1,
    ],
    [0, 0],
  );
  const unit = counted.every(({ isNumber }) => isNumber) ? 'digit' : 'letter';
  if (nLetters < FEW_LETTERS * nTokens) return `this nearly ${unit} by ${unit}`;
  const [apart, what] = [inPieces.length + letters, letters ? 'words and signs' : 'words'];
  if (all === 1) return 'this word in pieces';
  if (apart === all) return `${all === 2 && !letters ? 'both' : `all ${all}`} ${what} in pieces`;
  return `${apart} of these ${all} ${what} in pieces`;
}

/**
 * Return another model that fits a text better: one that multiplies, for a product of its size, and
 * with an example of its own for another calculation, or else one that the reader added.
 * @param {Trace} trace
 * @param {Card[]} cards of all models
 * @returns {{label: string, patch: Patch}|null}
 */
export function offerFor({ card, text }, cards) {
  const others = cards.filter(({ id }) => id !== card?.id);
  const question = asQuestion(text);
  const multiplier = others.find(multiplies);
  if (multiplier && !multiplies(card ?? null)) {
    const label = `${nameOf(multiplier)} learned ${multiplier.learned}`;
    if (isLearnedQuestion(question))
      return { label: `${label}: open it`, patch: { model: multiplier.id, text: question } };
    const example = multiplier.examples[0].text.replace(/=.*/s, '=');
    if (isCalculation(text))
      return { label: `${label}: try ${example}`, patch: { model: multiplier.id, text: example } };
  }
  const own = others.find(
    ({ architecture, kind }) => architecture !== 'headlight' && kind === 'decoder',
  );
  return own ? { label: `Read it with ${nameOf(own)}`, patch: { model: own.id } } : null;
}
