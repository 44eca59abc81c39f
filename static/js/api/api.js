/**
 * Calls to the API. Every refusal arrives as a `Problem` with a title and a sentence.
 */

import { readKey, withKey } from './key.js';
import { retryAfterOf } from './retry.js';
import { eventsOf } from './sse.js';
import { encodingFromSafetensors, traceFromSafetensors } from '../data/trace.js';

const BASE = '/api/v1';

/** A refusal (RFC 9457) or a failure to reach the server, ready to be shown. */
export class Problem extends Error {
  /**
   * @param {{type?: string, title: string, detail?: string, status?: number, limit?: number, actual?: number, retryAfter?: number}} facts `retryAfter` in seconds
   */
  constructor({ type, title, detail = '', status = 0, limit, actual, retryAfter }) {
    super(title);
    this.name = 'Problem';
    Object.assign(this, { type, title, detail, status, limit, actual, retryAfter });
  }
}

/**
 * @param {AbortSignal} signal
 * @returns {Promise<{default: string, models: Object[], unavailable: {id: string, reason: string}[]}>}
 */
export async function fetchModels(signal) {
  const answer = await call(`${BASE}/models`, { signal, headers: { Accept: 'application/json' } });
  return arrived(answer.json());
}

/**
 * @param {{model: string, text: string, target?: string, capture: string[], analyses: string[]}} wanted
 * @param {AbortSignal} signal
 * @returns {Promise<import('../data/trace.js').Trace>}
 */
export async function fetchTrace(wanted, signal) {
  const answer = await call(`${BASE}/trace`, {
    method: 'POST',
    signal,
    headers: { Accept: 'application/x-safetensors', 'Content-Type': 'application/json' },
    body: JSON.stringify(wanted),
  });
  return traceFromSafetensors(await arrived(answer.arrayBuffer()));
}

/**
 * @param {{scheme?: string, model?: string, length: number, width?: number, heads?: number}} wanted
 * @param {AbortSignal} signal
 * @returns {Promise<import('../data/trace.js').Encoding>}
 */
export async function fetchPositional(wanted, signal) {
  const answer = await call(positionalPath(wanted), {
    signal,
    headers: { Accept: 'application/x-safetensors' },
  });
  return encodingFromSafetensors(await arrived(answer.arrayBuffer()));
}

/** @param {Record<string, string|number>} wanted */
export function positionalPath(wanted) {
  return `${BASE}/positional?${new URLSearchParams(wanted)}`;
}

/**
 * A text written on: `start`, then a `token` for each token, then `end`.
 * @param {Object} wanted as `POST /api/v1/generate` takes it
 * @param {AbortSignal} signal ends the work on the server, too
 * @returns {AsyncGenerator<{event: string, data: Object}>}
 * @throws {Problem} also in the middle of it
 */
export async function* streamGeneration(wanted, signal) {
  const answer = await call(`${BASE}/generate`, {
    method: 'POST',
    signal,
    headers: { Accept: 'text/event-stream', 'Content-Type': 'application/json' },
    body: JSON.stringify(wanted),
  });
  const events = eventsOf(answer.body);
  try {
    for (;;) {
      const { done, value } = await arrived(events.next());
      if (done)
        throw new Problem({
          title: 'The answer broke off',
          detail: 'The server went away in the middle of it.',
        });
      const { event, data } = { ...value, data: JSON.parse(value.data) };
      if (event === 'error') throw new Problem(data);
      yield { event, data };
      if (event === 'end') return;
    }
  } finally {
    events.return();
  }
}

/** @type {(hadKey: boolean) => void} */
let keyRefused = () => {};

/**
 * Whom to tell that the server wants a key, or another one than it was shown.
 * @param {(hadKey: boolean) => void} tell
 */
export function askWhenRefused(tell) {
  keyRefused = tell;
}

async function call(url, options) {
  const key = readKey();
  const answer = await arrived(fetch(url, { ...options, headers: withKey(options.headers, key) }));
  if (answer.status === 401) keyRefused(key !== '');
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

/** Waits for the network. What it throws where it fails is a TypeError in every browser. */
async function arrived(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error.name !== 'TypeError') throw error;
    throw new Problem({
      title: 'The server did not answer',
      detail: 'The connection failed before an answer came.',
    });
  }
}

/**
 * @param {Response} answer
 * @returns {Promise<Problem>}
 */
export async function problemOf(answer) {
  const retryAfter = retryAfterOf(answer.headers.get('Retry-After'));
  const fallback = {
    title: answer.statusText || 'The request failed',
    status: answer.status,
    retryAfter,
  };
  try {
    return new Problem({ ...fallback, ...(await answer.json()) });
  } catch {
    return new Problem({
      ...fallback,
      detail: `The server answered ${answer.status} without saying why.`,
    });
  }
}

/**
 * Whatever was thrown, as a problem.
 * @param {Error} error
 * @returns {Problem}
 */
export function asProblem(error) {
  if (error instanceof Problem) return error;
  return new Problem({ title: 'The answer could not be read', detail: error.message, status: 500 });
}

/**
 * What a person can do about a problem, in a sentence or two.
 * @param {Problem} problem
 * @param {boolean} [goesOn] the page asks again on its own
 * @returns {string}
 */
export function advice(problem, goesOn = false) {
  return goesOn
    ? `${whatToDo(problem)} This page goes on trying by itself.`
    : whatToDo(problem, ', then try again');
}

function whatToDo({ status, texts = 'the text' }, then = '') {
  if (status === 0) return `Check that the server is running${then}.`;
  if (status === 429 || status === 503) return `The server is busy. Wait a moment${then}.`;
  if (status === 401) return 'Ask whoever runs the server for a key, and load the page again.';
  if (status === 404) return 'Choose another model.';
  if (status >= 400 && status < 500) return `Change ${texts}, and it is read again.`;
  return 'Try again; if it stays, the server’s log says more.';
}

/** @param {Problem} problem is asking again worth a button? */
export function isWorthRetrying({ status }) {
  return status === 0 || status === 429 || status >= 500;
}
