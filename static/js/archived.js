/**
 * The entry of a page without a server: a saved page, which `headlight trace "…" --html FILE`, the
 * page’s own “Share” and `trace.show()` of the Python package make, or a page of a site, which
 * `headlight site` writes. It is told where its answers come from, and offers what they allow.
 */

import { answerFrom, lackOf } from './api/answers.js';
import { createCalls, openFolder, openText } from './api/archive.js';
import { answerCallsBy, problemOf } from './api/calls.js';
import { openLive } from './api/live.js';
import { openingIn, tileIn } from './rules/presentation.js';
import { VIEWS } from './views/view_registry.js';

/** @import { Archive, Load } from './api/archive.js' */

/** Represents a text that the reader would type. */
const ANY_TEXT = '…';
/** The members of a link that name the pass. */
const SUBJECT = ['model', 'text', 'target'];
/** The view that shows only maps. */
const OVERVIEW = 'long';
/** Views that ask for passes no file can foresee. */
const OF_A_SERVER = [OVERVIEW, 'circuit', 'there'];
/** Views of other texts, other models or changed passes, which a saved page has not. */
const OF_SEVERAL = [...OF_A_SERVER, 'generate', 'compare'];
/** The sites and analyses that the first drawing of a view needs beyond those of its entry. @type {Record<string, Ask>} */
const ALSO = {
  why: { capture: ['*.self_attention.queries'], analyses: ['head_outputs'] },
  stream: { analyses: ['logit_lens'] },
};

/**
 * Open a page of a site: that of experiments or that of sentences.
 * @param {Index} index
 * @param {Load} load
 */
export async function openSite(index, load) {
  const { live: computed } = index;
  /** @param {string} words */
  const tell = (words) => {
    const status = document.getElementById('status');
    status?.classList.add('is-loading');
    status?.replaceChildren(words);
  };
  const live = computed ? openLive({ ...index, live: computed }, tell) : null;
  answerCallsBy(createCalls(index, load, live));
  const folder = openFolder(index, load, live);
  answerFrom({
    ...folder,
    answer(body, signal) {
      const model = new URLSearchParams(location.hash.slice(1)).get('model') ?? '';
      document.body.classList.toggle('is-live', Boolean(live?.reads(model)));
      return folder.answer(body, signal);
    },
  });
  if (document.body.classList.contains('is-experiments')) return import('./experiments.js');
  offer((view) => !OF_A_SERVER.includes(view.id), folder);
  return import('./main.js');
}

/** Open a saved page. @param {ArrayBuffer} buffer the answers about its text */
export async function openSaved(buffer) {
  const archive = openText(buffer, tileIn(document));
  const { catalogue, isOverview, holds } = archive;
  const [card] = catalogue.models;
  answerFrom(archive);
  /** @param {ViewEntry} view */
  const isHeld = ({ id, also }) => {
    if (id === 'word') return card.analyses.includes('logit_attribution');
    const sites = (also?.(card) ?? []).every((pattern) => holds({ capture: [pattern] }));
    return sites && holds(ALSO[id] ?? {});
  };
  const isOffered = (/** @type {ViewEntry} */ view) =>
    !OF_SEVERAL.includes(view.id) && lackOf(view, card) === '' && isHeld(view);
  offer((view) => (isOverview ? view.id === OVERVIEW : isOffered(view)), archive);
  // The document of a frame without an address has no history to write.
  if (location.protocol === 'about:') history.pushState = history.replaceState = () => {};
  const opening = openingIn(document);
  if (opening && location.hash === '') history.replaceState(null, '', opening.link);
  const link = new URLSearchParams(location.hash.slice(1));
  const linked = SUBJECT.filter((member) => link.has(member));
  if (!holds(Object.fromEntries(linked.map((member) => [member, link.get(member)])))) {
    for (const member of linked) link.delete(member);
    history.replaceState(null, '', `#${link}`);
  }
  await import('./main.js');
}

/**
 * Open the page of a notebook's cell (`widget.js`), whose kernel answers its calls.
 * @param {{address: string, call: (path: string, body?: Record<string, any>, accept?: string) => Promise<{status: number, type: string, bytes: ArrayBuffer}>, changed: (address: string) => void, onAddress: (act: (address: string) => void) => void}} cell
 */
export async function openCell({ address, call, changed, onAddress }) {
  answerCallsBy(async (path, body, accept) => {
    const { status, type, bytes } = await call(path, body, accept);
    const answer = new Response(bytes, { status, headers: { 'Content-Type': type } });
    if (!answer.ok) throw await problemOf(answer);
    return answer;
  });
  location.hash = address;
  history.pushState = history.replaceState = (_, __, url) => changed(String(url));
  // The browser tells of the kernel's address as of a step back; what the kernel names stays.
  window.addEventListener('popstate', (told) => told.state || told.stopImmediatePropagation());
  onAddress((wanted) => {
    location.hash = wanted;
    window.dispatchEvent(new PopStateEvent('popstate', { state: { isNamed: true } }));
  });
  return import('./main.js');
}

/**
 * Let the page have some views, over what the archive holds.
 * @param {(view: ViewEntry) => boolean} isOffered
 * @param {Archive} archive
 */
function offer(isOffered, { holds }) {
  const views = VIEWS.filter(isOffered);
  const leadsTo = (/** @type {string} */ id) => views.some((view) => view.id === id);
  const offered = views.map((entry) => ({
    ...entry,
    load: async () => offlineView(await entry.load(), { holds, leadsTo }),
  }));
  VIEWS.splice(0, VIEWS.length, ...offered);
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
