/**
 * The page as one file that needs no server: the views whose answers it holds. `headlight trace
 * "…" --html FILE`, the page's own “Save” and `trace.show()` of the Python package make it.
 */

import { openArchive } from './api/archive.js';
import { answerFrom } from './api/calls.js';
import { openingIn, tileIn } from './data/presentation.js';
import { lackOf, VIEWS } from './views/registry.js';

/**
 * @import { Ask, Trace } from './data/trace.js'
 * @import { View, ViewState } from './plot/figure.js'
 * @import { Control } from './ui/controls.js'
 */

/** Stands for a text that the reader would type. */
const ANY_TEXT = '…';
/** The view that shows maps alone. */
const OVERVIEW = 'long';
/** Views of other texts, other models or changed passes, or that ask for parts of a map. */
const OF_A_SERVER = [OVERVIEW, 'generate', 'compare'];
/** The sites and analyses that the first drawing of a view needs beyond those of its entry. @type {Record<string, import('./data/trace.js').Ask>} */
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
  // The document of a frame without an address has no history of its own to write.
  if (location.protocol === 'about:') history.pushState = history.replaceState = () => {};
  const opening = openingIn(document);
  if (opening && location.hash === '') history.replaceState(null, '', opening.link);
  await import('./main.js');

  /** @param {import('./views/registry.js').ViewEntry} view */
  function isHeld({ id, also }) {
    if (id === 'word') return card.analyses.includes('logit_attribution');
    const sites = (also?.(card) ?? []).every((pattern) => holds({ capture: [pattern] }));
    return sites && holds(ALSO[id] ?? {});
  }
}

/**
 * A view over what a saved page holds: what it would have to ask a server for is not offered.
 * @param {View} view
 * @param {{holds: (ask: Ask) => boolean, leadsTo: (view: string) => boolean}} page `leadsTo`: is there such a view?
 * @returns {View} the same view, leading nowhere else
 */
export function offlineView(view, { holds, leadsTo }) {
  const texts = Object.entries(view.fields ?? {}).filter(([, { standard }]) => standard === '');
  /**
   * The names of the asks that the file does not answer.
   * @param {Trace} trace
   * @param {ViewState} state
   */
  const lacking = (trace, state) => {
    const typed = Object.fromEntries(texts.map(([name]) => [name, state[name] || ANY_TEXT]));
    const asks = Object.entries(view.asks?.(trace, { ...state, ...typed }) ?? {});
    return asks.filter(([, ask]) => !holds(ask)).map(([name]) => name);
  };
  /**
   * The control with the options that are held; null if it changes nothing.
   * @param {Trace} trace
   * @param {ViewState} state
   * @param {Control} control
   * @returns {Control|null}
   */
  const offered = (trace, state, control) => {
    const { kind, name = '', value, options = [], most } = control;
    const already = lacking(trace, state);
    /** @param {any} wanted */
    const isHeldWith = (wanted) =>
      lacking(trace, { ...state, [name]: wanted }).every((ask) => already.includes(ask));
    if (kind === 'choice')
      return { ...control, options: options.filter(({ id }) => id === value || isHeldWith(id)) };
    if (kind === 'flag') return isHeldWith(!value) ? control : null;
    if (kind === 'number' || kind === 'integer') return isHeldWith(most) ? control : null;
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
      const actions = (figure.actions ?? []).filter(({ patch }) => leadsTo(patch.view ?? view.id));
      return { ...figure, actions };
    },
  };
}
