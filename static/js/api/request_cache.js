/**
 * Further traces that a view asks for: each is fetched once, kept for a while, and given up when
 * nobody looks at what it is for any more.
 */

import { asProblem, Problem } from './calls.js';
import { capitalised } from '../data/text.js';

/** @typedef {{trace?: import('../data/trace.js').Trace & Partial<import('../data/trace.js').Encoding>, problem?: import('./calls.js').Problem, isWaiting?: boolean}} Answer one of the three */

/** Numbers are what weighs: 32 million of them are 128 MB. */
const MOST_KEPT = 24;
const MOST_NUMBERS = 32e6;

/**
 * What a view asks for, as the API takes it. Model and texts are those of the page's trace, the
 * translation that it made included, unless the view names its own. An encoding of positions needs
 * no text: `{positional: {scheme, length, width}}`.
 * @param {Object} ask
 * @param {import('../data/trace.js').Trace} trace
 * @returns {Object} a body for `POST /api/v1/trace`, or what to ask of `GET /api/v1/positional`
 */
export function bodyOf(ask, { asked, target }) {
  if (ask.positional) return { positional: ask.positional };
  const isOther = 'text' in ask || 'model' in ask;
  const texts = isOther
    ? { model: asked.model, text: asked.text }
    : { model: asked.model, text: asked.text, target: target?.trim() ? target : null };
  const body = { ...texts, capture: [], ...ask };
  return Object.fromEntries(
    Object.entries(body).filter(([, value]) => value !== null && value !== undefined),
  );
}

/**
 * @param {Object} by
 * @param {(body: Object, signal: AbortSignal) => Promise<import('../data/trace.js').Trace>} by.fetch
 * @param {() => void} by.onArrival an answer that was waited for is here
 */
export function createRequestCache({ fetch, onArrival }) {
  /** @type {Map<string, {answer: Answer, controller: AbortController}>} */
  const kept = new Map();

  function ask(key, body) {
    const controller = new AbortController();
    const entry = { answer: { isWaiting: true }, controller };
    kept.set(key, entry);
    const settle = (answer) => {
      if (kept.get(key) !== entry) return;
      entry.answer = answer;
      onArrival();
    };
    fetch(body, controller.signal).then(
      (trace) => settle({ trace }),
      (error) => {
        if (!controller.signal.aborted) settle({ problem: asProblem(error) });
      },
    );
  }

  function drop(key) {
    kept.get(key).controller.abort();
    kept.delete(key);
  }

  /** Gives up what is on its way to nobody, then the oldest of what nobody looks at. */
  function tidy(wanted) {
    for (const [key, { answer }] of kept) {
      if (!wanted.has(key) && !answer.trace) drop(key);
    }
    const numbers = () => [...kept.values()].reduce((sum, { answer }) => sum + sizeOf(answer), 0);
    for (const key of [...kept.keys()]) {
      if (kept.size <= MOST_KEPT && numbers() <= MOST_NUMBERS) return;
      if (!wanted.has(key)) drop(key);
    }
  }

  return {
    /**
     * @param {Record<string, Object>} bodies what is wanted now, by the view's names for it
     * @returns {Record<string, Answer>}
     */
    want(bodies) {
      const keys = Object.entries(bodies).map(([name, body]) => [name, JSON.stringify(body), body]);
      tidy(new Set(keys.map(([, key]) => key)));
      const found = {};
      for (const [name, key, body] of keys) {
        const entry = kept.get(key);
        kept.delete(key);
        if (entry)
          kept.set(key, entry); // the youngest again
        else ask(key, body);
        found[name] = kept.get(key).answer;
      }
      return found;
    },

    /** Forgets refusals, so that they are asked for again. */
    retry() {
      for (const [key, { answer }] of kept) if (answer.problem) kept.delete(key);
    },

    /** Gives up what is on its way, and says so where it was waited for. */
    cancel() {
      for (const entry of kept.values()) {
        if (!entry.answer.isWaiting) continue;
        entry.controller.abort();
        entry.answer = {
          problem: new Problem({
            title: 'Cancelled',
            detail: 'Change a switch or the sentence to request it again.',
          }),
        };
      }
      onArrival();
    },

    /** Forgets everything: another text, another server. */
    clear() {
      for (const key of [...kept.keys()]) drop(key);
    },
  };
}

/** How many numbers an answer holds: its tensors, and the arrays of its analyses. */
/** @param {Answer} answer */
function sizeOf({ trace }) {
  const arrays = trace
    ? [trace.tensors, ...Object.values(trace.analyses ?? {})].flatMap((found) =>
        Object.values(found),
      )
    : [];
  return arrays.reduce((sum, array) => sum + (array?.data?.length ?? 0), 0);
}

/** What is said while an answer is on its way. */
export const READING = 'Reading…';

/**
 * The words for an answer that is not there.
 * @param {Answer|undefined} answer
 * @returns {string} '' where it is there
 */
export function noticeOf(answer) {
  if (answer?.trace) return '';
  if (!answer?.problem) return READING;
  const { title, detail } = answer.problem;
  return detail ? `${title}. ${capitalised(detail)}` : `${title}.`;
}
