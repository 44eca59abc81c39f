/**
 * Lines in lanes below one another, one datum each, so that no colour has to tell them apart and each
 * is a row for the keyboard and the table.
 */

import { tick } from '../../words/numbers.js';
import { escapeForPlotly } from '../../words/text.js';
import { translucent } from '../colour.js';
import { labelWidth } from '../scales.js';
import { paperText, SILENT } from './mark.js';

/**
 * @import { Palette } from '../figure.js'
 * @import { Mark, Meaning } from './mark.js'
 */

/** @typedef {{values: ArrayLike<number>, curve?: [number, number][], stroke: string, width?: number}} Lane `curve`: points of a line that is defined between the columns too */

/** @typedef {{row: number, column: number, value: number}} Datum */

/** @typedef {[number, number]} Point */

/** The space above and below a line, as a share of its lane. */
const PADDING = 0.1;
/** With more points than this, dots would hide the line. */
const ROOMY_DOTS = 128;
const TICK = { size: 12, letters: 12 };
const GAP = 6;

/**
 * Draw each line in its lane.
 * @param {Lane[]} lanes over a band of columns, in a band of their names
 * @param {{domain: [number, number], isLog?: boolean, isFilled?: boolean} & Partial<Meaning<Datum>>} channels `domain`: of every lane; a value beyond it is drawn at its end; `isFilled`: between the line and 0
 * @returns {Mark<Datum>}
 */
export function lane(lanes, { domain, isLog, isFilled, ...meaning }) {
  const place = placer(domain, isLog);
  const columns = lanes[0].values.length;
  const hasDots = columns <= ROOMY_DOTS || lanes.some(({ curve }) => curve);
  return {
    kind: 'lane',
    reach: { x: [], y: [] },
    room: { right: labelWidth(domain.map(tick), TICK) + GAP },
    meaning: { value: ({ value }) => value, ...meaning },
    table: {
      rows: lanes.length,
      columns,
      kind: 'lines',
      datum: (row, column) => ({ row, column, value: lanes[row].values[column] }),
    },
    draw({ palette }) {
      const placed = lanes.map(({ values, curve }, row) => {
        /** @param {Point} point @returns {Point} */
        const inLane = ([column, value]) => [column, place(row, value)];
        const points = Array.from(values, (value, column) => inLane([column, value]));
        return { points, line: curve?.map(inLane) ?? points, zero: place(row, 0) };
      });
      return {
        traces: [
          traceOf(
            placed.flatMap(({ zero }) => [[-0.5, zero], [columns - 0.5, zero], BREAK]),
            { line: { color: palette.line, width: 1 } },
          ),
          ...(isFilled ? placed.map((each, row) => areaOf(each, lanes[row].stroke)) : []),
          ...placed.map(({ line }, row) => {
            const { stroke, width = 1.5 } = lanes[row];
            return traceOf(line, { line: { color: stroke, width } });
          }),
          ...(hasDots
            ? [
                dotsOf(
                  placed.flatMap(({ points }) => points),
                  columns,
                  palette,
                ),
              ]
            : []),
        ],
        notes: domain.map((value) => endOf(value, place(0, value), palette)),
      };
    },
  };
}

/**
 * Place values in the band of lanes, which counts downwards.
 * @param {[number, number]} domain
 * @param {boolean} [isLog]
 * @returns {(row: number, value: number) => number}
 */
function placer([least, most], isLog) {
  const scale = isLog
    ? (/** @type {number} */ value) => Math.log10(Math.max(value, least))
    : Number;
  const [from, to] = [scale(least), scale(most)];
  return (row, value) => {
    const share = Math.max(0, Math.min(1, (scale(value) - from) / (to - from || 1)));
    return row + 0.5 - PADDING - share * (1 - 2 * PADDING);
  };
}

/** @type {Point} */
const BREAK = [NaN, NaN];

/** Draw a line. @param {Point[]} points NaN: a gap @param {Record<string, unknown>} look */
function traceOf(points, look) {
  const [x, y] = [0, 1].map((axis) =>
    points.map((point) => (Number.isNaN(point[axis]) ? null : point[axis])),
  );
  return { type: 'scatter', mode: 'lines', x, y, ...look, ...SILENT };
}

/** Fill the area between a line and 0. @param {{line: Point[], zero: number}} of @param {string} stroke */
function areaOf({ line, zero }, stroke) {
  const drawn = line.filter(([, place]) => !Number.isNaN(place));
  const [first, last] = [drawn[0]?.[0] ?? 0, drawn.at(-1)?.[0] ?? 0];
  return traceOf([[first, zero], ...drawn, [last, zero]], {
    line: { width: 0 },
    fill: 'toself',
    fillcolor: translucent(stroke, 0.22),
  });
}

/** Mark each value by a dot. @param {Point[]} points @param {number} columns @param {Palette} palette */
function dotsOf(points, columns, { ink }) {
  const marker = { size: columns > ROOMY_DOTS ? 2 : 5, color: ink, line: { width: 0 } };
  return traceOf(points, { mode: 'markers', marker });
}

/** Write an end of the domain next to the first lane. @param {number} value @param {number} place @param {Palette} palette */
function endOf(value, place, { muted }) {
  const at = { x: 1, xanchor: 'left', xshift: GAP, yref: 'y', y: place, yanchor: 'middle' };
  return paperText(escapeForPlotly(tick(value)), muted, at, TICK.size);
}
