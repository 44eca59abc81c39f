/**
 * What switches and labels mean, for who asks.
 */

import { capitalised } from '../data/text.js';

/** @typedef {{title: string, parts: [string, string][]}} Explained words that belong together, each with its meaning */

/** An option that is only a number of something explains itself. */
const COUNTED = /^\S+ \d+$/;

/**
 * @param {import('./controls.js').Control[]} controls
 * @returns {Explained[]} only of those that have something to say
 */
export function explainedOf(controls) {
  return controls
    .map(({ label, help, options = [] }) => {
      const said = options
        .filter((option) => option.help && !COUNTED.test(option.help))
        .map((option) => [option.title, capitalised(option.help)]);
      const own = help ? [[label, capitalised(help)]] : [];
      return { title: said.length > 0 ? label : '', parts: [...own, ...said] };
    })
    .filter(({ parts }) => parts.length > 0);
}
