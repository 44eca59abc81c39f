/**
 * The answers to what the page asks, from the server or from a saved page: the catalogue of models,
 * full cards, traces, encodings; what a view needs of them, and a cache of its other traces.
 */

import { asSentence } from '../words/lists.js';
import { grouped } from '../words/numbers.js';
import { encodingFromSafetensors, traceFromSafetensors, withoutNulls } from '../trace/trace.js';
import {
  asProblem,
  atlasPath,
  BASE,
  call,
  cardOf,
  cardPath,
  fetchJson,
  fetchSafetensors,
  positionalPath,
  tilePath,
  Problem,
} from './calls.js';

/** The answers of a saved page, which has no server. @type {import('./archive.js').Archive|null} */
let archive = null;

/** @param {import('./archive.js').Archive} held */
export function answerFrom(held) {
  archive = held;
}

/** @param {AbortSignal} signal @returns {Promise<Catalogue>} */
export async function fetchModels(signal) {
  if (archive) return archive.catalogue;
  return fetchJson(`${BASE}/models`, { signal });
}

const LOOK_PAUSE = 500;

/** Full cards of foreign models by id, as the models have to be read for each text. @type {Map<string, Card>} */
const fullCards = new Map();

/**
 * Return the full card of a model that is in the server's memory: a foreign model is loaded first,
 * by a request that waits for it.
 * @param {Card} card in short
 * @param {AbortSignal} signal
 * @param {(card: Card) => void} onProgress called with the card while the model is loaded
 * @returns {Promise<Card>} the card itself for a model of this project, which loads in no time
 * @throws {Problem} it does not fit, or cannot be used
 */
export async function readyModel(card, signal, onProgress) {
  if (archive || (card.architecture ?? 'headlight') === 'headlight') return card;
  const known = fullCards.get(card.id);
  if (known && known.revision === card.revision) return known;
  if (card.state !== 'loaded') {
    onProgress(card);
    const timer = setInterval(() => {
      fetchJson(cardPath(card.id), { signal }).then(onProgress, () => {}); // the load itself may fail
    }, LOOK_PAUSE);
    try {
      await call(`${BASE}/tokenize`, { signal, body: { model: card.id, text: 'a' } });
    } finally {
      clearInterval(timer);
    }
  }
  /** @type {Card} */
  const full = await fetchJson(cardPath(card.id), { signal });
  fullCards.set(card.id, full);
  return full;
}

/**
 * Return the beginning of a text that is not too long.
 * @param {{card: Card, text: string}} asked
 * @param {Problem} problem that it is too long
 * @param {AbortSignal} signal
 * @returns {Promise<{text: string, words: string}>} and how much that is: `the first 256 tokens`
 */
export async function fittingText({ card, text: all }, { type = '', limit = 0 }, signal) {
  const { id: model, max_tokens: most } = card;
  const isOfTokens = type.endsWith(':too-many-tokens');
  const letters = [...all].slice(0, isOfTokens ? all.length : limit); // the server counts code points
  const text = letters.join('');
  /** @type {{tokens: Token[]}} */
  const { tokens } = await fetchJson(`${BASE}/tokenize`, { signal, body: { model, text } });
  const textTokens = tokens.filter(({ start, end }) => end > start);
  const count = (isOfTokens ? limit : most) - (tokens.length - textTokens.length);
  if (textTokens.length <= count)
    return { text, words: `the first ${grouped(letters.length)} characters` };
  return {
    text: letters.slice(0, textTokens[count - 1]?.end ?? 0).join(''),
    words: `the first ${grouped(count)} tokens`,
  };
}

/**
 * Return a trace with the card of its model, a foreign one's in full; or, if that is what is asked
 * for, an encoding of positions, the full card of a model, or a part of its atlas.
 * @param {Catalogue} catalogue
 * @param {Ask} body
 * @param {AbortSignal} signal
 * @param {(progress: Progress, body: Ask) => void} [onProgress] called while a long text is read
 * @returns {Promise<any>} a `Trace`, an `Encoding` `{card}`, `{circuit}` or `{atlas}`
 */
export async function fetchAnswer(catalogue, body, signal, onProgress) {
  if (archive) return archive.answer(body, signal);
  if (body.positional || body.tile) {
    const path = body.tile
      ? tilePath(body.tile)
      : positionalPath(/** @type {PositionalAsk} */ (body.positional));
    return encodingFromSafetensors(await fetchSafetensors(path, { signal }));
  }
  if (body.circuit) {
    const { model, ...wanted } = body.circuit;
    const path = `${cardPath(String(model))}/circuit`;
    return { circuit: await fetchJson(path, { signal, body: wanted }) };
  }
  if (body.tasks) {
    const asked = new URLSearchParams({ model: String(body.tasks) });
    return fetchJson(`${BASE}/tasks?${asked}`, { signal });
  }
  if (body.atlas) return { atlas: await fetchJson(atlasPath(body.atlas), { signal }) };
  if (body.card) return { card: await fetchJson(cardPath(body.card), { signal }) };
  const { model, text, text_pair, target, messages, read_special_tokens } = body;
  if (onProgress && isLong(body)) await watchPass(body, signal, onProgress);
  const file = await fetchSafetensors(`${BASE}/trace`, { signal, body });
  return {
    ...traceFromSafetensors(file),
    ...(isObserved(body) && { file }),
    card: fullCards.get(model ?? '') ?? cardOf(catalogue, model ?? ''),
    asked: withoutNulls({ model, text, text_pair, target, messages, read_special_tokens }),
  };
}

/** Fewer characters are read in under a second. */
export const LONG = 4000;

/** @typedef {{attention: string, head: number, tokens: number[], read: number, bins: number[], mean: Float32Array}} PartialMap the mean weights of a head, of its first `read` queries */
/** @typedef {{share?: number, secondsLeft?: number|null, map?: PartialMap}} Progress of a pass: the share that is done, or a map so far */

/** @param {Ask} body */
function isLong(body) {
  return (body.text?.length ?? 0) > LONG && isObserved(body);
}

/** Return true if a request is of a text of any length. @param {Ask} body */
function isObserved({ resolution, queries }) {
  return Boolean(resolution ?? queries);
}

/**
 * Wait until the server has read a long text; it keeps the trace for the request that follows.
 * @param {Ask} body
 * @param {AbortSignal} signal
 * @param {(progress: Progress, body: Ask) => void} onProgress
 */
async function watchPass(body, signal, onProgress) {
  const { streamEvents } = await import('./generation.js');
  try {
    for await (const { event, data } of streamEvents(`${BASE}/trace`, body, signal))
      if (event === 'progress')
        onProgress({ share: data.share, secondsLeft: data.seconds_left }, body);
      else if (event === 'map') onProgress({ map: { ...data, mean: floatsIn(data.mean) } }, body);
  } catch (error) {
    // A server without room for it reads the text once more.
    if (!asProblem(error).type?.endsWith(':trace-not-kept')) throw error;
  }
}

/** @param {string} base64 of numbers in float32, little-endian */
function floatsIn(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

/**
 * Return globs for all attention weights of a model. A glob that names no site is an error of the
 * request.
 * @param {{kind?: string}} card
 */
export function weightSites({ kind }) {
  const selfAttention = '*.self_attention.weights';
  return kind === 'encoder-decoder'
    ? [selfAttention, '*.cross_attention.weights']
    : [selfAttention];
}

/**
 * Return the globs and analyses to request, so that each view has what it needs and nothing more.
 * @param {{needs?: string[], also?: (card: Card) => string[]}[]} views
 * @param {Card} card
 * @returns {{capture: string[], analyses: string[]}}
 */
export function request(views, card) {
  const needs = [
    ...new Set(views.flatMap((view) => [...(view.needs ?? []), ...(view.also?.(card) ?? [])])),
  ].filter((need) => hasPart(card, need));
  const analyses = needs.filter(isAnalysis).map((need) => need.split('.')[1]);
  const capture = needs.filter((need) => !isAnalysis(need));
  return { capture, analyses: [...new Set(analyses)] };
}

/** @param {string} need */
const isAnalysis = (need) => need.startsWith('analyses.');

/**
 * Return true if a model has a site or an analysis, as its card tells: a short card has no sites,
 * and nothing is known of a foreign model before its self-check.
 * @param {Card} card
 * @param {string} need a glob over sites, or `analyses.<id>.<array>`
 */
function hasPart({ analyses, sites, is_checked: isChecked = true }, need) {
  if (!isChecked) return true;
  if (isAnalysis(need)) return analyses?.includes(need.split('.')[1]) ?? true;
  if (!sites) return true;
  const pattern = need.split('*').map((part) => part.replace(/[.]/g, '\\.'));
  const glob = new RegExp(`^${pattern.join('.*')}$`);
  return sites.some(({ name }) => glob.test(name));
}

/**
 * Return a sentence on the first thing that a view needs and a model lacks, with the reason on its
 * card.
 * @param {{title: string, needs?: string[]}} view
 * @param {Card} card
 * @returns {string} empty if it lacks nothing
 */
export function lackOf({ title, needs = [] }, card) {
  const lacking = needs.find((need) => !hasPart(card, need));
  if (lacking === undefined) return '';
  const name = isAnalysis(lacking) ? lacking.split('.')[1] : lacking;
  const [, reason = 'its self-check found no such tensor'] =
    Object.entries(card.omitted ?? {}).find(([part]) => part.includes(name.replace(/^\*\./, ''))) ??
    Object.entries(card.omitted ?? {})[0] ??
    [];
  return `“${title}” is not available for this model, which has no ${name.replace(/_/g, ' ')}: ${reason}.`;
}

/** The numbers of one answer that a server with default settings keeps next to a book's tokens. */
export const MOST_NUMBERS = 7.2e6;

/**
 * Return the request for the maps of all heads, as fine as one answer holds: mean and maximum, at
 * most 256 bins a side.
 * @param {Card} [card]
 * @returns {Ask & {resolution: number}}
 */
export function overviewAsk({ kind, n_layers: layers, n_heads: heads } = /** @type {Card} */ ({})) {
  const maps = 2 * (layers ?? 1) * (heads ?? 1) * (kind === 'encoder-decoder' ? 3 : 1);
  const fits = [256, 192, 128, 96, 64, 48].find((bins) => maps * bins ** 2 <= MOST_NUMBERS);
  return { capture: [], analyses: [], resolution: fits ?? 32 };
}

/** @typedef {{trace?: Trace & Partial<Encoding> & {atlas?: any}, problem?: Problem, isWaiting?: boolean, previous?: Trace}} Answer one of the first three; `previous`: the trace of the last settings, while this one is awaited */

/** Numbers are what weighs: 32 million of them are 128 MB. */
const MOST_KEPT = 24;
const MOST_CACHED = 32e6;

/**
 * Return the body of a view's request. Model and texts are those of the page's trace, the
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
  if (ask.circuit) return { circuit: { model: asked.model, ...ask.circuit } };
  if (ask.atlas) return { atlas: ask.atlas };
  if (ask.tasks) return { tasks: asked.model };
  const isOther = 'text' in ask || 'messages' in ask || 'model' in ask;
  const isRead = !('text' in ask || 'messages' in ask);
  const texts = {
    model: asked.model,
    ...(isRead && { text: asked.text, messages: asked.messages }),
    ...(isRead && { text_pair: asked.text_pair }),
    ...(isRead && { read_special_tokens: asked.read_special_tokens }),
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
   * Cancel pending requests that are no longer wanted, then drop the oldest unused answers.
   * @param {Set<string|Ask>} wanted
   */
  function tidy(wanted) {
    for (const [key, { answer }] of kept) {
      if (!wanted.has(key) && !answer.trace) drop(key);
    }
    const numbers = () => [...kept.values()].reduce((sum, { answer }) => sum + sizeOf(answer), 0);
    for (const key of [...kept.keys()]) {
      if (kept.size <= MOST_KEPT && numbers() <= MOST_CACHED) return;
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
      const answers = {};
      for (const { name, key, body } of keys) {
        const entry = kept.get(key);
        kept.delete(key);
        if (entry) kept.set(key, entry); // the youngest again
        answers[name] = (entry ?? ask(key, body)).answer;
      }
      return answers;
    },

    /** Ask for one thing, giving up nothing else. @param {Ask} body @returns {Answer} */
    find(body) {
      const key = JSON.stringify(body);
      return (kept.get(key) ?? ask(key, body)).answer;
    },

    /** Forget problems, so that they are requested again. */
    retry() {
      for (const [key, { answer }] of kept) if (answer.problem) kept.delete(key);
    },

    /** Cancel pending requests; their answers become problems. */
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

/** The number of values in an answer: its tensors and the arrays of its analyses. @param {Answer} answer */
function sizeOf({ trace }) {
  const arrays = trace?.tensors
    ? [trace.tensors, ...Object.values(trace.analyses ?? {})].flatMap((group) =>
        Object.values(group),
      )
    : [];
  return arrays.reduce((sum, array) => sum + (array?.data?.length ?? 0), 0);
}

/** The notice while an answer is pending. */
export const READING = 'Reading…';

/**
 * Return the notice for a missing answer.
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
