/** Recurrence next to attention: gradients by distance, and steps that wait. */

import { numbersIn } from '../../rules/experiment.js';
import { counted } from '../../words/lists.js';
import { amount, decimal } from '../../words/numbers.js';
import { curvesPicture, rowCurves } from '../../plot/curves.js';

/**
 * @import { Picture } from '../../rules/experiment.js'
 * @import { Look } from '../../plot/curves.js'
 * @import { Size } from '../../plot/map.js'
 */

/** @type {Record<string, Look>} */
const LOOKS = {
  linear: { name: 'linear', colour: 'muted', dash: 'dot' },
  tanh: { name: 'tanh RNN', colour: 'ink' },
  lstm: { name: 'LSTM', colour: 'query' },
  gru: { name: 'GRU', colour: 'key' },
  attention: { name: 'attention', colour: 'warm', width: 3.5 },
};

/** @type {ExperimentView} */
export const experiment = {
  id: 'recurrence',
  main: ['length', 'spectral_radius', 'forget_bias', 'width'],
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays }) {
  const { cell, gradient, distance, waiting_steps: waiting } = arrays;
  const last = distance.data.length - 1;
  /** @param {string} name */
  const far = (name) => decimal(gradient.data[cell.data.indexOf(name)][last] ?? NaN, 3);
  return (
    `${counted(last, 'token')} back, the gradient is ${far('tanh')} in the tanh network, ${far('gru')} in the GRU, ` +
    `${far('lstm')} in the LSTM and ${far('attention')} with attention. For ${counted(last + 1, 'token')} a recurrent network ` +
    `makes ${waiting.data[0][last]} steps one after another, attention ${waiting.data.at(-1)[last]}.`
  );
}

/** @param {Arrays} arrays @param {string} name @param {Size} size @param {string[]} [but] left out */
function cellCurves(arrays, name, size, but = []) {
  const { cell } = arrays;
  return rowCurves(cell, arrays[name], LOOKS, size).filter((_, at) => !but.includes(cell.data[at]));
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays, values }) {
  const lengths = numbersIn(arrays.length.data);
  return [
    curvesPicture({
      id: 'gradient',
      isWide: true,
      title: 'How much of the past can still be learned from',
      summary:
        'The gradient of the last state by each earlier one, by distance, for four recurrent networks, and of the last output by each input for attention.',
      help: `Norm of the gradient of the last state by the state so many tokens back, relative to an identity matrix. The linear network follows the law ρᵗ at distance t, with ρ = ${amount(values.spectral_radius)}. Of attention: of the last output by that token’s input, averaged over several sequences.`,
      x: numbersIn(arrays.distance.data),
      across: { title: 'tokens back from the last' },
      up: { title: 'norm of the gradient', isLog: true, range: rangeOf(arrays) },
      quantity: 'norm of the Jacobian of the last state, 1 for an identity',
      unit: 'tokens back',
      curves: (size) => cellCurves(arrays, 'gradient', size),
    }),
    curvesPicture({
      id: 'waiting',
      title: 'Steps that must wait for each other',
      summary: 'Steps that wait for each other, by the length of the sequence.',
      help: 'Every recurrent state needs the one before it, so a faster machine with more cores does not help. Attention computes all tokens at once.',
      x: lengths,
      across: { title: 'tokens' },
      up: { title: 'steps' },
      quantity: 'steps that wait for each other',
      format: (value) => String(value),
      curves: (size) =>
        cellCurves(arrays, 'waiting_steps', size, ['tanh', 'lstm', 'gru']).map((curve, at) =>
          at === 0
            ? { ...curve, name: 'recurrent', colour: size.palette.ink, dash: 'solid' }
            : curve,
        ),
    }),
    curvesPicture({
      id: 'multiplications',
      title: 'The price: work that grows with the square',
      summary: 'Multiplications for a sequence, by its length, for five networks.',
      help: `Multiplications of the matrix products at width ${values.width}. Attention compares all pairs: with more than ${2 * values.width} tokens, twice the width, it costs more than an LSTM.`,
      x: lengths,
      across: { title: 'tokens' },
      up: { title: 'multiplications', isLog: true },
      quantity: 'multiplications for a sequence',
      format: (value) => Math.round(value).toLocaleString('en'),
      curves: (size) => cellCurves(arrays, 'multiplications', size, ['linear']),
    }),
  ];
}

/**
 * Return the range of values, from 10⁻¹² at the least, so that one curve that vanishes does not
 * press the others together.
 * @param {Arrays} arrays
 * @returns {[number, number]}
 */
function rangeOf({ gradient }) {
  const all = gradient.data.flat().filter((/** @type {number} */ value) => value > 0);
  const [least, most] = [Math.min(...all), Math.max(...all)];
  return [Math.max(1e-12, least / 1.5), Math.max(2, most * 1.5)];
}
