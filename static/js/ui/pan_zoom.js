/** The zoom of a map that is drawn whole. Loaded with the first one that is large enough. */

import { element } from './dom.js';

/**
 * @import { Area } from '../plot/renderer.js'
 * @import { Box } from '../plot/grid.js'
 */

/** @typedef {{x: number, y: number}} Point */
/** @typedef {{most: {across: number, down: number}, least: number}} Limits cells of the whole map; the fewest a side */

/**
 * Return the box after a movement of one or two fingers, which keep the cells that they touched.
 * @param {Limits} limits
 * @param {Box} box as the movement began
 * @param {Point[]} from where the fingers touched, as shares of the map
 * @param {Point[]} to where they are
 * @param {number} [zoom] another factor of the sides
 * @returns {Box} inside the text
 */
export function boxAfter({ most, least }, box, from, to, zoom = 1) {
  const factor = (zoom * spread(from)) / spread(to);
  /** @param {'x'|'y'} axis @param {number} first @param {number} last @param {number} end */
  const side = (axis, first, last, end) => {
    const length = Math.max(Math.min(least, end), Math.min(end, (last - first) * factor));
    const start = first + middle(from, axis) * (last - first) - middle(to, axis) * length;
    const begin = Math.max(0, Math.min(end - length, start));
    return [begin, begin + length];
  };
  const [x0, x1] = side('x', box.x0, box.x1, most.across);
  const [y0, y1] = side('y', box.y0, box.y1, most.down);
  return { x0, x1, y0, y1 };
}

/** @param {Point[]} points @param {'x'|'y'} axis */
function middle(points, axis) {
  return points.reduce((sum, point) => sum + point[axis], 0) / points.length;
}

/** @typedef {{clientX: number, clientY: number}} At a place of the window */

/**
 * @param {HTMLElement} plot
 * @param {Area|null} area of the map on it
 * @param {At} at
 * @returns {Point} a share of the map; the middle, if there is none
 */
function placeIn(plot, area, { clientX, clientY }) {
  const { left, top } = plot.getBoundingClientRect();
  if (!area) return { x: 0.5, y: 0.5 };
  return {
    x: (clientX - left - area.left) / area.width,
    y: (clientY - top - area.top) / area.height,
  };
}

/** @param {Point[]} points the distance of two; of one there is none */
function spread([first, second]) {
  return second ? Math.max(0.02, Math.hypot(first.x - second.x, first.y - second.y)) : 1;
}

/** A press on a button of zoom changes the sides by this factor. */
const STEP = 1.6;
const LEAST_CELLS = 8;
const CENTRE = [{ x: 0.5, y: 0.5 }];

/**
 * Create the zoom of a map that is drawn whole: buttons, and two fingers.
 * @param {HTMLElement} plot
 * @param {{area: () => Area|null, onBox: (box: Box|null) => void}} handlers null: the whole map
 */
export function createZoom(plot, { area, onBox }) {
  /** @type {Limits} */
  let limits = { most: { across: 1, down: 1 }, least: LEAST_CELLS };
  /** @type {Box} */
  let box = { x0: 0, x1: 1, y0: 0, y1: 1 };
  /** @type {{box: Box, from: Point[]}|null} */
  let grip = null;
  let frame = 0;
  /** @param {Box} to */
  const moveTo = (to) => {
    box = to;
    if (!frame)
      frame = requestAnimationFrame(() => {
        frame = 0;
        const { across, down } = limits.most;
        const isWhole = box.x1 - box.x0 >= across && box.y1 - box.y0 >= down;
        onBox(isWhole ? null : box);
      });
  };
  /** @param {string} label @param {string} name @param {() => void} onclick */
  const button = (label, name, onclick) =>
    element('button', { type: 'button', 'aria-label': name, title: name, onclick }, label);
  const buttons = element(
    'div.plot-zoom',
    { role: 'group', 'aria-label': 'Zoom' },
    button('+', 'Zoom in', () => moveTo(boxAfter(limits, box, CENTRE, CENTRE, 1 / STEP))),
    button('−', 'Zoom out', () => moveTo(boxAfter(limits, box, CENTRE, CENTRE, STEP))),
    button('Whole map', 'Whole map', () =>
      moveTo({ x0: 0, x1: limits.most.across, y0: 0, y1: limits.most.down }),
    ),
  );
  (plot.parentElement ?? plot).append(buttons);

  /** @param {TouchEvent} event */
  const placesOf = ({ touches }) => Array.from(touches, (touch) => placeIn(plot, area(), touch));
  /** @param {(event: TouchEvent) => void} act @returns {(event: Event) => void} */
  const withTwo = (act) => (event) => {
    const touch = /** @type {TouchEvent} */ (event);
    if (buttons.hidden || touch.touches.length < 2) {
      grip = null;
      return;
    }
    if (touch.cancelable) touch.preventDefault();
    act(touch);
  };
  const options = { passive: false };
  plot.addEventListener(
    'touchstart',
    withTwo((event) => {
      grip = { box, from: placesOf(event) };
    }),
    options,
  );
  plot.addEventListener(
    'touchmove',
    withTwo((event) => {
      if (grip) moveTo(boxAfter(limits, grip.box, grip.from, placesOf(event)));
    }),
    options,
  );

  return {
    /**
     * @param {{across: number, down: number}|null} size of the whole map in cells; null: no zoom
     * @param {Box|null} shown null: the whole
     */
    show(size, shown) {
      buttons.hidden = size === null;
      if (!size) return;
      limits = { most: size, least: LEAST_CELLS };
      if (!grip) box = shown ?? { x0: 0, x1: size.across, y0: 0, y1: size.down };
    },
  };
}
