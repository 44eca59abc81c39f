/**
 * The page as one file that needs no server: the views whose answers it holds. `headlight trace
 * "…" --html FILE`, the page’s own “Share” and `trace.show()` of the Python package make it.
 *
 * Its answers are one whole trace, answers to other requests about the same text, and the model's
 * card: a header in JSON behind its length (4 bytes, little-endian), then safetensors files in four
 * planes: of each four bytes the first ones, then the second ones, and so on. A request is answered if
 * all that it asks for is there.
 */

import { answerFrom, lackOf } from './api/answers.js';
import { Problem } from './api/calls.js';
import { openingIn, tileIn } from './rules/presentation.js';
import { encodingFromSafetensors, traceFromSafetensors } from './trace/trace.js';
import { deepEqual } from './state/state.js';
import { VIEWS } from './views/registry.js';

/**
 * @import { Catalogue } from './api/calls.js'
 * @import { HeldTile } from './rules/presentation.js'
 * @import { Ask, NamedArray, Trace } from './trace/trace.js'
 * @import { Card } from './trace/card.js'
 * @import { View, ViewState } from './plot/figure.js'
 * @import { Grid } from './plot/grid.js'
 * @import { Control } from './ui/controls.js'
 */

/** Represents a text that the reader would type. */
const ANY_TEXT = '…';
/** The members of a link that name the pass. */
const SUBJECT = ['model', 'text', 'target'];
/** The view that shows only maps. */
const OVERVIEW = 'long';
/** Views of other texts, other models or changed passes, or that ask for parts of a map. */
const OF_A_SERVER = [OVERVIEW, 'generate', 'compare'];
/** The sites and analyses that the first drawing of a view needs beyond those of its entry. @type {Record<string, import('./trace/trace.js').Ask>} */
const ALSO = {
  why: { capture: ['*.self_attention.queries'], analyses: ['head_outputs'] },
  stream: { analyses: ['logit_lens'] },
};

/** @param {ArrayBuffer} buffer */
export async function open(buffer) {
  const archive = openArchive(buffer, tileIn(document));
  const { catalogue, isOverview, holds } = archive;
  const [card] = catalogue.models;
  answerFrom(archive);
  const offered = VIEWS.filter((view) =>
    isOverview
      ? view.id === OVERVIEW
      : !OF_A_SERVER.includes(view.id) && lackOf(view, card) === '' && isHeld(view),
  );
  const ids = offered.map(({ id }) => id);
  /** @param {string} id */
  const leadsTo = (id) => ids.includes(id);
  const views = offered.map((entry) => ({
    ...entry,
    load: async () => offlineView(await entry.load(), { holds, leadsTo }),
  }));
  VIEWS.splice(0, VIEWS.length, ...views);
  // The document of a frame without an address has no history to write.
  if (location.protocol === 'about:') history.pushState = history.replaceState = () => {};
  const opening = openingIn(document);
  if (opening && location.hash === '') history.replaceState(null, '', opening.link);
  const link = new URLSearchParams(location.hash.slice(1));
  const linked = SUBJECT.filter((name) => link.has(name));
  if (!holds(Object.fromEntries(linked.map((name) => [name, link.get(name)])))) {
    for (const name of linked) link.delete(name);
    history.replaceState(null, '', `#${link}`);
  }
  await import('./main.js');

  /** @param {import('./plot/figure.js').ViewEntry} view */
  function isHeld({ id, also }) {
    if (id === 'word') return card.analyses.includes('logit_attribution');
    const sites = (also?.(card) ?? []).every((pattern) => holds({ capture: [pattern] }));
    return sites && holds(ALSO[id] ?? {});
  }
}

/**
 * Return a view over the contents of a saved page: what it would have to ask a server for is not
 * offered.
 * @param {View} view
 * @param {{holds: (ask: Ask) => boolean, leadsTo: (view: string) => boolean}} page `leadsTo`: is there such a view?
 * @returns {View} the same view, leading nowhere else
 */
export function offlineView(view, { holds, leadsTo }) {
  const texts = Object.entries(view.fields ?? {}).filter(([, { standard }]) => standard === '');
  /**
   * Return the names of the asks that the file does not answer.
   * @param {Trace} trace
   * @param {ViewState} state
   */
  const lacking = (trace, state) => {
    const typed = Object.fromEntries(texts.map(([name]) => [name, state[name] || ANY_TEXT]));
    const asks = Object.entries(view.asks?.(trace, { ...state, ...typed }) ?? {});
    return asks.filter(([, ask]) => !holds(ask)).map(([name]) => name);
  };
  /**
   * Return the control with the options that are held; null if it changes nothing.
   * @param {Trace} trace
   * @param {ViewState} state
   * @param {Control} control
   * @returns {Control|null}
   */
  const offered = (trace, state, control) => {
    const { kind, name = '', value, options = [], least, most } = control;
    const already = lacking(trace, state);
    /** @param {any} wanted */
    const isHeldWith = (wanted) =>
      lacking(trace, { ...state, [name]: wanted }).every((ask) => already.includes(ask));
    if (kind === 'choice')
      return { ...control, options: options.filter(({ id }) => id === value || isHeldWith(id)) };
    if (kind === 'flag') return isHeldWith(!value) ? control : null;
    if (kind === 'number' || kind === 'integer')
      return [least, most].every(isHeldWith) ? control : null;
    return kind === 'text' ? null : control;
  };
  return {
    ...view,
    controls: (trace, state) =>
      (view.controls?.(trace, state) ?? []).flatMap(
        (control) => offered(trace, state, control) ?? [],
      ),
    figure: (trace, state) => {
      const figure = view.figure(trace, state);
      // The server’s other pages are not in the file.
      const actions = (figure.actions ?? []).filter(
        ({ patch, href }) => !href && leadsTo(patch?.view ?? view.id),
      );
      return { ...figure, actions, ...(figure.grid && { grid: reading(figure.grid) }) };
    },
  };
}

/** Return a grid whose cells leave the text as it is. @param {Grid} grid @returns {Grid} */
function reading(grid) {
  const { writes, choose: _, chooseHint: __, note: ___, ...kept } = grid;
  return writes ? kept : grid;
}

/**
 * @typedef {Object} Archive
 * @property {Catalogue} catalogue with one model, whose only example is the text
 * @property {boolean} isOverview does it hold the maps of a long text, and nothing else of it?
 * @property {(body: Ask) => boolean} holds can the request be answered?
 * @property {(body: Ask) => Promise<any>} answer as `fetchAnswer`
 */

/** @typedef {{ask: Ask, start: number, end: number}} Entry where the answer to a request is, in bytes after the header */

const LENGTH_BYTES = 4;
/** Members of requests for more than the whole maps. */
const PARTS = ['queries', 'tile', 'positional', 'edits', 'logit_difference'];

/** @param {ArrayBuffer} buffer @param {HeldTile|null} [tile] @returns {Archive} */
export function openArchive(buffer, tile = null) {
  const size = new DataView(buffer).getUint32(0, true);
  /** @type {{card: Card, whole: Entry, further: Entry[]}} */
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, LENGTH_BYTES, size)));
  const files = joined(new Uint8Array(buffer, LENGTH_BYTES + size));
  /** @param {Entry} entry */
  const bytesOf = ({ start, end }) => files.slice(start, end).buffer;
  const stored = traceFromSafetensors(bytesOf(header.whole));
  const isOverview = Boolean(stored.resolution);
  const whole = isOverview ? { ...stored, tiles: [], ...(tile && { tile: tile.query }) } : stored;
  const card = { ...header.card, examples: [{ title: '', text: whole.text, opens: {} }] };
  const asked = { model: whole.model, text: whole.text };

  /** @param {Ask} body */
  const recorded = (body) => header.further.find(({ ask }) => deepEqual(ask, sorted(body)));

  /** @param {Ask} body */
  function holds({ model = whole.model, text = whole.text, target = whole.target, ...body }) {
    if (body.card) return body.card === card.id;
    if (body.tile) return tile !== null && isSameTile(tile.query, body.tile);
    if (model !== whole.model || text !== whole.text || target !== whole.target) return false;
    if (isOverview && recorded(body)) return true;
    if (isOverview) return !PARTS.some((part) => part in body) || isOfRows(body, whole, card);
    return recorded(body) !== undefined || isWithin(body, whole, card);
  }

  /** @param {Ask} body */
  async function answer(body) {
    if (!holds(body)) throw lacking();
    if (body.card) return { card };
    if (body.tile && tile) return encodingFromSafetensors(tile.bytes);
    const { model: _, text: __, target: ___, ...wanted } = body;
    const entry = recorded(wanted);
    if (entry && wanted.positional) return encodingFromSafetensors(bytesOf(entry));
    const trace = entry ? traceFromSafetensors(bytesOf(entry)) : ofHeads(whole, wanted.heads, card);
    return { ...trace, card, asked, timings: {} }; // the times are those of another machine
  }

  return { catalogue: { default: card.id, models: [card] }, isOverview, holds, answer };
}

/**
 * Return the bytes of four planes in their own order.
 * @param {Uint8Array} planes
 */
function joined(planes) {
  const count = planes.length / 4;
  return new Uint8Array(planes.length).map((_, at) => planes[(at % 4) * count + (at >> 2)]);
}

/**
 * @param {Record<string, string>} held
 * @param {Record<string, string|number>} wanted with the id of a trace, which differs
 */
function isSameTile(held, { id: _, ...wanted }) {
  return Object.entries(wanted).every(([name, value]) => held[name] === String(value));
}

function lacking() {
  return new Problem({
    title: 'Not in this file',
    detail: 'A saved page holds one pass over one text. The server that made it answers the rest.',
    status: 404,
  });
}

/**
 * Return the request as the file writes it: its capture says nothing if it is empty.
 * @param {Ask} body
 */
function sorted({ capture = [], ...body }) {
  return capture.length > 0 ? { capture, ...body } : body;
}

/**
 * Return true if a trace holds the numbers of rows that a request names. The queries of the request
 * only let its text be long.
 * @param {Ask} body
 * @param {Trace} trace
 * @param {Card} card
 */
function isOfRows({ queries: _, predictions: __, ...body }, trace, card) {
  return Boolean(body.capture?.length) && isWithin(body, trace, card);
}

/**
 * Return true if a trace holds every site and analysis of a request that has nothing else.
 * @param {Ask} body
 * @param {Trace} trace
 * @param {Card} card
 */
function isWithin(body, { tensors, analyses }, { sites = [] }) {
  const { capture = [], analyses: wanted = [], layers: _, heads: __, ...rest } = body;
  if (Object.keys(rest).length > 0) return false;
  const isHere = capture.every((pattern) => {
    const glob = globOf(pattern);
    const meant = [...sites.map(({ name }) => name), ...Object.keys(tensors)].filter((name) =>
      glob.test(name),
    );
    return meant.length > 0 && meant.every((name) => name in tensors);
  });
  return isHere && wanted.every((name) => name in analyses);
}

/** @param {string} pattern */
function globOf(pattern) {
  const parts = pattern.split('*').map((part) => part.replace(/[.]/g, '\\.'));
  return new RegExp(`^${parts.join('.*')}$`);
}

/**
 * Return a trace with only some of its heads, as the server answers a request of heads.
 * @param {Trace} trace
 * @param {number[]|undefined} heads
 * @param {Card} card
 * @returns {Trace}
 */
export function ofHeads(trace, heads, { n_heads: count }) {
  if (!heads) return trace;
  /** @param {any} array */
  const chosen = (array) =>
    array?.axes?.[0] === 'head' && array.shape[0] === count ? rowsOf(array, heads) : array;
  /** @param {Record<string, any>} arrays */
  const each = (arrays) =>
    Object.fromEntries(Object.entries(arrays).map(([name, array]) => [name, chosen(array)]));
  return {
    ...trace,
    tensors: each(trace.tensors),
    analyses: Object.fromEntries(
      Object.entries(trace.analyses).map(([name, arrays]) => [name, each(arrays)]),
    ),
  };
}

/** @param {NamedArray} array @param {number[]} rows @returns {NamedArray} */
function rowsOf({ axes, shape, data, scale }, rows) {
  const size = data.length / shape[0];
  const values = new Float64Array(rows.length * size);
  rows.forEach((row, place) => {
    for (let at = 0; at < size; at += 1) values[place * size + at] = data[row * size + at];
  });
  return { axes, shape: [rows.length, ...shape.slice(1)], data: values, scale };
}
