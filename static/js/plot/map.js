/**
 * Maps of any proportions: a row and a column for each number, as wide as there is room for.
 */

import { amount, decimal } from '../data/format.js';
import { escapeForPlotly } from '../data/text.js';
import { inkOn, levelOf } from './colour.js';
import {
  baseLayout,
  downwards,
  heatmapTrace,
  labelAxis,
  labelWidth,
  letteringFor,
  shortBar,
  shortBarTitle,
} from './figure.js';

/**
 * @import { Drawing, Palette } from './figure.js'
 * @import { Grid } from './grid.js'
 */

/** @typedef {{width: number, height: number, palette: Palette}} Size what a drawing may take, and its colours */

/**
 * A dotted vertical line.
 * @param {number} place
 * @param {Palette} palette
 */
export function markerLine(place, palette) {
  return {
    type: 'line',
    x0: place,
    x1: place,
    yref: 'paper',
    y0: 0,
    y1: 1,
    line: { color: palette.muted, width: 1, dash: 'dot' },
  };
}

/**
 * A grid of numbers without a sentence above it.
 * @param {{rows: string[], columns: string[], titles: {rows: string, columns: string}, quantity: string, value: (row: number, column: number) => number, format?: (value: number) => string, say?: (row: number, column: number) => string}} of
 * @returns {Grid}
 */
export function plainGrid({ rows, columns, titles, quantity, value, format = decimal, say }) {
  const name =
    say ?? ((row, column) => `${titles.rows} ${rows[row]}, ${titles.columns} ${columns[column]}`);
  /** @param {number} row @param {number} column */
  const number = (row, column) => {
    const found = value(row, column);
    return Number.isNaN(found) ? 'nothing' : format(found);
  };
  return {
    rows: rows.length,
    columns: columns.length,
    rowTitle: titles.rows,
    columnTitle: titles.columns,
    rowLabels: rows,
    columnLabels: columns,
    quantity,
    value,
    format,
    tokens: () => ({}),
    describe: (row, column) => `${name(row, column)}: ${number(row, column)}`,
    tip: (row, column) => [name(row, column), number(row, column)],
  };
}

/**
 * @typedef {Object} Mapped
 * @property {number[][]} values NaN: none
 * @property {string[]} rows labels
 * @property {string[]} columns
 * @property {{rows: string, columns: string}} titles
 * @property {{bottom: number, top: number, colours: Uint8Array}} scale
 * @property {string} quantity
 * @property {(value: number) => string} [format]
 * @property {(value: number) => string} [write] a value on the colour bar
 * @property {number[][]} [shades] what the colours show, if not the numbers themselves
 * @property {(row: number, column: number) => string} [text] in a cell
 * @property {number} [cell] the height of a row, in pixels
 * @property {number} [marker] the column that a vertical line marks
 * @property {(row: number, column: number) => string} [say]
 * @property {boolean} [hasBar]
 * @property {boolean} [hasColumnLabels]
 */

const ROW = { least: 16, most: 34, whole: 240 };
const BAR_ROOM = 42;

/** Pixels for the labels and the title below a map. @param {Mapped} mapped */
function footOf({ titles, hasColumnLabels = true }) {
  return (titles.columns ? 20 : 0) + (hasColumnLabels ? 24 : 6);
}

/**
 * A map as wide as the drawing, its rows as high as there is room for.
 * @param {Mapped} mapped
 * @param {Size} size
 * @returns {Drawing & {grid: Grid}}
 */
export function mapChart(mapped, { width, palette }) {
  const { values, rows, columns, titles, scale, quantity, shades = values, hasBar = true } = mapped;
  const { hasColumnLabels = true } = mapped;
  const lettering = letteringFor(width);
  const margin = {
    l: labelWidth(rows, lettering) + (titles.rows ? 34 : 14),
    r: 12,
    t: 8,
    b: footOf(mapped) + (hasBar ? BAR_ROOM : 0),
  };
  const row = mapped.cell ?? Math.max(ROW.least, Math.min(ROW.most, ROW.whole / rows.length));
  const [wide, tall] = [width - margin.l - margin.r, row * rows.length];
  const gap = row >= 12 && wide / columns.length >= 12 ? 1 : 0;
  const below = -footOf(mapped) - 6;
  const ends = [scale.bottom, (scale.bottom + scale.top) / 2, scale.top];
  const write = mapped.write ?? ((value) => amount(value, 2));
  return {
    data: [
      {
        ...heatmapTrace(
          shades.map((line) => line.map((value) => (Number.isFinite(value) ? value : null))),
          scale,
          {
            ...shortBar(palette, { tickvals: ends, ticktext: ends.map(write) }),
            yref: 'paper',
            y: below / tall,
          },
          [gap, gap],
        ),
        showscale: hasBar,
      },
      ...(mapped.text ? [textTrace(mapped, mapped.text, shades, palette)] : []),
    ],
    layout: {
      ...baseLayout(palette, { width, height: tall + margin.t + margin.b, margin }),
      annotations: hasBar
        ? [{ ...shortBarTitle(escapeForPlotly(quantity), palette), yshift: below - 4 }]
        : [],
      shapes: mapped.marker === undefined ? [] : [markerLine(mapped.marker, palette)],
      xaxis: {
        ...labelAxis({
          labels: hasColumnLabels ? columns : columns.map(() => ''),
          pixels: wide,
          title: titles.columns,
          palette,
          lettering,
          space: labelWidth(columns, lettering) + 8,
        }),
        tickangle: 0,
      },
      yaxis: downwards(
        labelAxis({ labels: rows, pixels: tall, title: titles.rows, palette, lettering }),
      ),
    },
    grid: plainGrid({
      rows,
      columns,
      titles,
      quantity,
      value: (at, column) => values[at][column] ?? NaN,
      ...(mapped.format && { format: mapped.format }),
      ...(mapped.say && { say: mapped.say }),
    }),
  };
}

/**
 * @param {Mapped} mapped
 * @param {(row: number, column: number) => string} text
 * @param {number[][]} shades
 * @param {Palette} palette
 */
function textTrace({ scale: { bottom, top, colours } }, text, shades, palette) {
  const cells = shades.flatMap((line, row) =>
    line.map((value, column) => ({ row, column, value })),
  );
  /** @param {number} value */
  const ink = (value) =>
    Number.isFinite(value) ? inkOn(colours, levelOf(value - bottom, top - bottom)) : palette.ink;
  return {
    type: 'scatter',
    mode: 'text',
    x: cells.map(({ column }) => column),
    y: cells.map(({ row }) => row),
    text: cells.map(({ row, column }) => escapeForPlotly(text(row, column))),
    textfont: { size: 12, color: cells.map(({ value }) => ink(value)) },
    hoverinfo: 'none',
  };
}
