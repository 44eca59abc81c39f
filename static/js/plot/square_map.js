/**
 * A matrix as a map of square cells, with labels on both axes and a colour bar.
 */

import { tick } from '../data/format.js';
import { levelOf } from './colour.js';
import {
  baseLayout,
  colourBar,
  colourBarTitle,
  downwards,
  isNarrow,
  labelAxis,
  labelWidth,
  letteringFor,
  heatmapTrace,
  nested,
  textInCells,
  paperText,
} from './figure.js';

/**
 * @import { Matrix } from '../data/trace.js'
 * @import { Drawing, Frame, Palette } from './figure.js'
 * @import { Cell } from './grid.js'
 */

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

const ROOM_FOR_GAPS = 12;
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
  const gap = box.cell >= ROOM_FOR_GAPS ? 1 : 0;
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
    room >= ROOM_FOR_GAPS
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
