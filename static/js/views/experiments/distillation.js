/** Distillation: the softened rows of teacher and student, and the loss between them. */

import { numbersIn } from '../../rules/experiment.js';
import { amount, decimal, share } from '../../words/numbers.js';
import { visible } from '../../words/text.js';
import { curvesPicture } from '../../plot/curves.js';
import { mapPicture } from '../../plot/map.js';
import { stripPicture } from '../../plot/strip.js';

/** @import { Picture } from '../../rules/experiment.js' */

/** @type {ExperimentView} */
export const experiment = {
  id: 'distillation',
  main: ['text', 'temperature', 'tokens_back'],
  hidden: ['seed'],
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays, values }) {
  const { place, loss, token, plain, soft, candidate } = arrays;
  const losses = numbersIn(loss.data);
  const worst = losses.indexOf(Math.max(...losses));
  const [before, after] = [plain, soft].map(({ data }) => share(data[0][0]));
  return (
    `After “${visible(token.data[place.data])}” the teacher gives “${visible(candidate.data[0])}” ${before}, softened by T = ${amount(values.temperature ?? 2)} ${after}; ` +
    `the student ${share(plain.data[1][0])}, softened ${share(soft.data[1][0])}. There T²·KL is ${decimal(losses[place.data], 2)} nats, ` +
    `${decimal(losses.reduce((sum, value) => sum + value, 0) / losses.length, 2)} on average, and most after “${visible(token.data[worst])}”: ${decimal(losses[worst], 2)}.`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays, values }) {
  const { temperature: at = 2 } = values;
  const losses = numbersIn(arrays.loss.data);
  const shares = [arrays.plain, arrays.soft].flatMap(({ data }) => data.map(numbersIn));
  const temperatures = numbersIn(arrays.temperature.data);
  const apart = temperatures.map((value) => Math.abs(Math.log(value / at)));
  return [
    stripPicture({
      id: 'losses',
      title: 'Where the student differs from its teacher',
      summary: 'T²·KL of what follows each token.',
      help: 'Dark: after this token the student predicts something else than the teacher.',
      rows: [{ name: 'T²·KL', tokens: arrays.token.data, values: losses }],
      range: [0, Math.max(...losses)],
      quantity: 'nats',
      format: (value) => `${decimal(value, 2)} nats`,
    }),
    mapPicture({
      id: 'rows',
      isWide: true,
      title: 'The row that the student learns from',
      summary: 'The probabilities of the likeliest next tokens, as they are and softened.',
      help: `The teacher’s likeliest tokens at T = 1 and at T = ${amount(at)}. The rest of a row is on the other tokens.`,
      values: shares,
      rows: ['teacher', 'student', 'teacher/T', 'student/T'],
      columns: arrays.candidate.data.map(visible),
      titles: { rows: '', columns: '' },
      range: [0, Math.max(...shares.flat())],
      quantity: 'probability',
      format: (value) => share(value),
      say: (row, column) => `“${visible(arrays.candidate.data[column])}”`,
      text: (row, column) => share(shares[row][column], 2),
      isSlanted: true,
      cell: 34,
    }),
    curvesPicture({
      id: 'temperature',
      isWide: true,
      title: 'Why the loss is multiplied by T²',
      summary: 'KL and T²·KL of the drawn row by temperature.',
      help: 'KL alone vanishes as the rows are softened. The line is at the chosen T.',
      x: temperatures,
      across: {
        title: 'T',
        isLog: true,
        ticks: [0.5, 1, 2, 5, 10],
        write: (value) => amount(value),
      },
      up: { title: 'nats' },
      quantity: 'nats',
      marker: apart.indexOf(Math.min(...apart)),
      curves: { KL: arrays.divergence.data, 'T²·KL': arrays.loss_by_temperature.data },
    }),
  ];
}
