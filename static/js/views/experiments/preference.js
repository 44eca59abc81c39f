/** Bradley and Terry's model, and a judge: what it pays for in two texts. */

import { numbersIn } from '../../rules/experiment.js';
import { decimal, share, signed } from '../../words/numbers.js';
import { curvesPicture } from '../../plot/curves.js';
import { diverging } from '../../plot/colour.js';
import { mapPicture } from '../../plot/map.js';
import { stripPicture } from '../../plot/strip.js';

/** @import { Picture } from '../../rules/experiment.js' */

/** @type {ExperimentView} */
export const experiment = {
  id: 'preference',
  main: ['first', 'second', 'lead'],
  hidden: ['seed'],
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays, values }) {
  const [first, second] = numbersIn(arrays.reward.data);
  const gains = numbersIn(arrays.measured_gain.data).map((gain) => signed(gain, 1));
  return (
    `The judge rates A ${signed(first, 2)} and B ${signed(second, 2)}: A is preferred with probability ` +
    `σ(${signed(first - second, 2)}) = ${share(arrays.preferred.data)}, and training would cost ${decimal(arrays.loss.data, 2)} nats, were A the better one. ` +
    `By hand, a lead of ${signed(values.lead ?? 1, 2)} is ${share(arrays.chance_by_hand.data)}. ` +
    `Over ${arrays.n_measured.data} answers a longer end changes the reward by ${gains[0]}, one quoted word by ${gains[1]} and four by ${gains[2]}.`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays, values }) {
  const { token, contribution, added, lead, chance } = arrays;
  const made = contribution.data.map((/** @type {number[]} */ row, /** @type {number} */ text) =>
    row.map((value, at) => (token.data[text][at] === '' ? NaN : value)),
  );
  const most = Math.max(...contribution.data.flat().map(Math.abs));
  const gains = [arrays.measured_gain.data, ...arrays.gain.data].map(numbersIn);
  const top = Math.max(...gains.flat().map(Math.abs));
  const leads = numbersIn(lead.data);
  const apart = leads.map((value) => Math.abs(value - (values.lead ?? 1)));
  return [
    stripPicture({
      id: 'contributions',
      title: 'What each token adds to the reward',
      summary: 'The change of the reward by each token of both texts.',
      help: 'Warm raises the reward, blue lowers it. Their sum, with that of the start token, is the reward.',
      rows: ['A', 'B'].map((name, text) => ({
        name,
        tokens: token.data[text],
        values: made[text],
      })),
      range: [-most, most],
      colours: diverging,
      quantity: 'change of the reward',
      format: (value) => signed(value, 2),
    }),
    curvesPicture({
      id: 'chance',
      title: 'Only the difference counts',
      summary: 'The probability that A is preferred, by its lead.',
      help: 'σ(r_A − r_B). The line is at the lead by hand.',
      x: leads,
      across: { title: 'r_A − r_B', ticks: [-8, -4, 0, 4, 8] },
      up: { title: 'P(A is preferred)', range: [0, 1], write: (value) => share(value, 2) },
      quantity: 'probability',
      format: (value) => share(value),
      marker: apart.indexOf(Math.min(...apart)),
      curves: { σ: chance.data },
    }),
    mapPicture({
      id: 'gains',
      title: 'Shortcuts of the judge',
      summary: 'What three additions change of the reward.',
      help: `Added at the end. Longer: a sentence without speech. First row: the mean over ${arrays.n_measured.data} answers; below it your texts.`,
      values: gains,
      rows: ['mean', 'A', 'B'],
      columns: added.data,
      titles: { rows: 'text', columns: 'added' },
      range: [-top, top],
      colours: diverging,
      quantity: 'change of the reward',
      format: (value) => signed(value, 2),
      text: (row, column) => signed(gains[row][column], 1),
      cell: 40,
    }),
  ];
}
