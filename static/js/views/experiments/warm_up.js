/** Why the learning rate rises first: a transformer that learns with a warm-up and without. */

import { numbersIn } from '../../rules/experiment.js';
import { counted } from '../../words/lists.js';
import { decimal, percent } from '../../words/numbers.js';
import { ACCURACY, curvesPicture } from '../../plot/curves.js';

/**
 * @import { Picture } from '../../rules/experiment.js'
 * @import { Axis } from '../../plot/curves.js'
 */

/** @type {ExperimentView} */
export const experiment = {
  id: 'warm_up',
  main: ['warmup', 'learning_rate', 'norm_place', 'n_layers', 'steps'],
  preview: { steps: 2 },
  steps: (arrays) => numbersIn(arrays.frame?.data ?? []),
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays, at }) {
  const step = arrays.frame.data[at];
  const [withIt, without] = arrays.accuracy.data.map((/** @type {number[]} */ of) =>
    percent(of[at], 0),
  );
  if (step === 0)
    return `Before training both have equal weights and ${withIt} of the answers right, by chance.`;
  const [loss, plain] = arrays.loss.data.map((/** @type {number[]} */ of) =>
    decimal(of[step - 1], 2),
  );
  const ratio = arrays.update.data[1][0] / arrays.update.data[0][0];
  return (
    `After ${counted(step, 'step')} the network with a warm-up has ${withIt} of the answers right and a loss of ${loss} bits; ` +
    `the one without ${without} and ${plain} bits. Its first step was ${decimal(ratio, 1)} times as large.`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures(result) {
  const { arrays, isPreview } = result;
  return [
    accuracyOf(result),
    ...(arrays.loss && !isPreview
      ? [
          stepped(result, 'loss', {
            title: 'Loss',
            help: 'Cross-entropy of an answer in each step, before it.',
            up: { title: 'loss (bits)' },
          }),
          stepped(result, 'update', {
            title: 'How far each step goes',
            help: 'Norm of the change of all weights, relative to their norm.',
            up: { title: 'update', isLog: true },
          }),
          stepped(result, 'rate', {
            title: 'The learning rate',
            help: 'It rises in equal steps to its peak, or is there at once.',
            up: { title: 'rate' },
          }),
        ]
      : []),
  ];
}

/** @param {Arrays[string]} array */
const pair = ({ data: [withIt, without] }) => ({ without, 'with warm-up': withIt });

/** @param {Result} result @returns {Picture} */
function accuracyOf({ arrays, at, total }) {
  return curvesPicture({
    id: 'accuracy',
    title: 'Accuracy',
    summary: 'The share of right answers by training step, with and without a warm-up.',
    help: 'On sequences that neither is trained on.',
    x: numbersIn(arrays.frame.data),
    across: { title: 'training step', range: [0, total] },
    up: ACCURACY,
    quantity: 'accuracy',
    format: (value) => percent(value),
    marker: at,
    curves: pair(arrays.accuracy),
  });
}

/**
 * @param {Result} result
 * @param {string} name
 * @param {{title: string, help: string, up: Axis}} words
 * @returns {Picture}
 */
function stepped({ arrays, at, total }, name, { title, help, up }) {
  const marked = numbersIn(arrays.step.data).indexOf(arrays.frame.data[at]);
  return curvesPicture({
    id: name,
    title,
    help,
    summary: `${title} by training step, with and without a warm-up.`,
    x: numbersIn(arrays.step.data),
    across: { title: 'training step', range: [0, total] },
    up,
    quantity: title.toLowerCase(),
    unit: 'step',
    ...(marked >= 0 && { marker: marked }),
    curves: pair(arrays[name]),
  });
}
