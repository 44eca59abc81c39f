/** Why a function between two matrices: the curves it can learn, and one matrix without it. */

import { numbersIn } from '../../rules/experiment.js';
import { decimal } from '../../words/numbers.js';
import { curvesPicture, plainCurve, rowCurves, strongCurve } from '../../plot/curves.js';

/**
 * @import { Picture } from '../../rules/experiment.js'
 * @import { Look } from '../../plot/curves.js'
 * @import { Size } from '../../plot/map.js'
 */

/** @type {Record<string, Look>} */
const LOOKS = {
  none: { name: 'no function', colour: 'ink' },
  relu: { name: 'ReLU', colour: 'warm', width: 3 },
  gelu: { name: 'GELU', colour: 'query', width: 2.5 },
  silu: { name: 'SiLU', colour: 'key' },
};

/** @type {ExperimentView} */
export const experiment = {
  id: 'feed_forward',
  main: ['target', 'd_ff', 'steps'],
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays, values }) {
  const [none, relu, gelu] = numbersIn(arrays.loss.data).map((of) => decimal(of, 3));
  const [matrix, bias] = arrays.merged_matrix.data;
  const inside = arrays.kinks.data.filter((/** @type {number} */ at) => Math.abs(at) <= 3).length;
  return (
    `Without a function the ${values.d_ff ?? 16} hidden units are the line ${decimal(matrix, 3)}·x ${bias < 0 ? '−' : '+'} ${decimal(Math.abs(bias), 3)}: both agree ` +
    `to ${decimal(arrays.merged_difference.data, 2)}. Its error is ${none}; with ReLU, which has ${inside} kinks between −3 and 3, it is ${relu}, and with GELU ${gelu}.`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays }) {
  const across = { title: 'x', ticks: [-3, -2, -1, 0, 1, 2, 3] };
  const curves = (/** @type {string} */ name, /** @type {Size} */ size) =>
    rowCurves(arrays.function, arrays[name], LOOKS, size);
  return [
    curvesPicture({
      id: 'output',
      isWide: true,
      title: 'What each network has learned',
      summary: 'The curve to learn, and those of networks with four functions.',
      help: 'Dotted: the curve to learn. The straight line is two matrices without a function between them.',
      x: numbersIn(arrays.x.data),
      across,
      up: { title: 'output' },
      quantity: 'output',
      curves: (size) => [
        {
          ...plainCurve('to learn', arrays.target.data, size),
          colour: size.palette.muted,
          dash: 'dot',
        },
        ...curves('output', size),
      ],
    }),
    curvesPicture({
      id: 'merged',
      title: 'Two matrices are one',
      summary: 'The network without a function, and the one matrix that it equals.',
      help: 'Both lines lie on each other: (x·W₁ + b₁)·W₂ + b₂ = x·(W₁·W₂) + (b₁·W₂ + b₂).',
      x: numbersIn(arrays.x.data),
      across,
      up: { title: 'output' },
      quantity: 'output',
      format: (value) => decimal(value, 4),
      curves: (size) => [
        {
          ...plainCurve('two', arrays.output.data[0], size),
          colour: size.palette.query,
          width: 6,
          isQuiet: true,
        },
        { ...strongCurve('one matrix', arrays.merged.data, size), width: 2 },
      ],
    }),
    curvesPicture({
      id: 'activation',
      title: 'The functions',
      summary: 'The functions between the two matrices.',
      help: 'f(x), which each hidden unit applies.',
      x: numbersIn(arrays.x.data),
      across,
      up: { title: 'f(x)' },
      quantity: 'activation',
      curves: (size) => curves('activation', size),
    }),
  ];
}
