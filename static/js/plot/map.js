/**
 * Matrices as maps: `mapChart` as wide as there is room for; `stepMap` of the steps through a model by
 * the positions of a text, which on a phone run downwards; `squaresFigure` of square cells.
 */

import { transposed } from '../data/arithmetic.js';
import { amount, decimal, tick, tokenLabels } from '../data/format.js';
import { matrixFrom } from '../data/trace.js';
import { chart } from './chart.js';
import { cell } from './marks/cell.js';
import { ruleAt } from './marks/other.js';
import { band } from './scales.js';
import { diverging, levelOf, sequential } from './colour.js';
import {
  baseLayout,
  downwards,
  heatmapTrace,
  isNarrow,
  labelAxis,
  labelWidth,
  letteringFor,
  nested,
  shortBar,
  shortBarTitle,
  textInCells,
  colourBar,
  colourBarTitle,
  paperText,
} from './figure.js';

/**
 * @import { Matrix, Token } from '../data/trace.js'
 * @import { Drawing, Frame, Lettering, Palette } from './figure.js'
 * @import { Cell, Grid } from './grid.js'
 * @import { Datum } from './marks/cell.js'
 * @import { Meaning } from './marks/mark.js'
 */

/** @typedef {{width: number, height: number, palette: Palette}} Size what a drawing may take, and its colours */

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

/**
 * A map as wide as the drawing, its rows as high as there is room for.
 * @param {Mapped} mapped
 * @param {Pick<Frame, 'width'|'palette'>} frame
 * @returns {Drawing & {grid: Grid}}
 */
export function mapChart(mapped, frame) {
  const { values, rows, columns, titles, scale, quantity, shades, format, write, text } = mapped;
  const { hasBar = true, hasColumnLabels = true, marker, say } = mapped;
  /** @type {Partial<Meaning<Datum>>} */
  const meaning = {
    ...(format && { format }),
    name: ({ row, column }) =>
      say?.(row, column) ?? `${titles.rows} ${rows[row]}, ${titles.columns} ${columns[column]}`,
  };
  return chart(
    {
      x: band(hasColumnLabels ? columns : columns.map(() => ''), { title: titles.columns }),
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
      table: { columns: { title: titles.columns, labels: columns }, quantity },
    },
    frame,
  );
}

const STEP_HEIGHT = 22;
const TOKEN_HEIGHT = { most: 20, least: 4 };
const LONGEST_MAP = 1280;
const STEP_LETTERS = 19;
const NUMBER_WIDTH = 34;
const NUMBER_HEIGHT = 12;
const ROOM_FOR_GAPS = 10;
/** The height of a label at 45°, relative to its length. */
export const SLANT = 0.72;

/**
 * @typedef {Object} StepScale
 * @property {number} least
 * @property {number} most
 * @property {boolean} [isSigned]
 * @property {(value: number, step: number, position: number) => string} short what a cell says
 * @property {number} [room] pixels of width that it needs; 34 if absent
 */

/**
 * @param {Matrix} matrix
 * @param {{steps: string[], tokens: Token[], scale: StepScale, quantity: string}} named rows and columns, and what the numbers measure
 * @param {Frame} state
 * @returns {Drawing}
 */
export function stepMap(matrix, { steps, tokens, scale, quantity }, { palette, width }) {
  const labels = { tokens: tokenLabels(tokens), steps };
  const box = (isNarrow(width) ? downBox : acrossBox)(labels, width);
  const colours = (scale.isSigned ? diverging : sequential)(palette.theme);
  return {
    data: [
      stepHeatmap(matrix, scale, colours, palette, box),
      ...numbers(matrix, scale, colours, box),
    ],
    layout: {
      ...baseLayout(palette, box),
      ...stepAxes(labels, palette, box),
      annotations: [barTitle(quantity, palette, box)],
    },
  };
}

/** @param {number} width @returns {Lettering} with room for the name of a step */
export function stepLettering(width) {
  return { ...letteringFor(width), letters: STEP_LETTERS };
}

/** @param {{tokens: string[], steps: string[]}} labels @param {number} width */
function acrossBox(labels, width) {
  const lettering = letteringFor(width);
  const l = labelWidth(labels.steps, stepLettering(width)) + 12;
  /** @param {string[]} tokens */
  const slanted = (tokens) => Math.ceil(labelWidth(tokens, lettering) * SLANT);
  const margin = {
    l,
    r: Math.max(8, slanted(labels.tokens.slice(-1))),
    t: slanted(labels.tokens) + 14,
    b: 40,
  };
  return boxOf(margin, width, labels.tokens.length, labels.steps.length, STEP_HEIGHT, false);
}

/** @param {{tokens: string[], steps: string[]}} labels @param {number} width */
function downBox(labels, width) {
  const l = labelWidth(labels.tokens, letteringFor(width)) + 14;
  const margin = { l, r: 4, t: labelWidth(labels.steps, stepLettering(width)) + 10, b: 56 };
  const cell = Math.max(
    TOKEN_HEIGHT.least,
    Math.min(TOKEN_HEIGHT.most, LONGEST_MAP / labels.tokens.length),
  );
  return boxOf(margin, width, labels.steps.length, labels.tokens.length, cell, true);
}

/**
 * @param {{l: number, r: number, t: number, b: number}} margin
 * @param {number} width
 * @param {number} nColumns
 * @param {number} nRows
 * @param {number} cell height
 * @param {boolean} isDown whether positions run downwards
 */
function boxOf(margin, width, nColumns, nRows, cell, isDown) {
  const [across, down] = [width - margin.l - margin.r, nRows * cell];
  return {
    isDown,
    lettering: letteringFor(width),
    margin,
    across,
    down,
    width,
    height: down + margin.t + margin.b,
    cell: { width: across / nColumns, height: cell },
  };
}

/**
 * @param {{tokens: string[], steps: string[]}} of
 * @param {Palette} palette
 * @param {ReturnType<typeof acrossBox>} box
 */
function stepAxes(
  { tokens, steps },
  palette,
  { isDown: down, across, down: pixels, lettering, width },
) {
  const shared = { title: '', palette };
  const tokenAxis = labelAxis({
    ...shared,
    labels: tokens,
    pixels: down ? pixels : across,
    lettering,
  });
  const stepAxis = labelAxis({
    ...shared,
    labels: steps,
    pixels: down ? across : pixels,
    lettering: stepLettering(width),
  });
  if (down)
    return { xaxis: { ...stepAxis, side: 'top', tickangle: -90 }, yaxis: downwards(tokenAxis) };
  return { xaxis: { ...tokenAxis, side: 'top', tickangle: -45 }, yaxis: downwards(stepAxis) };
}

/**
 * @param {Matrix} matrix
 * @param {StepScale} scale
 * @param {Uint8Array} colours
 * @param {Palette} palette
 * @param {ReturnType<typeof acrossBox>} box
 */
function stepHeatmap(matrix, { least, most }, colours, palette, { isDown: down, cell }) {
  const tickvals = [least, (least + most) / 2, most];
  return heatmapTrace(
    nested(down ? transposed(matrix) : matrix),
    { bottom: least, top: most, colours },
    shortBar(palette, { tickvals, ticktext: tickvals.map((value) => amount(value)) }),
    [cell.width >= ROOM_FOR_GAPS ? 1 : 0, cell.height >= ROOM_FOR_GAPS ? 1 : 0],
  );
}

/**
 * The numbers in the cells, if each has room.
 * @param {Matrix} matrix
 * @param {StepScale} scale
 * @param {Uint8Array} colours
 * @param {ReturnType<typeof acrossBox>} box
 */
function numbers(matrix, { least, most, short, room = NUMBER_WIDTH }, colours, box) {
  const { rows, columns, data } = matrix;
  const { isDown: down, cell } = box;
  if (cell.width < room || cell.height < NUMBER_HEIGHT) return [];
  const cells = Array.from({ length: rows * columns }, (_, at) => {
    const [step, position] = [Math.floor(at / columns), at % columns];
    return {
      ...(down ? { x: step, y: position } : { x: position, y: step }),
      text: short(data[at], step, position),
      level: levelOf(data[at] - least, most - least),
    };
  });
  return [textInCells(cells, colours, cell.width >= 40 ? 11 : 10)];
}

/**
 * The title of the colour bar, clear of its numbers; below the bar on a phone.
 * @param {string} text
 * @param {Palette} palette
 * @param {ReturnType<typeof acrossBox>} box
 */
function barTitle(text, palette, { isDown: down }) {
  const title = shortBarTitle(text, palette);
  return { ...title, ...(down ? { xshift: 0, yshift: -32 } : { xshift: title.xshift + 8 }) };
}

/**
 * @typedef {Object} Wanted
 * @property {Matrix} matrix NaN: nothing
 * @property {string[]} rows labels
 * @property {string[]} columns
 * @property {{rows: string, columns: string}} titles
 * @property {(number|null)[][]} [z] what is drawn, if not the numbers themselves
 * @property {{bottom: number, top: number, colours: Uint8Array, write?: (value: number) => string, ticks?: {tickvals: number[], ticktext: string[]}|null}} scale `write`: the numbers beside the colour bar; `ticks`: the bar's own, or null if Plotly chooses them
 * @property {string} quantity beside the colour bar
 * @property {Cell[]} [outlined]
 * @property {{rows: number[], columns: number[]}} [kept] the rows and columns whose labels are never left out; with it, the drawing says if others are
 * @property {(value: number) => string} [numbers] written into the cells if they have room
 */

const SQUARE_WITH_GAPS = 12;
const ROOM_FOR_NUMBERS = 24;
/** Lines of type at 45° need √2 of their height along the axis. */
const ROOM_FOR_SLANTED = 20;
const LEAST_SIDE = 160;
/** Pixels from which a colour bar beside the map has room for its numbers. */
const LEAST_BAR = 80;
/** The length of a bar below the map whose last number is wide: Plotly leaves out what would be cut. */
const WRITTEN_BAR = 0.8;

/** @param {Wanted} wanted @param {Frame} state @returns {Drawing} */
export function squaresFigure(wanted, state) {
  const { matrix, rows, columns, scale, kept = { rows: [], columns: [] } } = wanted;
  const { palette, width } = state;
  const lettering = letteringFor(width);
  const label = { rows: labelWidth(rows, lettering), columns: labelWidth(columns, lettering) };
  const roomy = isNarrow(width) ? null : roomyBox(state, label, wanted);
  const box = roomy && roomy.down >= LEAST_BAR ? roomy : tightBox(state, label, wanted);
  const gap = box.cell >= SQUARE_WITH_GAPS ? 1 : 0;
  const drawing = {
    data: [
      heatmapTrace(
        wanted.z ?? nested(matrix),
        scale,
        {
          ...colourBar(palette, box.orientation),
          ...ticksOf(scale),
          ...(scale.ticks && box.orientation === 'h' && { len: WRITTEN_BAR }),
        },
        [gap, gap],
      ),
      ...(wanted.numbers && box.cell >= ROOM_FOR_NUMBERS
        ? [numbersTrace(wanted, wanted.numbers)]
        : []),
    ],
    layout: {
      ...baseLayout(palette, box),
      annotations: [
        colourBarTitle(wanted.quantity, palette, box.orientation),
        ...box.titles(palette),
      ],
      shapes: outlines(wanted.outlined ?? [], palette, box.cell),
      xaxis: {
        ...labelAxis({
          labels: columns,
          pixels: box.across,
          title: box.axisTitles.columns,
          palette,
          lettering,
          kept: kept.columns,
          color: palette.key,
        }),
        side: 'top',
        tickangle: box.tickangle,
      },
      yaxis: downwards(
        labelAxis({
          labels: rows,
          pixels: box.down,
          title: box.axisTitles.rows,
          palette,
          lettering,
          kept: kept.rows,
          color: palette.query,
        }),
      ),
    },
  };
  const { xaxis, yaxis } = drawing.layout;
  const isWhole = xaxis.tickvals.length === columns.length && yaxis.tickvals.length === rows.length;
  if (!wanted.kept || isWhole) return drawing;
  return { ...drawing, labelled: labelledSaid([xaxis.tickvals, yaxis.tickvals]) };
}

const ORDINAL = { one: 'st', two: 'nd', few: 'rd', other: 'th' };
const ordinals = new Intl.PluralRules('en', { type: 'ordinal' });

/**
 * How many labels there are; a chosen one displaces its neighbours’, so that those that are left may be
 * at no even distance.
 * @param {number[][]} axes the labelled cells of each
 */
function labelledSaid(axes) {
  const steps = new Set(
    axes.flatMap((ticks) => ticks.slice(1).map((index, before) => index - ticks[before])),
  );
  const [step] = steps;
  const suffix = ORDINAL[/** @type {keyof typeof ORDINAL} */ (ordinals.select(step))];
  return steps.size === 1
    ? `Every ${step}${suffix} label is shown.`
    : 'Some labels are left out to make room.';
}

/** @param {Wanted} wanted @param {(value: number) => string} write */
function numbersTrace({ matrix: { columns, data }, scale }, write) {
  const cells = Array.from(data, (value, at) => ({
    x: at % columns,
    y: Math.floor(at / columns),
    text: write(value),
    level: levelOf(value - scale.bottom, scale.top - scale.bottom),
  }));
  return textInCells(cells, scale.colours);
}

/**
 * Ticks of the colour bar: both ends and values between, symmetric about zero if signed.
 * @param {Wanted['scale']} scale
 */
function ticksOf({ bottom, top, ticks, write = (value) => tick(Number(value.toPrecision(2))) }) {
  if (ticks !== undefined) return ticks && { tickmode: 'array', ...ticks };
  const tickvals = [0, 1, 2, 3, 4].map((quarter) => bottom + ((top - bottom) * quarter) / 4);
  return { tickmode: 'array', tickvals, ticktext: tickvals.map(write) };
}

/**
 * A dark and a light outline, visible on every colour.
 * @param {Cell[]} cells
 * @param {Palette} palette
 * @param {number} room
 */
function outlines(cells, { ink, surface }, room) {
  const widths =
    room >= SQUARE_WITH_GAPS
      ? [
          [ink, 4],
          [surface, 1.5],
        ]
      : [[ink, 1]];
  return widths.flatMap(([color, width]) =>
    cells.map(({ row, column }) => ({
      type: 'rect',
      x0: column - 0.5,
      x1: column + 0.5,
      y0: row - 0.5,
      y1: row + 0.5,
      line: { color, width },
    })),
  );
}

/**
 * Wide layout: axis titles, slanted labels, a vertical colour bar.
 * @param {Frame} size
 * @param {{rows: number, columns: number}} label
 * @param {Wanted} wanted
 */
function roomyBox(size, label, { matrix, titles }) {
  const slanted = Math.ceil(label.columns * 0.72);
  /** @param {number} tall @param {number} wide pixels that the labels of the columns take */
  const within = (tall, wide) =>
    squaresIn(size, { l: label.rows + 30, r: Math.max(76, wide), t: tall + 40, b: 12 }, matrix);
  const roomy = within(slanted, slanted);
  const isSlanted = roomy.cell >= ROOM_FOR_SLANTED;
  return {
    ...(isSlanted ? roomy : within(label.columns, 0)),
    orientation: /** @type {const} */ ('v'),
    tickangle: isSlanted ? -45 : -90,
    axisTitles: titles,
    titles: () => [],
  };
}

/**
 * Narrow layout: upright labels, both titles in one line above them, the colour bar below.
 * @param {Frame} size
 * @param {{rows: number, columns: number}} label
 * @param {Wanted} wanted
 */
function tightBox(size, label, { matrix, titles }) {
  const margin = { l: label.rows + 14, r: 16, t: label.columns + 28, b: 58 };
  const above = { y: 1, yanchor: 'bottom', yshift: label.columns + 8 };
  return {
    ...squaresIn(size, margin, matrix),
    orientation: /** @type {const} */ ('h'),
    tickangle: -90,
    axisTitles: { rows: '', columns: '' },
    /** @param {Palette} palette */
    titles: ({ query, key }) =>
      [
        paperText(titles.rows && `${titles.rows} ↓`, query, {
          ...above,
          x: 0,
          xanchor: 'left',
          xshift: -margin.l,
        }),
        paperText(`${titles.columns} →`, key, { ...above, x: 1, xanchor: 'right' }),
      ].filter(({ text }) => text),
  };
}

/**
 * Cells are square, and the longer side of the map has a minimum length.
 * @param {Frame} state
 * @param {{l: number, r: number, t: number, b: number}} margin
 * @param {Matrix} matrix
 */
function squaresIn({ width, height }, margin, { rows, columns }) {
  const room = Math.min(
    (width - margin.l - margin.r) / columns,
    (height - margin.t - margin.b) / rows,
  );
  const least = Math.min(LEAST_SIDE, width - margin.l - margin.r);
  const cell = Math.max(least / Math.max(rows, columns), room);
  const [across, down] = [cell * columns, cell * rows];
  return {
    margin,
    cell,
    across,
    down,
    width: across + margin.l + margin.r,
    height: down + margin.t + margin.b,
  };
}
