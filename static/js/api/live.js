/**
 * The models of a site that the browser computes: what they can answer, and the worker that does. The
 * worker is ended when nothing was asked of it for a while, which lets its memory go.
 */

import { eventText, globOf, lacking, ofHeads } from './archive.js';
import { cardOf } from './calls.js';
import { takesEdits } from './live_text.js';
import { inBytes } from '../words/numbers.js';

/** @import { File } from './live_worker.js' */

/** @typedef {{worker: string, runtime: File, models: Record<string, File & {revision: string, names: string[], within: number}>}} LiveIndex */
/** @typedef {ReturnType<typeof openLive>} Live */

/** Members of a request that the worker reads, and those of its predictions. */
const READ = /^(capture|analyses|layers|heads|edits|predictions|logit_difference|dtype)$/;
const PREDICTED = /^(tokens|temperature|top_k|top_p)$/;
const REST = 5 * 60_000;
/** A load that nothing waits for is given up. */
const REST_OF_LOAD = 1_000;
/** A site that was written again has other files. */
const MISSING = { title: 'The code that computes did not arrive', detail: 'Reload the page' };
/** The least module with an operation of SIMD. */
const SIMD = 'AGFzbQEAAAABBQFgAAF7AwIBAAoKAQgAQQD9D/1iCw==';

/** @param {Index & {live: LiveIndex}} index @param {(words: string) => void} tell of what is loaded */
export function openLive({ catalogue, server, live: { worker: script, runtime, models } }, tell) {
  /** @type {Worker|null} */
  let worker = null;
  let isLoading = false;
  let count = 0;
  let timer = 0;
  /** @type {Map<number, PromiseWithResolvers<any>>} */
  const waiting = new Map();
  const modelOf = (/** @type {string|null|undefined} */ id) => models[id || catalogue.default];

  /** @param {number} id @param {(settled: PromiseWithResolvers<any>) => void} act */
  function settle(id, act) {
    const settled = waiting.get(id);
    if (settled) act(settled);
    waiting.delete(id);
    clearTimeout(timer);
    if (waiting.size === 0) timer = setTimeout(end, isLoading ? REST_OF_LOAD : REST);
  }

  function end() {
    worker?.terminate();
    worker = null;
  }

  function start() {
    const simd = Uint8Array.from(atob(SIMD), (letter) => letter.charCodeAt(0));
    if (!globalThis.WebAssembly?.validate(simd))
      throw problemOf({ title: 'This browser has no WebAssembly with SIMD' }, server);
    if (!location.protocol.startsWith('http'))
      throw problemOf({ title: 'A page from a disk computes nothing' }, server);
    const started = new Worker(script, { type: 'module' });
    started.onerror = () => {
      const problem = problemOf(MISSING, server);
      for (const id of waiting.keys()) settle(id, ({ reject }) => reject(problem));
      end();
    };
    started.onmessage = ({ data: { id, loaded, of, answer, problem } }) => {
      isLoading = loaded < of;
      if (isLoading) tell(`Loading the model: ${inBytes(loaded)} of ${inBytes(of)}`);
      if (answer) settle(id, ({ resolve }) => resolve(answer));
      if (problem) settle(id, ({ reject }) => reject(problemOf(problem, server)));
    };
    return started;
  }

  /** @param {any} body @param {AbortSignal} [signal] @returns {Promise<any>} */
  async function ask(body, signal) {
    const id = ++count;
    clearTimeout(timer);
    worker ??= start();
    worker.postMessage({ id, body, model: modelOf(body.model), runtime });
    const answer = Promise.withResolvers();
    waiting.set(id, answer);
    signal?.addEventListener('abort', () => {
      worker?.postMessage({ cancel: id });
      settle(id, ({ reject }) => reject(signal.reason));
    });
    return answer.promise;
  }

  return {
    /** @param {string|undefined} id of a model */
    reads: (id) => Boolean(modelOf(id)),

    /** @param {Ask} body */
    takes({ model, text: _, target: __, ...body }) {
      const { capture = [], analyses = [], edits = [], predictions = {} } = body;
      const { names = [] } = modelOf(model) ?? {};
      const globs = [...capture, ...analyses.map((name) => `analyses.${name}.*`)].map(globOf);
      const isHere = globs.every((glob) => names.some((name) => glob.test(name)));
      const isRead = Object.keys(body).every((name) => READ.test(name));
      const isPredicted = Object.keys(predictions).every((name) => PREDICTED.test(name));
      return isHere && isRead && isPredicted && takesEdits(edits);
    },

    /** @param {Ask} body @param {AbortSignal} [signal] @returns {Promise<any>} a `Trace` */
    async answer(body, signal) {
      const { model = catalogue.default, text } = body;
      const card = /** @type {Card} */ (cardOf(catalogue, model));
      const trace = ofHeads(await ask(body, signal), body.heads, card);
      return { ...trace, card, asked: { model, text }, within: modelOf(model).within };
    },

    /** Answer a request to generate; null: it cannot be answered here. @param {any} body */
    write(body) {
      const { model, beams = 1, best_of = 1, messages, edits = [] } = body;
      if (!modelOf(model) || beams * best_of > 1 || messages || !takesEdits(edits)) return null;
      const { max_tokens: most = 0 } = cardOf(catalogue, model) ?? {};
      const events = written(ask, body, most);
      /** @param {ReadableStreamDefaultController<Uint8Array>} to */
      const pull = async (to) => {
        const { value, done } = await events.next();
        if (done) to.close();
        else to.enqueue(new TextEncoder().encode(eventText(...value)));
      };
      return new Response(new ReadableStream({ pull, cancel: () => void events.return() }));
    },
  };
}

/**
 * Yield the continuation of a text as events of the server. A graph keeps nothing of the pass before:
 * each token is a pass of its own.
 * @param {(body: any) => Promise<any>} ask @param {any} body @param {number} most tokens of a text
 * @returns {AsyncGenerator<[string, any], void>}
 */
async function* written(ask, body, most) {
  const { forced = [], skip = 0, n_tokens: count = 1, stop = [], seed = 0, ...wanted } = body;
  const random = randomFrom(seed);
  const added = forced.slice(0, skip);
  added.forEach(() => random());
  let [reason, text] = ['', ''];
  while (!reason) {
    const chance = random();
    const token = await ask({ ...wanted, added, chance, forced: forced[added.length] });
    added.push(token.id);
    if (!token.is_special) text += token.text;
    yield ['token', token];
    if (token.is_special) reason = 'end_of_text';
    else if (stop.some((/** @type {string} */ each) => text.includes(each))) reason = 'stop';
    else if (added.length >= count) reason = 'length';
    else if (token.position + 1 >= most) reason = 'max_tokens';
  }
  yield ['end', { reason, n_tokens: added.length, text }];
}

/** Return random numbers from 0 to 1, the same for a seed: mulberry32, unlike a server’s. @param {number} seed */
function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** @param {{title: string, detail?: string}} why @param {string} server */
function problemOf({ title, detail }, server) {
  const problem = lacking({ title, server });
  return Object.assign(problem, detail && { detail: `${detail}. ${problem.detail}` });
}
