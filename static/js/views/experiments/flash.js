/** Attention block by block: the running maximum, the running sum, and the weights so far. */

import { numbersIn } from '../../rules/experiment.js';
import { counted } from '../../words/lists.js';
import { amount, decimal, grouped, share } from '../../words/numbers.js';
import { barPicture } from '../../plot/bar_picture.js';
import { curvesPicture, plainCurve, strongCurve, warm } from '../../plot/curves.js';
import { numbered } from '../../plot/map.js';

/** @import { Picture, Table } from '../../rules/experiment.js' */

/** @type {ExperimentView} */
export const experiment = {
  id: 'flash',
  main: ['block', 'n_keys', 'deviation', 'scores'],
  steps: (arrays) => numbersIn(arrays.step?.data ?? []),
  stepName: 'keys read',
  finding,
  pictures,
  tables,
};

/** @param {Result} result */
function finding({ arrays, at }) {
  const read = arrays.step.data[at];
  const count = arrays.key.data.length;
  const factor = arrays.factor.data[at];
  const change =
    at === 0
      ? 'It is the first block.'
      : factor === 1
        ? 'The block does not raise the maximum, so what was summed before stays.'
        : `The maximum rises from ${decimal(arrays.greatest.data[at - 1], 2)} to ${decimal(arrays.greatest.data[at], 2)}, so what was summed before is multiplied by ${share(factor)}.`;
  const error = arrays.error.data[at];
  const naive = numbersIn(arrays.naive_context.data).some(Number.isNaN)
    ? ' Without the maximum, e^{score} overflows.'
    : '';
  return (
    `After ${grouped(read)} of ${counted(count, 'key')} the maximum is ${decimal(arrays.greatest.data[at], 2)} and the sum ${decimal(arrays.total.data[at], 3)}. ` +
    `${change} The output differs from that over all keys by ${decimal(error, 3)}.${naive}`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays, at }) {
  return [
    weightBars(arrays, at),
    curvesPicture({
      id: 'running',
      title: 'The running maximum',
      summary: 'The largest score of each block, and the running maximum.',
      help: 'Dots: the largest score of each block. The maximum never falls.',
      x: numbersIn(arrays.step.data),
      across: { title: 'keys read' },
      up: { title: 'score' },
      quantity: 'score',
      format: (value) => decimal(value, 2),
      marker: at,
      curves: (size) => [
        {
          ...plainCurve('block', arrays.block_greatest.data, size),
          colour: size.palette.muted,
          hasDots: true,
        },
        { ...strongCurve('maximum', arrays.greatest.data, size), hasDots: true },
      ],
    }),
    curvesPicture({
      id: 'memory',
      title: 'Numbers that are kept at once',
      summary: 'Numbers kept at once by the length of the text, whole and in blocks.',
      help: 'Of one head: all n² scores, or blocks of 128 queries and keys of width 64.',
      x: numbersIn(arrays.length.data),
      across: { title: 'tokens', isLog: true, ticks: [128, 1024, 8192, 65536], write: grouped },
      up: { title: 'numbers', isLog: true },
      quantity: 'numbers kept at once',
      format: (value) => grouped(value),
      curves: { whole: arrays.whole_numbers.data, 'in blocks': arrays.block_numbers.data },
    }),
  ];
}

/** @param {Arrays} arrays @param {number} at */
function weightBars(arrays, at) {
  const scores = numbersIn(arrays.score.data);
  const whole = numbersIn(arrays.weights.data);
  const read = arrays.step.data[at];
  const before = at === 0 ? 0 : arrays.step.data[at - 1];
  const most = Math.max(...arrays.partial_weights.data.flat());
  return barPicture({
    id: 'weights',
    isWide: true,
    title: `The weights after ${counted(read, 'key')}`,
    summary: `The weight of every key after ${counted(read, 'key')} of ${scores.length}.`,
    help: 'Warm: the block just read. They sum to 1 at every step, and after the last block they are the softmax of all scores.',
    labels: scores.map((_, key) => String(key)),
    values: numbersIn(arrays.partial_weights.data[at]),
    of: 'key',
    axis: { title: 'weight so far', domain: [0, most * 1.05] },
    isUpright: true,
    fill: (key, palette) => (key >= before && key < read ? warm(palette) : palette.query),
    name: (key) => `key ${key}, score ${amount(scores[key])}, at the end ${share(whole[key])}`,
    format: (value) => share(value),
    row: 200,
    ...(read < scores.length && { marker: read - 0.5 }),
    quantity: 'weight of the keys read so far',
  });
}

/** @param {Result} result @returns {Table[]} */
function tables({ arrays, at }) {
  /** @param {string} name @param {number[]} values */
  const row = (name, values) => ({ name, values });
  const rows = [
    row('o, the running sum', numbersIn(arrays.sum.data[at])),
    row('o/ℓ', numbersIn(arrays.output.data[at])),
    row('over all keys', numbersIn(arrays.context.data)),
  ];
  return [
    {
      name: 'state',
      step: 'Kept from block to block',
      title: `m = ${decimal(arrays.greatest.data[at], 3)}, ℓ = ${decimal(arrays.total.data[at], 3)}`,
      note: 'and one vector of values',
      rows: rows.map(({ name }) => name),
      columns: numbered(rows[0].values, 'v'),
      values: rows.map(({ values }) => values),
    },
  ];
}
