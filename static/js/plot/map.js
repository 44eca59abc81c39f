/** A matrix as a map that is as wide as there is room for. */

import { matrixFrom } from '../trace/trace.js';
import { share } from '../words/numbers.js';
import { chart } from './chart.js';
import { sequential } from './colour.js';
import { cell } from './marks/mark.js';
import { ruleAt } from './marks/decorations.js';
import { band } from './scales.js';

/** @import { Datum } from './marks/mark.js' */

/** @typedef {Pick<Frame, 'width'|'height'|'palette'>} Size what a drawing may take, and its colours */

/**
 * @typedef {Object} Mapped
 * @property {number[][]} values NaN: none
 * @property {string[]} rows labels
 * @property {string[]} columns
 * @property {{rows: string, columns: string}} titles
 * @property {{bottom: number, top: number, colours: Uint8Array}} scale
 * @property {string} quantity
 * @property {Ask} [request] the trace that holds the numbers
 * @property {(value: number) => string} [format]
 * @property {(value: number) => string} [write] a value on the colour bar
 * @property {number[][]} [shades] what the colours show, if not the numbers themselves
 * @property {(row: number, column: number) => string} [text] in a cell
 * @property {number} [cell] the height of a row, in pixels
 * @property {number} [marker] the column that a vertical line marks
 * @property {(row: number, column: number) => string} [say]
 * @property {Partial<CellCursor>} [cursor]
 * @property {number} [letters] after which the label of a row is cut
 * @property {boolean} [isSlanted] labels of columns at 45°, where they are words
 * @property {boolean} [hasBar]
 * @property {boolean} [hasColumnLabels]
 */

const ROW = { least: 16, most: 34, whole: 240 };

/**
 * Draw a map as wide as the drawing, its rows as high as there is room for.
 * @param {Mapped} mapped
 * @param {Pick<Frame, 'width'|'palette'>} frame
 * @returns {Drawing & {grid: Grid}}
 */
export function mapChart(mapped, frame) {
  const { values, rows, columns, titles, scale, quantity, shades, format, write, text } = mapped;
  const { hasBar = true, hasColumnLabels = true, isSlanted, marker, say } = mapped;
  /** @type {Partial<Meaning<Datum>>} */
  const meaning = {
    ...(format && { format }),
    name: ({ row, column }) =>
      say?.(row, column) ?? `${titles.rows} ${rows[row]}, ${titles.columns} ${columns[column]}`,
  };
  return chart(
    {
      x: band(hasColumnLabels ? columns : columns.map(() => ''), {
        title: titles.columns,
        isSlanted,
      }),
      y: band(rows, { title: titles.rows, letters: mapped.letters }),
      marks: [
        cell(matrixFrom(values), {
          ramp: {
            title: quantity,
            domain: [scale.bottom, scale.top],
            colours: scale.colours,
            write,
            legend: hasBar ? 'short' : 'none',
          },
          ...(shades && { fill: ({ row, column }) => shades[row][column] }),
          ...(text && { text: ({ row, column }) => text(row, column) }),
          ...meaning,
        }),
        ...(marker === undefined ? [] : [ruleAt(marker)]),
      ],
      size: {
        row: mapped.cell ?? Math.max(ROW.least, Math.min(ROW.most, ROW.whole / rows.length)),
      },
      table: {
        columns: { title: titles.columns, labels: columns },
        quantity,
        request: mapped.request,
      },
      cursor: mapped.cursor,
    },
    frame,
  );
}

/** @param {any[]} list @param {string} [letter] before each number @returns {string[]} labels, from 1 */
export function numbered(list, letter = '') {
  return list.map((_, at) => `${letter}${at + 1}`);
}

/** Return what a map of attention weights has in common with others. @param {number[][]} values @param {number} digits as it is said */
export function weightsIn(values, digits) {
  return {
    values,
    quantity: 'attention weight',
    format: (/** @type {number} */ value) => share(value, digits),
    text: (/** @type {number} */ row, /** @type {number} */ column) =>
      share(values[row][column], 2),
  };
}

/**
 * Return the picture of an experiment that is one map; rows and columns without labels are numbered.
 * @param {{id: string, isWide?: boolean, title: string, summary: string, help: string, range?: [number, number], colours?: typeof sequential, rows?: string[], columns?: string[]} & Omit<Mapped, 'scale'|'rows'|'columns'>} told `range`: 0 to 1 unless it is given
 * @returns {import('../rules/experiment.js').Picture}
 */
export function mapPicture(told) {
  const { range: [bottom, top] = [0, 1], colours = sequential, ...mapped } = told;
  const labels = { rows: numbered(mapped.values), columns: numbered(mapped.values[0]) };
  return pictureOf(told, (size) => {
    const scale = { bottom, top, colours: colours(size.palette.theme) };
    return mapChart({ ...labels, ...mapped, scale }, size);
  });
}

/**
 * Return a picture of an experiment.
 * @param {{id: string, isWide?: boolean, title: string, summary: string, help: string}} told
 * @param {(size: Size) => Drawing & {grid: Grid}} draw
 * @returns {import('../rules/experiment.js').Picture}
 */
export function pictureOf({ id, isWide, title, summary, help }, draw) {
  return { id, isWide, draw: (size) => ({ title, summary, help, ...draw(size) }) };
}
