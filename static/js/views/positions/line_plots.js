/**
 * Line plots over positions or distances. Several lines stand in strips below one another, so that
 * no colour has to tell them apart and each is a row for the keyboard and the table.
 */

import { tick } from '../../data/format.js';
import { css, sequential, translucent } from '../../plot/colour.js';
import {
  baseLayout,
  downwards,
  isNarrow,
  labelAxis,
  labelWidth,
  letteringFor,
  amountAxis,
} from '../../plot/figure.js';

/**
 * @import { Drawing, Frame, Layout, Palette, PlotlyTrace } from '../../plot/figure.js'
 * @import { Geometry } from '../../plot/grid.js'
 * @import { byDistance } from './maps.js'
 */

const STRIP = { most: 84, least: 26 };
const HEIGHT = { roomy: 400, narrow: 340 };
/** The space above and below a line, as a share of its strip. */
const PADDING = 0.1;
/** With more points than this, dots would hide the line. */
const ROOMY_DOTS = 128;
const LINE_LEVEL = 150;

/**
 * @typedef {Object} Strip
 * @property {string} label
 * @property {ArrayLike<number>} values by column; NaN: none
 * @property {[number, number][]} [curve] points of a line that is defined between the columns too
 * @property {boolean} [isChosen]
 */

/** @typedef {(row: number, value: number) => number} Placer the position of a value in its strip */
/** @typedef {{strips: Strip[], place: Placer, palette: Palette}} Parts of a drawing of strips */

/**
 * @param {Strip[]} strips
 * @param {Object} named
 * @param {string[]} named.labels of the columns
 * @param {string} named.axis what a column is
 * @param {string} named.rows what a strip is
 * @param {[number, number]} named.range the least and the greatest that a strip has room for
 * @param {(value: number) => number} [named.scale] how values lie between the ends of the range
 * @param {boolean} [named.isFilled] whether what lies between the line and 0 is filled
 * @param {Frame} state
 * @returns {Drawing}
 */
export function stripsDrawing(
  strips,
  { labels, axis, rows, range, scale = (value) => value, isFilled = false },
  state,
) {
  const { palette, width } = state;
  const names = strips.map(({ label }) => label);
  const margin = { l: labelWidth(names, letteringFor(width)) + 30, r: 48, t: 8, b: 44 };
  const [pixels, height] = [width - margin.l - margin.r, heightOf(strips.length, state)];
  const place = placer(range, scale);
  const lettering = letteringFor(width);
  const parts = { strips, place, palette };
  return {
    data: [
      zeroLines({ ...parts, range, columns: labels.length }),
      ...(isFilled ? strips.map((_, row) => areaOf(parts, row)) : []),
      ...strips.map((_, row) => lineOf(parts, row)),
      ...(labels.length > ROOMY_DOTS && !strips.some(({ curve }) => curve) ? [] : [dotsOf(parts)]),
    ],
    layout: {
      ...baseLayout(palette, { width, height: height + margin.t + margin.b, margin }),
      xaxis: labelAxis({ labels, pixels, title: axis, palette, lettering, space: 28 }),
      yaxis: downwards(
        labelAxis({ labels: names, pixels: height, title: rows, palette, lettering }),
      ),
      annotations: endsOf(range, place, labels.length, palette),
    },
  };
}

/** @param {number} count @param {Frame} state */
function heightOf(count, { width }) {
  const whole = isNarrow(width) ? HEIGHT.narrow : HEIGHT.roomy;
  return count * Math.max(STRIP.least, Math.min(STRIP.most, Math.floor(whole / count)));
}

/**
 * The position of a value in its strip; the axis of rows counts downwards.
 * @param {[number, number]} of
 * @param {(value: number) => number} scale
 * @returns {Placer}
 */
function placer([least, most], scale) {
  const [from, to] = [scale(least), scale(most)];
  const span = to - from || 1;
  return (row, value) =>
    row +
    0.5 -
    PADDING -
    Math.max(0, Math.min(1, (scale(value) - from) / span)) * (1 - 2 * PADDING);
}

/** @param {Parts & {range: [number, number], columns: number}} parts */
function zeroLines({ strips, place, palette, range, columns }) {
  const zero = Math.max(range[0], Math.min(range[1], 0));
  const x = strips.flatMap(() => [-0.5, columns - 0.5, null]);
  const y = strips.flatMap((_, row) => [place(row, zero), place(row, zero), null]);
  return { ...LINES, x, y, line: { color: palette.line, width: 1 } };
}

const LINES = { type: 'scatter', mode: 'lines', hoverinfo: 'none', cliponaxis: false };

/** @param {Parts} parts @param {number} row */
function lineOf({ strips, place, palette }, row) {
  const points = pointsOf(strips[row]);
  return {
    ...LINES,
    x: points.map(([x]) => x),
    y: points.map(([, value]) => (Number.isNaN(value) ? null : place(row, value))),
    line: { color: colourOf(strips[row], palette), width: strips[row].isChosen ? 2.5 : 1.5 },
  };
}

/**
 * The closed area between the line and 0.
 * @param {Parts} parts
 * @param {number} row
 */
function areaOf({ strips, place, palette }, row) {
  const points = pointsOf(strips[row]).filter(([, value]) => !Number.isNaN(value));
  const floor = place(row, 0);
  const [first, last] = [points[0]?.[0] ?? 0, points.at(-1)?.[0] ?? 0];
  return {
    ...LINES,
    x: [first, ...points.map(([x]) => x), last],
    y: [floor, ...points.map(([, value]) => place(row, value)), floor],
    line: { width: 0 },
    fill: 'toself',
    fillcolor: translucent(colourOf(strips[row], palette), 0.22),
  };
}

/** @param {Strip} strip @returns {[number, number][]} */
function pointsOf({ values, curve }) {
  return curve ?? Array.from(values, (value, column) => [column, value]);
}

/** @param {Strip} strip @param {Palette} palette */
function colourOf({ isChosen }, palette) {
  return isChosen ? palette.query : css(sequential(palette.theme), LINE_LEVEL);
}

/** A dot for every number. @param {Parts} parts */
function dotsOf({ strips, place, palette }) {
  const size = strips[0]?.values.length > ROOMY_DOTS ? 2 : 5;
  const points = strips.flatMap(({ values }, row) =>
    Array.from(values, (value, column) => [column, Number.isNaN(value) ? null : place(row, value)]),
  );
  return {
    type: 'scatter',
    mode: 'markers',
    hoverinfo: 'none',
    cliponaxis: false,
    x: points.map(([x]) => x),
    y: points.map(([, y]) => y),
    marker: { size, color: palette.ink, line: { width: 0 } },
  };
}

/** Round away from 0 to two significant digits. @param {number} value */
export function outwards(value) {
  if (value === 0) return 0;
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - 1);
  return Number(
    (Math.sign(value) * Math.ceil(Math.abs(value) / unit - 1e-9) * unit).toPrecision(2),
  );
}

/**
 * The first strip carries the range of all.
 * @param {[number, number]} range
 * @param {Placer} place
 * @param {number} columns
 * @param {Palette} palette
 */
function endsOf([least, most], place, columns, palette) {
  /** @param {number} value @param {string} yanchor */
  const end = (value, yanchor) => ({
    text: tick(value),
    x: columns - 0.5,
    y: place(0, value),
    xanchor: 'left',
    yanchor,
    xshift: 6,
    showarrow: false,
    font: { size: 11, color: palette.muted },
  });
  return [end(most, 'middle'), end(least, 'middle')];
}

const DISTANCE_HEIGHT = { roomy: 360, narrow: 260 };
/** The tick step by the length of the range, in tenths. */
const STEPS = [
  [6, 1],
  [12, 2],
  [Infinity, 5],
];
const SHARED = { type: 'scatter', hoverinfo: 'none', cliponaxis: false };

/**
 * @param {{mean: Float64Array, least: Float64Array, most: Float64Array}} found by distance
 * @param {{labels: string[], axis: string, quantity: string}} named
 * @param {Frame} state
 * @returns {{data: PlotlyTrace[], layout: Layout, geometry: Geometry}}
 */
export function distanceDrawing(found, { labels, axis, quantity }, state) {
  const { palette, width } = state;
  const margin = { l: 64, r: 16, t: 12, b: 44 };
  const height = isNarrow(width) ? DISTANCE_HEIGHT.narrow : DISTANCE_HEIGHT.roomy;
  const range = rangeOf(found);
  const lettering = letteringFor(width);
  return {
    data: [bandOf(found, palette), meanLineOf(found, palette)],
    layout: {
      ...baseLayout(palette, { width, height, margin }),
      xaxis: labelAxis({
        labels,
        pixels: width - margin.l - margin.r,
        title: axis,
        palette,
        lettering,
        space: 28,
      }),
      yaxis: tenthsAxis(range, quantity, palette),
    },
    geometry: geometryOf(found, range),
  };
}

/**
 * The range, extended to whole tenths.
 * @param {ReturnType<typeof byDistance>} byDistance
 * @returns {[number, number]}
 */
function rangeOf({ least, most }) {
  const [low, high] = [Math.min(...least), Math.max(...most)];
  const [from, to] = [Math.floor(low * 10 + 1e-6), Math.ceil(high * 10 - 1e-6)];
  return [Math.min(from, to - 1) / 10, to / 10];
}

/** @param {[number, number]} of @param {string} title @param {Palette} palette */
function tenthsAxis([from, to], title, palette) {
  const [first, last] = [Math.round(from * 10), Math.round(to * 10)];
  const [, step] = STEPS.find(([most]) => last - first <= most) ?? STEPS[STEPS.length - 1];
  const tenths = Array.from({ length: last - first + 1 }, (_, index) => first + index).filter(
    (tenth) => tenth % step === 0,
  );
  const tickvals = tenths.map((tenth) => tenth / 10);
  return {
    range: [from, to],
    tickvals,
    ticktext: tickvals.map(tick),
    ...amountAxis(title, palette),
    zeroline: false,
  };
}

/** @param {ReturnType<typeof byDistance>} byDistance @param {Palette} palette */
function bandOf({ least, most }, palette) {
  const columns = Array.from(least, (_, column) => column);
  const color = translucent(css(sequential(palette.theme), LINE_LEVEL), 0.25);
  return {
    ...SHARED,
    mode: 'lines',
    fill: 'toself',
    fillcolor: color,
    line: { width: 0 },
    x: [...columns, ...[...columns].reverse()],
    y: [...most, ...[...least].reverse()],
  };
}

/** @param {ReturnType<typeof byDistance>} byDistance @param {Palette} palette */
function meanLineOf({ mean }, palette) {
  return {
    ...SHARED,
    mode: mean.length > ROOMY_DOTS ? 'lines' : 'lines+markers',
    x: Array.from(mean, (_, column) => column),
    y: Array.from(mean),
    line: { color: css(sequential(palette.theme), LINE_LEVEL), width: 2 },
    marker: { size: 5, color: palette.ink },
  };
}

/**
 * Rows are mean, minimum and maximum; a point selects the nearest.
 * @param {ReturnType<typeof byDistance>} byDistance
 * @param {[number, number]} range
 * @returns {Geometry}
 */
function geometryOf({ mean, least, most }, [from, to]) {
  const rows = [mean, least, most];
  const half = (to - from) * 0.025;
  return {
    box(row, column) {
      if (column === undefined) return null;
      const value = rows[row ?? 0][column];
      return { x0: column - 0.5, x1: column + 0.5, y0: value - half, y1: value + half };
    },
    at(x, y) {
      const column = Math.round(x);
      if (column < 0 || column >= mean.length) return null;
      const away = rows.map((values) => Math.abs(values[column] - y));
      return { row: away.indexOf(Math.min(...away)), column };
    },
  };
}
