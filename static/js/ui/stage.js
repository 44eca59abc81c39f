/**
 * The stage: the open view, the sentence and the map of the model, drawn from the state, the trace and
 * the answers to what the view requests.
 */

import {
  labelledHeads,
  choosePlace,
  findPlaces,
  predictingSide,
  describeRole,
} from '../trace/attention.js';
import { writeFinding } from '../rules/finding.js';
import { capitalised } from '../words/lists.js';
import { headToOpen, explainRow } from '../rules/head_insight.js';
import { readEffects, isPredicting, predictionAsks } from '../rules/prediction.js';
import { toggled } from '../trace/words.js';
import { plotHeight, pageZoom, palette } from './dom.js';
import { viewState, choosing, isQueryLookedAt, queryOf } from '../state/state.js';
import { rowShift, rowShown } from '../state/written_rows.js';
import { LONG_VIEW } from '../state/store.js';
import { createFinding } from './next_words.js';
import { createSentence } from './sentence.js';
import { createViewSection } from './view_section.js';
import { openPart } from './model_map/parts.js';
import { createModelMap, createViewList } from './model_map/model_map.js';

/**
 * @import { Reader } from '../api/reader.js'
 * @import { Place, Side } from '../trace/attention.js'
 * @import { Part } from './model_map/parts.js'
 * @import { Ask, Trace } from '../trace/trace.js'
 * @import { Card } from '../trace/card.js'
 * @import { Kind, PageState, View } from '../plot/figure.js'
 * @import { Cell, Grid, PointedCell } from '../plot/grid.js'
 * @import { State } from '../state/state.js'
 * @import { Store } from '../state/store.js'
 */

const ONLY_LONG = 'The text is too long for this view. “Overview” shows its attention.';

/**
 * @typedef {Object} Registry the views of the page, before they are opened
 * @property {(Listed & {overview?: 'heads'|'maps'|'generation'|'atlas'})[]} views
 * @property {(id: string) => Promise<View>} loadView
 * @property {(kind: Kind, card: Card) => Listed[]} viewsFor
 * @property {(view: View, card: Card) => string} lackOf what of a model a view lacks, in a sentence
 */

/**
 * @param {(id: string) => HTMLElement} byId
 * @param {Object} by
 * @param {Registry} by.registry
 * @param {Store} by.store
 * @param {Reader} by.reader
 * @param {(isWaiting: boolean) => void} by.onWaiting for answers to what the open view requests
 * @param {(message: string) => void} by.announce
 */
export function createStage(byId, { registry, store, reader, onWaiting, announce }) {
  const { views, loadView, viewsFor, lackOf } = registry;
  const ids = views.map(({ id }) => id);
  /** The views that were opened, by id. @type {Record<string, View>} */
  const loaded = {};
  /** @type {Pick<PageState, 'palette'|'height'|'cards'|'answers'|'isSaved'>} */
  let frame = {
    palette: palette(),
    height: plotHeight(window.innerHeight),
    isSaved: isSaved(),
    cards: [],
    answers: {},
  };
  /** The view and the trace to which the answers of the frame belong. @type {{view: string, trace: Trace|null}} */
  let answered = { view: '', trace: null };
  /** @type {Grid|null} */
  let grid = null;
  /** @type {PointedCell|null} */
  let pointed = null;
  /** True: the reader just opened the view, so it is brought into sight. */
  let isNewView = false;
  /** The trace of the first drawing that was made. @type {Trace|null} */
  let drawn = null;

  const sections = Object.fromEntries(
    views.map((view) => [
      view.id,
      createViewSection(view, {
        onCell: point,
        onChoose: choose,
        onState: store.change,
        onGoingOn: store.goOn,
        onRedraw: show,
        onDrawn,
        announce,
      }),
    ]),
  );
  const sentence = createSentence(byId('sentence'), {
    onChoose: (side, index) => {
      if (reader.trace) store.change(choosing(reader.trace, side, index));
    },
    onPress: press,
    onPoint: markSentence,
  });
  const finding = createFinding(byId('finding'), { onState: store.change, announce });
  const parts = createParts(byId, {
    viewsFor,
    kindOf,
    store,
    reader,
    onSame: (view) => sections[view].bringDrawing(),
  });
  byId('views').append(...ids.map((id) => sections[id].element));

  /** Return the kind of part that a view shows. @param {string} view @returns {Kind} */
  function kindOf(view) {
    return views.find(({ id }) => id === view)?.of ?? 'model';
  }

  /**
   * Return the attention that a view of heads shows; null: no such view is open.
   * @param {Trace} trace
   */
  function placeShown(trace) {
    return kindOf(store.state.view) === 'head' ? choosePlace(store.state, trace) : null;
  }

  /**
   * Return the state with the row that a head's view shows, if none was chosen: a mask, or a
   * telling one.
   * @param {Trace} trace
   * @returns {State & Record<string, any>}
   */
  function looking(trace) {
    const { state } = store;
    const place = placeShown(trace);
    if (!place || isQueryLookedAt(state, trace, place.rows)) return state;
    const { query } = headToOpen(trace, place, state);
    if (query === null) return state;
    return { ...state, ...choosing(trace, place.rows, query + rowShift(trace, place, state)) };
  }

  /** Return the position whose prediction is told: the chosen one, or the last. @param {Trace} trace */
  function positionOf(trace) {
    if (!isPredicting(trace)) return -1;
    const place = choosePlace(store.state, trace);
    const side = predictingSide(trace);
    return place?.rows === side
      ? rowShown(trace, place, store.state)
      : queryOf(store.state, trace, side);
  }

  /** Return the requests of the row of next words. @param {Trace} trace */
  function pageAsks(trace) {
    const state = looking(trace);
    const place = choosePlace(state, trace);
    const row = place ? rowShown(trace, place, state) : -1;
    return predictionAsks(trace, state, { position: positionOf(trace), row });
  }

  /** Return the finding of the open view: of a head, the sentence on its chosen row. @param {Trace} trace */
  function insight(trace) {
    const place = placeShown(trace);
    const { view, where, layer, head } = store.state;
    if (!place) return writeFinding(trace, view, store.state);
    const { attention_which: which = 'head', attention_what: what = 'weights' } = store.state;
    const isOfHead = which === 'head' && what === 'weights';
    if (!isOfHead || layer === null || head === null) return writeFinding(trace, view, store.state);
    const row = rowShown(trace, place, looking(trace));
    return [writeFinding(trace, view, store.state), explainRow(trace, { where, layer, head }, row)]
      .filter(Boolean)
      .join(' ');
  }

  /** Draw the open view. */
  function show() {
    const { trace } = reader;
    const { view: id } = store.state;
    // A link may name no view; the state is normalized when its trace arrives.
    if (!trace || !sections[id]) return;
    for (const each of ids) {
      sections[each].element.hidden = each !== id;
      if (each !== id) sections[each].leave();
    }
    frame = {
      palette: palette(),
      height: plotHeight(heightOfScreen()),
      isSaved: isSaved(),
      cards: reader.catalogue.models,
      answers: answered.view === id && answered.trace === trace ? frame.answers : {},
    };
    answered = { view: id, trace };
    const view = loaded[id];
    grid = view ? draw(view, trace) : null;
    if (!view) open(id);
    const looked = looking(trace);
    const position = positionOf(trace);
    const page = { ...store.state, ...frame };
    parts.show(trace, page, position < 0 ? queryOf(looked, trace) : position);
    finding.show(trace, page, position);
    const side = grid?.sides?.rows ?? predictingSide(trace);
    sentence.choose(side, grid?.query === undefined ? queryOf(looked, trace, side) : grid.query);
    sentence.follow(grid?.parts ?? {});
    const said = insight(trace);
    sentence.explain(said);
    finding.explain(said, addressOf(trace, store.state, placeShown(trace)));
    markSentence();
    // Last, since what is above the view changes its height.
    if (view && isNewView) {
      isNewView = false;
      sections[id].reveal(byId('sentence').offsetHeight);
    }
  }

  /**
   * Draw a view, or say what the model or the length of the text denies it.
   * @param {View} view
   * @param {Trace} trace
   * @returns {Grid|null}
   */
  function draw(view, trace) {
    frame.answers = answersFor(view, trace);
    const isTooFar = Boolean(trace.resolution) && view.id !== LONG_VIEW;
    const { card } = reader;
    const lack = isTooFar ? ONLY_LONG : card?.sites ? lackOf(view, card) : '';
    if (!lack) return sections[view.id].show(view, trace, { ...looking(trace), ...frame });
    sections[view.id].lacks(lack);
    return null;
  }

  /** After the first drawing of a trace, the row of next words is asked for. */
  function onDrawn() {
    if (drawn === reader.trace) return;
    drawn = reader.trace;
    show();
  }

  /** Load a view, and draw it if it is still the open one. @param {string} id */
  async function open(id) {
    await load(id);
    if (loaded[id] && store.state.view === id) show();
  }

  /** @param {string} id */
  async function load(id) {
    try {
      loaded[id] ??= await loadView(id);
    } catch (error) {
      sections[id].fail(error);
    }
  }

  /**
   * Return the other answers of the open view; the page shows that they are pending.
   * @param {View} view
   * @param {Trace} trace
   */
  function answersFor(view, trace) {
    const before = frame.answers;
    // The row of next words comes after the first drawing.
    const ofPage = drawn === trace ? pageAsks(trace) : {};
    const asks = () => ({ ...asksOf(view, trace), ...ofPage });
    let answers = reader.answersTo(asks());
    // Until an answer is here, a drawing may show the one to the last settings.
    for (const [name, answer] of Object.entries(answers)) {
      const last = before[name]?.trace ?? before[name]?.previous;
      if (answer.isWaiting && last) answers[name] = { ...answer, previous: last };
    }
    // An answer may lead to more requests, as a map leads to its tiles.
    if (
      Object.entries(answers).some(([name, { trace: now }]) => now && now !== before[name]?.trace)
    ) {
      frame.answers = answers;
      answers = reader.answersTo(asks());
    }
    onWaiting(Object.entries(answers).some(([name, of]) => of.isWaiting && !(name in ofPage)));
    return answers;
  }

  /**
   * A view that throws here reports it in its own place: its figure lacks an answer.
   * @param {View} view
   * @param {Trace} trace
   * @returns {Record<string, Ask>}
   */
  function asksOf(view, trace) {
    try {
      return view.asks?.(trace, viewState({ ...looking(trace), ...frame })) ?? {};
    } catch (error) {
      console.warn(error);
      return {};
    }
  }

  /**
   * A pressed token is chosen; where words can be masked, it is masked, or its word comes back.
   * @param {Side} side
   * @param {number} index
   */
  function press(side, index) {
    const { trace } = reader;
    if (!trace || trace.text !== store.state.text) return; // the results are of another text
    const isMasking = trace.card?.has_mask && !isSaved();
    const masked = isMasking ? toggled(trace, index, store.state.words) : null;
    store.change(masked ?? choosing(trace, side, index));
  }

  /** @param {Cell} cell @param {Grid} of */
  function choose({ row, column }, of) {
    store.change(of.choose?.(row, column) ?? {});
    announce(`Chosen: ${of.describe(row, column)}`);
  }

  /**
   * Mark the cell under the mouse, finger or keyboard cursor, or none.
   * @param {Cell|null} cell
   * @param {Grid} of
   * @param {boolean} isKeyboard
   */
  function point(cell, of, isKeyboard) {
    pointed = cell && { cell, grid: of };
    markSentence();
    if (cell && isKeyboard) announce(of.describe(cell.row, cell.column));
  }

  function markSentence() {
    sentence.mark(grid, pointed, frame.palette);
  }

  return {
    show,
    load,

    /** Return the grid of the first drawing of the open view. */
    get grid() {
      return grid;
    },

    /** Show a trace that arrived. @param {Trace} trace */
    take(trace) {
      pointed = null;
      grid = null;
      sentence.show(trace);
      show();
    },

    /** Turn to another view. @param {boolean} isRevealed it is to be brought into sight */
    turn(isRevealed) {
      pointed = null;
      isNewView = isRevealed;
    },

    /** Cancel the pending requests of the views, or of one of them. @param {string[]} [left] */
    leave(left = ids) {
      for (const id of left) sections[id]?.leave();
    },
  };
}

/** Return true in a saved page, which no server answers. */
function isSaved() {
  return document.body.classList.contains('is-saved');
}

/**
 * Return the address of the chosen head, and what it is for.
 * @param {Trace} trace
 * @param {State} state
 * @param {Place|null} place
 */
function addressOf(trace, { layer, head }, place) {
  if (!place || layer === null || head === null) return '';
  const where = findPlaces(trace).length > 1 ? `${place.name}, ` : '';
  const labelled = labelledHeads(trace, place)[layer]?.heads[head];
  const role = labelled ? describeRole(labelled) : '';
  return capitalised(`${where}layer ${layer}, head ${head}${role && `: ${role}`}`);
}

/** Return pixels of the page on one screen; while it is presented, tokens and the bar take some. */
function heightOfScreen() {
  const zoom = pageZoom();
  return zoom > 1 ? window.innerHeight / zoom + 210 : window.innerHeight;
}

/** @typedef {{id: string, title: string, of: Kind, titleFor?: (card: Card) => string, isListed?: (trace: Trace) => boolean}} Listed a view, before it is opened */

/**
 * @param {(id: string) => HTMLElement} byId
 * @param {Object} by
 * @param {(kind: Kind, card: Card) => Listed[]} by.viewsFor
 * @param {(view: string) => Kind} by.kindOf the kind of part that a view shows
 * @param {Store} by.store
 * @param {Reader} by.reader
 * @param {(view: string) => void} by.onSame the pressed part is that of the open view
 */
function createParts(byId, { viewsFor, kindOf, store, reader, onSame }) {
  const map = createModelMap(byId('map'), byId('map-caption'), { onChoose: open });
  const list = createViewList(byId('view-list'), { onChoose: (view) => store.change({ view }) });

  /**
   * Return the views that a part opens: the open one, if it is about such a part already, comes
   * first.
   * @param {Part} part
   * @returns {string[]}
   */
  function viewsOf({ kind }) {
    if (kind === 'tokens' || !reader.trace?.card) return [];
    const { view } = store.state;
    const isInLayers = ['head', 'expert', 'stream'].includes(kindOf(view));
    const wanted = kind === 'layer' ? (isInLayers ? kindOf(view) : 'head') : kind;
    const listed = viewsFor(wanted === 'network' ? 'stream' : wanted, reader.trace.card);
    const ids = listed.map(({ id }) => id);
    return ids.includes(view) ? [view, ...ids.filter((id) => id !== view)] : ids;
  }

  /**
   * Return the change that switches a pressed head off, or on again. Without a server, and where
   * nothing is predicted, there is no other pass.
   * @param {Part} part
   */
  function pressed({ id }) {
    const { trace } = reader;
    const canEdit = trace && isPredicting(trace) && !isSaved();
    return canEdit && { off: store.state.off === id ? '' : id };
  }

  /** Open the view of a part of the map. @param {Part} part */
  function open(part) {
    const [view] = viewsOf(part);
    const isSame = view === store.state.view;
    store.change({ ...openPart(part, view), ...(part.kind === 'head' && pressed(part)) });
    // A press on a head changes the row of next words, which stays in sight.
    if (isSame && !(part.kind === 'head' && pressed(part))) onSame(view);
  }

  return {
    /**
     * @param {Trace} trace
     * @param {PageState} page
     * @param {number} query that is looked at
     */
    show(trace, page, query) {
      const { card } = trace;
      if (!card) return;
      const state = viewState(page);
      const kind = kindOf(page.view);
      const effects = readEffects(trace, state);
      map.show(trace, card, { state, kind, query, effects, viewsOf });
      const listed = viewsFor(kind, card).filter(
        ({ id, isListed }) => id === page.view || (isListed?.(trace) ?? true),
      );
      list.show(
        listed.map(({ id, title, titleFor }) => ({ id, title: titleFor?.(card) ?? title })),
        page.view,
      );
    },
  };
}
