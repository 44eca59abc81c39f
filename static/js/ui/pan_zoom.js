/** The zoom of a map that is drawn whole. Loaded with the first one that is large enough. */

import { element } from './dom.js';

/** @import { Box } from '../plot/grid.js' */

/** @typedef {{most: {across: number, down: number}, least: number}} Limits cells of the whole map; the fewest a side */

/**
 * Return the box with its sides multiplied, about its middle.
 * @param {Limits} limits
 * @param {Box} box
 * @param {number} factor under 1: closer
 * @returns {Box} inside the text
 */
export function boxAfter({ most, least }, { x0, x1, y0, y1 }, factor) {
  /** @param {number} first @param {number} last @param {number} end */
  const side = (first, last, end) => {
    const length = Math.max(Math.min(least, end), Math.min(end, (last - first) * factor));
    const begin = Math.max(0, Math.min(end - length, (first + last - length) / 2));
    return [begin, begin + length];
  };
  const [[left, right], [top, bottom]] = [side(x0, x1, most.across), side(y0, y1, most.down)];
  return { x0: left, x1: right, y0: top, y1: bottom };
}

/** A press on a button of zoom changes the sides by this factor. */
const STEP = 1.6;
const LEAST_CELLS = 8;

/**
 * Create the buttons that zoom in a map that is drawn whole.
 * @param {HTMLElement} plot
 * @param {(box: Box|null) => void} onBox null: the whole map
 */
export function createZoom(plot, onBox) {
  /** @type {Limits} */
  let limits = { most: { across: 1, down: 1 }, least: LEAST_CELLS };
  /** @type {Box} */
  let box = { x0: 0, x1: 1, y0: 0, y1: 1 };
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
    button('+', 'Zoom in', () => moveTo(boxAfter(limits, box, 1 / STEP))),
    button('−', 'Zoom out', () => moveTo(boxAfter(limits, box, STEP))),
    button('Whole map', 'Whole map', () =>
      moveTo({ x0: 0, x1: limits.most.across, y0: 0, y1: limits.most.down }),
    ),
  );
  (plot.parentElement ?? plot).append(buttons);

  return {
    /**
     * @param {{across: number, down: number}|null} size of the whole map in cells; null: no zoom
     * @param {Box|null} shown null: the whole
     */
    show(size, shown) {
      buttons.hidden = size === null;
      if (!size) return;
      limits = { most: size, least: LEAST_CELLS };
      box = shown ?? { x0: 0, x1: size.across, y0: 0, y1: size.down };
    },
  };
}
