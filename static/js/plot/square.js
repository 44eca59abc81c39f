/**
 * The room around a map of square cells: slanted labels and a colour bar beside it, or, where there is
 * little room, upright labels and the bar below.
 */

import { escapeForPlotly } from '../data/format.js';
import { colourBar, colourBarTitle, isNarrow, labelWidth, paperText } from './figure.js';
import { swatchNotes } from './legend.js';
import { countOf, quarterTicks, sideBar, sideRoom, sideTitle } from './room.js';
import { labelRoom, letteringOf, SLANT } from './scales.js';

/**
 * @import { Frame, Palette } from './figure.js'
 * @import { Legend } from './legend.js'
 * @import { Stack } from './panes.js'
 * @import { Parts, Room } from './room.js'
 * @import { Band, Ramp } from './scales.js'
 */

/** Lines of type at 45° need √2 of their height along the axis. */
const ROOM_FOR_SLANTED = 20;
const LEAST_SIDE = 160;
/** Pixels from which a colour bar beside the map has room for its numbers. */
const LEAST_BAR = 80;
/** The length of a bar below the map whose last number is wide: Plotly leaves out what would be cut. */
const WRITTEN_BAR = 0.8;

/** @param {Parts} parts @param {Pick<Frame, 'width'|'height'>} given @returns {Room} */
export function squareRoom({ across, down, ramps: [ramp], legend, stack }, given) {
  const frame = { width: given.width - stack.beside, height: given.height };
  const columns = /** @type {Band} */ (across);
  const rows = /** @type {Band} */ (down);
  const label = {
    rows: labelWidth(rows.labels, letteringOf(rows, given.width)),
    columns: columns.isSlanted
      ? labelWidth(columns.labels, letteringOf(columns, given.width))
      : labelRoom(columns, given.width),
  };
  const { beside } = stack;
  const roomy = isNarrow(frame.width) ? null : roomyBox(frame, label, { columns, rows }, ramp);
  const room =
    roomy && roomy.inner.height >= LEAST_BAR
      ? withBar(roomy, { ramp, legend, beside }, 'v')
      : withBar(tightBox(frame, label, { columns, rows }, stack), { ramp, legend, beside }, 'h');
  return { ...room, width: room.width + beside };
}

/**
 * @param {Omit<Room, 'bar'>} box
 * @param {{ramp: Ramp|undefined, legend: Legend, beside: number}} of `beside`: pixels that panes take
 * @param {'v'|'h'} orientation
 * @returns {Room}
 */
function withBar(box, { ramp: shown, legend, beside }, orientation) {
  return {
    ...box,
    bar: (ramp, palette) =>
      orientation === 'v'
        ? sideBar(ramp, palette, box.inner.width + beside)
        : {
            ...colourBar(palette, 'h'),
            tickmode: 'array',
            ...quarterTicks(ramp),
            ...(ramp.ticks && { len: WRITTEN_BAR }),
          },
    notes: (palette) => [
      ...(shown ? [titleOf(shown, palette, orientation)] : []),
      ...swatchNotes(legend.names, orientation === 'h'),
      ...box.notes(palette),
    ],
  };
}

/** @param {Ramp} ramp @param {Palette} palette @param {'v'|'h'} orientation */
function titleOf(ramp, palette, orientation) {
  if (orientation === 'v') return sideTitle(ramp, palette);
  return colourBarTitle(escapeForPlotly(ramp.title), palette, 'h');
}

/**
 * Axis titles, slanted labels, a vertical colour bar.
 * @param {Pick<Frame, 'width'|'height'>} frame
 * @param {{rows: number, columns: number}} label
 * @param {{columns: Band, rows: Band}} bands
 * @param {Ramp|undefined} ramp
 */
function roomyBox(frame, label, bands, ramp) {
  const bar = ramp ? sideRoom(ramp) : 0;
  /** @param {number} tall @param {number} wide pixels that the labels of the columns take */
  const within = (tall, wide) =>
    squaresIn(
      frame,
      { l: label.rows + 30, r: Math.max(76, bar, wide), t: tall + 40, b: 12 },
      bands,
    );
  if (!bands.columns.isSlanted) return { ...within(label.columns, 0), notes: () => [] };
  const slanted = Math.ceil(label.columns * SLANT);
  const roomy = within(slanted, slanted);
  const isSlanted = roomy.inner.width / countOf(bands.columns) >= ROOM_FOR_SLANTED;
  return {
    ...(isSlanted ? roomy : within(label.columns, 0)),
    axes: { across: { tickangle: isSlanted ? -45 : -90 } },
    notes: () => [],
  };
}

/**
 * Upright labels, both titles in one line above them, the colour bar below.
 * @param {Pick<Frame, 'width'|'height'>} frame
 * @param {{rows: number, columns: number}} label
 * @param {{columns: Band, rows: Band}} bands
 * @param {Stack} stack
 */
function tightBox(frame, label, bands, { beside, head }) {
  const margin = { l: label.rows + 14, r: 16, t: Math.max(label.columns + 28, head), b: 58 };
  const above = { y: 1, yanchor: 'bottom', yshift: label.columns + 8 };
  const { rows, columns } = bands;
  const box = squaresIn(frame, margin, bands);
  const end = box.inner.width / (box.inner.width + beside);
  return {
    ...box,
    axes: {
      across: { ...(bands.columns.isSlanted && { tickangle: -90 }), title: '' },
      down: { title: '' },
    },
    /** @param {Palette} palette */
    notes: ({ muted }) =>
      [
        paperText(rows.title ? `${escapeForPlotly(rows.title)} ↓` : '', rows.ink ?? muted, {
          ...above,
          x: 0,
          xanchor: 'left',
          xshift: -margin.l,
        }),
        paperText(
          columns.title ? `${escapeForPlotly(columns.title)} →` : '',
          columns.ink ?? muted,
          { ...above, x: end, xanchor: 'right' },
        ),
      ].filter(({ text }) => text),
  };
}

/**
 * Cells are square, and the longer side of the map has a minimum length.
 * @param {Pick<Frame, 'width'|'height'>} frame
 * @param {{l: number, r: number, t: number, b: number}} margin
 * @param {{columns: Band, rows: Band}} bands
 */
function squaresIn({ width, height }, margin, bands) {
  const [columns, rows] = [countOf(bands.columns), countOf(bands.rows)];
  const room = Math.min(
    (width - margin.l - margin.r) / columns,
    (height - margin.t - margin.b) / rows,
  );
  const least = Math.min(LEAST_SIDE, width - margin.l - margin.r);
  const cell = Math.max(least / Math.max(rows, columns), room);
  const inner = { width: cell * columns, height: cell * rows };
  return {
    margin,
    inner,
    width: inner.width + margin.l + margin.r,
    height: inner.height + margin.t + margin.b,
  };
}
