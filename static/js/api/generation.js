/**
 * Streams a generated text and keeps it in step with a path of tokens: requests the steps that are
 * not known yet, and tokens after the path. Knows nothing of how the text is drawn.
 */

import { sharedLength } from '../trace/words.js';
import { arrived, BASE, call, asProblem, Problem } from './calls.js';

/** @import { GenerateRequest, Given, TokenWritten } from './schemas' */

/** @typedef {Omit<TokenWritten, 'is_forced'|'tensors'>} Step one generated token, as the server sends it */

/**
 * @typedef {Object} Subject what is written on, and how tokens are drawn
 * @property {string} model
 * @property {string} text
 * @property {ReturnType<typeof import('../state/conversation.js').readBy>} [said] how it is asked for, if not by the text
 * @property {Pick<Wanted, 'temperature'|'top_k'|'top_p'|'repetition_penalty'|'seed'>} sampling
 * @property {Pick<Wanted, 'stop'|'beams'|'best_of'|'reward'>} search which text is written, and where it ends; a text that is there is read without it
 */

/** @typedef {Given<GenerateRequest>} Wanted */

/**
 * @typedef {Object} Writing
 * @property {Step[]} steps
 * @property {boolean} isWriting tokens are on their way
 * @property {boolean} isReading what is known of the path is being asked for
 * @property {{read: number, of: number}|null} replay how many tokens of the path were read again; null: none are being read
 * @property {Problem|null} problem
 * @property {boolean} isCancelled stopped before the path was replayed
 * @property {string|null} reason why the last run ended, as the server says it
 * @property {number} most tokens that the server writes after a text
 */

/** Milliseconds between two tokens of a run: reading speed. */
const PACE = 80;
/** A slider that is moved asks when it rests. */
const REST = 150;
/** Unless the server says that it writes fewer. */
const MOST_TOKENS = 256;
const N_ALTERNATIVES = 10;
/** For links that were edited by hand: the page itself never continues a text after its end. */
const TOO_LONG = {
  title: 'The link does not fit this text',
  detail: 'The model ends this text before all tokens of the link.',
  status: 422,
};

/** Keeps a generated text in step with a path of tokens. */
export class Writer {
  #by;
  /** @type {Subject|null} */
  #subject = null;
  /** @type {Step[]} */
  #known = [];
  #isStale = false; // known for other ways to draw
  /** @type {{controller: AbortController, kind: 'writing'|'reading', read: number}|null} */
  #job = null;
  /** @type {Problem|null} */
  #problem = null;
  #isCancelled = false;
  /** @type {string|null} */
  #reason = null;
  /** @type {number[]} */
  #path = [];
  #refused = '';
  #most = MOST_TOKENS;

  /**
   * @param {Object} by
   * @param {(wanted: Wanted, signal: AbortSignal) => AsyncIterable<{event: string, data: any}>} by.stream
   * @param {(isOver: boolean) => void} by.onChange there is more to show; or, `isOver`, all there will be
   * @param {() => void} [by.onReplay] one more token of the path was read
   * @param {(milliseconds: number) => Promise<void>} [by.pause]
   */
  constructor({ stream, onChange, onReplay = () => {}, pause = sleep }) {
    this.#by = { stream, onChange, onReplay, pause };
  }

  stop() {
    this.#job?.controller.abort();
    this.#job = null;
  }

  /**
   * Request the steps after the known ones, up to `count`, following the path first.
   * @param {'writing'|'reading'} kind
   * @param {number} count
   */
  async #run(kind, count, rest = 0) {
    this.stop();
    if (!this.#subject) return;
    const on = this.#subject;
    const skip = this.#isStale ? 0 : sharedLength(idsIn(this.#known), this.#path);
    this.#job = { controller: new AbortController(), kind, read: skip };
    const { signal } = this.#job.controller;
    this.#problem = null;
    this.#isCancelled = false;
    this.#reason = null;
    const fresh = this.#known.slice(0, skip);
    if (kind === 'writing' && !this.#isStale) this.#known = [...fresh]; // what came after it is left behind
    try {
      if (rest > 0) await this.#by.pause(rest);
      if (signal.aborted) return;
      for await (const { event, data } of this.#by.stream(
        bodyOf(on, this.#path, skip, Math.min(count, this.#most)),
        signal,
      )) {
        if (signal.aborted) return;
        if (event === 'token') await this.#take(data, fresh, kind, count);
        if (event === 'end') this.#reason = data.reason;
      }
      if (!isKnown(this.#known, this.#path, this.#isStale)) throw new Problem(TOO_LONG);
    } catch (error) {
      if (signal.aborted) return;
      this.#problem = asProblem(error);
    }
    if (signal.aborted) return;
    this.#job = null;
    const { type = '', limit: told } = this.#problem ?? {};
    const limit = (type.endsWith(':too-many-new-tokens') && told) || 0;
    if (limit >= 1 && limit < this.#most) {
      this.#most = limit;
      this.#run(kind, count);
      return;
    }
    if (this.#problem) this.#refused = keyOf(on, this.#path);
    this.#by.onChange(true);
  }

  /** @param {Step} step @param {Step[]} fresh @param {string} kind @param {number} count */
  async #take(step, fresh, kind, count) {
    fresh.push(step);
    if (fresh.length < this.#path.length) {
      // what was known stays in sight until then
      if (this.#job) this.#job.read = fresh.length;
      this.#by.onReplay();
      return;
    }
    this.#known = [...fresh];
    this.#isStale = false;
    if (kind === 'reading' || step.index < this.#path.length) return;
    this.#by.onChange(false);
    if (step.index + 1 < count) await this.#by.pause(PACE);
  }

  /**
   * Set the text and path to show. Unknown steps are requested; other requests are cancelled.
   * @param {Subject} wanted
   * @param {number[]} ids the path
   */
  want(wanted, ids) {
    const isSameText = this.#subject?.model === wanted.model && this.#subject?.text === wanted.text;
    const isSame =
      isSameText && JSON.stringify(this.#subject?.sampling) === JSON.stringify(wanted.sampling);
    const isSamePath = idsOf(ids) === idsOf(this.#path);
    if (
      isSame &&
      isSamePath &&
      (this.#job ||
        isKnown(this.#known, ids, this.#isStale) ||
        this.#refused === keyOf(wanted, ids))
    ) {
      this.#subject = wanted; // how the next tokens are searched may differ
      return;
    }
    this.stop();
    if (!isSameText) this.#known = [];
    if (!isSame) this.#isStale = this.#known.length > 0;
    if (!isSame || !isSamePath) {
      this.#problem = null;
      this.#isCancelled = false;
      this.#reason = null;
      this.#refused = '';
    }
    this.#subject = wanted;
    this.#path = ids;
    if (!isKnown(this.#known, this.#path, this.#isStale))
      this.#run('reading', this.#path.length, isSameText && !isSame ? REST : 0);
  }

  /** Write on from the path. @param {number} count how many tokens, as long as there is room */
  write(count) {
    return this.#run('writing', this.#path.length + count);
  }

  /** Extend the path to the shown steps; a running generation continues. */
  follow() {
    this.#path = idsIn(this.#known);
    return this.#path;
  }

  /** Stop on request: unknown steps of the path are not requested again automatically. */
  cancel() {
    this.stop();
    if (isKnown(this.#known, this.#path, this.#isStale)) return;
    this.#isCancelled = true;
    if (this.#subject) this.#refused = keyOf(this.#subject, this.#path);
  }

  /** Request the unknown steps of the path again after a problem. */
  retry() {
    this.#refused = '';
    return this.#path.length > 0 ? this.#run('reading', this.#path.length) : undefined;
  }

  /** @returns {Writing} */
  state() {
    const isWriting = this.#job?.kind === 'writing';
    const fits = sharedLength(idsIn(this.#known), this.#path) === this.#path.length;
    return {
      steps: !fits ? [] : isWriting ? this.#known : this.#known.slice(0, this.#path.length),
      isWriting,
      isReading: this.#job?.kind === 'reading',
      replay:
        this.#job && !isKnown(this.#known, this.#path, this.#isStale)
          ? { read: this.#job.read, of: this.#path.length }
          : null,
      problem: this.#problem,
      isCancelled: this.#isCancelled,
      reason: this.#reason,
      most: this.#most,
    };
  }
}

/**
 * @param {Subject} subject
 * @param {number[]} forced
 * @param {number} skip
 * @param {number} count
 * @returns {Wanted}
 */
function bodyOf({ model, text, said = { text }, sampling, search }, forced, skip, count) {
  return {
    model,
    ...said,
    ...sampling,
    ...(count > forced.length && search),
    forced,
    skip,
    n_tokens: count,
    n_alternatives: N_ALTERNATIVES,
  };
}

/** @param {Step[]} known @param {number[]} path @param {boolean} isStale */
function isKnown(known, path, isStale) {
  return path.length === 0 || (!isStale && sharedLength(idsIn(known), path) === path.length);
}

/** @param {Step[]} steps */
const idsIn = (steps) => steps.map(({ id }) => id);

/** @param {number[]} path */
function idsOf(path) {
  return path.join('.');
}

/** @param {Subject} subject @param {number[]} path */
function keyOf({ model, text, sampling }, path) {
  return JSON.stringify([model, text, sampling, path]);
}

/** @param {number} milliseconds */
function sleep(milliseconds) {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
}

/** @typedef {{event: string, data: string}} ServerSentEvent */

const CUT_OFF = {
  title: 'The response was cut off',
  detail: 'The connection closed before the response was complete.',
};

const LINE_END = /\r\n|\r|\n/g;

/**
 * Put events together from text that comes in pieces of any size.
 * @param {(event: ServerSentEvent) => void} onEvent
 * @returns {{push: (text: string) => void}} an unfinished event at the end is dropped
 */
export function createSseParser(onEvent) {
  let unfinished = '';
  let isAfterReturn = false; // of a line end that may be cut in two
  let event = '';
  /** @type {string[]} */
  let data = [];

  function dispatch() {
    if (data.length > 0) onEvent({ event: event || 'message', data: data.join('\n') });
    event = '';
    data = [];
  }

  /** @param {string} line */
  function read(line) {
    if (line === '') {
      dispatch();
      return;
    }
    const colon = line.indexOf(':');
    const [field, value] =
      colon < 0 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
    if (field === 'data') data.push(value);
    else if (field === 'event') event = value; // other fields, and comments, say nothing here
  }

  return {
    push(text) {
      if (text === '') return;
      const fresh = isAfterReturn && text.startsWith('\n') ? text.slice(1) : text;
      isAfterReturn = text.endsWith('\r');
      const lines = (unfinished + fresh).split(LINE_END);
      unfinished = lines.pop() ?? '';
      lines.forEach(read);
    },
  };
}

/**
 * Pass on the events of an answer as they arrive. Cancelling the reader cancels the answer.
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<ServerSentEvent>}
 */
export async function* eventsOf(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  /** @type {ServerSentEvent[]} */
  const arrived = [];
  const parser = createSseParser((event) => arrived.push(event));
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.push(decoder.decode(value, { stream: true }));
      yield* arrived.splice(0);
    }
  } finally {
    reader.cancel().catch(() => {}); // it may have failed, or be over
  }
}

/**
 * Stream the continuation of a text: `start`, then a `token` for each token, then `end`.
 * @param {Wanted} wanted as `POST /api/v1/generate` takes it
 * @param {AbortSignal} signal ends the work on the server, too
 */
export function streamGeneration(wanted, signal) {
  return streamEvents(`${BASE}/generate`, wanted, signal);
}

/**
 * Return the events of an answer, up to its `end`.
 * @param {string} path
 * @param {Record<string, any>} wanted the body of a POST
 * @param {AbortSignal} signal ends the work on the server, too
 * @returns {AsyncGenerator<{event: string, data: any}>}
 * @throws {Problem} also in the middle of it
 */
export async function* streamEvents(path, wanted, signal) {
  const answer = await call(path, { signal, accept: 'text/event-stream', body: wanted });
  if (!answer.body) throw new Problem(CUT_OFF);
  const events = eventsOf(answer.body);
  try {
    for (;;) {
      const { done, value } = await arrived(events.next());
      if (done) throw new Problem(CUT_OFF);
      const { event, data } = { ...value, data: JSON.parse(value.data) };
      if (event === 'error') throw new Problem(data);
      yield { event, data };
      if (event === 'end') return;
    }
  } finally {
    events.return(undefined);
  }
}
