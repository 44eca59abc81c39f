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

/**
 * Globs for all attention weights of a model. A glob that names no site is an error of the request.
 * @param {{kind?: string}} card
 */
export function weightSites({ kind }) {
  const own = '*.self_attention.weights';
  return kind === 'encoder-decoder' ? [own, '*.cross_attention.weights'] : [own];
}

/**
 * The globs and analyses to request, so that each view has what it needs and nothing more.
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
 * Whether a model has a site or an analysis, as far as its card tells: a short card has no sites, and
 * nothing is known of a foreign model before its self-check.
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
 * A sentence on the first thing that a view needs and a model lacks, with the reason on its card.
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

/** The numbers of one answer that a server of default settings keeps beside a book's tokens. */
export const MOST_NUMBERS = 7.2e6;

/**
 * The request for the maps of all heads, as fine as one answer holds: mean and maximum, at most 256
 * bins a side.
 * @param {Card} [card]
 * @returns {Ask & {resolution: number}}
 */
export function overviewAsk({ kind, n_layers: layers, n_heads: heads } = /** @type {Card} */ ({})) {
  const maps = 2 * (layers ?? 1) * (heads ?? 1) * (kind === 'encoder-decoder' ? 3 : 1);
  const fits = [256, 192, 128, 96, 64, 48].find((bins) => maps * bins ** 2 <= MOST_NUMBERS);
  return { capture: [], analyses: [], resolution: fits ?? 32 };
}
