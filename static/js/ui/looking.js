/**
 * The page's look at a trace: the row of a head, the position whose prediction is told, the requests and
 * sentences that follow from them. Pure: the stage draws it.
 */

import {
  choosePlace,
  hasTwoSides,
  isFilling,
  isLabelling,
  labelledAt,
  isOfText,
  predictingSide,
} from '../trace/attention.js';
import { writeFinding } from '../rules/finding.js';
import { headToOpen } from '../rules/head_insight.js';
import { explainLabel } from '../rules/sentences/label.js';
import { explainRow } from '../rules/sentences/row.js';
import { rolesIn } from '../plot/roles.js';
import { movedAsks } from '../rules/moved.js';
import { isPredicting, predictionAsks } from '../rules/prediction.js';
import { choosing, isQueryLookedAt, queryOf } from '../state/state.js';
import { rowShift, rowShown } from '../state/written_rows.js';

/** @import { Place } from '../trace/attention.js' */

/** @typedef {PageState['answers']} Answers */
/** @typedef {State & Record<string, any>} Looked */

/**
 * @typedef {Object} Look
 * @property {Looked} state with the row that a head's view shows, if none was chosen: a mask, or a telling one
 * @property {Place|null} place the attention that a view of heads shows; null: no such view is open
 * @property {number} position whose prediction is told: the chosen one, or the last; −1: nothing is predicted
 */

/**
 * @param {Trace} trace
 * @param {Looked} state
 * @param {Kind} kind of part that the open view shows
 * @returns {Look}
 */
export function lookAt(trace, state, kind) {
  const place = kind === 'head' ? choosePlace(state, trace) : null;
  return { state: looking(trace, state, place), place, position: positionOf(trace, state) };
}

/** @param {Trace} trace @param {Looked} state @param {Place|null} place @returns {Looked} */
function looking(trace, state, place) {
  // What follows a text is told from its end on; any other prediction is that of a telling word.
  const isContinued = !hasTwoSides(trace) && !isFilling(trace);
  if (!place || isContinued || isQueryLookedAt(state, trace, place.rows)) return state;
  // Labels are told of one position: its row is open.
  const query = isLabelling(trace)
    ? positionOf(trace, state)
    : headToOpen(trace, place, state).query;
  if (query === null) return state;
  return { ...state, ...choosing(trace, place.rows, query + rowShift(trace, place, state)) };
}

/** @param {Trace} trace @param {Looked} state */
function positionOf(trace, state) {
  if (!isPredicting(trace)) return -1;
  if (isOfText(trace)) return labelledAt(trace);
  // Of a translation, the chosen word is the one that is explained, not the one after it.
  if (hasTwoSides(trace) && state.query !== null) return Math.max(queryOf(state, trace) - 1, 0);
  const place = choosePlace(state, trace);
  const side = predictingSide(trace);
  return place?.rows === side ? rowShown(trace, place, state) : queryOf(state, trace, side);
}

/** Return the requests of the scene. @param {Trace} trace @param {Look} look @param {Answers} [answers] */
export function pageAsks(trace, { state: looked, position }, answers = {}) {
  const state = { ...looked, answers };
  const place = choosePlace(state, trace);
  const row = place ? rowShown(trace, place, state) : -1;
  const isOfRole = rolesIn(trace).includes(state.map);
  return {
    ...predictionAsks(trace, state, { position, row }),
    ...movedAsks(trace),
    ...(isOfRole && { map_roles: { capture: [], analyses: ['role_shares'] } }),
  };
}

/**
 * Return the finding of the open view, and of a head its label over many sentences.
 * @param {Trace} trace
 * @param {Looked} state as it was chosen
 * @param {Pick<Look, 'state'|'place'>} look
 * @returns {{said: string, label: string}}
 */
export function insight(trace, state, { state: looked, place }) {
  const { view, where, layer, head } = state;
  const { attention_which: which = 'head', attention_what: what = 'weights' } = state;
  const said = writeFinding(trace, view, state);
  const isOfHead = place && which === 'head' && what === 'weights';
  if (!isOfHead || layer === null || head === null) return { said, label: '' };
  const row = rowShown(trace, place, looked);
  const of = { where, layer, head };
  return {
    said: [said, explainRow(trace, of, row)].filter(Boolean).join(' '),
    label: explainLabel(trace, of, row),
  };
}

/**
 * Return answers of which those that are awaited hold the one to the last settings, which a drawing
 * may show until then.
 * @param {Answers} answers
 * @param {Answers} before
 * @returns {Answers}
 */
export function withPrevious(answers, before) {
  return Object.fromEntries(
    Object.entries(answers).map(([name, answer]) => {
      const last = before[name]?.trace ?? before[name]?.previous;
      return [name, answer.isWaiting && last ? { ...answer, previous: last } : answer];
    }),
  );
}

/** Return true if an answer arrived. @param {Answers} answers @param {Answers} before */
export function hasNews(answers, before) {
  return Object.entries(answers).some(
    ([name, { trace }]) => trace && trace !== before[name]?.trace,
  );
}
