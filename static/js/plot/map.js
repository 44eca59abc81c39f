/** A matrix as a map that is as wide as there is room for. */

import { matrixFrom } from '../trace/trace.js';
import { chart } from './chart.js';
import { cell } from './marks/mark.js';
import { ruleAt } from './marks/decorations.js';
import { band } from './scales.js';

/**
 * @import { Drawing, Frame } from './figure.js'
 * @import { Ask } from '../trace/trace.js'
 * @import { CellCursor, Grid } from './grid.js'
 * @import { Datum, Meaning } from './marks/mark.js'
 */

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
      y: band(rows, { title: titles.rows }),
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
