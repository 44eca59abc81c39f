/**
 * How much of a head's map is its own: the share of its weight that is not where the query, the key
 * and their distance put it, each for itself.
 *
 * The map without its first column, on which heads rest, is compared with the closest one of the form
 * a_i · b_j · c_(i−j): the same weight in each row, in each column and on each diagonal (iterative
 * proportional fitting, Deming and Stephan 1940, https://doi.org/10.1214/aoms/1177731829). Structure is
 * the weight that would have to move, ½ Σ |w − fit|, as a share of all weight: 0 for a head that looks
 * a fixed way back, at one key or everywhere alike; up to 1 for one that links certain parts of a text.
 */

import { layersWith } from '../trace/trace.js';

/** Bins a side of the compared maps: all heads of a book take a tenth of a second. */
const BINS = 48;
/** Rounds of the fit: with more of them the heads of most structure keep it; the last ones lose some. */
const ROUNDS = 60;

/** @typedef {{layer: number, head: number, structure: number}} HeadStructure */

/**
 * @param {ArrayLike<number>} data of one map, row by row
 * @param {number} offset of its first cell
 * @param {{rows: number, columns: number}} size
 * @param {boolean} isOneText rows and columns are the same tokens
 * @returns {number} from 0 to 1
 */
export function measureStructure(data, offset, { rows, columns }, isOneText) {
  const map = coarse(data, offset, rows, columns);
  const { height, width } = map;
  let total = 0;
  for (const value of map.values) total += value;
  if (!(total > 0)) return 0;
  const kept = map.values.map((value, at) => (at % width === 0 ? 0 : value));
  const fit = Float64Array.from(kept, (value, at) => {
    const [row, column] = [Math.floor(at / width), at % width];
    return value > 0 || (column > 0 && (!isOneText || column <= row)) ? 1 : 0;
  });
  // The row, the column and the diagonal of each cell: sums over these agree.
  const sides = [
    Uint16Array.from(fit, (_, at) => Math.floor(at / width)),
    Uint16Array.from(fit, (_, at) => at % width),
    ...(isOneText
      ? [Uint16Array.from(fit, (_, at) => Math.floor(at / width) - (at % width) + width)]
      : []),
  ];
  const wanted = sides.map((parts) => sums(kept, parts, height + width));
  for (let round = 0; round < ROUNDS; round += 1) {
    sides.forEach((parts, side) => {
      const factors = sums(fit, parts, height + width).map((sum, part) =>
        sum > 0 ? wanted[side][part] / sum : 0,
      );
      for (let at = 0; at < fit.length; at += 1) fit[at] *= factors[parts[at]];
    });
  }
  let moved = 0;
  for (let at = 0; at < fit.length; at += 1) moved += Math.abs(kept[at] - fit[at]);
  return moved / 2 / total;
}

/** @param {Float64Array} values @param {Uint16Array} parts of the values @param {number} count of parts */
function sums(values, parts, count) {
  const result = new Float64Array(count + 1);
  for (let at = 0; at < values.length; at += 1) result[parts[at]] += values[at];
  return result;
}

/**
 * Return the sums of a map by at most `BINS` bins a side.
 * @param {ArrayLike<number>} data
 * @param {number} offset
 * @param {number} rows
 * @param {number} columns
 */
function coarse(data, offset, rows, columns) {
  const [height, width] = [Math.min(BINS, rows), Math.min(BINS, columns)];
  const values = new Float64Array(height * width);
  for (let row = 0; row < rows; row += 1) {
    const start = Math.floor((row * height) / rows) * width;
    for (let column = 0; column < columns; column += 1)
      values[start + Math.floor((column * width) / columns)] +=
        data[offset + row * columns + column];
  }
  return { values, height, width };
}

/**
 * Return the head of a long text to open: the one with most structure, of what is chosen already.
 * @param {Trace} trace with maps
 * @param {{where: string, layer: number|null, head: number|null}} chosen
 * @returns {{layer: number, head: number}}
 */
export function structuredHead(trace, { where, layer, head }) {
  const most = structuresIn(trace, placeOf(trace, where)).find(
    (each) => (layer ?? each.layer) === each.layer && (head ?? each.head) === each.head,
  );
  return { layer: layer ?? most?.layer ?? 0, head: head ?? most?.head ?? 0 };
}

/** @param {Trace} trace @param {string} where `encoder`, `decoder`, `cross`, or '' for the last of these */
function placeOf({ tensors }, where) {
  const paths = Object.keys(tensors);
  const isCross =
    where === 'cross' || (where === '' && paths.some((path) => path.includes('.cross_')));
  const [stack = ''] = where === 'encoder' ? [where] : (paths[paths.length - 1] ?? '').split('.');
  return { stack, ending: isCross ? 'cross_attention' : 'self_attention' };
}

/** @type {WeakMap<Trace, Map<string, HeadStructure[]>>} */
const known = new WeakMap();

/**
 * Return the structure of every head of an attention of a long text, computed once.
 * @param {Trace} trace with the mean maps
 * @param {{stack: string, ending: string}} place `ending`: `self_attention`
 * @returns {HeadStructure[]} the one with most structure first
 */
export function structuresIn(trace, { stack, ending }) {
  const kept = known.get(trace) ?? new Map();
  known.set(trace, kept);
  const name = `${stack} ${ending}`;
  if (!kept.has(name)) kept.set(name, compute(trace, stack, ending));
  return kept.get(name) ?? [];
}

/** @param {Trace} trace @param {string} stack @param {string} ending */
function compute({ tensors }, stack, ending) {
  return layersWith(tensors, `${ending}.mean_map`, stack)
    .flatMap(({ layer, site }) => {
      const { data, shape } = tensors[site];
      const [heads, rows, columns] = shape;
      return Array.from({ length: heads }, (_, head) => ({
        layer,
        head,
        structure: measureStructure(
          data,
          head * rows * columns,
          { rows, columns },
          ending === 'self_attention',
        ),
      }));
    })
    .sort((a, b) => b.structure - a.structure);
}
