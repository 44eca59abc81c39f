/**
 * The answers to what the page asks, from the server or from a saved page: the catalogue of models,
 * full cards, traces, encodings, and how much of a text fits.
 */

import { grouped } from '../data/format.js';
import { encodingFromSafetensors, traceFromSafetensors } from '../data/trace.js';
import {
  asProblem,
  BASE,
  call,
  cardOf,
  cardPath,
  fetchJson,
  fetchSafetensors,
  positionalPath,
  tilePath,
} from './calls.js';

/**
 * @import { Ask, Card, PositionalAsk, Token } from '../data/trace.js'
 * @import { Catalogue, Problem } from './calls.js'
 */

/** The answers of a saved page, which has no server. @type {import('../offline.js').Archive|null} */
let archive = null;

/** @param {import('../offline.js').Archive} held */
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
 * The full card of a model that is in the server's memory: a foreign model is loaded first, by a
 * request that waits for it.
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
 * The beginning of a text that is not too long.
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
  const own = tokens.filter(({ start, end }) => end > start);
  const count = (isOfTokens ? limit : most) - (tokens.length - own.length);
  if (own.length <= count)
    return { text, words: `the first ${grouped(letters.length)} characters` };
  return {
    text: letters.slice(0, own[count - 1]?.end ?? 0).join(''),
    words: `the first ${grouped(count)} tokens`,
  };
}

/**
 * A trace with the card of its model, a foreign one's in full; or, if that is what is asked for, an encoding of
 * positions, or the full card of a model.
 * @param {Catalogue} catalogue
 * @param {Ask} body
 * @param {AbortSignal} signal
 * @param {(share: number) => void} [onShare] called with the share of a long text that is read
 * @returns {Promise<any>} a `Trace`, an `Encoding` or `{card}`
 */
export async function fetchAnswer(catalogue, body, signal, onShare) {
  if (archive) return archive.answer(body);
  if (body.positional || body.tile) {
    const path = body.tile
      ? tilePath(body.tile)
      : positionalPath(/** @type {PositionalAsk} */ (body.positional));
    return encodingFromSafetensors(await fetchSafetensors(path, { signal }));
  }
  if (body.card) return { card: await fetchJson(cardPath(body.card), { signal }) };
  const { model, text, target } = body;
  if (onShare && isLong(body)) await watchPass(body, signal, onShare);
  const trace = traceFromSafetensors(await fetchSafetensors(`${BASE}/trace`, { signal, body }));
  return {
    ...trace,
    card: fullCards.get(model ?? '') ?? cardOf(catalogue, model ?? ''),
    asked: { model, text, ...(target !== undefined && { target }) },
  };
}

/** Fewer characters are read in under a second. */
const LONG = 4000;

/** @param {Ask} body */
function isLong({ text = '', resolution, queries }) {
  return text.length > LONG && Boolean(resolution ?? queries);
}

/**
 * Waits until the server has read a long text; it keeps the trace for the request that follows.
 * @param {Ask} body
 * @param {AbortSignal} signal
 * @param {(share: number) => void} onShare
 */
async function watchPass(body, signal, onShare) {
  const { streamEvents } = await import('./generation.js');
  try {
    for await (const { event, data } of streamEvents(`${BASE}/trace`, body, signal))
      if (event === 'progress') onShare(data.share);
  } catch (error) {
    // A server without room for it reads the text once more.
    if (!asProblem(error).type?.endsWith(':trace-not-kept')) throw error;
  }
}
