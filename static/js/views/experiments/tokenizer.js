/** Byte-pair encoding: a text and its tokens after each merge, and the merges that made them. */

import { numbersIn } from '../../rules/experiment.js';
import { counted } from '../../words/lists.js';
import { decimal, grouped } from '../../words/numbers.js';
import { visible, withSigns } from '../../words/text.js';
import { barPicture } from '../../plot/bar_picture.js';
import { curvesPicture, warm } from '../../plot/curves.js';
import { mapChart } from '../../plot/map.js';
import { diverging } from '../../plot/colour.js';

/**
 * @import { Picture } from '../../rules/experiment.js'
 * @import { Size } from '../../plot/map.js'
 */

/** @type {ExperimentView} */
export const experiment = {
  id: 'tokenizer',
  main: ['text', 'sample', 'n_merges'],
  hidden: ['seed'],
  steps: (arrays) => numbersIn(arrays.step?.data ?? []),
  stepName: 'merge',
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays, at }) {
  const count = arrays.n_tokens.data[at];
  const characters = arrays.character.data.length;
  const size = `a vocabulary of ${grouped(arrays.vocab_size.data[at])}`;
  if (at === 0)
    return `Before the first merge the text has ${counted(count, 'token')}, one for each character, and ${size}.`;
  const [left, right] = [arrays.left.data[at - 1], arrays.right.data[at - 1]];
  return (
    `Merge ${at} joins “${visible(left)}” and “${visible(right)}”, which occur together ${counted(arrays.count.data[at - 1], 'time')}. ` +
    `The text has ${counted(count, 'token')} now, ${decimal(characters / count, 2)} characters each, and ${size}.`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays, at }) {
  return [
    {
      id: 'text',
      isWide: true,
      draw: (size) =>
        textMap(arrays.character.data, arrays.joined_at.data, at, 'The text, token by token', size),
    },
    ...(arrays.sample_character.data.length > 0
      ? [
          {
            id: 'sample',
            isWide: true,
            draw: (/** @type {Size} */ size) =>
              textMap(
                arrays.sample_character.data,
                arrays.sample_joined_at.data,
                at,
                'A text it did not learn from',
                size,
              ),
          },
        ]
      : []),
    lengthChart(arrays, at),
    ...(arrays.merge.data.length > 0 ? [countBars(arrays, at)] : []),
  ];
}

const CELL = { width: 15, least: 8, row: 24 };

/**
 * Return the tokens of a text after some merges.
 * @param {string[]} characters
 * @param {number[]} joined
 * @param {number} step
 * @returns {{numbers: number[], texts: string[]}} the token of each character, and every token
 */
function tokensAfter(characters, joined, step) {
  /** @type {string[]} */
  const texts = [];
  const numbers = characters.map((character, at) => {
    if (at === 0 || joined[at] === 0 || joined[at] > step) texts.push(character);
    else texts[texts.length - 1] += character;
    return texts.length - 1;
  });
  return { numbers, texts };
}

/**
 * Draw every character as a cell, the tokens in turns of two colours.
 * @param {string[]} characters
 * @param {number[]} joined
 * @param {number} step
 * @param {string} title
 * @param {Size} size
 */
function textMap(characters, joined, step, title, size) {
  const columns = Math.min(
    characters.length,
    Math.max(CELL.least, Math.floor((size.width - 40) / CELL.width)),
  );
  const rows = Math.ceil(characters.length / columns);
  const { numbers, texts } = tokensAfter(characters, joined, step);
  /** @param {number} row @param {number} column */
  const at = (row, column) => row * columns + column;
  const values = Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (__, column) => (numbers[at(row, column)] ?? NaN) + 1),
  );
  return {
    title,
    summary: `${counted(texts.length, 'token')} of ${counted(characters.length, 'character')} after ${counted(step, 'merge')}.`,
    help: `${counted(texts.length, 'token')}, in turns of two colours.`,
    ...mapChart(
      {
        values,
        shades: values.map((line) =>
          line.map((value) => (Number.isNaN(value) ? NaN : value % 2 === 0 ? 0.34 : -0.34)),
        ),
        rows: values.map((_, row) => String(at(row, 0) + 1)),
        columns: values[0].map((_, column) => String(column + 1)),
        titles: { rows: '', columns: '' },
        scale: { bottom: -1, top: 1, colours: diverging(size.palette.theme) },
        quantity: 'the number of the token',
        format: (value) => `token ${value}`,
        say: (row, column) => {
          const number = numbers[at(row, column)];
          return number === undefined ? '' : `“${visible(texts[number])}”`;
        },
        text: (row, column) => withSigns(characters[at(row, column)] ?? ''),
        cell: CELL.row,
        hasBar: false,
        hasColumnLabels: false,
      },
      size,
    ),
  };
}

/** @param {Arrays} arrays @param {number} at */
function lengthChart(arrays, at) {
  return curvesPicture({
    id: 'length',
    title: 'Fewer tokens, a larger vocabulary',
    summary: 'The tokens of the text and the size of the vocabulary by merge.',
    help: 'Every merge makes the text shorter by as many tokens as the pair occurs.',
    x: numbersIn(arrays.step.data),
    across: { title: 'merges' },
    up: { title: 'tokens' },
    quantity: 'tokens',
    format: (value) => grouped(value),
    marker: at,
    curves: { vocabulary: arrays.vocab_size.data, text: arrays.n_tokens.data },
  });
}

/** Bars that are drawn at once, up to the merge that is shown. */
const MOST_BARS = 12;

/** @param {Arrays} arrays @param {number} at */
function countBars({ count, left, right }, at) {
  const first = Math.max(0, Math.min(at, count.data.length) - MOST_BARS);
  const values = numbersIn(count.data).slice(first, first + MOST_BARS);
  return barPicture({
    id: 'counts',
    title: 'The pairs, in the order of their merges',
    summary: 'How often each pair occurred when it was merged.',
    help: 'How often the pair occurred. Warm: the merges made so far.',
    labels: values.map((_, index) => visible(left.data[first + index] + right.data[first + index])),
    values,
    of: '',
    axis: { title: 'times', domain: [0, Math.max(...values) * 1.15] },
    fill: (index, palette) => (first + index < at ? warm(palette) : palette.muted),
    write: String,
    name: (index) =>
      `merge ${first + index + 1}, “${visible(left.data[first + index])}” and “${visible(right.data[first + index])}”`,
    format: (value) => counted(value, 'time'),
    row: 20,
    quantity: 'how often the pair occurred',
  });
}
