/**
 * The answers of a page without a server: an index, and files by name, each handed over as a text in
 * base64. They are in the page itself (a saved page, whose only file is about its text), or next to
 * it (a site); a page that is opened from a disk may load scripts, but nothing else.
 *
 * A file holds JSON about a chapter or an experiment, or the answers about one text: a whole trace,
 * answers to other requests about it, and the model's card. That is a header in JSON behind its length
 * (4 bytes, little-endian), then safetensors files in four planes: of each four bytes the first ones,
 * then the second ones, and so on. A request is answered if all that it asks for is there.
 */

import { deepEqual } from '../state/state.js';
import { encodingFromSafetensors, traceFromSafetensors } from '../trace/trace.js';
import { cardOf, Problem } from './calls.js';

/** @import { HeldTile } from '../rules/presentation.js' */

/**
 * @typedef {Object} Archive
 * @property {Catalogue} catalogue
 * @property {boolean} isOverview does it hold the maps of a long text, and nothing else of it?
 * @property {(body: Ask) => boolean} holds can the request be answered?
 * @property {(body: Ask, signal?: AbortSignal) => Promise<any>} answer as `fetchAnswer`
 */

/** @typedef {{model: string, text: string, target: string|null, file: string}} HeldText */
/**
 * @typedef {Object} Index
 * @property {Catalogue} catalogue
 * @property {HeldText[]} texts
 * @property {Record<string, any>} chapters the list, as the server answers it
 * @property {Record<string, string>} files of chapters and experiments, by the path of the API
 * @property {string} server the address of one that computes; empty: none is known
 * @property {import('./live.js').LiveIndex} [live] the models that the browser computes
 */
/** @typedef {(file: string) => Promise<Response>} Load */
/** @typedef {{ask: Ask, start: number, end: number}} Entry where the answer to a request is, in bytes after the header */

const API = '/api/v1';
const COMMAND = 'headlight serve';
const OF_PAGE = { title: 'Not in this file', server: null };

/**
 * Return the answers about all texts of a site; those about one are loaded when it is asked for.
 * @param {Index} index
 * @param {Load} load
 * @param {import('./live.js').Live|null} [live] computes what the site does not hold
 * @returns {Archive}
 */
export function openFolder({ catalogue, texts, server }, load, live = null) {
  /** @type {Map<string, Promise<Archive>>} */
  const opened = new Map();
  /** @type {Archive|null} of the text that was asked for last */
  let current = null;
  let model = catalogue.default;

  /** @param {Ask} body */
  const entryOf = ({ model = catalogue.default, text, target = null }) =>
    texts.find((each) => each.model === model && each.text === text && each.target === target) ??
    texts.find((each) => each.model === model && each.text === text && target !== null);

  /** @param {HeldText} entry */
  function open({ file }) {
    const known = opened.get(file);
    if (known) return known;
    const archive = load(file)
      .then((packed) => packed.arrayBuffer())
      .then((bytes) => openText(bytes));
    archive.catch(() => opened.delete(file));
    opened.set(file, archive);
    return archive;
  }

  /** @param {Ask} body */
  const holds = (body) =>
    body.card
      ? cardOf(catalogue, body.card) !== undefined
      : Boolean(current?.holds(body) || live?.takes({ model, ...body }));

  /** @param {Ask} body @param {AbortSignal} [signal] */
  async function answer(body, signal) {
    if (body.card) return { card: cardOf(catalogue, body.card) };
    const entry = body.text === undefined ? null : entryOf(body);
    model = body.model ?? model;
    current = entry ? await open(entry) : entry === null ? current : null;
    const isHeld = current?.holds(body);
    if (!isHeld && !live?.takes(body)) {
      const what = entry === undefined && !live?.reads(model) ? 'sentence' : 'pass';
      throw lacking({ title: `This ${what} is not on this site`, server });
    }
    const by = /** @type {Pick<Archive, 'answer'>} */ (isHeld ? current : live);
    const { card, ...trace } = await by.answer(body, signal);
    const examples = cardOf(catalogue, card?.id ?? '')?.examples;
    return { ...trace, ...(card && { card: { ...card, examples } }) };
  }

  return { catalogue, isOverview: false, holds, answer };
}

/**
 * Return what answers the other calls of the API: on chapters and experiments.
 * @param {Index} index
 * @param {Load} load
 * @param {import('./live.js').Live|null} [live]
 * @returns {(path: string, body?: Record<string, any>) => Promise<Response>}
 */
export function createCalls({ chapters, files, server }, load, live = null) {
  /** @type {any} the last chapter */
  let chapter = null;

  return async (asked, body) => {
    const [path] = asked.split('?'); // a chapter for any model is here about one
    if (path === `${API}/chapters`) return answerOf(chapters);
    const written = path === `${API}/generate` && live?.write(body);
    if (written) return written;
    if (path === `${API}/chapters/answer`) {
      const known = chapter?.outcomes.find(
        (/** @type {any} */ each) =>
          deepEqual(each.opens, body?.opens) && deepEqual(each.answer, body?.answer),
      );
      if (known) return answerOf(known.outcome);
    }
    if (!(path in files)) throw lacking({ title: 'This is not on this site', server });
    const held = await (await load(files[path])).json();
    if (held.chapter) {
      chapter = held;
      return answerOf(held.chapter);
    }
    if (!body) return answerOf(held.description);
    const run = held.runs.find((/** @type {any} */ { values }) => deepEqual(values, body));
    if (!run)
      throw lacking({
        title: `This setting is not on this site${otherSettings(held, body)}`,
        server,
      });
    return new Response(eventsOf(run));
  };
}

/** @param {any} value */
const answerOf = (value) => new Response(JSON.stringify(value));

/** Return a run as the events of the server. @param {{start: any, frames: any[]}} run */
function eventsOf({ start, frames }) {
  const events = [
    ['start', start],
    ...frames.map((arrays, index) => ['frame', { index, arrays }]),
    ['end', { n_frames: frames.length }],
  ];
  return events.map(([name, data]) => eventText(name, data)).join('');
}

/** Return an event as the server sends it. @param {string} name @param {any} data */
export function eventText(name, data) {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/**
 * Say which values a site holds of a parameter that was changed.
 * @param {{description: any, runs: {values: Record<string, any>}[]}} held
 * @param {Record<string, any>} body
 */
function otherSettings({ description, runs }, body) {
  const [name] = Object.keys(body);
  const alone = runs.filter(({ values }) => Object.keys(values).every((each) => each === name));
  const values = alone.map(
    ({ values }) => values[name] ?? description.parameters.properties[name]?.default,
  );
  const written = values.filter((value) => typeof value !== 'object');
  if (name === undefined || written.length < 2) return '';
  const words = new Intl.ListFormat('en').format(written.map(String));
  return `, which holds ${words} for ${name.replace(/_/g, ' ')}`;
}

/**
 * Return the problem that an answer is not there.
 * @param {{title: string, server: string|null}} of `server`: null for a saved page
 */
export function lacking({ title, server }) {
  if (server === null) {
    const rest =
      'A saved page holds one pass over one text. The server that made it answers the rest.';
    return new Problem({ title, detail: rest, status: 404 });
  }
  const others = server
    ? `so does the server at ${server}`
    : 'the project’s documentation says how to get it';
  const detail = `A site holds answers that were computed before. ${COMMAND} computes any; ${others}`;
  const type = 'urn:headlight:problem:not-on-this-site';
  return Object.assign(
    new Problem({ type, title, detail, status: 404 }),
    server && { elsewhere: { label: 'Open it there', href: `${server}/${location.hash}` } },
  );
}

const LENGTH_BYTES = 4;
/** Members of requests for more than the whole maps. */
const PARTS = ['queries', 'tile', 'positional', 'edits', 'logit_difference'];

/** @param {ArrayBuffer} buffer @param {HeldTile|null} [tile] @returns {Archive} */
export function openText(buffer, tile = null) {
  const size = new DataView(buffer).getUint32(0, true);
  /** @type {{card: Card, whole: Entry, further: Entry[]}} */
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, LENGTH_BYTES, size)));
  const files = joined(new Uint8Array(buffer, LENGTH_BYTES + size));
  /** @param {Entry} entry */
  const bytesOf = ({ start, end }) => files.slice(start, end).buffer;
  const stored = traceFromSafetensors(bytesOf(header.whole));
  const isOverview = Boolean(stored.resolution);
  const whole = isOverview ? { ...stored, tiles: [], ...(tile && { tile: tile.query }) } : stored;
  const card = {
    ...header.card,
    examples: [{ title: '', text: whole.text, claim: null, opens: {} }],
  };
  const asked = { model: whole.model, text: whole.text };

  /** @param {Ask} body */
  const recorded = (body) => header.further.find(({ ask }) => deepEqual(ask, sorted(body)));

  /** @param {Ask} body */
  function holds({ model = whole.model, text = whole.text, target = whole.target, ...body }) {
    if (body.card) return body.card === card.id;
    if (body.tile) {
      const { id: _, ...wanted } = body.tile; // the id is that of a trace, which differs
      const isHeld = Object.entries(wanted).every(
        ([name, value]) => tile?.query[name] === `${value}`,
      );
      return tile !== null && isHeld;
    }
    if (model !== whole.model || text !== whole.text || target !== whole.target) return false;
    if (isOverview && recorded(body)) return true;
    const { queries: _, predictions: __, ...ofRows } = body; // queries only let a text be long
    const isOfRows = Boolean(body.capture?.length) && isWithin(ofRows, whole, card);
    if (isOverview) return !PARTS.some((part) => part in body) || isOfRows;
    return recorded(body) !== undefined || isWithin(body, whole, card);
  }

  /** @param {Ask} body */
  async function answer(body) {
    if (!holds(body)) throw lacking(OF_PAGE);
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

/** Return the bytes of four planes in their own order. @param {Uint8Array} planes */
function joined(planes) {
  const count = planes.length / 4;
  return new Uint8Array(planes.length).map((_, at) => planes[(at % 4) * count + (at >> 2)]);
}

/**
 * Return the request as the file writes it: its capture says nothing if it is empty.
 * @param {Ask} body
 */
function sorted({ capture = [], ...body }) {
  return capture.length > 0 ? { capture, ...body } : body;
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
export function globOf(pattern) {
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
