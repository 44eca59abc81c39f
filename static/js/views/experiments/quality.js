/** The quality of a text as a sum of features, and the topics of a small pile. */

import { numbersIn } from '../../rules/experiment.js';
import { amount, decimal, share, signed } from '../../words/numbers.js';
import { diverging } from '../../plot/colour.js';
import { mapPicture } from '../../plot/map.js';

/** @import { Picture } from '../../rules/experiment.js' */

/** @type {ExperimentView} */
export const experiment = {
  id: 'quality',
  main: ['text', 'other', 'pile', 'n_topics'],
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays }) {
  const { probability, pile_entropy, start_entropy, n_shared, n_words, share: shares } = arrays;
  const [first, second] = numbersIn(probability.data).map((value) => share(value));
  const starts = numbersIn(start_entropy.data);
  const most = Math.log2(shares.shape[1]);
  const [low, high] = [Math.min(...starts), Math.max(...starts)].map((bits) => decimal(bits, 2));
  return (
    `The classifier gives the first text ${first} to be good, and the other ${second}. ` +
    `The topics of the pile have an entropy of ${decimal(pile_entropy.data, 2)} bits of at most ${decimal(most, 2)}, ` +
    `${low} to ${high} over ${starts.length} starts; ${n_shared.data} of its ${n_words.data} words are in more than one text.`
  );
}

/** @param {Arrays} arrays @returns {Picture} */
function featurePicture({ feature, amount: amounts, contribution, intercept }) {
  const weight = (/** @type {number} */ at) =>
    Math.max(...contribution.data.map((/** @type {number[]} */ row) => Math.abs(row[at])));
  const order = feature.data
    .map((/** @type {string} */ _, /** @type {number} */ at) => at)
    .sort((/** @type {number} */ a, /** @type {number} */ b) => weight(b) - weight(a));
  const most = weight(order[0]);
  const texts = ['text', 'other'];
  const values = order.map((/** @type {number} */ at) =>
    contribution.data.map((/** @type {number[]} */ row) => row[at]),
  );
  return mapPicture({
    id: 'features',
    title: 'The score is a sum',
    summary: 'What each feature adds to the log odds of both texts.',
    help: `Weight · (feature − mean) / deviation. Their sum and ${signed(intercept.data, 2)} is the score, of which σ is P(good).`,
    values,
    rows: order.map((/** @type {number} */ at) => feature.data[at]),
    columns: texts,
    titles: { rows: 'feature', columns: '' },
    range: [-most, most],
    colours: diverging,
    quantity: 'log odds',
    format: (value) => signed(value, 2),
    text: (row, column) => signed(values[row][column], 2),
    say: (row, column) =>
      `${feature.data[order[row]]} of the ${texts[column]}, ${amount(amounts.data[column][order[row]], 3)}`,
    cell: 20,
    letters: 22,
  });
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays }) {
  const { opening, share: shares, entropy, pile_share, pile_entropy, word, word_chance } = arrays;
  const bits = [...numbersIn(entropy.data), pile_entropy.data];
  const texts = opening.data.map(
    (/** @type {string} */ words, /** @type {number} */ at) => `${at + 1} ${words}`,
  );
  const topics = word.data.map(
    (/** @type {string[]} */ [first, second], /** @type {number} */ at) =>
      `${at + 1} ${first}, ${second}`,
  );
  const rows = [...shares.data, pile_share.data].map(numbersIn);
  const likely = word_chance.data.map(numbersIn);
  return [
    featurePicture(arrays),
    mapPicture({
      id: 'topics',
      title: 'Topics of each text',
      summary: 'The share of each topic in each text and in the pile.',
      help: 'P(topic | text), and its entropy −Σ P log₂ P before each text; last row: the whole pile. A topic is named by its two likeliest words.',
      values: rows,
      rows: [...texts, 'the pile'].map((name, at) => `${decimal(bits[at], 2)} bits  ${name}`),
      columns: topics,
      titles: { rows: 'text', columns: 'topic' },
      letters: 16,
      quantity: 'share',
      format: (value) => share(value),
      text: (row, column) => share(rows[row][column], 2),
      cell: 28,
    }),
    mapPicture({
      id: 'words',
      title: 'Words of each topic',
      summary: 'The likeliest words of each topic.',
      help: 'P(word | topic), the likeliest first. The most frequent words of English are left out.',
      values: likely,
      rows: topics.map((/** @type {string} */ _, /** @type {number} */ at) => `topic ${at + 1}`),
      columns: likely[0].map(
        (/** @type {number} */ _, /** @type {number} */ rank) => `${rank + 1}`,
      ),
      titles: { rows: '', columns: 'rank' },
      range: [0, Math.max(...likely.flat())],
      quantity: 'probability',
      format: (value) => share(value),
      text: (row, column) => word.data[row][column],
      say: (row, column) => `topic ${row + 1}, “${word.data[row][column]}”`,
      cell: 34,
    }),
  ];
}
