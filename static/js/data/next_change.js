/**
 * What two passes expect at a place each, side by side: full distributions, and the tokens worth a look.
 */

import { divergence, softmax, totalVariation } from './distribution.js';
import { nameOfGuess } from './guesses.js';
import { matrixAt, rowOf } from './trace.js';

/**
 * @typedef {Object} Expected
 * @property {string} text
 * @property {string} name
 * @property {number} a probability
 * @property {number} b probability; of either NaN where it is not known
 */

/**
 * @typedef {Object} NextChange
 * @property {Expected[]} tokens of either side’s likeliest, by the greater probability
 * @property {number|null} moved total variation distance; null: two vocabularies
 * @property {number|null} lost bits that B’s expectation loses where A’s is true
 */

export const OF_EACH = 8;
/** Two passes of the same numbers, computed in another order, are this far apart. */
export const ROUNDING = 1e-6;

/**
 * @typedef {Object} View what one pass expects at one place
 * @property {import('./trace.js').NamedArray} logits
 * @property {{ids: import('./trace.js').NamedArray, probabilities: import('./trace.js').NamedArray, texts: string[][]}} likeliest
 * @property {import('./trace.js').Token[]} tokens
 * @property {number} query
 */

/**
 * @param {View} a
 * @param {View} b
 * @param {number} most tokens
 * @returns {NextChange}
 */
export function nextChange(a, b, most) {
  const [listA, listB] = [a, b].map(listed);
  if (!isOneVocabulary(a, b))
    return { tokens: byText(listA, listB, most), moved: null, lost: null };
  const [p, q] = [a, b].map(({ logits, query }) => softmax(rowOf(matrixAt(logits), query)));
  const texts = new Map(
    [...listA, ...listB].filter(({ rank }) => rank < OF_EACH).map(({ id, text }) => [id, text]),
  );
  const tokens = [...texts].map(([id, text]) => ({
    text,
    name: nameOfGuess(text),
    a: p[id],
    b: q[id],
  }));
  const moved = totalVariation(p, q);
  const isRounding = moved < ROUNDING;
  return {
    tokens: likeliestFirst(tokens).slice(0, most),
    moved: isRounding ? 0 : moved,
    lost: isRounding ? 0 : divergence(p, q),
  };
}

/** The likeliest of a place, as they were sent. */
function listed({ likeliest: { ids, probabilities, texts }, query }) {
  const chances = rowOf(matrixAt(probabilities), query);
  return Array.from(rowOf(matrixAt(ids), query), (id, rank) => ({
    id,
    rank,
    text: texts[query][rank],
    probability: chances[rank],
  }));
}

/** Do the numbers of tokens mean the same to both? Told from all that both of them spelled. */
function isOneVocabulary(a, b) {
  if (a.logits.shape.at(-1) !== b.logits.shape.at(-1)) return false;
  const spelled = spelling(a);
  return [...spelling(b)].every(([id, text]) => !spelled.has(id) || spelled.get(id) === text);
}

function spelling({ likeliest: { ids, texts }, tokens }) {
  return new Map([
    ...tokens.map(({ id, text }) => [id, text]),
    ...texts.flat().map((text, at) => [ids.data[at], text]),
  ]);
}

/** Tokens of two vocabularies are matched by what they spell; what is not among a side’s likeliest is not known. */
function byText(listA, listB, most) {
  const of = (list, text) => list.find((one) => one.text === text)?.probability ?? NaN;
  const texts = new Set(
    [...listA, ...listB].filter(({ rank }) => rank < OF_EACH).map(({ text }) => text),
  );
  return likeliestFirst(
    [...texts].map((text) => ({
      text,
      name: nameOfGuess(text),
      a: of(listA, text),
      b: of(listB, text),
    })),
  ).slice(0, most);
}

function likeliestFirst(tokens) {
  const greatest = ({ a, b }) => Math.max(...[a, b].filter((chance) => !Number.isNaN(chance)));
  return tokens.sort((one, other) => greatest(other) - greatest(one));
}
