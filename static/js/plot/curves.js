/**
 * Curves over a shared axis, each with its name at its end. A logarithmic axis is drawn on a linear
 * one, of the logarithms, so that a cell has the same coordinates for the drawing and the cursor.
 */

import { amount, decimal, escapeForPlotly } from '../data/format.js';
import { css, sequential, translucent } from './colour.js';
import { baseLayout, isNarrow, labelWidth, roundTicks } from './figure.js';
import { markerLine, plainGrid } from './map.js';

/**
 * @import { Drawing, Palette } from './figure.js'
 * @import { Geometry, Grid } from './grid.js'
 * @import { Size } from './map.js'
 */

/**
 * @typedef {Object} Curve
 * @property {string} name at its end, and of its row in the table
 * @property {number[]} values by place of the shared axis; NaN: none
 * @property {string} colour
 * @property {'solid'|'dot'|'dash'} [dash]
 * @property {number} [width]
 * @property {boolean} [isQuiet] it has no name at its end
 * @property {boolean} [hasDots] every value is marked
 */

/**
 * @typedef {Object} Axis
 * @property {string} title
 * @property {boolean} [isLog]
 * @property {[number, number]} [range] of values; what the curves reach unless given
 * @property {number[]} [ticks]
 * @property {(value: number) => string} [write] a tick
 */

/**
 * @typedef {Object} Plotted
 * @property {number[]} x the shared axis
 * @property {Axis} across
 * @property {Axis} up
 * @property {Curve[]} curves the last is drawn on top
 * @property {number} [marker] the place that a vertical line marks
 * @property {{name: string, low: number[], high: number[], colour: string}} [band] between two curves
 * @property {string} quantity of the table
 * @property {string} [unit] of a place, in words: `step 40`
 * @property {number} [height] of the whole drawing
 * @property {(value: number) => string} [format]
 */

const HEIGHT = { wide: 360, roomy: 272, narrow: 228 };
/** Drawings of this width are taller. */
const WIDE = 640;
const LABEL = { size: 12, letters: 24 };
const LINE_HEIGHT = 15;
/** Ticks are round: beyond their own digits lies the error of their sum. */
const TICK_FIGURES = 12;
/** Drawings no narrower than this have names at the ends of curves; others have them above. */
const ROOM_FOR_NAMES = 340;

/** @param {Palette} palette @returns {string} the warm colour of the line that matters */
export function warm(palette) {
  return css(sequential(palette.theme), 150);
}

/** @param {Plotted} plotted @param {Size} size @returns {Drawing & {grid: Grid}} */
export function curvesChart(plotted, { width, palette }) {
  const { x, curves, across, up, band, marker, height } = plotted;
  const named = curves.filter(({ isQuiet }) => !isQuiet);
  const isBeside = width >= ROOM_FOR_NAMES && named.length > 0;
  const names = named.map(({ name }) => name);
  const margin = {
    l: 56,
    r: isBeside ? labelWidth(names, LABEL) + 24 : 14,
    t: isBeside || named.length === 0 ? 10 : 10 + 17 * legendRows(named, width).length,
    b: 44,
  };
  const standard = width >= WIDE ? HEIGHT.wide : isNarrow(width) ? HEIGHT.narrow : HEIGHT.roomy;
  const tall = (height ?? standard) + margin.t - 10;
  const inner = tall - margin.t - margin.b;
  const scaleX = scaleOf(
    { ...across, range: across.range ?? (x.length > 1 ? [x[0], x[x.length - 1]] : undefined) },
    x,
  );
  const all = [
    ...curves.flatMap(({ values }) => values),
    ...(band ? [...band.low, ...band.high] : []),
  ];
  const scaleY = scaleOf(up, all);
  const places = x.map(scaleX.at);
  return {
    data: [
      ...(band ? [bandTrace(band, places, scaleY)] : []),
      ...curves.map((curve) => curveTrace(curve, places, scaleY)),
    ],
    layout: {
      ...baseLayout(palette, { width, height: tall, margin }),
      xaxis: plainAxis(
        across,
        scaleX,
        palette,
        Math.max(2, Math.floor((width - margin.l - margin.r) / 56)),
      ),
      yaxis: {
        ...plainAxis(up, scaleY, palette, Math.max(2, Math.floor(inner / 34))),
        gridcolor: palette.line,
        showgrid: true,
      },
      annotations: isBeside ? endNames(named, places, scaleY, inner) : legend(named, width),
      shapes: marker === undefined ? [] : [markerLine(places[marker], palette)],
    },
    grid: curvesGrid(plotted, places, scaleY),
  };
}

/** @typedef {{at: (value: number) => number, range: [number, number], ticks: (most: number) => number[], write: (value: number) => string}} Scale */

/** @param {Axis} axis @param {number[]} values @returns {Scale} */
function scaleOf({ isLog = false, range, ticks, write }, values) {
  const found = values.filter((value) => Number.isFinite(value) && (!isLog || value > 0));
  const [least, most] = range ?? [Math.min(...found), Math.max(...found)];
  const isEmpty = !Number.isFinite(least) || !Number.isFinite(most);
  /** @type {[number, number]} */
  const ends = isEmpty ? [isLog ? 0.1 : 0, 1] : [least, most];
  if (!isLog) {
    const room = range ? 0 : (ends[1] - ends[0]) * 0.04 || Math.abs(ends[1]) * 0.1 || 0.1;
    return {
      at: (value) => value,
      range: [ends[0] - (ends[0] === 0 ? 0 : room), ends[1] + room],
      ticks: (count) => ticks ?? linearTicks(ends, count),
      write: write ?? ((value) => amount(value, TICK_FIGURES)),
    };
  }
  const logs = ends.map((value) => Math.log10(value));
  const room = range ? 0 : Math.max(0.08, (logs[1] - logs[0]) * 0.05);
  return {
    at: (value) => (value > 0 ? Math.log10(value) : NaN),
    range: [logs[0] - room, logs[1] + room],
    ticks: (count) => ticks ?? logTicks([logs[0] - room, logs[1] + room], count),
    write: write ?? powerOfTen,
  };
}

/** @param {[number, number]} ends @param {number} most */
function linearTicks([least, end], most) {
  const reach = Math.max(Math.abs(least), Math.abs(end)) || 1;
  if (least > 0 || end < 0) return ticksBetween(least, end, most);
  const steps = roundTicks(reach, most);
  return [...steps.map((value) => -value).reverse(), ...steps.slice(1)].filter(
    (value) => value >= least - 1e-9 * reach && value <= end + 1e-9 * reach,
  );
}

/**
 * Round values between two of one sign, of which 0 need not be one.
 * @param {number} least
 * @param {number} end
 * @param {number} most
 */
function ticksBetween(least, end, most) {
  const [, step] = roundTicks(end - least || Math.abs(end), most);
  const first = Math.ceil(least / step - 1e-9);
  const count = Math.floor(end / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(count, 0) }, (_, at) =>
    Number(((first + at) * step).toPrecision(12)),
  );
}

/** @param {[number, number]} logs @param {number} most */
function logTicks([least, end], most) {
  const [first, last] = [Math.ceil(least), Math.floor(end)];
  if (last - first < 1) {
    const between = [1, 2, 3, 5, 7].flatMap((digit) =>
      [Math.floor(least), Math.floor(least) + 1].map((power) => digit * 10 ** power),
    );
    const inside = between.filter(
      (value) => Math.log10(value) >= least && Math.log10(value) <= end,
    );
    return inside
      .sort((a, b) => a - b)
      .filter((_, at) => at % Math.ceil(inside.length / most) === 0);
  }
  const step = Math.ceil((last - first) / most) || 1;
  const powers = [];
  for (let power = Math.ceil(first / step) * step; power <= last; power += step)
    powers.push(10 ** power);
  return powers;
}

/** @param {number} value @returns {string} `0.01`, `10⁻⁶` */
export function powerOfTen(value) {
  const power = Math.round(Math.log10(value));
  if (Math.abs(Math.log10(value) - power) > 1e-6 || Math.abs(power) < 4) return amount(value);
  const digits = [...String(Math.abs(power))].map((digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(digit)]).join('');
  return `10${power < 0 ? '⁻' : ''}${digits}`;
}

/** @param {Axis} axis @param {Scale} scale @param {Palette} palette @param {number} most ticks */
function plainAxis({ title }, scale, palette, most) {
  const ticks = scale.ticks(most);
  return {
    range: scale.range,
    tickmode: 'array',
    tickvals: ticks.map(scale.at),
    ticktext: ticks.map((value) => escapeForPlotly(scale.write(value))),
    tickfont: { size: 11, color: palette.muted },
    title: { text: escapeForPlotly(title), font: { size: 12, color: palette.muted }, standoff: 8 },
    ticks: '',
    showgrid: false,
    zeroline: false,
    showline: false,
  };
}

const LINES = { type: 'scatter', hoverinfo: 'none', cliponaxis: false };

/** @param {Curve} curve @param {number[]} places @param {Scale} scale */
function curveTrace({ values, colour, dash = 'solid', width = 2, hasDots = false }, places, scale) {
  return {
    ...LINES,
    mode: hasDots ? 'lines+markers' : 'lines',
    x: places.slice(0, values.length),
    y: values.map((value) => within(scale.at(value), scale.range)),
    line: { color: colour, width, dash, simplify: false },
    marker: { color: colour, size: 5 },
  };
}

/**
 * A curve that leaves a given range is not drawn over the rest of the page.
 * @param {number} value
 * @param {[number, number]} range
 */
function within(value, [least, most]) {
  return Number.isFinite(value) && value >= least && value <= most ? value : null;
}

/** @param {NonNullable<Plotted['band']>} band @param {number[]} places @param {Scale} scale */
function bandTrace({ low, high, colour }, places, { at, range: [least, most] }) {
  /** @param {number} value */
  const fit = (value) => Math.max(least, Math.min(most, at(value)));
  return {
    ...LINES,
    mode: 'lines',
    x: [...places, ...[...places].reverse()],
    y: [...high.map(fit), ...low.map(fit).reverse()],
    fill: 'toself',
    fillcolor: translucent(colour, 0.16),
    line: { width: 0 },
  };
}

/**
 * The names of curves at their ends, moved apart if they would overlap.
 * @param {Curve[]} curves
 * @param {number[]} places
 * @param {Scale} scale
 * @param {number} pixels height of the plot
 */
function endNames(curves, places, { at, range: [bottom, top] }, pixels) {
  const perPixel = (top - bottom) / pixels;
  const ends = curves
    .map(({ name, values, colour }) => {
      const last = values.findLastIndex((value) => {
        const place = at(value);
        return Number.isFinite(place) && place >= bottom && place <= top;
      });
      return {
        name,
        colour,
        x: places[last] ?? places.at(-1),
        y: last < 0 ? bottom : at(values[last]),
      };
    })
    .sort((a, b) => a.y - b.y);
  const heights = spread(
    ends.map(({ y }) => (y - bottom) / perPixel),
    LINE_HEIGHT,
    pixels,
  );
  return ends.map(({ name, colour }, index) => ({
    text: escapeForPlotly(name),
    xref: 'paper',
    x: 1,
    xanchor: 'left',
    xshift: 8,
    y: bottom + heights[index] * perPixel,
    yanchor: 'middle',
    showarrow: false,
    font: { size: LABEL.size, color: colour },
  }));
}

/**
 * Moves ascending places apart, at least so far, within 0 and the end.
 * @param {number[]} places
 * @param {number} gap
 * @param {number} end
 */
export function spread(places, gap, end) {
  const moved = [...places];
  for (let at = 1; at < moved.length; at += 1) moved[at] = Math.max(moved[at], moved[at - 1] + gap);
  for (let at = moved.length - 1; at >= 0; at -= 1)
    moved[at] = Math.min(moved[at], at === moved.length - 1 ? end : moved[at + 1] - gap);
  return moved;
}

/** @param {Curve[]} curves @param {number} width */
function legendRows(curves, width) {
  /** @type {{curve: Curve, left: number}[][]} */
  const rows = [];
  let left = Infinity;
  for (const curve of curves) {
    const wide = labelWidth([`— ${curve.name}`], LABEL) + 14;
    if (left + wide > width) {
      rows.push([]);
      left = 8;
    }
    rows.at(-1)?.push({ curve, left });
    left += wide;
  }
  return rows;
}

/** @param {Curve[]} curves @param {number} width */
function legend(curves, width) {
  return legendRows(curves, width).flatMap((row, index, rows) =>
    row.map(({ curve: { name, colour, dash }, left }) => ({
      text: `${dash && dash !== 'solid' ? '┄' : '—'} ${escapeForPlotly(name)}`,
      xref: 'paper',
      yref: 'paper',
      x: 0,
      xanchor: 'left',
      xshift: left - 56,
      y: 1,
      yanchor: 'bottom',
      yshift: 2 + 17 * (rows.length - 1 - index),
      showarrow: false,
      font: { size: LABEL.size, color: colour },
    })),
  );
}

/**
 * Rows are curves, columns the places of the shared axis.
 * @param {Plotted} plotted
 * @param {number[]} places
 * @param {Scale} scale
 * @returns {Grid}
 */
function curvesGrid(
  { x, curves, across, quantity, unit = across.title, format = decimal },
  places,
  scale,
) {
  const written = across.write ?? ((/** @type {number} */ value) => amount(value, 6));
  /** @param {number} row @param {number} column */
  const value = (row, column) => curves[row].values[column] ?? NaN;
  return {
    ...plainGrid({
      rows: curves.map(({ name }) => name),
      columns: x.map(written),
      titles: { rows: 'curve', columns: across.title },
      quantity,
      value,
      format,
      say: (row, column) => `${curves[row].name}, ${unit} ${written(x[column])}`,
    }),
    kind: 'line chart',
    start: { row: 0, column: 0 },
    geometry: curvesGeometry(value, curves.length, places, scale),
  };
}

/**
 * @param {(row: number, column: number) => number} value
 * @param {number} rows
 * @param {number[]} places
 * @param {Scale} scale
 * @returns {Geometry}
 */
function curvesGeometry(value, rows, places, { at, range: [bottom, top] }) {
  const [first, last] = [places[0], places.at(-1) ?? 0];
  const [wide, high] = [((last - first) / 60 || 0.5) / 2, (top - bottom) / 36];
  return {
    box(row, column) {
      if (row === undefined || column === undefined) return null;
      const y = at(value(row, column));
      if (!Number.isFinite(y)) return null;
      return { x0: places[column] - wide, x1: places[column] + wide, y0: y - high, y1: y + high };
    },
    at(x, y) {
      const away = places.map((place) => Math.abs(place - x));
      const column = away.indexOf(Math.min(...away));
      const far = Array.from({ length: rows }, (_, row) => {
        const distance = Math.abs(at(value(row, column)) - y);
        return Number.isFinite(distance) ? distance : Infinity;
      });
      const row = far.indexOf(Math.min(...far));
      return Number.isFinite(far[row]) ? { row, column } : null;
    },
  };
}
