/**
 * The names of the rows of cross-attention. A row belongs to the token that the decoder read last and
 * writes the next one, so it can be named by either. A word that is chosen in the translation opens
 * the row that wrote it, unless the reader wants the other one, or the head is the one that looks up
 * the word just written, as the card of its model says.
 */

import { looksUpWritten } from '../trace/attention.js';
import { queryOf } from './state.js';

/** @import { Place } from '../trace/attention.js' */

/** @typedef {State & Record<string, any>} Looked */

/**
 * Return true if rows are named by the token that is written from them.
 * @param {Trace} trace
 * @param {Place|null} place
 * @param {Looked} state
 */
export function areNamedByWritten(trace, place, state) {
  if (place?.id !== 'cross') return false;
  const { attention_rows: wish = 'usual', attention_which: which = 'head' } = state;
  return wish === 'usual'
    ? !(which === 'head' && looksUpWritten(trace, state))
    : wish === 'written';
}

/**
 * Return the number of rows from the row of a token to the row that is named by it.
 * @param {Trace} trace
 * @param {Place|null} place
 * @param {Looked} state
 * @returns {0|1}
 */
export function rowShift(trace, place, state) {
  return areNamedByWritten(trace, place, state) ? 1 : 0;
}

/**
 * Return the row that is shown for the chosen token.
 * @param {Trace} trace
 * @param {Place} place
 * @param {Looked} state
 */
export function rowShown(trace, place, state) {
  const chosen = queryOf(state, trace, place.rows);
  return state.query === null ? chosen : Math.max(chosen - rowShift(trace, place, state), 0);
}
