/**
 * The room around a map of square cells: slanted labels and a colour bar beside it, or, where there is
 * little room, upright labels and the bar below.
 */

import { escapeForPlotly } from '../data/format.js';
import { colourBar, colourBarTitle, isNarrow, labelWidth, paperText } from './figure.js';
import { swatchNotes } from './legend.js';
import { countOf, quarterTicks, sideBar, sideRoom, sideTitle, ticksOf } from './room.js';
import { labelRoom, letteringOf, SLANT } from './scales.js';

/**
 * @import { Frame, Palette } from './figure.js'
 * @import { Legend } from './legend.js'
 * @import { Parts, Room, Size } from './room.js'
 * @import { Band, Ramp } from './scales.js'
 */

/** @typedef {{columns: Band, rows: Band, size: Size, ramp: Ramp|undefined, legend: Legend, beside: number, right: number}} Square `beside`: pixels that panes take; `right`: what marks write next to the map */

/** Lines of type at 45° need √2 of their height along the axis. */
const ROOM_FOR_SLANTED = 20;
const LEAST_SIDE = 160;
/** Pixels from which a colour bar beside the map has room for its numbers. */
const LEAST_BAR = 80;
/** The length of a bar below the map whose last number is wide: Plotly leaves out what would be cut. */
const WRITTEN_BAR = 0.8;
/** Pixels of a bar below the map that has no room for five numbers. */
const SHORT_BAR = 160;

/** @param {Parts} parts @param {Pick<Frame, 'width'|'height'>} given @returns {Room} */
export function squareRoom({ across, down, ramps: [ramp], legend, size, stack, edges }, given) {
  const frame = { width: given.width - stack.beside, height: given.height };
  const columns = /** @type {Band} */ (across);
  const rows = /** @type {Band} */ (down);
  const label = {
    rows: labelWidth(rows.labels, letteringOf(rows, given.width)),
    columns: columns.isSlanted
      ? labelWidth(columns.labels, letteringOf(columns, given.width))
      : labelRoom(columns, given.width),
  };
  const parts = { columns, rows, size, ramp, legend, beside: stack.beside, right: edges.right };
  const roomy = isNarrow(frame.width) ? null : roomyBox(frame, label, parts);
  const room =
    roomy && roomy.inner.height >= LEAST_BAR
      ? withBar(roomy, parts, 'v')
      : withBar(tightBox(frame, label, parts, stack.head), parts, 'h');
  return { ...room, width: room.width + stack.beside };
}

/**
 * @param {Omit<Room, 'bar'>} box
 * @param {Square} parts
 * @param {'v'|'h'} orientation
 * @returns {Room}
 */
function withBar(box, { ramp: shown, legend, beside, right }, orientation) {
  return {
    ...box,
    bar: (ramp, palette) =>
      orientation === 'v'
        ? sideBar(ramp, palette, box.inner.width + beside, right)
        : {
            ...colourBar(palette, 'h'),
            tickmode: 'array',
            ...(box.inner.width < SHORT_BAR ? ticksOf : quarterTicks)(ramp),
            ...(ramp.ticks && { len: WRITTEN_BAR }),
          },
    notes: (palette) => [
      ...(shown ? [titleOf(shown, palette, orientation, right)] : []),
      ...swatchNotes(legend.names, orientation === 'h'),
      ...box.notes(palette),
    ],
  };
}

/** @param {Ramp} ramp @param {Palette} palette @param {'v'|'h'} orientation @param {number} right */
function titleOf(ramp, palette, orientation, right) {
  if (orientation === 'h') return colourBarTitle(escapeForPlotly(ramp.title), palette, 'h');
  const title = sideTitle(ramp, palette);
  return { ...title, xshift: title.xshift + right };
}

/**
 * Axis titles, slanted labels, a vertical colour bar.
 * @param {Pick<Frame, 'width'|'height'>} frame
 * @param {{rows: number, columns: number}} label
 * @param {Square} parts
 */
function roomyBox(frame, label, parts) {
  const { columns, ramp, right } = parts;
  const bar = ramp ? sideRoom(ramp) : 0;
  /** @param {number} tall @param {number} wide pixels that the labels of the columns take */
  const within = (tall, wide) =>
    squaresIn(
      frame,
      { l: label.rows + 30, r: Math.max(Math.max(76, bar) + right, wide), t: tall + 40, b: 12 },
      parts,
    );
  if (!columns.isSlanted) return { ...within(label.columns, 0), notes: () => [] };
  const slanted = Math.ceil(label.columns * SLANT);
  const roomy = within(slanted, slanted);
  const isSlanted = roomy.inner.width / countOf(columns) >= ROOM_FOR_SLANTED;
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
 * @param {Square} parts
 * @param {number} head pixels that the titles of panes take
 */
function tightBox(frame, label, parts, head) {
  const { rows, columns, beside, right } = parts;
  const r = Math.max(16, right);
  const margin = { l: label.rows + 14, r, t: Math.max(label.columns + 28, head), b: 58 };
  const above = { y: 1, yanchor: 'bottom', yshift: label.columns + 8 };
  const box = squaresIn(frame, margin, parts);
  const end = box.inner.width / (box.inner.width + beside);
  return {
    ...box,
    axes: {
      across: { ...(columns.isSlanted && { tickangle: -90 }), title: '' },
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
          { ...above, x: end, xanchor: 'right', ...(right > 0 && { xshift: r - 16 }) },
        ),
      ].filter(({ text }) => text),
  };
}

/**
 * Cells are square, and the longer side of the map has a minimum length.
 * @param {Pick<Frame, 'width'|'height'>} frame
 * @param {{l: number, r: number, t: number, b: number}} margin
 * @param {Square} parts
 */
function squaresIn({ width, height }, margin, { size: { row = Infinity }, ...bands }) {
  const [columns, rows] = [countOf(bands.columns), countOf(bands.rows)];
  const [smallest, largest] = typeof row === 'number' ? [0, row] : row;
  const room = Math.min(
    (width - margin.l - margin.r) / columns,
    Math.max(smallest, (height - margin.t - margin.b) / rows),
    largest,
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
