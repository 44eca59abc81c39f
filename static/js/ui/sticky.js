/**
 * Tells a sticky part that it sticks, so that it can part itself from what scrolls beneath.
 */

import { element } from './element.js';

/** @param {HTMLElement} part */
export function watchSticky(part) {
  const sentinel = element('div', { 'aria-hidden': 'true' });
  part.before(sentinel);
  new IntersectionObserver(([{ isIntersecting, boundingClientRect }]) => {
    part.classList.toggle('is-stuck', !isIntersecting && boundingClientRect.top < 0);
  }).observe(sentinel);
}
