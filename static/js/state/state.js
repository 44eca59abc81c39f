/**
 * The state of the page and its fields: how a link writes each part, and which values it takes. The
 * state lives in the URL's fragment, so that a link restores it and no server log sees it.
 */

import {
  hasTwoSides,
  isFilling,
  choosePlace,
  findPlaces,
  predictingSide,
  tokensOf,
  weightsAt,
} from '../trace/attention.js';
import { headToOpen, isWord } from '../rules/head_insight.js';
import { structuredHead } from '../rules/map_structure.js';
import { PARTS } from './address.js';
import { isMask } from '../trace/words.js';

/** @import { SharedState } from '../api/schemas' @import { Side } from '../trace/attention.js' */

/**
 * The parts of the address, and the chapter that is read next to the page. A text is null if none was
 * typed, a target if the model shall translate; what is '' or null else is left to the page.
 * @typedef {Omit<SharedState, 'text'|'target'|'where'> & {text: string|null, target: string|null, where: string, chapter: string, chapter_step: number|null, chat: string, pair: string, read_special: boolean}} State
 */

/** @typedef {Partial<State> & Record<string, any>} Patch a change of the state, the views’ own fields included */

/** @type {Record<string, (part: any) => Field<any>>} */
const KINDS = {
  text: ({ standard }) => text(standard),
  count: () => count(),
  flag: () => flag(),
  choice: ({ values }) => choice(values),
  number: ({ least, most }) => number({ least, most, standard: null }),
};

/** The fields that all views share; a view may have its own. @type {Record<string, Field<any>>} */
const SHARED_FIELDS = Object.freeze({
  ...Object.fromEntries(
    Object.entries(PARTS).map(([name, part]) => [name, KINDS[part.kind](part)]),
  ),
  text: text(null),
  target: {
    ...text(null),
    read: (/** @type {string} */ written) => (written.trim() === '' ? undefined : written),
  },
  chapter: text(),
  chapter_step: count(),
  chat: text(),
  pair: text(),
  read_special: flag(),
});

/** @type {Readonly<State>} */
export const INITIAL = Object.freeze(standardsOf(SHARED_FIELDS));

/**
 * Return the fields of the whole page.
 * @param {{id: string, fields?: Record<string, Field<any>>}[]} views
 * @returns {Record<string, Field<any>>}
 * @throws {Error} where two fields have one name
 */
export function fieldsOf(views) {
  const fields = { ...SHARED_FIELDS };
  for (const { id, fields: viewFields = {} } of views) {
    for (const [name, field] of Object.entries(viewFields)) {
      if (name in fields)
        throw new Error(`the view ${id} names a field ${name}, and there is one already`);
      Object.assign(fields, { [name]: { ...field, view: id } });
    }
  }
  return fields;
}

/**
 * @param {string} hash with or without its `#`
 * @param {Record<string, Field<any>>} [fields]
 * @returns {Partial<State>} only what the fragment says and means
 */
export function readFragment(hash, fields = SHARED_FIELDS) {
  const written = new URLSearchParams(hash.replace(/^#/, ''));
  /** @type {Record<string, unknown>} */
  const state = {};
  for (const [name, field] of Object.entries(fields)) {
    const entry = written.get(name);
    const value = entry === null ? undefined : field.read(entry);
    if (value !== undefined) state[name] = value;
  }
  return state;
}

/**
 * @param {State & Record<string, unknown>} state
 * @param {Record<string, Field<any>>} [fields]
 * @returns {string} `#text=…&layer=…`, without standard values and without the fields of views that are not open
 */
export function writeFragment(state, fields = SHARED_FIELDS) {
  const written = new URLSearchParams();
  for (const [name, { standard, write, view = state.view }] of Object.entries(fields)) {
    if (state.view !== undefined && view !== state.view) continue;
    const value = state[name];
    const isStandard =
      value === undefined || value === standard || (Array.isArray(value) && value.length === 0);
    if (!isStandard && value !== null) written.set(name, write(value));
  }
  return `#${written}`;
}

/**
 * Bring indices back into what the trace holds: a link may come from another model.
 * @param {State} state
 * @param {{layers: number, heads: number, tokens: number, sources?: number, keys?: number, views: string[], places?: string[]}} bounds `tokens` of the target where there is one, `sources` then of the source; `keys` of the place that is looked at
 * @returns {State}
 */
export function clamp(state, { layers, heads, tokens, sources = 0, keys = 0, views, places = [] }) {
  return {
    ...state,
    view: [state.view, INITIAL.view, ...views].find((id) => views.includes(id)) ?? INITIAL.view,
    where: places.includes(state.where) ? state.where : INITIAL.where,
    layer: within(state.layer, layers),
    head: within(state.head, heads),
    query: among(state.query, tokens),
    source: among(state.source, sources),
    key: among(state.key, keys),
  };
}

/** @param {number|null} index @param {number} count */
function within(index, count) {
  return index === null || count === 0 ? index : Math.min(index, count - 1);
}

/** @param {number|null} index @param {number} count */
function among(index, count) {
  return index !== null && index < count ? index : null;
}

/**
 * @param {State} state
 * @param {Trace} trace
 * @param {Side} [side] the one the model predicts from
 * @returns {number} the chosen token; by default the first mask, or else the one that says most at the end
 */
export function queryOf(state, trace, side = predictingSide(trace)) {
  const tokens = tokensOf(trace, side);
  const index = state[nameOfChoice(trace, side)] ?? null;
  if (index !== null && index < tokens.length) return index;
  const mask = tokens.findIndex(isMask);
  return mask >= 0 ? mask : lastTelling(trace, tokens, side);
}

/**
 * Return the last token; before a closing full stop that of an encoder is the last word, and that
 * of a translation the token from which the last word is predicted.
 * @param {Trace} trace
 * @param {Token[]} tokens
 * @param {Side} side
 */
function lastTelling(trace, tokens, side) {
  const end = tokens.length - 1;
  const isTranslation = hasTwoSides(trace) && side === 'target';
  const last = isFilling(trace) || isTranslation ? tokens.findLastIndex(isWord) : end;
  if (last < 0 || last === end) return end;
  if (!isTranslation) return last;
  const first = tokens.findIndex(({ word }) => word !== null && word === tokens[last].word);
  return Math.max((first < 0 ? last : first) - 1, 0);
}

/**
 * Return true if the query was chosen or is a mask; the default query, the last token, is neither.
 * @param {State} state
 * @param {Trace} trace
 * @param {Side} [side]
 */
export function isQueryLookedAt(state, trace, side = predictingSide(trace)) {
  const tokens = tokensOf(trace, side);
  return (state[nameOfChoice(trace, side)] ?? null) !== null || tokens.some(isMask);
}

/**
 * Return the change when a token is chosen.
 * @param {Trace} trace
 * @param {Side} side
 * @param {number} index
 * @returns {Partial<State>}
 */
export function choosing(trace, side, index) {
  return { [nameOfChoice(trace, side)]: index };
}

/** @param {Trace} trace @param {string} side */
function nameOfChoice(trace, side) {
  return hasTwoSides(trace) && side === 'source' ? 'source' : 'query';
}

/** The choices that a new sentence or model resets. */
export const NOTHING_CHOSEN = Object.freeze({
  query: null,
  source: null,
  key: null,
  token: null,
  off: '',
  weight: null,
});

/** A change of one of these is of another cell, so the weight set for the last one does not hold. */
const OF_CELL = ['text', 'model', 'target', 'where', 'layer', 'head', 'query', 'source', 'key'];

/**
 * Return a change without the edits that it makes void: a weight is that of one cell, and a chosen
 * prediction that of one position.
 * @param {Patch} patch
 * @param {State & Record<string, any>} state
 * @returns {Patch}
 */
export function withoutStale(patch, state) {
  /** @param {string[]} names */
  const moves = (names) => names.some((name) => name in patch && patch[name] !== state[name]);
  return {
    ...(moves(OF_CELL) && { weight: null }),
    ...(moves(['query', 'text', 'model', 'target']) && { token: null }),
    ...patch,
  };
}

/**
 * Return the change when another model is chosen: layer, head and tokens are reset.
 * @param {string} model
 * @returns {Partial<State>}
 */
export function choosingModel(model) {
  return { model, target: null, where: INITIAL.where, layer: null, head: null, ...NOTHING_CHOSEN };
}

/**
 * Return the change when an example is opened at its own place.
 * @param {Partial<State>} opens
 * @returns {Partial<State>}
 */
export function opened(opens) {
  return Object.keys(opens).length > 0 ? { ...NOTHING_CHOSEN, where: INITIAL.where, ...opens } : {};
}

/**
 * Return the initial state without a text: an example, and whatever the link sets.
 * @param {State} state
 * @param {{text: string, opens?: Partial<State>}|undefined} example
 * @returns {State}
 */
export function beginning(state, example) {
  const { text: written = '', opens = {} } = example ?? {};
  /** @type {Record<string, unknown>} */
  const chosen = state;
  /** @type {Record<string, unknown>} */
  const initial = INITIAL;
  const free = Object.entries(opens).filter(([name]) => chosen[name] === initial[name]);
  return { ...state, ...Object.fromEntries(free), text: written };
}

/**
 * Clamp the state to the trace; without a chosen head, open an informative one.
 * @param {State} state
 * @param {Trace} trace
 * @param {string[]} views
 * @returns {State}
 */
export function normalized(state, trace, views) {
  const place = choosePlace(state, trace);
  const layers = weightsAt(place, trace);
  const { n_layers: nLayers = 0, n_heads: nHeads = 0 } = (trace.resolution && trace.card) || {};
  // A long text has maps in place of weights; the overview falls back on a place that it has.
  const places = trace.resolution
    ? ['encoder', 'decoder', 'cross']
    : findPlaces(trace).map(({ id }) => id);
  const within = clamp(state, {
    layers: layers.length || nLayers,
    heads: layers.length > 0 ? trace.tensors[layers[0].site].shape[0] : nHeads,
    tokens: (trace.target_tokens ?? trace.tokens).length,
    sources: hasTwoSides(trace) ? trace.tokens.length : 0,
    keys: tokensOf(trace, place?.columns ?? 'source').length,
    views,
    places: places.length > 1 ? places : [],
  });
  if (within.layer !== null && within.head !== null) return within;
  const { layer, head } = trace.resolution
    ? structuredHead(trace, within)
    : headToOpen(trace, place, within);
  return { ...within, layer, head };
}

/** @returns {<T>(parts: unknown[], make: () => T) => T} */
export function createMemo() {
  /** @type {{parts: unknown[], result: any}|null} */
  let known = null;
  return (parts, make) => {
    const before = known?.parts;
    const isSame =
      before?.length === parts.length && parts.every((part, index) => part === before[index]);
    if (!known || !isSame) known = { parts, result: make() };
    return known.result;
  };
}

/**
 * Return true if two plain values are deeply equal; stop at the first difference.
 * @param {any} a
 * @param {any} b
 * @returns {boolean}
 */
export function deepEqual(a, b) {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (a.constructor !== b.constructor) return false;
  if (Array.isArray(a) || ArrayBuffer.isView(a)) return isSameList(a, b);
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => name in b && deepEqual(a[name], b[name]))
  );
}

/** @param {any} a @param {any} b */
function isSameList(a, b) {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index += 1) {
    if (!deepEqual(a[index], b[index])) return false;
  }
  return true;
}

/**
 * @template T
 * @typedef {Object} Field
 * @property {T} standard what holds where the link says nothing
 * @property {(text: string) => T|undefined} read undefined: the link means nothing by it
 * @property {(value: T) => string} write
 * @property {T[]} [values] all it may be, where they are few
 * @property {number} [least] of a number
 * @property {number} [most]
 * @property {boolean} [isOfText] it says nothing of another text, or of another model
 * @property {string} [view] the only view that shows it
 */

const LONGEST_LIST = 1024;

/** @param {string|null} [standard] @returns {Field<string|null>} */
export function text(standard = '') {
  return { standard, read: (written) => written, write: String };
}

/**
 * Return a number of something, from 0 on; null: the page chooses.
 * @returns {Field<number|null>}
 */
export function count() {
  return {
    standard: null,
    read: (written) => (/^\d{1,6}$/.test(written) ? Number(written) : undefined),
    write: String,
  };
}

/** Return numbers of things, in the order they were chosen in. @returns {Field<number[]>} */
export function counts() {
  return {
    standard: /** @type {any} */ (Object.freeze([])),
    read: (written) => (isListOfCounts(written) ? written.split('.').map(Number) : undefined),
    write: (list) => list.join('.'),
  };
}

/** @param {string} written */
function isListOfCounts(written) {
  return /^\d{1,6}(\.\d{1,6})*$/.test(written) && written.split('.').length <= LONGEST_LIST;
}

/**
 * One of several words; the first holds where the link says nothing.
 * @param {string[]} values
 * @returns {Field<string>}
 */
export function choice(values) {
  return {
    standard: values[0],
    values,
    read: (written) => (values.includes(written) ? written : undefined),
    write: String,
  };
}

/** @returns {Field<boolean>} */
export function flag() {
  return {
    standard: false,
    read: (written) => ({ 0: false, 1: true })[written],
    write: (value) => (value ? '1' : '0'),
  };
}

/**
 * @param {{least: number, most: number, standard: number|null}} range null: the page chooses
 * @returns {Field<number|null>}
 */
export function number({ least, most, standard }) {
  return {
    standard,
    least,
    most,
    read: (written) => {
      const value = written.trim() === '' ? NaN : Number(written);
      return value >= least && value <= most ? value : undefined;
    },
    write: String,
  };
}

/**
 * Return a field that no other text and no other model can make use of: with them it starts afresh.
 * @template T
 * @param {Field<T>} field
 * @returns {Field<T>}
 */
export function ofText(field) {
  return { ...field, isOfText: true };
}

/**
 * Return the standard values of the fields that a new text resets.
 * @param {Record<string, Field<any>>} fields
 */
export function standardsOfText(fields) {
  return standardsOf(
    Object.fromEntries(Object.entries(fields).filter(([, { isOfText }]) => isOfText)),
  );
}

/** @param {Record<string, Field<any>>} fields @returns {any} the standard value of each */
export function standardsOf(fields) {
  return Object.fromEntries(Object.entries(fields).map(([name, { standard }]) => [name, standard]));
}

/**
 * Return the part of a state that other views than its open one show, which no link to it holds.
 * @param {State & Record<string, any>} state
 * @param {string} view
 * @param {Record<string, Field<any>>} fields
 */
export function elsewhere(state, view, fields) {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, field]) =>
      field.view === undefined || field.view === view ? [] : [[name, state[name]]],
    ),
  );
}

/**
 * Return the state of a view as a whole; its figures have a width each.
 * @param {PageState} page
 * @returns {ViewState}
 */
export function viewState(page) {
  return { ...page, layer: page.layer ?? 0, head: page.head ?? 0, width: Infinity };
}
