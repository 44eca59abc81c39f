/**
 * The parts of a text worth a look: the head and the row that the page opens by itself. In
 * calculations, also the roles of heads.
 */

import { percent } from '../words/numbers.js';
import { strongestHeads, tokensOf, heldWeightsAt } from '../trace/attention.js';
import { highestIn, matrixAt, rowOf } from '../trace/trace.js';
import { isMask } from '../trace/words.js';
import { isWord, wordNames } from '../trace/word_names.js';

export { isWord, wordNames };

/** @import { Place } from '../trace/attention.js' */

/** @typedef {{layer: number, head: number, query: number|null}} HeadToOpen */

/** Labels that are looked for before anything else. */
const FIRST = ['induction', 'monotonic'];
/** And those that every text has, if no head links two words in its own way. */
const COMMON = ['same_token', 'previous', 'next', 'current', 'sink'];
/** Weight from which two words count as linked. */
const LINKED = 0.25;
/** The worth of a short word, or of one two tokens away, against a longer one farther off. */
const LESS = 0.3;
/** Letters from which a word counts in full. */
const LONG = 4;

/**
 * Return the head and the row to open; a head that was chosen is kept. Of a text with a mask, the
 * head is one that links the mask.
 * @param {Trace} trace
 * @param {Place|null} place
 * @param {{layer: number|null, head: number|null}} [chosen]
 * @returns {HeadToOpen}
 */
export function headToOpen(
  trace,
  place,
  { layer = null, head = null } = { layer: null, head: null },
) {
  if (!place) return { layer: layer ?? 0, head: head ?? 0, query: null };
  if (layer !== null && head !== null) return inHead(trace, place, layer, head);
  const patterns = strongestHeads(trace, place).filter(
    (pattern) =>
      (layer ?? pattern.layer) === pattern.layer && (head ?? pattern.head) === pattern.head,
  );
  /** @param {string[]} ids */
  const labelled = (ids) =>
    ids.map((id) => patterns.find((candidate) => candidate.id === id)).find(Boolean);
  const mask = tokensOf(trace, place.rows).findIndex(isMask);
  const pattern = labelled(FIRST);
  const link =
    (pattern &&
      mask < 0 &&
      strongestLink(trace, place, { layer: pattern.layer, head: pattern.head })) ||
    strongestLink(trace, place, { layer, head, query: mask < 0 ? null : mask });
  if (link) return link;
  if (pattern && mask < 0) return inHead(trace, place, pattern.layer, pattern.head);
  const common = labelled(COMMON);
  const first = heldWeightsAt(place, trace)[0]?.layer ?? 0;
  return inHead(trace, place, common?.layer ?? layer ?? first, common?.head ?? head ?? 0);
}

/**
 * Return the row of a head that shows most: a word that looks at another, the more the better.
 * @param {Trace} trace
 * @param {Place} place
 * @param {number} layer
 * @param {number} head
 * @returns {HeadToOpen}
 */
function inHead(trace, place, layer, head) {
  const weights = matrixOf(trace, place, layer, head);
  if (!weights) return { layer, head, query: null };
  const link = strongestLink(trace, place, { layer, head });
  if (link) return link;
  const rows = tokensOf(trace, place.rows);
  const columns = tokensOf(trace, place.columns);
  let best = lastWord(rows);
  let most = 0;
  for (let query = 0; query < weights.rows; query += 1) {
    if (!isWord(rows[query])) continue;
    for (let key = 0; key < weights.columns; key += 1) {
      const isItself = place.rows === place.columns && key === query;
      if (isItself || !isWord(columns[key])) continue;
      // A later one of two equal rows is read after more of the text.
      const weight = weights.data[query * weights.columns + key] + query * 1e-9;
      if (weight > most) [best, most] = [query, weight];
    }
  }
  return { layer, head, query: most > 0.1 ? best : lastWord(rows) };
}

/**
 * Return the strongest link between two different words that are not neighbours, of the links that
 * are the strongest of their row.
 * @param {Trace} trace
 * @param {Place} place
 * @param {{layer: number|null, head: number|null, query?: number|null}} chosen
 * @returns {HeadToOpen|null}
 */
function strongestLink(trace, place, chosen) {
  const rows = tokensOf(trace, place.rows);
  const columns = tokensOf(trace, place.columns);
  const isOneText = place.rows === place.columns;
  /** @type {HeadToOpen|null} */
  let best = null;
  let most = 0;
  const [names, others] = [rows, columns].map((tokens) => wordNames(tokens));
  const worths = columns.map((_, index) => worthOf(columns, index));
  for (const { layer, site } of heldWeightsAt(place, trace)) {
    if ((chosen.layer ?? layer) !== layer) continue;
    const { shape } = trace.tensors[site];
    for (let head = 0; head < shape[0]; head += 1) {
      if ((chosen.head ?? head) !== head) continue;
      const weights = matrixAt(trace.tensors[site], head);
      // A head that looks at one word from everywhere links it to none.
      const usual = new Float64Array(weights.columns);
      weights.data.forEach((value, at) => (usual[at % usual.length] += value / weights.rows));
      for (let query = 0; query < weights.rows; query += 1) {
        if ((chosen.query ?? query) !== query) continue;
        if (!isWord(rows[query]) && !isMask(rows[query])) continue;
        const key = highestIn(rowOf(weights, query));
        const weight = weights.data[query * weights.columns + key];
        const apart = isOneText ? Math.abs(query - key) : Infinity;
        if (weight <= LINKED || apart < 2 || !isWord(columns[key])) continue;
        const isRepeated = isOneText && key < query && columns[key - 1]?.id === rows[query].id;
        if (isOneText && names[query] === others[key] && !isRepeated) continue;
        const worth = isRepeated ? wholeness(columns, key) : worths[key] * (apart > 2 ? 1 : LESS);
        const told = (weight - usual[key]) * worth;
        if (told > most) [best, most] = [{ layer, head, query }, told];
      }
    }
  }
  return best;
}

/**
 * Return how much a word says as what is looked at: a long one most, a short one, or a short one
 * that the text begins with, little.
 * @param {Token[]} tokens
 * @param {number} index
 */
function worthOf(tokens, index) {
  const letters = tokens[index].text.match(/[\p{L}\p{N}]/gu)?.length ?? 0;
  const isFirst = tokens.findIndex(isWord) === index;
  if (!isWord(tokens[index])) return 0;
  const whole = wholeness(tokens, index);
  if (letters >= LONG) return whole;
  return whole * (letters < 3 || isFirst ? LESS : 0.8);
}

/** The worth of the rest of a word against a word. @param {Token[]} tokens @param {number} index */
function wholeness(tokens, index) {
  const { word } = tokens[index];
  return word !== null && word === tokens[index - 1]?.word ? LESS : 1;
}

/** @param {Token[]} tokens @returns {number|null} */
function lastWord(tokens) {
  const index = tokens.findLastIndex(isWord);
  return index < 0 ? null : index;
}

/** Return the weights of a head; null: there are none. @param {Trace} trace @param {Place} place @param {number} layer @param {number} head */
export function matrixOf(trace, place, layer, head) {
  const site = heldWeightsAt(place, trace).find((row) => row.layer === layer)?.site;
  if (!site || head >= trace.tensors[site].shape[0]) return null;
  return matrixAt(trace.tensors[site], head);
}

const CALCULATION = /^\d+\*\d+=/u;
/** @type {Record<string, string>} */
const ROLES = {
  multiplicand: 'reads the first factor while a partial product is written',
  multiplier: 'reads the multiplier’s digit while its partial product is written',
  column: 'reads the digits of the same column while the sum is written',
  carry: 'reads the column one place lower, for the carry',
};

/**
 * Return the full card, for a text that is a calculation.
 * @param {Trace} trace
 * @returns {Record<string, {card: string}>}
 */
export function asksRoles({ text, model }) {
  return CALCULATION.test(text) ? { roles: { card: model } } : {};
}

/**
 * Return the roles in which the chosen head has more weight on its digits than any other head.
 * @param {ViewState} state
 * @returns {[string, string][]}
 */
export function findRoles({ answers, layer, head }) {
  /** @type {Card|undefined} */
  const card = answers?.roles?.trace?.card;
  /** @type {Record<string, {layer: number, head: number, weight: number, evenly: number}>} */
  const measured = card?.metrics?.sample?.heads ?? {};
  return Object.entries(measured)
    .filter(([role, of]) => ROLES[role] && of.layer === layer && of.head === head)
    .map(([role, { weight, evenly }]) => [
      'Role',
      `${ROLES[role]}: ${percent(weight)} of its weight; ${percent(evenly)} if it were spread evenly`,
    ]);
}
