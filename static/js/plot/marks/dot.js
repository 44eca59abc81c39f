/** Dots over two scales of amounts, one datum each: by colour, size and shape. */

import { nearest, scatter } from './mark.js';

/** Shapes that are told apart without colour, as Plotly names them, and as a legend writes them. */
export const SHAPES = [
  ['circle', '●'],
  ['square', '■'],
  ['diamond', '◆'],
  ['triangle-up', '▲'],
  ['cross', '✚'],
  ['triangle-down', '▼'],
  ['star', '★'],
];
/** Pixels around a dot that mean it, and how many of them a pointer may be away. */
const HALF = 8;
const FAR = { x: 2, y: 2 };

/**
 * @template D
 * @typedef {Object} Look
 * @property {(datum: D, index: number) => number} x NaN: no dot
 * @property {(datum: D, index: number) => number} y
 * @property {(datum: D, index: number) => string} fill
 * @property {(datum: D, index: number) => number} radius in pixels
 * @property {(datum: D, index: number) => string} shape one of `SHAPES`
 * @property {(datum: D, index: number) => number} opacity
 * @property {Mark<D>['names']} [names] for the legend
 */

/**
 * @template D
 * @param {D[]} data
 * @param {Look<D> & Partial<Meaning<D>>} channels
 * @returns {Mark<D>}
 */
export function dot(data, { x, y, fill, radius, shape, opacity, names, ...meaning }) {
  const [across, up] = [data.map(x), data.map(y)];
  /** @param {number[]} values */
  const known = (values) => values.filter((value) => !Number.isNaN(value));
  return {
    kind: 'dot',
    reach: { x: known(across), y: known(up) },
    meaning: { value: (datum) => y(datum, data.indexOf(datum)), ...meaning },
    ...(names && { names, namesAt: 'above' }),
    table: { rows: data.length, columns: 1, datum: (row) => data[row], kind: 'scatter plot' },
    hits: ({ x: { range: xs }, y: { range: ys }, inner }) =>
      nearest(
        data.map((_, row) => ({
          row,
          column: 0,
          x: Number.isNaN(up[row]) || Number.isNaN(across[row]) ? null : across[row],
          y: up[row],
        })),
        {
          x: (HALF * Math.abs(xs[1] - xs[0])) / inner.width,
          y: (HALF * Math.abs(ys[1] - ys[0])) / inner.height,
        },
        FAR,
      ),
    draw: ({ palette }) => {
      const marker = {
        color: data.map(fill),
        size: data.map((datum, at) => 2 * radius(datum, at)),
        symbol: data.map(shape),
        opacity: data.map(opacity),
        line: { width: 0.5, color: palette.ink },
      };
      const places = { x: across.map(orNull), y: up.map(orNull) };
      return { traces: [scatter('markers', places, { marker })] };
    },
  };
}

/** @param {number} value */
function orNull(value) {
  return Number.isNaN(value) ? null : value;
}
