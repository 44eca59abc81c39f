/**
 * The address of the page: its fragment says what is shown, and the history holds the steps.
 */

import { standardsOf } from '../state/fields.js';
import { readFragment, writeFragment } from '../state/state.js';

/** Milliseconds between two strokes of what is typed in one go. */
const ONE_GO = 2500;

/**
 * @param {Record<string, import('../state/fields.js').Field<any>>} fields
 */
export function createAddress(fields) {
  let typedAt = -Infinity;

  return {
    /** @returns {import('../state/state.js').State} */
    read: () => ({ ...standardsOf(fields), ...readFragment(location.hash, fields) }),

    /**
     * @param {import('../state/state.js').State} state
     * @param {boolean} isTyped what is typed in one go, or pushed along a slider, is one step
     */
    write(state, isTyped) {
      const goesOn = isTyped && performance.now() - typedAt < ONE_GO;
      if (isTyped) typedAt = performance.now();
      const fragment = writeFragment(state, fields);
      if (fragment === location.hash) return;
      if (goesOn) history.replaceState(null, '', fragment);
      else history.pushState(null, '', fragment);
    },

    /** Says more exactly what the present step shows. */
    rewrite(state) {
      history.replaceState(null, '', writeFragment(state, fields));
    },
  };
}
