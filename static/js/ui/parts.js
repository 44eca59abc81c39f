/**
 * The map of the model and the list of the views of one part: what is shown of them, and the view
 * that a pressed part opens.
 */

import { openingOf } from '../data/model_parts.js';
import { viewState } from '../plot/figure.js';
import { partOf } from './dom.js';
import { createModelMap, createViewList } from './model_map.js';

/**
 * @import { Reader } from '../api/reader.js'
 * @import { Kind, Part } from '../data/model_parts.js'
 * @import { Card, Trace } from '../data/trace.js'
 * @import { PageState, View } from '../plot/figure.js'
 * @import { Store } from '../state/store.js'
 */

/** @typedef {{id: string, title: string, of: Kind, titleFor?: (card: Card) => string}} Listed a view, before it is opened */

/**
 * @param {(id: string) => HTMLElement} byId
 * @param {Object} by
 * @param {(kind: Kind, card: Card) => Listed[]} by.viewsFor
 * @param {(view: string) => Kind} by.kindOf the kind of part that a view shows
 * @param {Store} by.store
 * @param {Reader} by.reader
 * @param {(view: string) => void} by.onSame the pressed part is that of the open view
 */
export function createParts(byId, { viewsFor, kindOf, store, reader, onSame }) {
  const map = createModelMap(byId('map'), byId('map-caption'), { onChoose: open });
  const list = createViewList(byId('view-list'), { onChoose: (view) => store.change({ view }) });

  /**
   * The views that a part opens: the open one, if it is about such a part already, comes first.
   * @param {Part} part
   * @returns {string[]}
   */
  function viewsOf({ kind }) {
    if (kind === 'tokens') return ['sentence'];
    if (!reader.trace?.card) return [];
    const { view } = store.state;
    const isInLayers = ['head', 'expert', 'stream'].includes(kindOf(view));
    const wanted = kind === 'layer' ? (isInLayers ? kindOf(view) : 'head') : kind;
    const listed = viewsFor(wanted === 'network' ? 'stream' : wanted, reader.trace.card);
    const ids = listed.map(({ id }) => id);
    return ids.includes(view) ? [view, ...ids.filter((id) => id !== view)] : ids;
  }

  /** Opens the view of a part of the map; the tokens are those of the sentence. @param {Part} part */
  function open(part) {
    const [view] = viewsOf(part);
    if (part.kind === 'tokens') {
      const isTarget = part.stack === 'decoder' && reader.trace?.target_tokens;
      partOf(byId(isTarget ? 'target-chips' : 'chips'), '[tabindex="0"]', HTMLElement).focus();
      return;
    }
    const hasSpecialities = part.kind === 'expert' && reader.fullCard()?.expert_tokens;
    const isSame = view === store.state.view;
    store.change({
      ...openingOf(part, view),
      ...(hasSpecialities ? { experts_show: 'specialities' } : {}),
    });
    if (isSame) onSame(view);
  }

  return {
    /**
     * @param {Trace} trace
     * @param {PageState} page
     * @param {number} query that is looked at
     * @param {View|undefined} view the open one, once it is loaded
     */
    show(trace, page, query, view) {
      const { card } = trace;
      if (!card) return;
      const state = viewState(page);
      const kind = kindOf(page.view);
      const route = view?.route?.(trace, state) ?? [];
      map.show(trace, card, { state, kind, query, route, viewsOf });
      const listed = viewsFor(kind, card);
      list.show(
        listed.map(({ id, title, titleFor }) => ({ id, title: titleFor?.(card) ?? title })),
        page.view,
      );
    },
  };
}
