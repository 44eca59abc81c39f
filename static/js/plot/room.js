/**
 * The room that the scales, legends and colour bars of a chart take around its plot, in pixels.
 */

import { amount, escapeForPlotly, tick } from '../data/format.js';
import {
  colourBar,
  colourBarTitle,
  isNarrow,
  labelWidth,
  shortBar,
  shortBarTitle,
  shortBarWidth,
} from './figure.js';
import { labelRoom, leanOf, letteringOf, turnOf } from './scales.js';

/**
 * @import { Frame, Palette } from './figure.js'
 * @import { Legend } from './legend.js'
 * @import { Stack } from './panes.js'
 * @import { Bare, Ramp, Scale } from './scales.js'
 */

/**
 * @typedef {Object} Size in pixels
 * @property {number} [widest] of the whole
 * @property {number} [height] of the plot
 * @property {number|[number, number]} [row] of a row, or its least and its most within the height of the plot or of the frame; of square cells their most, the least as far as the width has room
 * @property {number} [cell] of a column
 * @property {number} [square] of the side of a square plot
 * @property {boolean} [isSquare] square cells, as large as the frame lets them be
 */

/** @typedef {{across: Scale, down: Scale, ramps: Ramp[], legend: Legend, size: Size, stack: Stack, edges: {left: number, top: number, right: number}, hasTitle: boolean}} Parts `edges`: pixels that marks take outside the plot */

/**
 * @typedef {Object} Room
 * @property {{width: number, height: number}} inner of the plot without its panes
 * @property {{l: number, r: number, t: number, b: number}} margin
 * @property {number} width of the whole
 * @property {number} height
 * @property {(ramp: Ramp, palette: Palette) => Record<string, unknown>} bar the place and look of its colour bar
 * @property {(palette: Palette) => Record<string, unknown>[]} notes the titles of the colour bars, and what axes do not say
 * @property {{across?: Record<string, unknown>, down?: Record<string, unknown>}} [axes] what replaces the settings of an axis
 */

const BAR = { room: 40, below: 18 };
const HEIGHT = { wide: 306, roomy: 218, narrow: 174 };
const WIDE = 640;

/** @param {Scale} scale */
export function countOf(scale) {
  return scale.kind === 'band' ? scale.labels.length : 1;
}

/** @param {Parts} parts @param {Pick<Frame, 'width'|'height'>} frame @returns {Room} */
export function roomOf(parts, { width: available, height }) {
  const { across, down, legend, size, stack, edges, hasTitle } = parts;
  const { beside, above, below } = stack;
  const most = Math.min(available, size.widest ?? Infinity);
  const foot = stack.hasFoot ? 0 : footOf(across, available);
  const l = Math.max(leftOf(down, available), stack.left, edges.left);
  const isAside = (/** @type {Ramp} */ ramp) => ramp.legend === 'side' && !isNarrow(available);
  const asides = parts.ramps.filter(isAside);
  const ramps = parts.ramps.filter((ramp) => !isAside(ramp));
  const isTitleBelow = ramps.some(({ title }) => shortBarWidth(title) > most - l);
  const barRoom = BAR.room + (isTitleBelow ? BAR.below : 0);
  const lean = across.kind === 'band' ? leanOf(across, available) : 0;
  const outside = Math.max(lean - beside, legend.right, edges.right, ...asides.map(sideRoom), 4);
  const right = outside + (size.square || size.cell ? 0 : 8);
  const side = size.square && Math.min(size.square, most - l - 12);
  const t = Math.max(headOf(across, available, hasTitle), stack.head) + legend.top + edges.top;
  const b = Math.max(foot + ramps.length * barRoom, asides.length > 0 ? SIDE.foot : 0);
  const free = { width: most - l - right - beside, height: height - t - b };
  const inner = {
    width: side ?? Math.min(size.cell ? size.cell * countOf(across) : Infinity, free.width),
    height: side ?? heightOf({ across, down, size, free }, available),
  };
  const tall = inner.height + above + below;
  const wide = inner.width + beside;
  const bars = Math.max(0, ...ramps.map(({ title }) => shortBarWidth(title))) - wide;
  const margin = { l, r: Math.max(right, isTitleBelow ? 0 : bars), t, b };
  const gap = foot && foot + 6;
  /** @param {Ramp} ramp @returns {number} pixels from the plot down to its bar */
  const downTo = (ramp) => gap + ramps.indexOf(ramp) * barRoom;
  return {
    inner,
    margin,
    width: wide + margin.l + margin.r,
    height: tall + margin.t + margin.b,
    bar: (ramp, palette) =>
      isAside(ramp)
        ? sideBar(ramp, palette, wide)
        : { ...shortBar(palette, ticksOf(ramp)), y: -downTo(ramp) / tall },
    notes: (palette) => [
      ...asides.map((ramp) => sideTitle(ramp, palette)),
      ...ramps.map((ramp) => {
        const note = shortBarTitle(escapeForPlotly(ramp.title), palette);
        if (isTitleBelow) return { ...note, xshift: 0, yshift: -32 - downTo(ramp) };
        return { ...note, xshift: note.xshift + 8, yshift: note.yshift - downTo(ramp) };
      }),
    ],
  };
}

/** @param {Scale} across @param {number} width @param {boolean} hasTitle @returns {number} pixels above the plot */
function headOf(across, width, hasTitle) {
  const title = hasTitle ? 18 : 0;
  if (across.kind !== 'band' || across.side !== 'top') return 8 + title;
  return (
    labelRoom(across, width) + (turnOf(across, width) ? 18 : 14) + (across.title ? 20 : 0) + title
  );
}

/** @param {Scale} down @param {number} width @returns {number} pixels to the left of the plot */
export function leftOf(down, width) {
  if (down.kind === 'pixels') return 0;
  if (down.kind !== 'band') return down.title ? 56 : 40;
  if (!down.title && !down.labels.some(Boolean)) return 8;
  return labelWidth(down.labels, letteringOf(down, width)) + 14 + (down.title ? 20 : 0);
}

/** @param {Scale} across @param {number} width @returns {number} pixels below the plot */
export function footOf(across, width) {
  if (across.kind === 'pixels') return 0;
  if (across.kind !== 'band') return 44;
  if (across.side === 'top') return 0;
  const labels = across.labels.some(Boolean) ? 24 : 6;
  const long = turnOf(across, width) ? labelRoom(across, width) + 18 : labels;
  return long + (across.title ? 20 : 0);
}

const ROW = { most: 22, least: 4 };
/** Rows of a longer map are lower. */
const LONGEST_MAP = 1280;

/** Rows of a map that is fitted to its frame have at least this height together. */
const LEAST_MAP = 200;

/**
 * Fit the plot's height to its rows; coordinates without axes are as long down as across.
 * @param {{across: Scale, down: Scale, size: Size, free: {width: number, height: number}}} of
 * @param {number} width of the drawing
 */
function heightOf({ across, down, size: { height, row }, free }, width) {
  if (down.kind === 'band') {
    const count = countOf(down);
    if (typeof row === 'number') return row * count;
    const [least, most] = row ?? [ROW.least, ROW.most];
    const room = row ? (height ?? Math.max(LEAST_MAP, free.height)) : LONGEST_MAP;
    return count * Math.max(least, Math.min(most, room / count));
  }
  if (down.kind === 'pixels' && across.kind === 'pixels' && !height)
    return (free.width * lengthOf(down)) / lengthOf(across);
  return height ?? (width >= WIDE ? HEIGHT.wide : isNarrow(width) ? HEIGHT.narrow : HEIGHT.roomy);
}

/** @param {Bare} scale */
function lengthOf({ domain: [first, last] }) {
  return Math.abs(last - first);
}

/** Pixels: `foot` for the lower half of the last number, which Plotly would leave out. */
const SIDE = { gap: 10, numbers: 28, title: 20, foot: 12 };
const TICK = { size: 11, letters: 12 };

/** @param {Ramp} ramp @returns {number} pixels that a bar of colours takes to the right of the plot */
export function sideRoom(ramp) {
  return titlePlace(ramp) + SIDE.title;
}

/** @param {Ramp} ramp */
function titlePlace(ramp) {
  return SIDE.numbers + labelWidth(quarterTicks(ramp).ticktext, TICK);
}

/**
 * Place a bar of colours to the right of the plot, as long as the plot is high.
 * @param {Ramp} ramp
 * @param {Palette} palette
 * @param {number} wide pixels of the plot
 * @param {number} [beside] pixels of what marks write next to it
 */
export function sideBar(ramp, palette, wide, beside = 0) {
  const bar = { ...colourBar(palette, 'v'), x: 1 + (beside + SIDE.gap) / wide };
  return { ...bar, tickmode: 'array', ...quarterTicks(ramp) };
}

/** @param {Ramp} ramp @param {Palette} palette */
export function sideTitle(ramp, palette) {
  const title = colourBarTitle(escapeForPlotly(ramp.title), palette, 'v');
  return { ...title, xshift: titlePlace(ramp) };
}

/** Tick a long bar at both ends and at three values between. @param {Ramp} ramp */
export function quarterTicks(ramp) {
  const [bottom, top] = ramp.domain;
  const quarters = [0, 1, 2, 3, 4].map((quarter) => bottom + ((top - bottom) * quarter) / 4);
  /** @param {number} value */
  const write = (value) => tick(Number(value.toPrecision(2)));
  return ticksOf({ ticks: quarters, write, ...ramp });
}

/** The ticks of a bar of colours: both ends and the middle unless the ramp names them. @param {Ramp} ramp */
export function ticksOf({
  domain: [bottom, top],
  ticks = [bottom, (bottom + top) / 2, top],
  write = (value) => amount(value, 2),
}) {
  return { tickvals: ticks, ticktext: ticks.map((value) => escapeForPlotly(write(value))) };
}
