/** Why attention divides by √d: variance, saturation and gradient of the softmax by width. */

import { numbersIn } from '../../rules/experiment.js';
import { amount, grouped, share } from '../../words/numbers.js';
import { curvesPicture, plainCurve, strongCurve } from '../../plot/curves.js';
import { mapPicture } from '../../plot/map.js';

/**
 * @import { Picture } from '../../rules/experiment.js'
 * @import { Size } from '../../plot/map.js'
 */

const PLAIN = 'not divided';
const SCALED = 'divided by √d';

/** @type {ExperimentView} */
export const experiment = {
  id: 'scaling',
  main: ['width', 'n_keys', 'deviation', 'scores', 'divisors'],
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays }) {
  const { width, variance, greatest_weight: greatest, gradient } = arrays;
  /** @param {any} array @returns {[number, number]} at the greatest width, undivided and divided */
  const ends = ({ data }) => [data[0].at(-1), data[1].at(-1)];
  const [plain, scaled] = [ends(greatest), ends(gradient)];
  const [spread, kept] = ends(variance);
  const factor = scaled[1] / scaled[0];
  return (
    `At width ${grouped(width.data.at(-1))} the undivided scores have variance ${grouped(Number(spread.toPrecision(3)))}, and one key takes ` +
    `${share(plain[0], 2)} of the weight on average. Divided by √d the variance is ${amount(kept)} and the greatest ` +
    `weight ${share(plain[1], 2)}. The gradient of the softmax is ${
      factor >= 1.05
        ? `${amount(factor, 2)} times as large with the division`
        : 'as large without the division here'
    }.`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays }) {
  const widths = numbersIn(arrays.width.data);
  /** @param {string} name @param {Size} size */
  const pair = (name, size) => [
    { ...plainCurve(PLAIN, arrays[name].data[0], size), hasDots: true },
    { ...strongCurve(SCALED, arrays[name].data[1], size), hasDots: true },
  ];
  /** @type {[number, number]} */
  const ends = [widths[0], widths[widths.length - 1] ** 1.04];
  const common = {
    x: widths,
    across: {
      title: 'width d',
      isLog: widths.length > 1,
      range: widths.length > 1 ? ends : undefined,
      ticks: widths.filter((_, at) => at % Math.ceil(widths.length / 6) === 0),
      write: grouped,
    },
  };
  return [
    curvesPicture({
      ...common,
      id: 'variance',
      title: 'Without the division, scores grow with the width',
      summary: 'The variance of the scores by the width, with and without the division by √d.',
      help: 'Variance of the dot products. Dotted: the theory, d·σ⁴ and σ⁴.',
      up: { title: 'variance of the scores', isLog: true },
      quantity: 'variance of the scores',
      format: (value) => amount(value, 4),
      curves: (size) => [
        ...['d·σ⁴', 'σ⁴'].map((name, at) => ({
          ...plainCurve(name, arrays.expected_variance.data[at], size),
          colour: size.palette.muted,
          dash: /** @type {const} */ ('dot'),
          isQuiet: true,
        })),
        ...pair('variance', size),
      ],
    }),
    curvesPicture({
      ...common,
      id: 'greatest',
      title: 'Then one key takes all the weight',
      summary: 'The greatest attention weight by the width, with and without the division.',
      help: `Mean of the greatest weight of each query. Even weights over ${arrays.example.shape[1]} keys would be ${share(1 / arrays.example.shape[1], 3)}.`,
      up: { title: 'greatest weight', range: [0, 1] },
      quantity: 'mean of the greatest weight of a query',
      curves: (size) => pair('greatest_weight', size),
    }),
    ...[0, 1].map((at) => exampleMap(arrays, at, widths)),
    curvesPicture({
      ...common,
      id: 'gradient',
      title: 'And the gradient vanishes',
      summary: 'The gradient of the softmax by the width, with and without the division.',
      help: 'Mean Frobenius norm of ∂weights/∂scores: how much the weights move when the scores do. If it is near 0, training cannot move the weight elsewhere.',
      up: { title: '‖∂weights/∂scores‖', isLog: true },
      quantity: 'norm of the gradient of the softmax',
      curves: (size) => pair('gradient', size),
    }),
    chosenMap(arrays),
  ];
}

/** @param {Arrays} arrays @param {number} at 0: undivided, 1: divided @param {number[]} widths */
function exampleMap({ example }, at, widths) {
  const values = example.data[at].map(numbersIn);
  return mapPicture({
    id: at === 0 ? 'example' : 'example-scaled',
    title: at === 0 ? 'One query, not divided' : 'The same query, divided by √d',
    summary: `The weights of one query over its keys, by the width, ${at === 0 ? PLAIN : SCALED}.`,
    help:
      at === 0
        ? 'Each column is the attention of one query at one width: narrow vectors spread it, wide ones settle on a single key.'
        : 'The same vectors: the columns stay as spread at every width.',
    values,
    columns: widths.map(grouped),
    titles: { rows: 'key', columns: 'width d' },
    quantity: 'attention weight',
    format: (value) => share(value),
    cell: Math.max(7, Math.min(24, 220 / values.length)),
  });
}

/** @param {Arrays} arrays */
function chosenMap({ divisor, scores, weights, weights_gradient: gradient }) {
  const values = weights.data.map(numbersIn);
  const gradients = numbersIn(gradient.data);
  return mapPicture({
    id: 'scores',
    title: 'The softmax of your own scores',
    summary: 'The softmax of chosen scores, each row divided by another number first.',
    help: `Scores and divisors are yours to change. Gradient by divisor: ${gradients.map((value, at) => `÷${amount(divisor.data[at])}: ${amount(value, 2)}`).join('; ')}.`,
    values,
    columns: numbersIn(scores.data).map((value) => amount(value)),
    rows: numbersIn(divisor.data).map((value) => `÷ ${amount(value)}`),
    titles: { rows: 'divisor', columns: 'score' },
    quantity: 'softmax of the divided scores',
    format: (value) => share(value, 4),
    text: (row, column) => share(values[row][column], 3),
    cell: 40,
  });
}
