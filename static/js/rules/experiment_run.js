/**
 * A run of an experiment as data: what has arrived of it, what is shown of that, and how it is going,
 * in words.
 */

import { counted } from '../words/lists.js';

/**
 * @typedef {Object} RunState
 * @property {'idle'|'waiting'|'running'|'done'|'stopped'|'failed'} status `waiting`: no frame has arrived yet
 * @property {Arrays} arrays joined so far; of the run before until the first frame arrives
 * @property {Values} values all parameters of these arrays
 * @property {import('../api/calls.js').Problem|null} problem of a failed run
 * @property {number} ahead runs of others that have to end before a waiting one begins
 * @property {boolean} isBroken the run failed after its first frame, and what arrived is shown
 */

/** @type {RunState} */
export const IDLE = {
  status: 'idle',
  arrays: {},
  values: {},
  problem: null,
  ahead: 0,
  isBroken: false,
};

/**
 * @typedef {Object} Bench what is set, and what has arrived
 * @property {Values} values of all parameters
 * @property {string} besideId of the run to compare with; empty: none
 * @property {number|null} pinned frame; null: the last there is
 * @property {{row: number, column: number}|null} picked cell
 * @property {boolean} isPreview the server was too busy for a long run
 * @property {RunState} run
 * @property {RunState} second the run to compare with
 */

/**
 * Join a frame to a result: arrays with a growing axis go on along it, any other is replaced.
 * @param {Arrays} before
 * @param {Arrays} frame
 * @param {string[]} growing
 * @returns {Arrays} new; the arrays of before are not changed
 */
export function joined(before, frame, growing) {
  const result = { ...before };
  for (const [name, array] of Object.entries(frame)) {
    const axis = array.axes.findIndex((each) => growing.includes(each));
    const known = result[name];
    if (axis < 0 || !known) {
      result[name] = array;
      continue;
    }
    const shape = array.shape.map((size, at) => (at === axis ? size + known.shape[axis] : size));
    result[name] = { ...array, shape, data: concatenated(known.data, array.data, axis) };
  }
  return result;
}

/** @param {any[]} a @param {any[]} b @param {number} depth @returns {any[]} */
function concatenated(a, b, depth) {
  if (depth === 0) return [...a, ...b];
  return a.map((part, at) => concatenated(part, b[at], depth - 1));
}

/** @param {RunState} state */
export function isBusy({ status }) {
  return status === 'waiting' || status === 'running';
}

/** Return true while the run, or the one to compare with, goes on. @param {Bench} bench */
export function isGoingOn({ isPreview, run, second }) {
  return !isPreview && (isBusy(run) || isBusy(second));
}

/** Return the run to compare with. @param {ExperimentView} view @param {Bench} bench */
export function besideOf({ besides }, { besideId }) {
  return besides?.find(({ id }) => id === besideId);
}

/**
 * @param {ExperimentView} view
 * @param {Bench} bench
 * @returns {Result|null} null: nothing has arrived yet
 */
export function resultOf(view, bench) {
  const { values, pinned, picked, isPreview, run, second } = bench;
  const { arrays } = run;
  if (Object.keys(arrays).length === 0) return null;
  const last = Math.max(0, (view.steps?.(arrays).length ?? 0) - 1);
  const at = isPreview ? 0 : Math.min(pinned ?? last, last);
  const option = besideOf(view, bench);
  const count = option && !isPreview ? (view.steps?.(second.arrays).length ?? 0) : 0;
  return {
    arrays,
    values: { ...values, ...run.values, ...(isPreview && { steps: values.steps }) },
    at,
    isPreview,
    total: values.steps ?? 0,
    beside:
      option && count > 0
        ? { name: option.title, arrays: second.arrays, at: Math.min(at, count - 1) }
        : null,
    picked,
  };
}

/** @param {RunState} run @returns {string} empty: it waits for no other run */
export function queueWords({ ahead }) {
  return ahead > 0 ? `Waiting for its turn: ${counted(ahead, 'run')} ahead…` : '';
}

/** Return how a long run is going, in words. @param {ExperimentView} view @param {Bench} bench */
export function statusOf(view, bench) {
  const { values, isPreview, run, second } = bench;
  const { status, arrays } = run;
  const step = view.steps?.(arrays).at(-1) ?? 0;
  if (isPreview) return 'The server is busy, so nothing is trained yet. Press Run to try again.';
  if (status === 'waiting') return queueWords(run) || 'Building the network…';
  if (values.steps === undefined) return isBusy(run) ? 'Computing…' : '';
  if (isBusy(run)) return `Step ${step} of ${values.steps}…`;
  if (isBusy(second))
    return `For comparison: step ${view.steps?.(second.arrays).at(-1) ?? 0} of ${values.steps}…`;
  if (second.problem && besideOf(view, bench))
    return `The second run failed: ${second.problem.message}. Run again.`;
  if (status === 'stopped') return `Stopped at step ${step}.`;
  return status === 'done' ? `All ${values.steps} steps are done.` : '';
}

/**
 * Return what is wrong with the frame and the cell that a link asks for, now that the run has ended.
 * @param {ExperimentView} view
 * @param {Bench} bench
 * @returns {Map<string, string>} in words, by the part of the link
 */
export function problemsOfPlaces(view, { pinned, picked, isPreview, run: { arrays } }) {
  const problems = new Map();
  const last = (view.steps?.(arrays).length ?? 1) - 1;
  if (pinned !== null && !isPreview && pinned > last)
    problems.set('frame', ignored(String(pinned), `the last frame of this run is ${last}`));
  const [rows, columns] = view.pickable?.(arrays) ?? [Infinity, Infinity];
  if (picked && (picked.row >= rows || picked.column >= columns)) {
    const why = `its last row is ${rows - 1} and its last column ${columns - 1}`;
    problems.set('picked', ignored(`${picked.row}.${picked.column}`, why));
  }
  return problems;
}

/** @param {string} text of a link @param {string} why */
export function ignored(text, why) {
  const shown = text.length > 40 ? `${text.slice(0, 40)}…` : text;
  return `“${shown}” in the link is ignored: ${why}`;
}
