/** Why attention divides by √d: variance, saturation and gradient of the softmax by width. */

import { numbersIn } from '../../rules/experiment.js';
import { amount, grouped, share } from '../../words/numbers.js';
import { chart } from '../../plot/chart.js';
import { warm } from '../../plot/curves.js';
import { cell } from '../../plot/marks/mark.js';
import { line } from '../../plot/marks/line.js';
import { band, linear, log } from '../../plot/scales.js';
import { matrixFrom } from '../../trace/trace.js';

/**
 * @import { Arrays, ExperimentView, Picture, Result } from '../../rules/experiment.js'
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
  const x = (widths.length > 1 ? log : linear)('width d', {
    ticks: widths.filter((_, at) => at % Math.ceil(widths.length / 6) === 0),
    write: grouped,
  });
  /** @param {string} name @param {Size} size */
  const pair = (name, { palette }) => [
    { name: PLAIN, values: numbersIn(arrays[name].data[0]), stroke: palette.ink, dots: 5 },
    {
      name: SCALED,
      values: numbersIn(arrays[name].data[1]),
      stroke: warm(palette),
      width: 3,
      dots: 5,
    },
  ];
  return [
    {
      id: 'variance',
      draw: (size) => ({
        title: 'Without the division, scores grow with the width',
        summary: 'The variance of the scores by the width, with and without the division by √d.',
        help: 'Variance of the dot products. Dotted: the theory, d·σ⁴ and σ⁴.',
        ...chart(
          {
            x,
            y: log('variance of the scores'),
            marks: [
              line(
                [
                  ...['d·σ⁴', 'σ⁴'].map((name, at) => ({
                    name,
                    values: numbersIn(arrays.expected_variance.data[at]),
                    stroke: size.palette.muted,
                    dash: /** @type {const} */ ('dot'),
                    isQuiet: true,
                  })),
                  ...pair('variance', size),
                ],
                { x: widths, format: (value) => amount(value, 4) },
              ),
            ],
            table: { quantity: 'variance of the scores' },
          },
          size,
        ),
      }),
    },
    {
      id: 'greatest',
      draw: (size) => ({
        title: 'Then one key takes all the weight',
        summary: 'The greatest attention weight by the width, with and without the division.',
        help: `Mean of the greatest weight of each query. Even weights over ${arrays.example.shape[1]} keys would be ${share(1 / arrays.example.shape[1], 3)}.`,
        ...chart(
          {
            x,
            y: linear('greatest weight', { domain: [0, 1] }),
            marks: [line(pair('greatest_weight', size), { x: widths })],
            table: { quantity: 'mean of the greatest weight of a query' },
          },
          size,
        ),
      }),
    },
    ...[0, 1].map((at) => ({
      id: at === 0 ? 'example' : 'example-scaled',
      draw: (/** @type {Size} */ size) => exampleMap(arrays, at, widths, size),
    })),
    {
      id: 'gradient',
      draw: (size) => ({
        title: 'And the gradient vanishes',
        summary: 'The gradient of the softmax by the width, with and without the division.',
        help: 'Mean Frobenius norm of ∂weights/∂scores: how much the weights move when the scores do. If it is near 0, training cannot move the weight elsewhere.',
        ...chart(
          {
            x,
            y: log('‖∂weights/∂scores‖'),
            marks: [line(pair('gradient', size), { x: widths })],
            table: { quantity: 'norm of the gradient of the softmax' },
          },
          size,
        ),
      }),
    },
    { id: 'scores', draw: (size) => chosenMap(arrays, size) },
  ];
}

/**
 * @param {Arrays} arrays
 * @param {number} at 0: undivided, 1: divided
 * @param {number[]} widths
 * @param {Size} size
 */
function exampleMap({ example }, at, widths, size) {
  const values = /** @type {(number|null)[][]} */ (example.data[at]).map(numbersIn);
  return {
    title: at === 0 ? 'One query, not divided' : 'The same query, divided by √d',
    summary: `The weights of one query over its keys, by the width, ${at === 0 ? PLAIN : SCALED}.`,
    help:
      at === 0
        ? 'Each column is the attention of one query at one width: narrow vectors spread it, wide ones settle on a single key.'
        : 'The same vectors: the columns stay as spread at every width.',
    ...chart(
      {
        x: band(widths.map(grouped), { title: 'width d' }),
        y: band(
          values.map((_, key) => String(key + 1)),
          { title: 'key' },
        ),
        marks: [
          cell(matrixFrom(values), {
            ramp: { title: 'attention weight', domain: [0, 1] },
            format: (value) => share(value),
          }),
        ],
        size: { row: Math.max(7, Math.min(24, 220 / values.length)) },
        table: { quantity: 'attention weight' },
      },
      size,
    ),
  };
}

/** @param {Arrays} arrays @param {Size} size */
function chosenMap({ divisor, scores, weights, weights_gradient: gradient }, size) {
  const values = /** @type {(number|null)[][]} */ (weights.data).map(numbersIn);
  const gradients = numbersIn(gradient.data);
  return {
    title: 'The softmax of your own scores',
    summary: 'The softmax of chosen scores, each row divided by another number first.',
    help: `Scores and divisors are yours to change. Gradient by divisor: ${gradients.map((value, at) => `÷${amount(divisor.data[at])}: ${amount(value, 2)}`).join('; ')}.`,
    ...chart(
      {
        x: band(
          scores.data.map((/** @type {number} */ value) => amount(value)),
          { title: 'score' },
        ),
        y: band(
          divisor.data.map((/** @type {number} */ value) => `÷ ${amount(value)}`),
          { title: 'divisor' },
        ),
        marks: [
          cell(matrixFrom(values), {
            ramp: { title: 'softmax of the divided scores', domain: [0, 1] },
            format: (value) => share(value, 4),
            text: ({ value }) => share(value, 3),
          }),
        ],
        size: { row: 40 },
        table: { quantity: 'softmax of the divided scores' },
      },
      size,
    ),
  };
}
