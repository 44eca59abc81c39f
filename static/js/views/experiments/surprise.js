/** Cross-entropy and perplexity: what each token of a text costs two models. */

import { numbersIn } from '../../rules/experiment.js';
import { decimal, grouped, share } from '../../words/numbers.js';
import { visible } from '../../words/text.js';
import { curvesPicture } from '../../plot/curves.js';
import { stripPicture } from '../../plot/strip.js';

/** @import { Picture } from '../../rules/experiment.js' */

/** @type {ExperimentView} */
export const experiment = {
  id: 'surprise',
  main: ['text', 'first_model', 'second_model'],
  hidden: ['seed'],
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays }) {
  const [first, second] = numbersIn(arrays.cross_entropy.data);
  const [one, other] = numbersIn(arrays.perplexity.data);
  const [name, rival] = arrays.reader.data;
  const nats = numbersIn(arrays.nats.data[0]);
  const most = nats.indexOf(Math.max(...nats));
  return (
    `A token costs ${name} ${decimal(first, 2)} nats on average: a perplexity of ${decimal(one, 1)}, as of a choice between that many ` +
    `equally likely tokens; ${rival} ${decimal(second, 2)} nats, ${decimal(other, 1)}. A guess at random: ${grouped(arrays.n_vocabulary.data)}. ` +
    `The dearest is “${visible(arrays.token.data[most])}” with ${decimal(nats[most], 2)} nats: its P was ${share(Math.exp(-nats[most]))}.`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays }) {
  const nats = arrays.nats.data.map(numbersIn);
  const { guess, guess_share: chance, reader, token } = arrays;
  const names = /** @type {string[]} */ ([...new Set(reader.data)]);
  return [
    stripPicture({
      id: 'strip',
      title: 'What each token costs',
      summary: '−ln P of every token, in nats.',
      help: 'Dark tokens surprise the model. −ln P is 0 for a token that was certain; a cell also names the likeliest in its place.',
      rows: names.map((name, at) => ({ name, tokens: token.data, values: nats[at] })),
      range: [0, Math.max(...nats.flat())],
      quantity: 'nats',
      format: (value) => `${decimal(value, 2)} nats`,
      say: (row, at) =>
        `, where “${visible(guess.data[row][at])}” is likeliest (${share(chance.data[row][at])})`,
    }),
    curvesPicture({
      id: 'perplexity',
      title: 'The perplexity so far',
      summary: 'e to the mean of −ln P, from the first token to each.',
      help: 'At the end it is the perplexity of the text. A surprise lifts it; what follows from the text lowers it.',
      x: token.data.map((/** @type {string} */ _, /** @type {number} */ at) => at + 1),
      across: { title: 'token' },
      up: { title: 'perplexity', isLog: true },
      quantity: 'perplexity',
      format: (value) => decimal(value, 1),
      curves: Object.fromEntries(
        names.map((name, at) => [name, arrays.perplexity_so_far.data[at]]).reverse(),
      ),
    }),
  ];
}
