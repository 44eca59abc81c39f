/**
 * The room that the scales, legends and colour bars of a chart take around its plot, in pixels; a
 * plot of square cells is as large as its frame lets it be.
 */

import { amount, tick } from '../words/numbers.js';
import { escapeForPlotly } from '../words/text.js';
import {
  isNarrow,
  labelWidth,
  labelRoom,
  leanOf,
  letteringOf,
  turnOf,
  SLANT,
  leftOf,
  countOf,
} from './scales.js';
import { paperText } from './marks/mark.js';

/**
 * @import { Legend } from './chart.js'
 * @import { Stack } from './panes.js'
 * @import { Bare, Scale } from './scales.js'
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

/** @param {Parts} parts @param {Pick<Frame, 'width'|'height'>} frame @returns {Room} */
export function measureRoom(parts, { width: available, height }) {
  const { across, down, legend, size, stack, edges, hasTitle } = parts;
  const { beside, above, below } = stack;
  const most = Math.min(available, size.widest ?? Infinity);
  const foot = footOf(across, available);
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

/** @param {Scale} across @param {number} width @returns {number} pixels below the plot */
function footOf(across, width) {
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
const TICK = { size: 13, letters: 12 };

/** @param {Ramp} ramp @returns {number} pixels that a bar of colours takes to the right of the plot */
function sideRoom(ramp) {
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
function sideBar(ramp, palette, wide, beside = 0) {
  const bar = { ...colourBar(palette, 'v'), x: 1 + (beside + SIDE.gap) / wide };
  return { ...bar, tickmode: 'array', ...quarterTicks(ramp) };
}

/** @param {Ramp} ramp @param {Palette} palette */
function sideTitle(ramp, palette) {
  const title = colourBarTitle(escapeForPlotly(ramp.title), palette, 'v');
  return { ...title, xshift: titlePlace(ramp) };
}

/** Tick a long bar at both ends and at three values between. @param {Ramp} ramp */
function quarterTicks(ramp) {
  const [bottom, top] = ramp.domain;
  const quarters = [0, 1, 2, 3, 4].map((quarter) => bottom + ((top - bottom) * quarter) / 4);
  /** @param {number} value */
  const write = (value) => tick(Number(value.toPrecision(2)));
  return ticksOf({ ticks: quarters, write, ...ramp });
}

/** Return the ticks of a bar of colours: both ends and the middle unless the ramp names them. @param {Ramp} ramp */
function ticksOf({
  domain: [bottom, top],
  ticks = [bottom, (bottom + top) / 2, top],
  write = (value) => amount(value, 2),
}) {
  return { tickvals: ticks, ticktext: ticks.map((value) => escapeForPlotly(write(value))) };
}

/**
 * @param {Palette} palette
 * @param {'v'|'h'} orientation vertical next to the map, horizontal below it
 */
export function colourBar(palette, orientation) {
  const shared = {
    tickfont: { size: 13, color: palette.muted },
    orientation,
    thickness: 10,
    outlinewidth: 0,
    ticks: '',
    nticks: 6,
    len: 1,
    xpad: 0,
    ypad: 0,
  };
  return orientation === 'v'
    ? { ...shared, x: 1.02, xanchor: 'left', y: 0.5, yanchor: 'middle' }
    : { ...shared, x: 0.5, xanchor: 'center', y: 0, yanchor: 'top', ypad: 8 };
}

const SHORT_BAR = 110;
const BAR_GAP = 12;

/**
 * Return a short colour bar below the left end of a wide map.
 * @param {Palette} palette
 * @param {{tickvals: number[], ticktext?: string[]}} [ticks]
 */
function shortBar(palette, ticks = { tickvals: [0, 0.5, 1] }) {
  return {
    ...colourBar(palette, 'h'),
    thickness: 6,
    lenmode: 'pixels',
    len: SHORT_BAR,
    x: 0,
    xanchor: 'left',
    ...ticks,
  };
}

/**
 * Return the title of a short colour bar, to its right.
 * @param {string} text
 * @param {Palette} palette
 */
function shortBarTitle(text, palette) {
  const below = { x: 0, xanchor: 'left', y: 0, yanchor: 'top', yshift: -4 };
  return paperText(text, palette.muted, { ...below, xshift: SHORT_BAR + BAR_GAP });
}

/** @param {string} title @returns {number} pixels that a short bar and its title take together */
export function shortBarWidth(title) {
  return SHORT_BAR + BAR_GAP + labelWidth([title], { size: 13, letters: title.length });
}

/**
 * Return the title of a colour bar. Plotly's own title overlaps the numbers of a vertical bar.
 * @param {string} title
 * @param {Palette} palette
 * @param {'v'|'h'} orientation
 */
export function colourBarTitle(title, palette, orientation) {
  if (orientation === 'h') {
    const below = { x: 0.5, xanchor: 'center', y: 0, yanchor: 'top', yshift: -34 };
    return paperText(title, palette.muted, below);
  }
  const beside = { x: 1, xanchor: 'left', xshift: 56, y: 0.5, yanchor: 'middle', textangle: 90 };
  return paperText(title, palette.muted, beside);
}

/** @typedef {{columns: Band, rows: Band, size: Size, ramp: Ramp|undefined, beside: number, right: number}} Square `beside`: pixels that panes take; `right`: what marks write next to the map */

/** Lines of type at 45° need √2 of their height along the axis. */
const ROOM_FOR_SLANTED = 20;
const LEAST_SIDE = 160;
/** Pixels from which a colour bar next to the map has room for its numbers. */
const LEAST_BAR = 80;
/** The length of a bar below the map whose last number is wide: Plotly leaves out what would be cut. */
const WRITTEN_BAR = 0.8;
/** Pixels of a bar below the map that has no room for five numbers. */
const SHORT_SIDE = 160;

/** @param {Parts} parts @param {Pick<Frame, 'width'|'height'|'stretch'>} given @returns {Room} */
export function squareRoom({ across, down, ramps: [ramp], size, stack, edges }, given) {
  const frame = { ...given, width: given.width - stack.beside };
  const columns = /** @type {Band} */ (across);
  const rows = /** @type {Band} */ (down);
  const label = {
    rows: labelWidth(rows.labels, letteringOf(rows, given.width)),
    columns: columns.isSlanted
      ? labelWidth(columns.labels, letteringOf(columns, given.width))
      : labelRoom(columns, given.width),
  };
  const parts = { columns, rows, size, ramp, beside: stack.beside, right: edges.right };
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
function withBar(box, { ramp: shown, beside, right }, orientation) {
  return {
    ...box,
    bar: (ramp, palette) =>
      orientation === 'v'
        ? sideBar(ramp, palette, box.inner.width + beside, right)
        : {
            ...colourBar(palette, 'h'),
            tickmode: 'array',
            ...(box.inner.width < SHORT_SIDE ? ticksOf : quarterTicks)(ramp),
            ...(ramp.ticks && { len: WRITTEN_BAR }),
          },
    notes: (palette) => [
      ...(shown ? [titleOf(shown, palette, orientation, right)] : []),
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
 * @param {Pick<Frame, 'width'|'height'|'stretch'>} frame
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
 * @param {Pick<Frame, 'width'|'height'|'stretch'>} frame
 * @param {{rows: number, columns: number}} label
 * @param {Square} parts
 * @param {number} head pixels that the titles of panes take
 */
function tightBox(frame, label, parts, head) {
  const { rows, columns, beside, right } = parts;
  const r = Math.max(16, right);
  const margin = { l: label.rows + 14, r, t: Math.max(label.columns + 28, head), b: 58 };
  const above = { y: 1, yanchor: 'bottom', yshift: label.columns + 8 };
  const left = { x: 0, xanchor: 'left', xshift: -margin.l };
  let box = squaresIn(frame, margin, parts);
  const titles = `${rows.title} ↓   ${columns.title} →`;
  const isStacked =
    labelWidth([titles], { size: 13, letters: titles.length }) > margin.l + box.inner.width;
  if (isStacked) {
    margin.t += 16;
    box = squaresIn(frame, margin, parts);
  }
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
          ...left,
        }),
        paperText(
          columns.title ? `${escapeForPlotly(columns.title)} →` : '',
          columns.ink ?? muted,
          isStacked
            ? { ...above, ...left, yshift: above.yshift + 16 }
            : { ...above, x: end, xanchor: 'right', ...(right > 0 && { xshift: r - 16 }) },
        ),
      ].filter(({ text }) => text),
  };
}

/**
 * Cells are square, or as wide as the frame lets them be, and the longer side of the map has a minimum length.
 * @param {Pick<Frame, 'width'|'height'|'stretch'>} frame
 * @param {{l: number, r: number, t: number, b: number}} margin
 * @param {Square} parts
 */
function squaresIn({ width, height, stretch = 1 }, margin, { size: { row = Infinity }, ...bands }) {
  const [columns, rows] = [countOf(bands.columns), countOf(bands.rows)];
  const [smallest, largest] = typeof row === 'number' ? [0, row] : row;
  const room = Math.min(
    (width - margin.l - margin.r) / columns,
    Math.max(smallest, (height - margin.t - margin.b) / rows),
    largest,
  );
  const least = Math.min(LEAST_SIDE, width - margin.l - margin.r);
  const cell = Math.max(least / Math.max(rows, columns), room);
  const wide = Math.min(cell * stretch, (width - margin.l - margin.r) / columns);
  const inner = { width: Math.max(cell, wide) * columns, height: cell * rows };
  return {
    margin,
    inner,
    width: inner.width + margin.l + margin.r,
    height: inner.height + margin.t + margin.b,
  };
}
