/**
 * The page as one file that needs no server: the views whose answers it holds. `headlight trace
 * "…" --html FILE`, the page's own “Save” and `trace.show()` of the Python package make it.
 */

import { openArchive } from './api/archive.js';
import { answerFrom } from './api/calls.js';
import { offlineView } from './state/offline_view.js';
import { lackOf, VIEWS } from './views/registry.js';

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
  const archive = openArchive(buffer);
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
  await import('./main.js');

  /** @param {import('./views/registry.js').ViewEntry} view */
  function isHeld({ id, also }) {
    if (id === 'word') return card.analyses.includes('logit_attribution');
    const sites = (also?.(card) ?? []).every((pattern) => holds({ capture: [pattern] }));
    return sites && holds(ALSO[id] ?? {});
  }
}
