/**
 * Pairs of dimensions as points on circles, one circle per pair: the start of a rotation, its arc,
 * and its end, computed and captured.
 */

import { baseLayout, isNarrow } from '../../plot/figure.js';

/**
 * @import { Frame, Layout, Palette, PlotlyTrace } from '../../plot/figure.js'
 * @import { Geometry } from '../../plot/grid.js'
 */

const RADIUS = 0.36;
const LARGEST = 240;
const HEADROOM = 0.12;
const FULL = 2 * Math.PI;
/** The radii of an arc, relative to the circle: more than one turn becomes a spiral. */
const ARC = { inner: 0.3, outer: 0.68 };
const SHARED = { type: 'scatter', hoverinfo: 'none', cliponaxis: false };

/** @typedef {[number, number]} Point to the right and up, in lengths of the radius */

/** @typedef {(index: number, point: Point) => [number, number]} PlaceOf of a point of a circle, in the coordinates of the axes */

/**
 * @typedef {Object} Circle
 * @property {string} title
 * @property {number} angle of the whole turn, in radians, counted against the clock
 * @property {Point} from
 * @property {Point} computed
 * @property {Point} captured
 * @property {Point[]} others
 */

/**
 * @param {Circle[]} circles
 * @param {Frame} state
 * @returns {{data: PlotlyTrace[], layout: Layout, geometry: Geometry}}
 */
export function circlesDrawing(circles, state) {
  const { palette, width } = state;
  const across = Math.min(circles.length, isNarrow(width) ? 2 : 3);
  const down = Math.ceil(circles.length / across);
  const side = Math.min(LARGEST, Math.floor(width / across));
  /** @param {number} index */
  const centre = (index) => [
    (index % across) + 0.5,
    Math.floor(index / across) + 0.5 + HEADROOM / 2,
  ];
  /** @type {PlaceOf} */
  const at = (index, [x, y]) => [centre(index)[0] + x * RADIUS, centre(index)[1] - y * RADIUS];
  return {
    data: marksOf(circles, at, palette),
    layout: {
      ...baseLayout(palette, {
        width: side * across,
        height: side * down,
        margin: { l: 0, r: 0, t: 0, b: 0 },
      }),
      annotations: circles.map(({ title }, index) => ({
        text: title,
        x: centre(index)[0],
        y: centre(index)[1] - RADIUS,
        yanchor: 'bottom',
        yshift: 8,
        showarrow: false,
        font: { size: 12, color: palette.muted },
      })),
      xaxis: { ...HIDDEN, range: [0, across] },
      yaxis: { ...HIDDEN, range: [down, 0] },
    },
    geometry: geometryOf(circles, { at, across, centre }),
  };
}

const HIDDEN = { visible: false, showgrid: false, zeroline: false };

/** @param {Circle[]} circles @param {PlaceOf} at @param {Palette} palette */
function marksOf(circles, at, palette) {
  /**
   * @param {(circle: Circle) => Point[]} pick
   * @param {{size: number, color: string, opacity?: number, line?: {color: string, width: number}}} marker
   */
  const dots = (pick, marker) => {
    const points = circles.flatMap((circle, index) =>
      pick(circle).map((point) => at(index, point)),
    );
    return {
      ...SHARED,
      mode: 'markers',
      x: points.map(([x]) => x),
      y: points.map(([, y]) => y),
      marker,
    };
  };
  /** @param {(circle: Circle) => Point[][]} paths @param {{color: string, width: number}} line */
  const lines = (paths, line) => {
    const points = circles.flatMap((circle, index) =>
      paths(circle).flatMap((path) => [...path.map((point) => at(index, point)), [null, null]]),
    );
    return {
      ...SHARED,
      mode: 'lines',
      x: points.map(([x]) => x),
      y: points.map(([, y]) => y),
      line,
    };
  };
  return [
    lines(() => [roundFrom(0, FULL, 1, 1)], { color: palette.line, width: 1.5 }),
    dots(({ others }) => others, { size: 4, color: palette.muted, opacity: 0.4 }),
    lines(
      ({ from, computed }) => [
        [[0, 0], from],
        [[0, 0], computed],
      ],
      { color: palette.line, width: 1 },
    ),
    lines(({ from, angle }) => [arcOf(from, angle)], { color: palette.beam, width: 2 }),
    dots(({ computed }) => [computed], {
      size: 17,
      color: palette.surface,
      line: { color: palette.beam, width: 2 },
    }),
    dots(({ captured }) => [captured], { size: 9, color: palette.key }),
    dots(({ from }) => [from], { size: 9, color: palette.query }),
  ];
}

/** @param {Point} from @param {number} angle */
function arcOf([x, y], angle) {
  const isSpiral = Math.abs(angle) > FULL;
  return roundFrom(Math.atan2(y, x), angle, isSpiral ? ARC.inner : ARC.outer, ARC.outer);
}

/**
 * @param {number} start
 * @param {number} angle
 * @param {number} inner
 * @param {number} outer
 * @returns {Point[]}
 */
function roundFrom(start, angle, inner, outer) {
  const steps = Math.max(2, Math.ceil(Math.abs(angle) / 0.08));
  return Array.from({ length: steps + 1 }, (_, step) => {
    const radius = inner + ((outer - inner) * step) / steps;
    const turned = start + (angle * step) / steps;
    return [Math.cos(turned) * radius, Math.sin(turned) * radius];
  });
}

/**
 * Columns: the two coordinates of the start, of the computed and of the captured point, and the
 * difference.
 */
/** @type {('from'|'computed'|'captured'|null)[]} */
const PLACES = ['from', 'from', 'computed', 'computed', 'captured', 'captured', null];
const NEAR = 0.09;

/**
 * @param {Circle[]} circles
 * @param {{at: PlaceOf, across: number, centre: (index: number) => number[]}} placed
 * @returns {Geometry}
 */
function geometryOf(circles, { at, across, centre }) {
  /** @param {number[]} point @param {number} half */
  const boxAround = ([x, y], half) => ({ x0: x - half, x1: x + half, y0: y - half, y1: y + half });
  return {
    box(row, column) {
      if (row === undefined) return null;
      const place = PLACES[column ?? PLACES.length - 1];
      return place
        ? boxAround(at(row, circles[row][place]), NEAR * 0.7)
        : boxAround(centre(row), RADIUS + 0.04);
    },
    at(x, y) {
      const row = Math.floor(y) * across + Math.floor(x);
      if (row < 0 || row >= circles.length) return null;
      const near = [0, 2].find((column) => {
        const place = PLACES[column];
        if (!place) return false;
        const [px, py] = at(row, circles[row][place]);
        return Math.hypot(x - px, y - py) < NEAR;
      });
      return { row, column: near ?? PLACES.length - 1 };
    },
  };
}
