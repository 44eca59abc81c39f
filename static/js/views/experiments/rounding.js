/** Quantisation by formula: a row of real weights, its levels, and the error by bits. */

import { numbersIn } from '../../rules/experiment.js';
import { decimal, percent } from '../../words/numbers.js';
import { curvesPicture } from '../../plot/curves.js';
import { numbered } from '../../plot/map.js';

/** @import { Picture, Table } from '../../rules/experiment.js' */

/** @type {ExperimentView} */
export const experiment = {
  id: 'rounding',
  main: ['bits', 'per', 'matrix', 'layer', 'row'],
  hidden: ['seed'],
  finding,
  pictures,
  tables,
};

/** @param {Result} result */
function finding({ arrays, values }) {
  const { bits = 4 } = values;
  const [least, most] = numbersIn(arrays.extreme.data).map((value) => decimal(value, 3));
  const at = arrays.bits.data.indexOf(bits);
  const [row, tensor] = arrays.error.data.map((/** @type {number[]} */ errors) =>
    percent(errors[at] / arrays.size.data),
  );
  const first = arrays.weight.data[0];
  return (
    `From ${least} to ${most} in ${2 ** bits} levels: the scale is ${decimal(arrays.scale.data, 4)}, and ${arrays.zero.data} stands for 0. ` +
    `${decimal(first, 3)} / ${decimal(arrays.scale.data, 4)} is rounded, plus ${arrays.zero.data}: ${arrays.whole.data[0]}, which is restored to ${decimal(arrays.restored.data[0], 3)}. ` +
    `The error is ${row} of the size of this row with a scale of its own, ${tensor} with one for the tensor.`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays, values }) {
  const { bits = 4 } = values;
  const order = [...numbersIn(arrays.weight.data).keys()].sort(
    (a, b) => arrays.weight.data[a] - arrays.weight.data[b],
  );
  const sorted = (/** @type {string} */ name) => order.map((at) => arrays[name].data[at]);
  return [
    curvesPicture({
      id: 'levels',
      isWide: true,
      title: 'The row, sorted, and its levels',
      summary: 'The weights of the row in order, and what they are restored to.',
      help: 'Each weight becomes the nearest level. A stair is a level.',
      x: order.map((_, at) => at + 1),
      across: { title: 'weights, from the least' },
      up: { title: 'weight' },
      quantity: 'weight',
      format: (value) => decimal(value, 4),
      curves: { weight: sorted('weight'), restored: sorted('restored') },
    }),
    curvesPicture({
      id: 'error',
      isWide: true,
      title: 'Each bit less doubles the error',
      summary: 'The error of the row by bits, with a scale for the row and for the tensor.',
      help: 'Root mean square of the change, on a logarithmic scale. The line is at the chosen bits.',
      x: numbersIn(arrays.bits.data),
      across: { title: 'bits', ticks: arrays.bits.data },
      up: { title: 'error', isLog: true },
      quantity: 'error',
      format: (value) => decimal(value, 4),
      marker: arrays.bits.data.indexOf(bits),
      curves: { 'per tensor': arrays.error.data[1], 'per row': arrays.error.data[0] },
    }),
  ];
}

const SHOWN = 10;

/** @param {Result} result @returns {Table[]} */
function tables({ arrays }) {
  const [weight, whole, restored] = ['weight', 'whole', 'restored'].map((name) =>
    numbersIn(arrays[name].data).slice(0, SHOWN),
  );
  return [
    {
      name: 'weights',
      step: 'Rounded',
      title: `The first ${SHOWN} weights`,
      note: `of ${arrays.weight.data.length}`,
      rows: ['w', 'q', 'scale · (q − zero)', 'error'],
      columns: numbered(weight, 'w'),
      values: [weight, whole, restored, weight.map((value, at) => restored[at] - value)],
    },
  ];
}
