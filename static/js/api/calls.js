/**
 * Calls to the API: the problems they end in, the API key they carry, when a failed call is
 * repeated, and the models in a catalogue.
 */

import { grouped } from '../words/numbers.js';
import { choosingModel } from '../state/state.js';
import { atRoot } from './root.js';

/** @import { ModelsAnswer } from './schemas' */

export const BASE = '/api/v1';
const TOO_LARGE = 'urn:headlight:problem:model-too-large';

/** A refusal (RFC 9457) or a failure to reach the server, ready to be shown. */
export class Problem extends Error {
  /** @type {string|undefined} */
  type;
  /** @type {string} */
  title = '';
  /** @type {string} */
  detail = '';
  /** @type {number} 0: no answer */
  status = 0;
  /** @type {number|undefined} */
  limit;
  /** @type {number|undefined} */
  actual;
  /** @type {number|undefined} seconds */
  retryAfter;
  /** @type {{field: string, message: string}[]} the fields of the body that are wrong */
  errors = [];
  /** @type {string|undefined} the texts that were sent, if there are several */
  texts;
  /** @type {{label: string, patch: Patch}|undefined} a way out, as a button */
  offer;
  /** @type {{label: string, patch: Patch}|undefined} another way out */
  further;
  /** @type {{label: string, href: string}|undefined} a page that can do it */
  elsewhere;

  /**
   * @param {{type?: string, title: string, detail?: string, status?: number, limit?: number, actual?: number, retryAfter?: number, errors?: {field: string, message: string}[]}} facts `retryAfter` in seconds
   */
  constructor({ type, title, detail = '', status = 0, limit, actual, retryAfter, errors = [] }) {
    super(title);
    this.name = 'Problem';
    Object.assign(this, { type, title, detail, status, limit, actual, retryAfter, errors });
  }
}

/** Return the path of a model's full card. @param {string} model */
export function cardPath(model) {
  return `${BASE}/models/${encodeURIComponent(model)}`;
}

const TOO_LONG = ['too-many-tokens', 'too-many-characters'];

/** @param {Problem} problem is the text longer than the model, or the server, takes? */
export function isTooLong({ type = '', limit }) {
  return limit !== undefined && TOO_LONG.some((kind) => type.endsWith(`:${kind}`));
}

/** Letters of a token in most languages, for a first guess. */
const TOKEN_LETTERS = 4;

/**
 * Return true if the overview, which asks for less, can show a text that was refused elsewhere.
 * @param {Problem} problem
 * @param {Card} card
 */
export function isForOverview(
  { type = '', actual = 0 },
  { max_tokens: most, longest_text: longest = 0 },
) {
  if (type.endsWith(':too-many-cells')) return longest > 0;
  if (type.endsWith(':too-many-characters') && actual <= TOKEN_LETTERS * longest) return true;
  return TOO_LONG.some((kind) => type.endsWith(`:${kind}`)) && longest > most;
}

/**
 * Return the problem of a text with too many characters, in the tokens that the model reads at most.
 * @param {Problem} problem
 * @param {Card} card
 * @returns {Problem} the same one
 */
export function inTokens(problem, { max_tokens: most, longest_text: longest = most }) {
  const { type = '', actual = 0 } = problem;
  const letters = TOKEN_LETTERS * longest;
  if (type.endsWith(':too-many-characters') && longest <= most && actual > letters)
    problem.detail = `${grouped(actual)} characters are more than the ${grouped(longest)} tokens, some ${grouped(letters)} characters, that this model reads; send a shorter text.`;
  return problem;
}

/** @param {string} path @param {CallOptions} [options] @returns {Promise<any>} */
export async function fetchJson(path, options) {
  return arrived((await call(path, options)).json());
}

/** @param {string} path @param {CallOptions} [options] @returns {Promise<ArrayBuffer>} */
export async function fetchSafetensors(path, options) {
  return arrived(
    (await call(path, { ...options, accept: 'application/x-safetensors' })).arrayBuffer(),
  );
}

/**
 * Return a rectangle of a head's map, exact or pooled.
 * @param {Record<string, string|number>} tile
 */
export function tilePath({ id, ...query }) {
  return `${BASE}/traces/${id}/tile?${searchOf(query)}`;
}

/** @param {AtlasAsk} wanted */
export function atlasPath({ model, part, query = {} }) {
  const path = `${cardPath(model)}/atlas${part ? `/${part}` : ''}`;
  const search = String(searchOf(query));
  return search ? `${path}?${search}` : path;
}

/** @param {PositionalAsk} wanted */
export function positionalPath(wanted) {
  return `${BASE}/positional?${searchOf(wanted)}`;
}

/** @param {Record<string, string|number|boolean>} query */
function searchOf(query) {
  return new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
}

/** @type {(hadKey: boolean) => void} */
let keyRefused = () => {};

/**
 * Register what to call when the server requires an API key or rejects one.
 * @param {(hadKey: boolean) => void} tell `hadKey`: a key was sent
 */
export function askWhenRefused(tell) {
  keyRefused = tell;
}

/** Answers calls in place of a server. @type {((path: string, body?: Record<string, any>, accept?: string) => Promise<Response>)|null} */
let answering = null;

/** Let a site answer the calls of its pages. @param {NonNullable<typeof answering>} answer */
export function answerCallsBy(answer) {
  answering = answer;
}

/** @typedef {{body?: Record<string, any>, accept?: string, signal?: AbortSignal}} CallOptions with a body it is a POST */

/**
 * Request a path of the API.
 * @param {string} path
 * @param {CallOptions} [options]
 * @throws {Problem}
 */
export async function call(path, { body, accept = 'application/json', signal } = {}) {
  if (answering) return answering(path, body, accept);
  const key = readKey();
  const posted = body && { method: 'POST', body: JSON.stringify(body) };
  const headers = { Accept: accept, ...(body && { 'Content-Type': 'application/json' }) };
  const answer = await arrived(
    fetch(atRoot(path), { signal, ...posted, headers: withKey(headers, key) }),
  );
  if (answer.status === 401) keyRefused(key !== '');
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

/**
 * Wait for the network, whose failures are TypeErrors in every browser.
 * @template T
 * @param {Promise<T>} promise
 * @returns {Promise<T>}
 */
export async function arrived(promise) {
  try {
    return await promise;
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'TypeError') throw error;
    throw new Problem({ title: 'The server did not respond', detail: 'The connection failed.' });
  }
}

/** @param {Response} answer @returns {Promise<Problem>} */
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
      detail: `The server returned ${answer.status} without an explanation.`,
    });
  }
}

/** Convert a thrown error to a problem. @param {unknown} error @returns {Problem} */
export function asProblem(error) {
  if (error instanceof Problem) return error;
  return new Problem({
    title: 'The response could not be read',
    detail: messageOf(error),
    status: 500,
  });
}

/** @param {unknown} error @returns {string} */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Return advice on a problem, in one or two sentences.
 * @param {Problem} problem
 * @param {boolean} [goesOn] the page asks again on its own
 * @returns {string}
 */
export function advice(problem, goesOn = false) {
  return goesOn
    ? `${whatToDo(problem)} This page keeps trying.`
    : whatToDo(problem, ', then try again');
}

/** @param {Problem} problem @param {string} [then] */
function whatToDo({ type, status, texts = 'the text' }, then = '') {
  if (type === TOO_LARGE) return 'Choose another model.';
  if (type?.endsWith(':not-on-this-site')) return 'All examples and chapters are here.';
  if (status === 0) return `Check that the server is running${then}.`;
  if (status === 429 || status === 503) return `The server is busy. Wait a moment${then}.`;
  if (status === 401) return 'Ask the server’s operator for a key, then reload the page.';
  if (status === 404) return 'Choose another model.';
  if (status >= 400 && status < 500) return `Edit ${texts} and it is read again.`;
  return 'Try again. If the problem persists, see the server’s log.';
}

/** @param {Problem} problem is asking again worth a button? */
export function isWorthRetrying({ type, status, retryAfter }) {
  if (type === TOO_LARGE && retryAfter === undefined) return false;
  return status === 0 || status === 429 || status >= 500;
}

const NAME = 'headlight.key';

/** @returns {string} empty if there is none */
export function readKey() {
  try {
    return sessionStorage.getItem(NAME) ?? '';
  } catch {
    return ''; // a browser may keep nothing for a page
  }
}

/** @param {string} key @returns {boolean} could it be kept? */
export function keepKey(key) {
  try {
    sessionStorage.setItem(NAME, key);
    return true;
  } catch {
    return false;
  }
}

/** @param {Record<string, string>} headers of a call @param {string} key */
export function withKey(headers, key) {
  return key === '' ? headers : { ...headers, Authorization: `Bearer ${key}` };
}

/**
 * Return typed text as a key that a header can carry; empty if it cannot be one.
 * @param {string} typed
 */
export function keyIn(typed) {
  const key = typed.trim();
  return /^[!-~]+$/.test(key) ? key : '';
}

const FIRST = 1_000;
const LONGEST = 15_000;
/** A Retry-After that is longer than this is left to the user. */
const PATIENCE = 120_000;
const MOST_TIMES = 5;
const AWAY = [502, 504];

/**
 * @param {Problem} problem
 * @param {number} attempt how many times it was asked again already
 * @returns {number|null} milliseconds until the next attempt; null: none
 */
export function pauseBefore({ status, retryAfter }, attempt) {
  const growing = Math.min(LONGEST, FIRST * 2 ** attempt);
  if (status === 0) return growing;
  if (attempt >= MOST_TIMES) return null;
  if (AWAY.includes(status)) return growing;
  if (status !== 503 || retryAfter === undefined) return null;
  const pause = Math.max(retryAfter * 1000, growing);
  return pause <= PATIENCE ? pause : null;
}

/**
 * Return the seconds that a Retry-After header asks for.
 * @param {string|null} header seconds, or a date
 * @param {number} [now] milliseconds since 1970
 * @returns {number|undefined}
 */
export function retryAfterOf(header, now = Date.now()) {
  if (header === null || header.trim() === '') return undefined;
  if (/^\s*\d+\s*$/.test(header)) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000);
}

/**
 * Return true if the next attempt may start early, when the network or the page returns: not if the
 * server set a Retry-After.
 * @param {Problem} problem
 */
export function mayHurry({ status }) {
  return status === 0;
}

/** @typedef {Pick<ModelsAnswer, 'default'> & Partial<Pick<ModelsAnswer, 'unavailable'>> & {models: Card[]}} Catalogue with cards in short */

/** @type {Catalogue} before the server was asked */
export const NO_MODELS = Object.freeze({ default: '', models: [] });

/**
 * @param {Catalogue} catalogue
 * @param {string} id '' is the server's default
 * @returns {Card|undefined} the model's card
 */
export function cardOf({ models, default: standard }, id) {
  return models.find((card) => card.id === (id || standard)) ?? stateOf(models, id);
}

/** Return the id of the whole model of which one may be a state, `forming@512`. @param {string} id */
export function wholeOf(id) {
  return id.split('@')[0];
}

/**
 * Return the card of a state of a training: that of the model, with the labels of the state.
 * @param {Card[]} models
 * @param {string} id
 * @returns {Card|undefined}
 */
function stateOf(models, id) {
  const card = models.find((each) => each.id === wholeOf(id));
  const state = card?.steps?.find(({ step }) => id === `${card.id}@${step}`);
  if (!card || !state) return undefined;
  const title = `${modelName(card)}, step ${grouped(state.step)}`;
  const own = { id, title, head_labels: state.head_labels, has_atlas: false };
  return { ...card, ...own, state: 'not_loaded' };
}

/**
 * Return the name of a model, as in the menu.
 * @param {Card|undefined} card
 * @param {string} [id] if there is no card
 * @returns {string}
 */
export function modelName(card, id = card?.id ?? '') {
  return card?.title || id;
}

/**
 * Return why a model cannot be had, and which can be had instead.
 * @param {Catalogue} catalogue
 * @param {string} id
 * @returns {Problem & {offer?: {label: string, patch: Patch}}}
 */
export function refusalOf(catalogue, id) {
  const standard = cardOf(catalogue, '');
  const offer = standard && { label: `Use ${modelName(standard)}`, patch: choosingModel('') };
  return Object.assign(reasonOf(catalogue, id), { offer });
}

/** @param {Catalogue} catalogue @param {string} id */
function reasonOf({ models, unavailable = [] }, id) {
  const damaged = unavailable.find((model) => model.id === id);
  if (damaged)
    return new Problem({
      title: 'Damaged model',
      detail: `The model “${id}” is damaged: ${damaged.reason}`,
      status: 404,
    });
  if (models.length === 0)
    return new Problem({ title: 'No models', detail: 'The server offers no model.', status: 500 });
  const known = models.map((card) => card.id).join(', ');
  return new Problem({
    title: 'Unknown model',
    detail: `There is no model “${id}”. Available: ${known}.`,
    status: 404,
  });
}
