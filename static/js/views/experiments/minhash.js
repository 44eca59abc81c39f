/**
 * MinHash: two texts, their shingles and signatures, and the estimate next to the true similarity.
 */

import { numbersIn } from '../../rules/experiment.js';
import { counted } from '../../words/lists.js';
import { grouped, share } from '../../words/numbers.js';
import { visible, withSigns } from '../../words/text.js';
import { curvesPicture, strongCurve } from '../../plot/curves.js';
import { mapChart, mapPicture } from '../../plot/map.js';
import { diverging } from '../../plot/colour.js';

/**
 * @import { Picture } from '../../rules/experiment.js'
 * @import { Size } from '../../plot/map.js'
 */

/** @type {ExperimentView} */
export const experiment = {
  id: 'minhash',
  main: ['first', 'second', 'unit', 'shingle', 'n_hashes'],
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays }) {
  const { jaccard, estimate, standard_error: error, is_in: isIn, is_equal: isEqual } = arrays;
  const shared = sharedCount(isIn.data);
  const equal = isEqual.data.filter(Boolean).length;
  return (
    `The texts share ${grouped(shared)} of ${counted(isIn.shape[1], 'shingle')}: a Jaccard similarity of ${share(jaccard.data)}. ` +
    `${grouped(equal)} of ${counted(isEqual.shape[0], 'hash function')} have equal minima, which estimates it as ${share(estimate.data)}; ` +
    `the standard error of such an estimate is ${share(error.data.at(-1))}.`
  );
}

/** @param {boolean[][]} isIn */
function sharedCount([first, second]) {
  return first.filter((is, at) => is && second[at]).length;
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays }) {
  const { jaccard, running_estimate: running, standard_error: error } = arrays;
  const counts = running.data.map((/** @type {number} */ _, /** @type {number} */ at) => at + 1);
  const truth = jaccard.data;
  const errors = numbersIn(error.data);
  return [
    { id: 'shingles', isWide: true, draw: (size) => shingleMap(arrays, size) },
    signatureMap(arrays),
    {
      id: 'estimate',
      draw: (size) =>
        curvesPicture({
          id: 'estimate',
          title: 'The estimate comes closer',
          summary: 'The estimate by the number of hash functions, and the true similarity.',
          help: 'From the first hash functions up to each. Dotted: the true similarity; shaded: one standard error, √(J·(1 − J)/k).',
          x: counts,
          across: { title: 'hash functions' },
          up: { title: 'Jaccard similarity', range: [0, 1.02], ticks: [0, 0.25, 0.5, 0.75, 1] },
          quantity: 'estimate of the Jaccard similarity',
          format: (value) => share(value),
          band: {
            name: 'one standard error',
            low: errors.map((each) => truth - each),
            high: errors.map((each) => truth + each),
            colour: size.palette.query,
          },
          curves: () => [
            {
              name: 'counted',
              values: counts.map(() => truth),
              colour: size.palette.query,
              dash: 'dot',
            },
            { ...strongCurve('estimate', running.data, size), width: 2.5 },
          ],
        }).draw(size),
    },
  ];
}

const CELLS_IN_A_ROW = 24;

/**
 * Draw every shingle as a cell: those of only the first text, of both, of only the second.
 * @param {Arrays} arrays
 * @param {Size} size
 */
function shingleMap({ shingle, is_in: { data: isIn } }, size) {
  const side = shingle.data.map((/** @type {string} */ _, /** @type {number} */ at) =>
    isIn[0][at] && isIn[1][at] ? 0 : isIn[0][at] ? -1 : 1,
  );
  const order = [...side.keys()].sort((a, b) => side[a] - side[b] || a - b);
  const columns = Math.min(
    order.length,
    Math.max(4, Math.floor((size.width - 30) / wide(shingle.data))),
  );
  const rows = Math.ceil(order.length / columns);
  /** @param {number} row @param {number} column */
  const at = (row, column) => order[row * columns + column];
  const table = Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (__, column) => at(row, column)),
  );
  const shades = table.map((line) =>
    line.map((index) => (index === undefined ? NaN : SHADES[side[index] + 1])),
  );
  const where = ['only in the first', 'in both', 'only in the second'];
  const [first, both, second] = [-1, 0, 1].map(
    (each) => side.filter((/** @type {number} */ of) => of === each).length,
  );
  const hasText = order.length <= 400;
  return {
    title: 'The shingles of both texts',
    summary: `${first} shingles are only in the first text, ${both} in both, ${second} only in the second.`,
    help: `${grouped(first)} only in the first text (blue), ${grouped(both)} in both (pale), ${grouped(second)} only in the second (warm). Jaccard: both, divided by all.`,
    ...mapChart(
      {
        values: table.map((line) => line.map((index) => (index === undefined ? NaN : side[index]))),
        shades,
        rows: table.map((_, row) => String(row * columns + 1)),
        columns: table[0].map((_, column) => String(column + 1)),
        titles: { rows: '', columns: '' },
        scale: { bottom: -1, top: 1, colours: diverging(size.palette.theme) },
        quantity: 'the texts that have the shingle: −1 the first, 0 both, 1 the second',
        format: (value) => where[value + 1],
        say: (row, column) => `shingle “${visible(shingle.data[at(row, column)] ?? '')}”`,
        ...(hasText && { text: (row, column) => withSigns(shingle.data[at(row, column)] ?? '') }),
        cell: hasText ? 24 : 14,
        hasBar: false,
        hasColumnLabels: false,
      },
      size,
    ),
  };
}

/** Softer than the ends of the scale, so that the shingles can be read on them. */
const SHADES = [-0.45, 0, 0.45];

/** @param {string[]} shingles @returns {number} pixels of the widest */
function wide(shingles) {
  return 14 + 8 * shingles.reduce((most, each) => Math.max(most, [...each].length), 1);
}

/** @param {Arrays} arrays */
function signatureMap({ is_equal: { data: isEqual }, shingle, minimum }) {
  const columns = Math.min(CELLS_IN_A_ROW, isEqual.length);
  const rows = Math.ceil(isEqual.length / columns);
  const table = Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (__, column) => {
      const is = isEqual[row * columns + column];
      return is === undefined ? NaN : Number(is);
    }),
  );
  const equal = isEqual.filter(Boolean).length;
  return mapPicture({
    id: 'signature',
    title: 'The signatures, hash by hash',
    summary: `${equal} of ${isEqual.length} hash functions have equal minima.`,
    help: 'A cell for each hash function. Coloured: both texts have the same smallest hash, so it belongs to a shingle that both have.',
    values: table,
    shades: table.map((line) => line.map((value) => value * 0.62)),
    rows: table.map((_, row) => String(row * columns + 1)),
    columns: table[0].map((_, column) => `+${column}`),
    titles: { rows: 'hash function', columns: '' },
    quantity: 'equal minima: 1, different: 0',
    format: (value) => (value === 1 ? 'equal' : 'different'),
    say: (row, column) => {
      const at = row * columns + column;
      const names = minimum.data.map(
        (/** @type {number[]} */ of) => `“${visible(shingle.data[of[at]] ?? '')}”`,
      );
      return `hash function ${at + 1}, smallest at ${names.join(' and ')}`;
    },
    cell: Math.max(10, Math.min(34, 240 / rows)),
    hasBar: false,
    hasColumnLabels: false,
  });
}
