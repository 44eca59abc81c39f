/**
 * Experiments: their descriptions, and one run at a time, joined frame by frame.
 */

import { IDLE, joined } from '../rules/experiment_run.js';
import { asProblem, BASE, fetchJson } from './calls.js';
import { streamEvents } from './generation.js';

/**
 * @import { RunState } from '../rules/experiment_run.js'
 */

/** @param {string} id @returns {Promise<Description>} */
export function fetchExperiment(id) {
  return fetchJson(experimentPath(id));
}

/** @param {string} id */
export function experimentPath(id) {
  return `${BASE}/experiments/${encodeURIComponent(id)}`;
}

/**
 * @param {string} id
 * @param {Values} values
 * @param {AbortSignal} signal ends the work on the server, too
 */
export function streamExperiment(id, values, signal) {
  return streamEvents(experimentPath(id), values, signal);
}

/**
 * Run one request at a time: a new run ends the one before.
 * @param {Object} by
 * @param {(values: Values, signal: AbortSignal) => AsyncIterable<{event: string, data: any}>} by.stream
 * @param {string[]} by.growing axes along which frames are joined
 * @param {() => void} by.onChange
 */
export function createRun({ stream, growing, onChange }) {
  let state = IDLE;
  let controller = new AbortController();

  /** @param {Partial<RunState>} patch */
  function set(patch) {
    state = { ...state, ...patch };
    onChange();
  }

  return {
    state: () => state,

    /** @param {Values} values */
    async start(values) {
      controller.abort();
      controller = new AbortController();
      const { signal } = controller;
      set({ status: 'waiting', problem: null, ahead: 0, isBroken: false });
      /** @type {Values} */
      let all = {};
      let isFirst = true;
      try {
        for await (const { event, data } of stream(values, signal)) {
          if (signal.aborted) return;
          if (event === 'waiting') set({ ahead: data.ahead });
          if (event === 'start') {
            all = data.parameters;
            if (state.ahead > 0) set({ ahead: 0 });
          }
          if (event === 'frame') {
            const arrays = joined(isFirst ? {} : state.arrays, data.arrays, growing);
            isFirst = false;
            set({ status: 'running', arrays, values: all });
          }
        }
        if (!signal.aborted) set({ status: 'done' });
      } catch (error) {
        if (signal.aborted) return;
        set({ status: 'failed', problem: asProblem(error), isBroken: !isFirst });
      }
    },

    /** End the run, on the server too; what was drawn stays. */
    stop() {
      controller.abort();
      if (state.status === 'waiting' || state.status === 'running') set({ status: 'stopped' });
    },
  };
}
