/**
 * The pages of a site: a folder of files on any host, or opened from a disk. `headlight site` writes
 * it. What the server would answer is in files, each a script that hands over one text in base64: a
 * page that is opened from a disk may load scripts, but nothing else.
 *
 * A file holds JSON, or the answers about one text as those of a saved page (`offline.js`).
 */

import { answerFrom } from './api/answers.js';
import { answerCallsBy, cardOf, Problem } from './api/calls.js';
import { offlineView, openArchive } from './offline.js';
import { deepEqual } from './state/state.js';
import { VIEWS } from './views/registry.js';

/**
 * @import { Catalogue } from './api/calls.js'
 * @import { Archive } from './offline.js'
 * @import { Ask } from './trace/trace.js'
 */

/** @typedef {{model: string, text: string, target: string|null, file: string}} HeldText */
/**
 * @typedef {Object} Index
 * @property {Catalogue} catalogue
 * @property {HeldText[]} texts
 * @property {Record<string, any>} chapters the list, as the server answers it
 * @property {Record<string, string>} files of chapters and experiments, by the path of the API
 * @property {string} server the address of one that computes; empty: none is known
 */
/** @typedef {(file: string) => Promise<Response>} Load */

/** Views that ask for passes no file can foresee. */
const OF_A_SERVER = ['long', 'circuit'];
const COMMAND = 'headlight serve';
const API = '/api/v1';

/**
 * Open the page of sentences.
 * @param {Index} index
 * @param {Load} load
 */
export async function openSentences(index, load) {
  const folder = openFolder(index, load);
  answerFrom(folder);
  answerCallsBy(createCalls(index, load));
  const views = VIEWS.filter(({ id }) => !OF_A_SERVER.includes(id));
  const ids = views.map(({ id }) => id);
  const kept = views.map((entry) => ({
    ...entry,
    load: async () =>
      offlineView(await entry.load(), { holds: folder.holds, leadsTo: (id) => ids.includes(id) }),
  }));
  VIEWS.splice(0, VIEWS.length, ...kept);
  await import('./main.js');
}

/**
 * Open the page of experiments.
 * @param {Index} index
 * @param {Load} load
 */
export async function openExperiments(index, load) {
  answerCallsBy(createCalls(index, load));
  await import('./experiments.js');
}

/**
 * Return the answers about all texts of a site; those about one are loaded when it is asked for.
 * @param {Index} index
 * @param {Load} load
 * @returns {Archive}
 */
export function openFolder({ catalogue, texts, server }, load) {
  /** @type {Map<string, Promise<Archive>>} */
  const opened = new Map();
  /** @type {Archive|null} of the text that was asked for last */
  let current = null;

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
      .then((bytes) => openArchive(bytes));
    archive.catch(() => opened.delete(file));
    opened.set(file, archive);
    return archive;
  }

  /** @param {Ask} body */
  const holds = (body) =>
    body.card ? cardOf(catalogue, body.card) !== undefined : (current?.holds(body) ?? false);

  /** @param {Ask} body */
  async function answer(body) {
    if (body.card) return { card: cardOf(catalogue, body.card) };
    const entry = body.text === undefined ? null : entryOf(body);
    if (entry === undefined) throw lacking('This sentence is not on this site', server);
    const archive = entry ? await open(entry) : current;
    current = archive;
    if (!archive?.holds(body)) throw lacking('This pass is not on this site', server);
    const { card, ...trace } = await archive.answer(body);
    const examples = cardOf(catalogue, card?.id ?? '')?.examples;
    return { ...trace, ...(card && { card: { ...card, examples } }) };
  }

  return { catalogue, isOverview: false, holds, answer };
}

/**
 * Return what answers the other calls of the API: on chapters and experiments.
 * @param {Index} index
 * @param {Load} load
 * @returns {(path: string, body?: Record<string, any>) => Promise<Response>}
 */
export function createCalls({ chapters, files, server }, load) {
  /** @type {any} the last chapter */
  let chapter = null;

  return async (path, body) => {
    if (path === `${API}/chapters`) return answerOf(chapters);
    if (path === `${API}/chapters/answer`) {
      const known = chapter?.outcomes.find(
        (/** @type {any} */ each) =>
          deepEqual(each.opens, body?.opens) && deepEqual(each.answer, body?.answer),
      );
      if (known) return answerOf(known.outcome);
    }
    if (!(path in files)) throw lacking('This is not on this site', server);
    const held = await (await load(files[path])).json();
    if (held.chapter) {
      chapter = held;
      return answerOf(held.chapter);
    }
    if (!body) return answerOf(held.description);
    const run = held.runs.find((/** @type {any} */ { values }) => deepEqual(values, body));
    if (!run) throw lacking(`This setting is not on this site${otherSettings(held, body)}`, server);
    return new Response(eventsOf(run));
  };
}

/** @param {any} value */
const answerOf = (value) => new Response(JSON.stringify(value));

/**
 * Return a run as the events of the server.
 * @param {{start: any, frames: any[]}} run
 */
function eventsOf({ start, frames }) {
  const events = [
    ['start', start],
    ...frames.map((arrays, index) => ['frame', { index, arrays }]),
    ['end', { n_frames: frames.length }],
  ];
  return events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join('');
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

/** @param {string} title @param {string} server */
function lacking(title, server) {
  const others = server
    ? `so does the server at ${server}`
    : 'the project’s documentation says how to get it';
  return Object.assign(
    new Problem({
      type: 'urn:headlight:problem:not-on-this-site',
      title,
      detail: `A site holds answers that were computed before. ${COMMAND} computes any; ${others}`,
      status: 404,
    }),
    server && { elsewhere: { label: 'Open it there', href: `${server}/${location.hash}` } },
  );
}
