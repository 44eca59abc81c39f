/** Why a label: a classifier of tense, its shortcut, and the sum behind a label. */

import { numbersIn } from '../../rules/experiment.js';
import { percent, share, signed } from '../../words/numbers.js';
import { barPicture } from '../../plot/bar_picture.js';
import { curvesPicture, warm } from '../../plot/curves.js';
import { diverging } from '../../plot/colour.js';
import { stripPicture } from '../../plot/strip.js';

/** @import { Picture } from '../../rules/experiment.js' */

/** @type {ExperimentView} */
export const experiment = { id: 'labels', main: ['text', 'agrees', 'steps'], finding, pictures };

/** @param {number[][]} heads what each token gives through each head @returns {number[]} through all */
const together = (heads) =>
  heads[0].map((_, token) => heads.reduce((sum, row) => sum + row[token], 0));

/** @param {Result} result */
function finding({ arrays }) {
  if (!arrays.label) return 'The classifier is being trained.';
  const { token, label, probability, by_token: byToken, accuracy, mean_share: shares } = arrays;
  const given = together(byToken.data);
  const strongest = given.indexOf(Math.max(...given));
  const [fits, against] = accuracy.data.map((/** @type {number[]} */ row) =>
    percent(row.at(-1) ?? 0, 0),
  );
  return (
    `The label is “${label.data}” (${share(Math.max(...probability.data), 3)}), and “${token.data[strongest]}” gives it most: ${signed(given[strongest], 2)} logits, where its lead is ${signed(arrays.difference.data, 2)}. ` +
    `Of ${arrays.n_held.data} held-out sentences it labels ${fits} right where the adverb fits the verb, and ${against} where it does not. ` +
    `In these the verb has ${percent(shares.data[0], 0)} of what heads add, the adverb ${percent(shares.data[1], 0)}.`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays, total }) {
  const { frame, accuracy } = arrays;
  return [
    curvesPicture({
      id: 'accuracy',
      isWide: true,
      title: 'The shortcut is learned first',
      summary: 'The share of held-out sentences that are labelled right, by training step.',
      help: 'Half of the held-out sentences have an adverb of the other tense. A guess is right in half of them.',
      x: numbersIn(frame.data),
      across: { title: 'training step', range: [0, total] },
      up: { title: 'labelled right', range: [0, 1], write: (value) => share(value, 2) },
      quantity: 'share',
      format: (value) => share(value),
      unit: 'step',
      curves: { 'adverb fits': accuracy.data[0], 'adverb misleads': accuracy.data[1] },
    }),
    ...(arrays.label ? reasonsFor(arrays) : []),
  ];
}

/** @param {Result['arrays']} arrays @returns {Picture[]} */
function reasonsFor({ token, label, by_token: byToken, part, adds, without, probability }) {
  const heads = byToken.data.map(numbersIn);
  const sums = numbersIn(adds.data);
  const most = Math.max(...heads.flat().map(Math.abs), 1e-9);
  const largest = Math.max(...sums.map(Math.abs), 1e-9);
  const own = Math.max(...probability.data);
  return [
    stripPicture({
      id: 'tokens',
      title: `What each word gives to “${label.data}”`,
      summary: 'The logits that each word gives the label, through all heads and through each.',
      help: 'Warm speaks for the label, blue against it: weight × value, through W_O, read by the difference of the two labels.',
      rows: [together(heads), ...heads].map((values, at) => ({
        name: at === 0 ? 'all heads' : `head ${at - 1}`,
        tokens: token.data,
        values,
      })),
      range: [-most, most],
      colours: diverging,
      quantity: 'logits for the label',
      format: (value) => signed(value, 2),
    }),
    barPicture({
      id: 'parts',
      title: 'The sum behind the label',
      summary: 'What each part adds to the lead of the label, in logits.',
      help: 'The scale of the last norm is held at its value in this pass. The remainder is rounding.',
      labels: part.data,
      values: sums,
      of: 'part',
      axis: { title: 'logits', domain: [-1.3 * largest, 1.3 * largest] },
      quantity: 'logits',
      format: (value) => signed(value, 2),
      fill: (at, palette) => (sums[at] < 0 ? palette.query : warm(palette)),
    }),
    barPicture({
      id: 'without',
      title: 'And without a head?',
      summary: `The probability of “${label.data}” in passes without each head.`,
      help: `A share of a sum is no cause. Each bar is a pass in which the head writes nothing; with all heads it is ${share(own, 3)}.`,
      labels: without.data.map((/** @type {number} */ _, /** @type {number} */ at) => `head ${at}`),
      values: numbersIn(without.data),
      of: 'head that is off',
      axis: { title: `P(${label.data})`, domain: [0, 1] },
      quantity: 'probability',
      format: (value) => share(value),
      fill: (_, palette) => palette.query,
    }),
  ];
}
