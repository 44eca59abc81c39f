/** A sentence in two orders, with positions and without, and positions as hands of clocks. */

import { numbersIn } from '../../rules/experiment.js';
import { amount, decimal, share } from '../../words/numbers.js';
import { range } from '../../trace/trace.js';
import { chart } from '../../plot/chart.js';
import { curvesPicture, warm } from '../../plot/curves.js';
import { mapPicture, weightsIn } from '../../plot/map.js';
import { dot, rule } from '../../plot/marks/decorations.js';
import { line } from '../../plot/marks/line.js';
import { linear } from '../../plot/scales.js';

/**
 * @import { Picture } from '../../rules/experiment.js'
 * @import { Size } from '../../plot/map.js'
 */

/** @type {ExperimentView} */
export const experiment = {
  id: 'order',
  main: ['text', 'order', 'position', 'offset', 'pair'],
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays, values }) {
  const [without, withThem] = arrays.difference.data.map((/** @type {number[]} */ of) =>
    Math.max(...of),
  );
  const words = inSecondOrder(arrays);
  const error = Math.max(
    ...arrays.turned.data.flatMap((/** @type {number[]} */ pair, /** @type {number} */ at) =>
      pair.map((value, side) => Math.abs(value - arrays.end.data[at][side])),
    ),
  );
  const { position = 3, offset = 5 } = values;
  return (
    `As “${words.join(' ')}” no word’s output changes without positions (at most ${decimal(without, 3)}); with positions the ` +
    `most changed is off by ${share(withThem, 2)} of its size. From position ${position} to ${position + offset} ` +
    `the fastest pair turns by ${decimal(arrays.angle.data[0], 2)} radians, the slowest by ${decimal(arrays.angle.data.at(-1), 4)}; ` +
    `turned encodings differ from those of position ${position + offset} by at most ${decimal(error, 3)}.`
  );
}

/** @param {Arrays} arrays @returns {string[]} */
function inSecondOrder({ word, place }) {
  return range(word.data.length).map((at) => word.data[place.data.indexOf(at)]);
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays, values }) {
  return [
    ...['without positions', 'with positions'].flatMap((name, variant) => [
      weightsMap(arrays, 'weights', variant, name),
      weightsMap(arrays, 'permuted_weights', variant, name),
    ]),
    { id: 'clock', draw: (size) => clock(arrays, values.pair ?? 0, size) },
    productsChart(arrays, values.position ?? 3),
  ];
}

/** @param {Arrays} arrays @param {string} name @param {number} variant @param {string} how */
function weightsMap(arrays, name, variant, how) {
  const words = /** @type {string[]} */ (arrays.word.data);
  const isFirst = name === 'weights';
  const values = arrays[name].data[variant].map(numbersIn);
  return mapPicture({
    id: `${isFirst ? 'first' : 'second'}-${variant}`,
    title: `${isFirst ? 'In this order' : 'In the other'}, ${how}`,
    summary: `The attention weights of the words ${isFirst ? 'in their order' : 'in the second order'}, ${how}.`,
    help: isFirst
      ? 'Rows attend to columns.'
      : `Read as “${inSecondOrder(arrays).join(' ')}”; rows and columns are sorted as in the first map, so that the maps can be compared.`,
    ...weightsIn(values, 3),
    rows: words,
    columns: words,
    titles: { rows: 'word', columns: 'attends to' },
    say: (row, column) => `“${words[row]}” attends to “${words[column]}”`,
    cell: 26,
  });
}

const AROUND = 96;

/** @param {Arrays} arrays @param {number} pair @param {Size} size */
function clock(arrays, pair, size) {
  const { palette } = size;
  const at = Math.min(pair, arrays.start.data.length - 1);
  const angle = arrays.angle.data[at];
  /** @param {number} turn */
  const point = (turn) => {
    const [sin, cos] = arrays.start.data[at];
    return {
      sin: sin * Math.cos(turn) + cos * Math.sin(turn),
      cos: cos * Math.cos(turn) - sin * Math.sin(turn),
    };
  };
  /** @param {string} name @param {number} whole @param {string} stroke @param {number} width */
  const turned = (name, whole, stroke, width) => {
    const way = range(AROUND + 1).map((step) => point((whole * step) / AROUND));
    const values = way.map(({ cos }) => cos);
    return { name, values, x: way.map(({ sin }) => sin), stroke, width, isQuiet: true };
  };
  const from = () => ({ x: 0, y: 0 });
  /** @param {string} name @param {number[]} pairOf */
  const hand = (name, [sin, cos]) => ({ name, sin, cos });
  const hands = [hand('pos', arrays.start.data[at]), hand('pos + k', arrays.end.data[at])];
  return {
    title: `Pair ${at}: a hand that turns by k·ω`,
    summary: `The encoding of one pair of dimensions at two positions, ${decimal(angle, 3)} radians apart.`,
    help: `ω is ${amount(arrays.frequency.data[at])} radians a position, so k·ω is ${decimal(angle, 3)}. Thin: pos; thick: pos + k. Change k and see the hand turn; a later pair turns more slowly.`,
    ...chart(
      {
        x: linear('sine', { domain: [-1.15, 1.15], ticks: [-1, 0, 1] }),
        y: linear('cosine', { domain: [-1.15, 1.15], ticks: [-1, 0, 1] }),
        marks: [
          line(
            [
              turned('circle', 2 * Math.PI, palette.line, 1),
              turned('way', angle, warm(palette), 3),
            ],
            {
              format: (value) => decimal(value, 3),
              name: ({ row, column, x }) =>
                `${row === 1 ? `turned by ${decimal((angle * column) / AROUND, 2)} radians` : 'the circle'}, sine ${decimal(x, 3)}, cosine`,
            },
          ),
          rule(hands.slice(0, 1), {
            from,
            to: ({ sin, cos }) => ({ x: sin, y: cos }),
            stroke: palette.ink,
          }),
          rule(hands.slice(1), {
            from,
            to: ({ sin, cos }) => ({ x: sin, y: cos }),
            stroke: warm(palette),
            width: 4,
          }),
          dot(hands, { x: ({ sin }) => sin, y: ({ cos }) => cos, size: 9 }),
        ],
        size: { square: 300 },
        table: {
          quantity: 'cosine along the turn',
          rows: { title: 'curve' },
          columns: { title: 'step of the turn', labels: range(AROUND + 1).map(String) },
        },
      },
      size,
    ),
  };
}

/** @param {Arrays} arrays @param {number} position */
function productsChart(arrays, position) {
  return curvesPicture({
    id: 'products',
    title: 'Their product knows the distance',
    summary: 'Products of the encoding of every position with those of two positions.',
    help: `The curve of position ${position} is that of position 0, moved: only the distance counts.`,
    x: numbersIn(arrays.position.data),
    across: { title: 'position' },
    up: { title: 'product' },
    quantity: 'product of two encodings',
    format: (value) => decimal(value, 2),
    curves: { 'with 0': arrays.products.data[0], [`with ${position}`]: arrays.products.data[1] },
  });
}
