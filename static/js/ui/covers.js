/** The covers over cells of a drawing while views are presented. Loaded with the presentation. */

import { button } from './dom.js';
import { CELLS } from './plot.js';

/**
 * @import { Cover } from '../rules/presentation.js'
 */

/** Milliseconds between two looks at where a covered cell is: a drawing arrives and is resized. */
const LOOK = 150;

/**
 * Create covers over cells of the drawings on the page; they are placed again as these change.
 * @param {() => Cover[]} wanted
 * @param {(cover: Cover) => void} onPress
 * @param {() => void} [onLook] called at every look
 */
export function createCovers(wanted, onPress, onLook) {
  /** @type {HTMLElement[]} */
  const shown = [];
  const timer = setInterval(place, LOOK);
  const page = document.documentElement;

  function place() {
    onLook?.();
    const covers = wanted();
    const all = plots();
    const boxes = covers.map((cover) => {
      const plot = all[cover.panel];
      return { cover, plot, box: plot && CELLS.get(plot)?.box(cover) };
    });
    page.classList.toggle('is-covered', covers.length > 0);
    page.classList.toggle(
      'is-covering',
      boxes.some(({ box }) => !box),
    );
    const seen = boxes.filter(({ box }) => box);
    while (shown.length > seen.length) shown.pop()?.remove();
    seen.forEach(({ cover, plot, box }, index) => {
      const node = (shown[index] ??= button('?', () => {}, { class: 'cover' }));
      node.setAttribute('aria-label', 'Covered: press to reveal');
      node.onclick = () => onPress(cover);
      for (const [name, pixels] of Object.entries(box ?? {}))
        node.style.setProperty(name, `${pixels}px`);
      if (node.parentElement !== plot) plot.append(node);
    });
  }
  place();

  return {
    place,
    /** @param {Cover} cover */
    describe: (cover) => CELLS.get(plots()[cover.panel])?.describe(cover) ?? '',
    remove() {
      clearInterval(timer);
      for (const old of shown) old.remove();
      page.classList.remove('is-covered', 'is-covering');
    },
  };
}

/** @returns {Element[]} the drawings of the open view */
export function plots() {
  return [...document.querySelectorAll('.view:not([hidden]) .panels .plot')];
}

/** @param {EventTarget|null} target */
export function plotOf(target) {
  return target instanceof Element ? target.closest('.plot') : null;
}

/** @param {EventTarget|null} target */
export function coverOf(target) {
  return target instanceof Element ? target.closest('.cover') : null;
}
