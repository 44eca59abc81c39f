/** The softmax against plain shares: a few scores, their shift, and the temperature. */

import { numbersIn } from '../../rules/experiment.js';
import { amount, decimal, share } from '../../words/numbers.js';
import { curvesPicture, warm } from '../../plot/curves.js';
import { mapPicture } from '../../plot/map.js';
import { diverging } from '../../plot/colour.js';

/**
 * @import { Picture } from '../../rules/experiment.js'
 * @import { Curve } from '../../plot/curves.js'
 * @import { Size } from '../../plot/map.js'
 */

/** @type {ExperimentView} */
export const experiment = {
  id: 'softmax',
  main: ['scores', 'temperature', 'shift'],
  hidden: ['seed'],
  finding,
  pictures,
};

/** @param {number} value a share, which plain normalisation lets be negative or above 1 */
function shareOf(value) {
  if (Number.isNaN(value)) return 'no share';
  return value >= 0 && value <= 1 ? share(value) : decimal(value, 3);
}

/** @param {Result} result */
function finding({ arrays, values }) {
  const scores = numbersIn(arrays.score.data);
  const plain = numbersIn(arrays.normalised.data);
  const weights = numbersIn(arrays.weights.data);
  const at = scores.indexOf(Math.max(...scores));
  const temperature = values.temperature ?? 1;
  const tempered =
    temperature === 1 ? '' : `; at temperature ${amount(temperature)} it is ${share(weights[at])}`;
  const fault = plain.some(Number.isNaN)
    ? ' These scores sum to 0, so there are no plain shares.'
    : plain.some((value) => value < 0)
      ? ` A plain share is negative here (${shareOf(Math.min(...plain))}); no weight of a softmax is.`
      : '';
  return (
    `The largest score, ${amount(scores[at])}, gets a plain share of ${shareOf(plain[at])} and a softmax of ` +
    `${share(arrays.untempered.data[at])}${tempered}.${fault}`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays, values }) {
  return [
    sharesMap(arrays, values),
    curvesPicture({
      id: 'temperature',
      title: 'The temperature sets how sharp it is',
      summary: 'The softmax of every score by the temperature.',
      help: 'Low temperatures give all weight to the largest score, high ones spread it evenly.',
      x: numbersIn(arrays.temperature.data),
      across: { title: 'temperature', isLog: true, ticks: [0.1, 0.3, 1, 3, 10] },
      up: { title: 'weight', range: [0, 1] },
      quantity: 'softmax',
      format: (value) => share(value),
      curves: (size) => curvesOf(arrays, 'by_temperature', size),
    }),
    curvesPicture({
      id: 'entropy',
      title: 'Entropy by temperature',
      summary: 'The entropy of the softmax by the temperature.',
      help: `In bits: 0 if one score has all the weight, ${decimal(Math.log2(arrays.score.data.length), 2)} if all have the same.`,
      x: numbersIn(arrays.temperature.data),
      across: { title: 'temperature', isLog: true, ticks: [0.1, 0.3, 1, 3, 10] },
      up: { title: 'bits' },
      quantity: 'entropy in bits',
      format: (value) => decimal(value, 2),
      curves: { entropy: arrays.entropy.data },
    }),
    byShift(arrays, {
      id: 'shift',
      of: 'normalised_by_shift',
      title: 'Plain shares change when all scores shift',
      summary: 'Plain shares of every score by a number that is added to all scores.',
      help: 'Where the scores sum to 0 they leave every limit, and the lines break off; only −1 to 2 is drawn.',
    }),
    byShift(arrays, {
      id: 'shift-softmax',
      of: 'softmax_by_shift',
      title: 'The softmax does not',
      summary: 'The softmax of every score by a number that is added to all scores.',
      help: 'Only the differences of scores count: e^(a+c) / e^(b+c) = e^(a−b).',
    }),
  ];
}

/** @param {Arrays} arrays @param {{id: string, of: string, title: string, summary: string, help: string}} told */
function byShift(arrays, { of, ...told }) {
  return curvesPicture({
    ...told,
    x: numbersIn(arrays.shift.data),
    across: { title: 'added to every score' },
    up: { title: 'share', range: [-1, 2], ticks: [-1, 0, 1, 2] },
    quantity: 'share',
    format: shareOf,
    curves: (size) => curvesOf(arrays, of, size),
  });
}

/** @param {Palette} palette @returns {string[]} the colours of the smaller scores, in turn */
function lesser(palette) {
  return [palette.key, palette.query, palette.ink];
}

/** @param {Arrays} arrays @param {string} name @param {Size} size @returns {Curve[]} the largest score on top */
function curvesOf(arrays, name, { palette }) {
  const scores = numbersIn(arrays.score.data);
  const most = scores.indexOf(Math.max(...scores));
  return scores.map((score, at) => ({
    name: amount(score),
    values: numbersIn(arrays[name].data[at]),
    colour: at === most ? warm(palette) : lesser(palette)[(at - (at > most ? 1 : 0)) % 3],
    ...(at === most && { width: 3 }),
  }));
}

/** @param {Arrays} arrays @param {Result['values']} given */
function sharesMap(arrays, { temperature = 1 }) {
  const rows = [
    { name: 'plain', values: numbersIn(arrays.normalised.data) },
    { name: 'softmax', values: numbersIn(arrays.untempered.data) },
    ...(temperature === 1
      ? []
      : [{ name: `T = ${amount(temperature)}`, values: numbersIn(arrays.weights.data) }]),
  ];
  return mapPicture({
    id: 'shares',
    isWide: true,
    title: 'The same scores, shared out twice',
    summary: 'Plain shares, the softmax, and the softmax at the chosen temperature.',
    help: `Plain: each score divided by the sum. Softmax: each e^score divided by their sum; colours end at ±1${temperature === 1 ? '' : '; in the last row the scores are divided by the temperature T first'}.`,
    values: rows.map(({ values }) => values),
    shades: rows.map(({ values }) => values.map((value) => Math.max(-1, Math.min(1, value)))),
    rows: rows.map(({ name }) => name),
    columns: arrays.score.data.map((/** @type {number} */ value) => amount(value)),
    titles: { rows: '', columns: 'score' },
    range: [-1, 1],
    colours: diverging,
    quantity: 'share',
    write: (value) => amount(value),
    format: shareOf,
    text: (row, column) => shareOf(rows[row].values[column]),
    cell: 40,
  });
}
