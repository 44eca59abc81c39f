/**
 * Circles of pairs of dimensions: a point where a pair starts, its arc, a ring where it ends by
 * computation, and a point where it was captured.
 */

import { chart } from '../../plot/chart.js';
import { translucent } from '../../plot/colour.js';
import { isNarrow, pixels } from '../../plot/scales.js';
import { dot, path, text } from '../../plot/marks/decorations.js';
import { reader } from '../../plot/marks/mark.js';

const RADIUS = 0.36;
const LARGEST = 240;
const HEADROOM = 0.12;
const FULL = 2 * Math.PI;
/** The radii of an arc, relative to the circle: more than one turn becomes a spiral. */
const ARC = { inner: 0.3, outer: 0.68 };
/** Half of the box around a point. */
const NEAR = 0.075;

/** @typedef {[number, number]} Point to the right and up, in lengths of the radius */

/**
 * @typedef {Object} Circle
 * @property {string} title
 * @property {number} angle of the whole turn, in radians, counted against the clock
 * @property {Point} from
 * @property {Point} computed
 * @property {Point} captured
 * @property {Point[]} others
 */

/** @type {('from'|'computed'|'captured'|null)[]} the point of a number: both coordinates of three, and the difference */
const POINTS = ['from', 'from', 'computed', 'computed', 'captured', 'captured', null];

/**
 * Draw a circle for each pair; its numbers are read at their points.
 * @param {Circle[]} circles
 * @param {Meaning<{row: number, column: number}> & Pick<Chart, 'table'|'sentence'>} channels
 * @param {Frame} frame
 */
export function circlesChart(circles, { table, sentence, ...said }, frame) {
  const { beam, key, line, muted, query } = frame.palette;
  const across = Math.min(circles.length, isNarrow(frame.width) ? 2 : 3);
  const down = Math.ceil(circles.length / across);
  const centres = circles.map((_, index) => ({
    x: (index % across) + 0.5,
    y: Math.floor(index / across) + 0.5 + HEADROOM / 2,
  }));
  /** @param {number} index @param {Point} point */
  const place = (index, [x, y]) => ({
    x: centres[index].x + x * RADIUS,
    y: centres[index].y - y * RADIUS,
  });
  /** @param {(circle: Circle) => Point[]} pick */
  const placed = (pick) =>
    circles.map((circle, index) => pick(circle).map((point) => place(index, point)));
  /** @param {(circle: Circle) => Point[]} pick @param {{fill: string, size: number, isRing?: boolean}} look */
  const dots = (pick, look) =>
    dot(placed(pick).flat(), { x: ({ x }) => x, y: ({ y }) => y, ...look });
  /** @param {(circle: Circle) => Point[]} pick @param {{stroke: string, width: number}} look */
  const lines = (pick, look) => path(placed(pick), { points: (points) => points, ...look });
  return chart(
    {
      x: pixels([0, across]),
      y: pixels([0, down]),
      marks: [
        reader(circles.length, POINTS.length, {
          kind: 'circles',
          box: ({ row, column }) => {
            const point = POINTS[column];
            return point
              ? around(place(row, circles[row][point]), NEAR)
              : around(centres[row], RADIUS + 0.04);
          },
          ...said,
        }),
        lines(() => roundFrom(0, FULL, 1, 1), { stroke: line, width: 1.5 }),
        dots(({ others }) => others, { size: 4, fill: translucent(muted, 0.4) }),
        lines(({ from, computed }) => [from, [0, 0], computed], { stroke: line, width: 1 }),
        lines(({ from, angle }) => arcOf(from, angle), { stroke: beam, width: 2 }),
        dots(({ computed }) => [computed], { size: 17, fill: beam, isRing: true }),
        dots(({ captured }) => [captured], { size: 9, fill: key }),
        dots(({ from }) => [from], { size: 9, fill: query }),
        text(circles, {
          x: (_, index) => centres[index].x,
          y: (_, index) => centres[index].y - RADIUS - 0.025,
          text: ({ title }) => title,
          ink: muted,
          size: 13,
          at: 'top center',
        }),
      ],
      size: { widest: LARGEST * across },
      table,
      sentence,
    },
    frame,
  );
}

/** @param {{x: number, y: number}} point @param {number} half */
function around({ x, y }, half) {
  return { x0: x - half, x1: x + half, y0: y - half, y1: y + half };
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
