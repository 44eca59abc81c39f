/** When more thinking helps: votes and adaptive votes, by the tokens that they write. */

import { numbersIn } from '../../rules/experiment.js';
import { counted } from '../../words/lists.js';
import { amount, percent } from '../../words/numbers.js';
import { chart } from '../../plot/chart.js';
import { barPicture } from '../../plot/bar_picture.js';
import { curvesPicture, warm } from '../../plot/curves.js';
import { numbered } from '../../plot/map.js';
import { line } from '../../plot/marks/line.js';
import { linear, log } from '../../plot/scales.js';

/**
 * @import { Picture } from '../../rules/experiment.js'
 * @import { Size } from '../../plot/map.js'
 */

/** @type {ExperimentView} */
export const experiment = {
  id: 'thinking',
  main: ['model', 'n_problems', 'n_chains', 'temperature'],
  preview: { n_problems: 5, n_chains: 2 },
  titles: {
    model: {
      'sums-imitation': 'steps, before reinforcement',
      sums: 'steps, after reinforcement',
      'sums-direct': 'only the answer',
    },
  },
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays }) {
  const tokens = numbersIn(arrays.majority_tokens.data);
  const right = numbersIn(arrays.majority_right.data);
  const last = right.length - 1;
  const adaptive = shownBound(arrays);
  const problems = arrays.question.data.length;
  return (
    `One chain of ${amount(tokens[0])} tokens is right for ${percent(right[0], 0)} of ${counted(problems, 'problem')}; the vote of ${last + 1} chains, ` +
    `${amount(tokens[last])} tokens, for ${percent(right[last], 0)}, and a right one is among them for ${percent(arrays.any_right.data[last], 0)}. ` +
    `The answer that the model finds the most probable of them is right for ${percent(arrays.probable_right.data[last], 0)}. ` +
    `Stopping above a probability of ${arrays.bound.data[adaptive]} gives ${percent(arrays.adaptive_right.data[adaptive], 0)} with ${amount(arrays.adaptive_tokens.data[adaptive])} tokens. ` +
    `With ${counted(problems, 'problem')} each share is uncertain by ±${Math.round(100 * marginOf(right[last], problems))} points; more problems make it surer.`
  );
}

/** Return the half width of the 95 % interval of a share. @param {number} share @param {number} count */
function marginOf(share, count) {
  return 1.96 * Math.sqrt((share * (1 - share)) / count);
}

/** The bound of adaptive voting whose chains are drawn. */
const SHOWN_BOUND = 0.2;

/** @param {Arrays} arrays @returns {number} its place */
function shownBound({ bound }) {
  return Math.max(0, bound.data.indexOf(SHOWN_BOUND));
}

/** Return a chain with what is right. @param {string} question `16*67=` @param {string} chain */
function chainOf(question, chain) {
  const [first, second] = question.match(/\d+/g)?.map(Number) ?? [];
  const right = first * second;
  const isRight = Number(chain.split('=').at(-1)) === right;
  return `${question}${chain} (${isRight ? 'right' : `wrong: it is ${right}`})`;
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays }) {
  return [
    { id: 'tokens', isWide: true, draw: (size) => tokensChart(arrays, size) },
    anyChart(arrays),
    chainsChart(arrays),
  ];
}

/** @param {Arrays} arrays @param {Size} size */
function tokensChart(arrays, size) {
  const { palette } = size;
  /** @param {string} name @param {string} label @param {object} look @param {string} [spent] whose tokens these are */
  const curve = (name, label, look, spent = name) => {
    const points = numbersIn(arrays[`${spent}_tokens`].data)
      .map((x, at) => ({ x, y: arrays[`${name}_right`].data[at] }))
      .sort((a, b) => a.x - b.x);
    return {
      name: label,
      x: points.map(({ x }) => x),
      values: points.map(({ y }) => y),
      stroke: palette.ink,
      dots: 6,
      ...look,
    };
  };
  const curves = [
    curve('majority', 'vote', {}),
    curve('probable', 'probability', { stroke: palette.muted, dash: 'dot' }, 'majority'),
    curve('adaptive', 'adaptive', { stroke: warm(palette), width: 3 }),
  ];
  const most = Math.max(...curves.map(({ x }) => x.length));
  /** @param {number[]} list @param {number} by */
  const filled = (list, by) => [...list, ...Array(most - list.length).fill(by)];
  // A place without a number is where the line ends: an axis has no place for a NaN.
  const lines = curves.map((each) => ({
    ...each,
    x: filled(each.x, each.x[each.x.length - 1]),
    values: filled(each.values, NaN),
  }));
  return {
    title: 'Right answers by the tokens spent',
    summary: 'The share of right answers by tokens written, for three ways to spend them.',
    help: `All tokens count, also those of chains that are dropped; the scale is logarithmic. A sampled chain: ${chainOf(arrays.question.data[0], arrays.first_chain.data)}.`,
    ...chart(
      {
        x: log('tokens for a problem', { ticks: [10, 20, 50, 100, 200, 500] }),
        y: linear('right answers', { domain: [0, 1], write: (value) => percent(value, 0) }),
        marks: [
          line(lines, {
            names: 'above',
            format: (value) => percent(value, 1),
            name: ({ row, x }) => `${lines[row].name}, ${amount(x)} tokens`,
          }),
        ],
        size: { height: 260 },
        table: {
          quantity: 'share of right answers',
          rows: { title: 'way', labels: lines.map(({ name }) => name) },
          columns: {
            title: 'setting',
            labels: Array.from({ length: most }, (_, at) => String(at + 1)),
          },
        },
      },
      size,
    ),
  };
}

/** @param {Arrays} arrays */
function anyChart(arrays) {
  return curvesPicture({
    id: 'any',
    title: 'What a perfect judge would choose',
    summary: 'The share of right votes and of right answers among the chains, by their number.',
    help: 'Any: a right answer is among the chains. The gap to the vote is what a judge could gain.',
    x: numbersIn(arrays.n_chains.data),
    across: { title: 'chains' },
    up: { title: 'right answers', range: [0, 1], write: (value) => percent(value, 0) },
    quantity: 'share of right answers',
    format: (value) => percent(value, 1),
    curves: { any: arrays.any_right.data, vote: arrays.majority_right.data },
  });
}

/** @param {Arrays} arrays */
function chainsChart(arrays) {
  const at = shownBound(arrays);
  const used = numbersIn(arrays.adaptive_chains.data[at]);
  const labels = numbered(arrays.n_chains.data);
  return barPicture({
    id: 'chains',
    title: 'Chains that problems get',
    summary: `How many problems get how many chains at a bound of ${SHOWN_BOUND}.`,
    help: `Voting stops once chains with one answer have a probability above ${arrays.bound.data[at]} together.`,
    labels,
    values: labels.map((_, index) => used.filter((count) => count === index + 1).length),
    of: 'chains',
    axis: { title: 'problems' },
    isUpright: true,
    fill: (_, palette) => warm(palette),
    name: (index) => counted(index + 1, 'chain'),
    format: (value) => counted(value, 'problem'),
    row: 200,
    quantity: 'problems',
  });
}
