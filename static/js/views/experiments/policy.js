/** One step of policy gradient: rewards, what each token is asked, and what the step does. */

import { numbersIn } from '../../rules/experiment.js';
import { decimal, share, signed } from '../../words/numbers.js';
import { barPicture } from '../../plot/bar_picture.js';
import { curvesPicture, warm } from '../../plot/curves.js';
import { diverging } from '../../plot/colour.js';
import { stripPicture } from '../../plot/strip.js';

/** @import { Picture } from '../../rules/experiment.js' */

/** @type {ExperimentView} */
export const experiment = {
  id: 'policy',
  main: ['question', 'model', 'reward', 'baseline', 'rate'],
  titles: {
    model: { 'sums-imitation': 'imitation', sums: 'reinforced' },
    reward: { outcome: 'of the answer', process: 'of the steps' },
    baseline: { none: 'none', mean: 'mean', group: 'mean, in deviations' },
  },
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays }) {
  const { is_right, advantage, chance, n_weights } = arrays;
  const right = is_right.data.filter(Boolean).length;
  const said = `${right} of ${is_right.data.length} chains have the right answer`;
  if (advantage.data.every((/** @type {number} */ value) => value === 0))
    return `${said}, and all have one reward: every advantage is 0, and the step moves nothing. Another seed or product may part them.`;
  const [before, after] = chance.data.map((/** @type {number} */ value) => share(value));
  return `${said}. One step of all ${n_weights.data.toLocaleString('en')} weights takes the probability of the right ones from ${before} to ${after}.`;
}

/** @param {number} at @param {boolean} isRight */
function nameOf(at, isRight) {
  return `${String.fromCodePoint(65 + at)} ${isRight ? '✓' : '✗'}`;
}

/** @param {Arrays} arrays @param {number[][]} values */
function chainRows({ token, is_right }, values) {
  return values.map((row, at) => ({
    name: nameOf(at, is_right.data[at]),
    tokens: token.data[at],
    values: row.map((value, place) => (token.data[at][place] === '' ? NaN : value)),
  }));
}

/** @param {Arrays} arrays */
function strips(arrays) {
  const { pull, before, after } = arrays;
  const moved = after.data.map((/** @type {number[]} */ row, /** @type {number} */ chain) =>
    row.map((value, place) => value - before.data[chain][place]),
  );
  const [pulled, most] = [pull.data, moved].map((rows) =>
    Math.max(1e-6, ...rows.flat().map(Math.abs)),
  );
  const strip = { colours: diverging, format: (/** @type {number} */ value) => signed(value, 3) };
  return [
    stripPicture({
      ...strip,
      id: 'pull',
      title: 'What the gradient asks of each token',
      summary: 'The gradient at the logit of each written token.',
      help: 'Advantage · (1 − π). Warm: more of it, blue: less. Sure tokens are left alone.',
      rows: chainRows(arrays, pull.data),
      range: [-pulled, pulled],
      quantity: 'gradient at the logit',
    }),
    stripPicture({
      ...strip,
      id: 'moved',
      title: 'What the step does',
      summary: 'The change of the probability of each written token.',
      help: 'π after the step − π before it, after the same tokens. All chains share the weights, so each also moves with the others.',
      rows: chainRows(arrays, moved),
      range: [-most, most],
      quantity: 'change of the probability',
    }),
  ];
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays, values }) {
  const { answer, is_right, reward, advantage, kind, n_sums, solved } = arrays;
  const room = 1.3 * Math.max(0.5, ...numbersIn(advantage.data).map(Math.abs));
  const rates = numbersIn(arrays.rate.data);
  const apart = rates.map((rate) => Math.abs(Math.log(rate / (values.rate ?? 0.003))));
  return [
    barPicture({
      id: 'advantages',
      title: 'Rewards less the baseline',
      summary: 'The advantage of each chain.',
      help: 'Reward − baseline. Above 0 a chain becomes likelier. Next to each chain: its reward.',
      labels: is_right.data.map(
        (/** @type {boolean} */ isRight, /** @type {number} */ at) =>
          `${nameOf(at, isRight)} ${decimal(reward.data[at], 2)}`,
      ),
      values: numbersIn(advantage.data),
      name: (at) =>
        `chain ${nameOf(at, is_right.data[at])} ending in “${answer.data[at]}”, reward ${decimal(reward.data[at], 2)}`,
      of: 'chain',
      axis: { title: 'advantage', domain: [-room, room] },
      quantity: 'advantage',
      format: (value) => signed(value, 2),
      fill: (at, palette) => (is_right.data[at] ? warm(palette) : palette.query),
    }),
    curvesPicture({
      id: 'rates',
      title: 'How large a step may be',
      summary: 'The probability of the right ones of these chains, by the size of the step.',
      help: 'Each right chain counted once. The line is at the chosen size. A gradient holds only nearby.',
      x: rates,
      across: { title: 'size of the step', isLog: true },
      up: { title: 'probability', range: [0, 1], write: (value) => share(value, 2) },
      quantity: 'probability',
      format: (value) => share(value),
      marker: apart.indexOf(Math.min(...apart)),
      curves: { right: arrays.chance_by_rate.data },
    }),
    ...strips(arrays),
    barPicture({
      id: 'curriculum',
      title: 'The order of a curriculum',
      summary: 'The share of unseen products that the model solves, by kind.',
      help: `Likeliest tokens, ${numbersIn(n_sums.data)
        .slice(-3)
        .reduce(
          (sum, count) => sum + count,
          0,
        )} products, sorted twice: by the tokens of the solution, and by the columns of the last sum that carry.`,
      isWide: true,
      labels: kind.data,
      name: (at) => `${kind.data[at]}, ${n_sums.data[at]} products`,
      values: numbersIn(solved.data),
      of: 'kind',
      axis: { title: 'solved', domain: [0, 1], write: (value) => share(value, 2) },
      quantity: 'share solved',
      format: (value) => share(value),
      fill: (_, palette) => warm(palette),
    }),
  ];
}
