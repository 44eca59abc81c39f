/** Overfitting and early stopping on the reader's text, and what dropout does to a row. */

import { numbersIn } from '../../rules/experiment.js';
import { amount, decimal, grouped } from '../../words/numbers.js';
import { curvesPicture } from '../../plot/curves.js';
import { mapPicture } from '../../plot/map.js';

/** @import { Picture } from '../../rules/experiment.js' */

/** @type {ExperimentView} */
export const experiment = {
  id: 'overfitting',
  main: ['text', 'dropout', 'is_tied', 'steps'],
  finding,
  pictures,
};

/** @param {Result['arrays'][string]} loss @returns {number} the frame with the least held-out loss */
function bestIn({ data: [, held] }) {
  return held.indexOf(Math.min(...held));
}

/** @param {Result} result */
function finding({ arrays }) {
  const { frame, loss } = arrays;
  const best = bestIn(loss);
  const [[learned, held], [then, rest]] = [best, frame.data.length - 1].map((at) =>
    loss.data.map((/** @type {number[]} */ part) => decimal(part[at], 2)),
  );
  return (
    `${grouped(arrays.n_parameters.data)} parameters learn ${grouped(arrays.n_learned.data)} characters. The place to stop is step ${frame.data[best]}: ` +
    `the held-out text costs ${held} bits a character there, what is learned ${learned}. At step ${frame.data.at(-1)} it is ${rest} and ${then}.`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays, values, total }) {
  const { frame, loss, row, in_training: drawn, mean } = arrays;
  const { dropout = 0.2 } = values;
  const rows = row ? [row.data, ...drawn.data, mean.data].map(numbersIn) : [];
  return [
    curvesPicture({
      id: 'loss',
      isWide: true,
      title: 'Two curves, and the place to stop',
      summary: 'The loss of what is learned and of what is held out, by training step.',
      help: 'Read without dropout. The line is where the held-out loss is least.',
      x: numbersIn(frame.data),
      across: { title: 'training step', range: [0, total] },
      up: { title: 'bits a character' },
      quantity: 'bits a character',
      format: (value) => decimal(value, 2),
      marker: bestIn(loss),
      unit: 'step',
      curves: { learned: loss.data[0], 'held out': loss.data[1] },
    }),
    ...(row
      ? [
          mapPicture({
            id: 'dropout',
            isWide: true,
            title: 'Dropout keeps the mean',
            summary: 'Hidden numbers as they are read, in six steps of training, and their mean.',
            help: `In training a number is 0 with probability ${dropout}, and else divided by ${amount(1 - dropout)}. Last row: the mean of a thousand draws.`,
            values: rows,
            rows: ['reading', ...drawn.data.map(() => 'training'), 'mean'],
            titles: { rows: '', columns: 'hidden number' },
            range: [0, Math.max(1e-9, ...rows.flat())],
            quantity: 'hidden number',
            format: (value) => decimal(value, 3),
            text: (line, column) => decimal(rows[line][column], 1),
            cell: 26,
          }),
        ]
      : []),
  ];
}
