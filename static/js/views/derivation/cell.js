/** The chosen cell of an attention, and the controls that choose it. */

import { choosePlace, tokensOf, heldWeightsAt, weightsAt } from '../../trace/attention.js';
import { highestIn, matrixAt, rowOf } from '../../trace/trace.js';
import { choosing, queryOf } from '../../state/state.js';
import { choice, headControls, tokenOptions } from '../../ui/controls.js';

/** @import { Place } from '../../trace/attention.js' */

/**
 * Return the chosen cell, or the strongest of the row; null if the trace holds no attention there.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {(place: Place) => number} [rowIn] the row; that of the chosen token unless given
 */
export function cellOf(trace, state, rowIn = (place) => queryOf(state, trace, place.rows)) {
  const place = choosePlace(state, trace);
  const open = heldWeightsAt(place, trace).find(({ layer }) => layer === state.layer);
  if (!place || !open) return null;
  const query = rowIn(place);
  const weights = rowOf(matrixAt(trace.tensors[open.site], state.head), query);
  const keys = tokensOf(trace, place.columns);
  return {
    place,
    path: open.site.replace(/\.weights$/, ''),
    query,
    key: state.key !== null && state.key < keys.length ? state.key : highestIn(weights),
    weights,
    keys,
    queries: tokensOf(trace, place.rows),
  };
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {NonNullable<ReturnType<typeof cellOf>>} cell
 * @returns {Control[]} of layer, head, query and key
 */
export function cellControls(trace, state, { place, key, keys, queries }) {
  const query = queryOf(state, trace, place.rows);
  const [name] = Object.keys(choosing(trace, place.rows, query));
  return [
    ...headControls(weightsAt(place, trace), trace, state),
    choice(name, 'Query', query, tokenOptions(queries)),
    choice('key', 'Key', state.key === null ? null : key, [
      { id: null, title: 'the strongest' },
      ...tokenOptions(keys),
    ]),
  ];
}
