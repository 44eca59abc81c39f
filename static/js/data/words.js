/**
 * What stands on an axis of a map: tokens, each alone, or the words that tokens are pieces of.
 * Merged after Clark et al. 2019, https://arxiv.org/abs/1906.04341, section 4.1: attention to a word
 * is the sum over its pieces, attention from a word their mean, so that rows still sum to 1.
 */

import { named, tokenLabels } from './text.js';

/** @typedef {import('./trace.js').Token & {first: number, last: number}} Unit tokens `first` to `last`, read as one */

/**
 * @param {import('./trace.js').Token[]} tokens
 * @returns {Unit[]} every token alone
 */
export function alone(tokens) {
  return tokens.map((token, index) => ({ ...token, first: index, last: index }));
}

/**
 * @param {import('./trace.js').Token[]} tokens
 * @param {string} text they were cut from; offsets count code points
 * @returns {Unit[]} neighbours that belong to one word as that word; special tokens stay alone
 */
export function wordsOf(tokens, text) {
  const characters = [...text];
  const units = [];
  for (const unit of alone(tokens)) {
    const before = units.at(-1);
    if (before && unit.word !== null && before.word === unit.word)
      units[units.length - 1] = joined(before, unit, characters);
    else units.push(unit);
  }
  return units;
}

/** Whatever the pieces spell, a byte of a letter included, the word is what stands in the text. */
function joined(before, unit, characters) {
  const end = Math.max(before.end, unit.end);
  return {
    ...before,
    text: characters.slice(before.start, end).join(''),
    end,
    last: unit.last,
    part: null,
  };
}

/**
 * @param {Unit[]} units
 * @param {number} index of a token
 * @returns {number} of the unit that holds it; −1: it is hidden
 */
export function unitOf(units, index) {
  return units.findIndex(({ first, last }) => first <= index && index <= last);
}

/**
 * A value for each unit as one for each of its tokens; of tokens that are hidden there is none.
 * @param {Unit[]} units
 * @param {ArrayLike<number>} values
 * @param {number} count of tokens
 * @returns {Float64Array} NaN where a token is hidden
 */
export function spread(units, values, count) {
  const found = new Float64Array(count).fill(NaN);
  units.forEach(({ first, last }, index) => found.fill(values[index], first, last + 1));
  return found;
}

/**
 * Columns summed, rows averaged. What no piece may see is NaN, and a word of which no piece may be
 * seen stays so.
 * @param {import('./trace.js').Matrix} matrix by token
 * @param {Unit[]} rows
 * @param {Unit[]} columns
 * @returns {import('./trace.js').Matrix} by unit
 */
export function merged(matrix, rows, columns) {
  const data = new Float64Array(rows.length * columns.length);
  rows.forEach((row, y) =>
    columns.forEach((column, x) => {
      data[y * columns.length + x] = mergedCell(matrix, row, column);
    }),
  );
  return { rows: rows.length, columns: columns.length, data };
}

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

const firstOf = ({ first }) => first;

/**
 * What an axis lists: names, and in a long text the place of the first token besides.
 * @param {Unit[]} units
 */
export function unitLabels(units) {
  return tokenLabels(units, firstOf);
}

/**
 * One of them in a sentence: in quotation marks, and with its place where the name is not enough.
 * @param {Unit[]} units
 * @param {number} index
 */
export function namedUnit(units, index) {
  return named(units, index, firstOf);
}

/**
 * @param {Unit} unit
 * @returns {number|number[]} the index of its token, or of each of them
 */
export function tokensIn({ first, last }) {
  return first === last
    ? first
    : Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
