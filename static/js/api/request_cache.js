/**
 * A cache of the further traces that views request: each is fetched once, kept within bounds, and
 * cancelled when its view is left.
 */

import { asProblem, Problem } from './calls.js';
import { asSentence } from '../data/format.js';
import { withoutNulls } from '../data/trace.js';

/** @import { Ask, Encoding, Trace } from '../data/trace.js' */

/** @typedef {{trace?: Trace & Partial<Encoding>, problem?: Problem, isWaiting?: boolean, previous?: Trace}} Answer one of the first three; `previous`: the trace of the last settings, while this one is awaited */

/** Numbers are what weighs: 32 million of them are 128 MB. */
const MOST_KEPT = 24;
const MOST_NUMBERS = 32e6;

/**
 * The body of a view's request. Model and texts are those of the page's trace, the
 * translation that it made included, unless the view names its own. An encoding of positions needs
 * no text: `{positional: {scheme, length, width}}`. Nor does the full card of a model: `{card: id}`.
 * @param {Ask} ask
 * @param {Trace} trace
 * @returns {Ask} a body for `POST /api/v1/trace`, or what to ask of `GET /api/v1/positional` or `GET /api/v1/models/{id}`
 */
export function bodyOf(ask, { model, text, target, asked = { model, text } }) {
  if (ask.positional) return { positional: ask.positional };
  if (ask.card) return { card: ask.card };
  if (ask.tile) return { tile: ask.tile };
  const isOther = 'text' in ask || 'model' in ask;
  const texts = {
    model: asked.model,
    text: asked.text,
    target: !isOther && target?.trim() ? target : null,
  };
  return withoutNulls({ ...texts, capture: [], ...ask });
}

/**
 * @param {Object} by
 * @param {(body: Ask, signal: AbortSignal) => Promise<Trace>} by.fetch
 * @param {() => void} by.onArrival a pending answer arrived
 */
export function createRequestCache({ fetch, onArrival }) {
  /** @type {Map<string, {answer: Answer, controller: AbortController}>} */
  const kept = new Map();

  /** @param {string} key @param {Ask} body */
  function ask(key, body) {
    const controller = new AbortController();
    /** @type {{answer: Answer, controller: AbortController}} */
    const entry = { answer: { isWaiting: true }, controller };
    kept.set(key, entry);
    /** @param {{trace: Trace}|{problem: Problem}} answer */
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
    return entry;
  }

  /** @param {string} key */
  function drop(key) {
    kept.get(key)?.controller.abort();
    kept.delete(key);
  }

  /**
   * Cancels pending requests that are no longer wanted, then drops the oldest unused answers.
   * @param {Set<string|Ask>} wanted
   */
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
     * @param {Record<string, Ask>} bodies what is wanted now, by the view's names for it
     * @returns {Record<string, Answer>}
     */
    want(bodies) {
      const keys = Object.entries(bodies).map(([name, body]) => ({
        name,
        key: JSON.stringify(body),
        body,
      }));
      tidy(new Set(keys.map(({ key }) => key)));
      /** @type {Record<string, Answer>} */
      const found = {};
      for (const { name, key, body } of keys) {
        const entry = kept.get(key);
        kept.delete(key);
        if (entry) kept.set(key, entry); // the youngest again
        found[name] = (entry ?? ask(key, body)).answer;
      }
      return found;
    },

    /**
     * Asks for one thing, giving up nothing else.
     * @param {Ask} body
     * @returns {Answer}
     */
    find(body) {
      const key = JSON.stringify(body);
      return (kept.get(key) ?? ask(key, body)).answer;
    },

    /** Forgets problems, so that they are requested again. */
    retry() {
      for (const [key, { answer }] of kept) if (answer.problem) kept.delete(key);
    },

    /** Cancels pending requests; their answers become problems. */
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
  };
}

/** The number of values in an answer: its tensors and the arrays of its analyses. */
/** @param {Answer} answer */
function sizeOf({ trace }) {
  const arrays = trace?.tensors
    ? [trace.tensors, ...Object.values(trace.analyses ?? {})].flatMap((found) =>
        Object.values(found),
      )
    : [];
  return arrays.reduce((sum, array) => sum + (array?.data?.length ?? 0), 0);
}

/** The notice while an answer is pending. */
export const READING = 'Reading…';

/**
 * The notice for a missing answer.
 * @param {Answer|undefined} answer
 * @returns {string} '' if it is there
 */
export function noticeOf(answer) {
  if (answer?.trace) return '';
  if (!answer?.problem) return READING;
  const { type, title, detail } = answer.problem;
  // The view that asked needs no name of the analysis.
  if (type?.endsWith(':nothing-to-analyse')) return asSentence(detail.replace(/^\w+: /, ''));
  return detail ? `${title}. ${asSentence(detail)}` : `${title}.`;
}
