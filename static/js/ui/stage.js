/**
 * The stage: the open view, the sentence and the map of the model, drawn from the state, the trace and
 * the answers to what the view requests.
 */

import { messageOf } from '../api/calls.js';
import { holdsLayer, predictingSide } from '../trace/attention.js';
import { moversIn } from '../rules/moved.js';
import { partId, readEffects, reasonsIn } from '../rules/prediction.js';
import { toggled } from '../trace/words.js';
import { heightCovered, plotHeight, pageZoom, palette } from './dom.js';
import { viewState, choosing, queryOf } from '../state/state.js';
import { isOf } from '../state/conversation.js';
import { LONG_VIEW } from '../state/store.js';
import { painted, runAfter } from '../plot/renderer.js';
import { hasNews, insight, lookAt, pageAsks, withPrevious } from './looking.js';
import { createLayerHeads } from './layer_heads.js';
import { Scene } from './scene.js';
import { createSentence } from './sentence.js';
import { createViewSection } from './view_section.js';
import { openPart } from './model_map/parts.js';
import { createModelMap, createViewList, NARROW } from './model_map/model_map.js';

/**
 * @import { Reader } from '../api/reader.js'
 * @import { Side } from '../trace/attention.js'
 * @import { Answers, Look } from './looking.js'
 * @import { Part } from './model_map/parts.js'
 * @import { Cell } from '../plot/grid.js'
 */

const ONLY_LONG = 'The text is too long for this view. “Overview” shows its attention.';

/**
 * @typedef {Object} Registry the views of the page, before they are opened
 * @property {(Listed & {overview?: 'heads'|'maps'|'generation'|'atlas'})[]} views
 * @property {(id: string) => Promise<View>} loadView
 * @property {(kind: Kind, card: Card) => Listed[]} viewsFor
 * @property {(view: View, card: Card) => string} lackOf what of a model a view lacks, in a sentence
 */

/** @typedef {{registry: Registry, store: Store, reader: Reader, onWaiting: (isWaiting: boolean) => void, announce: (message: string) => void}} By `onWaiting`: for answers to what the open view requests */

/** Draws the page; what it shows is computed by `looking.js`. */
export class Stage {
  /** The views that were opened, by id. @type {Record<string, View>} */
  #loaded = {};
  /** @type {Pick<PageState, 'palette'|'height'|'cards'|'answers'|'isSaved'>} */
  #frame = frameNow([]);
  /** The view and the trace to which the answers of the frame belong. @type {{view: string, trace: Trace|null}} */
  #answered = { view: '', trace: null };
  /** The first drawing of the open view. @type {Grid|null} */
  grid = null;
  /** @type {PointedCell|null} */
  #pointed = null;
  /** True: the reader just opened the view, so it is brought into sight. */
  #isNewView = false;
  /** True: the drawings follow the scene with the next paint. */
  #isComing = false;
  /** True: the drawings are drawn again in the height that is left. */
  #isFitting = false;
  #onScene = () => {};

  /** @param {(id: string) => HTMLElement} byId @param {By} by */
  constructor(byId, by) {
    const { store, reader, registry, announce } = by;
    this.by = by;
    runAfter(
      new Promise((resolve) => {
        this.#onScene = resolve;
      }),
    );
    this.sections = Object.fromEntries(
      registry.views.map((view) => [
        view.id,
        createViewSection(view, {
          onCell: (cell, of, isKeyboard) => this.#point(cell, of, isKeyboard),
          onChoose: (cell, of) => this.#choose(cell, of),
          onState: store.change,
          onGoingOn: store.goOn,
          onRedraw: this.show,
          announce,
        }),
      ]),
    );
    this.sentence = createSentence(byId('sentence'), {
      onChoose: (side, index) => {
        if (reader.trace) store.change(choosing(reader.trace, side, index));
      },
      onPress: (side, index) => this.#press(side, index),
      onPoint: () => this.#markSentence(),
    });
    this.scene = new Scene(byId, {
      onState: store.change,
      onChoose: ({ side, index }) => {
        const { trace } = reader;
        if (trace && isOf(trace, store.state)) store.change(choosing(trace, side, index));
      },
      announce,
    });
    this.insight = byId('insight');
    this.showLayer = createLayerHeads(byId('layer-heads'), store.change);
    this.parts = createParts(byId, {
      viewsFor: registry.viewsFor,
      kindOf: (view) => this.#kindOf(view),
      store,
      reader,
      onSame: (view) => this.sections[view].bringDrawing(),
    });
    byId('views').append(...Object.values(this.sections).map(({ element }) => element));
  }

  /** Return the kind of part that a view shows. @param {string} view @returns {Kind} */
  #kindOf(view) {
    return this.by.registry.views.find(({ id }) => id === view)?.of ?? 'model';
  }

  /** Return what the open view looks at in a trace. @param {Trace} trace */
  #look(trace) {
    const { state } = this.by.store;
    return lookAt(trace, state, this.#kindOf(state.view));
  }

  /** Draw the open view and what is around it. */
  show = () => {
    this.#isComing = false;
    const trace = this.#begin();
    if (!trace) return;
    const { view: id } = this.by.store.state;
    for (const [each, section] of Object.entries(this.sections)) {
      section.element.hidden = each !== id;
      if (each !== id) section.leave();
    }
    const look = this.#look(trace);
    const view = this.#loaded[id];
    this.grid = view ? this.#draw(view, trace, look) : null;
    if (this.#opensDecisive(trace, look)) {
      this.show();
      return;
    }
    if (!view) this.#open(id);
    this.#surround(trace, look);
    // The height that is left for a presented drawing is known once it has its place.
    if (this.#frame.height !== heightOfDrawing() && !this.#isFitting) {
      this.#isFitting = true;
      this.show();
      this.#isFitting = false;
    }
    // Last, since what is above the view changes its height.
    if (view && this.#isNewView) {
      this.#isNewView = false;
      this.sections[id].reveal(heightCovered());
    }
  };

  /** Draw the scene at once, and everything after the next paint. */
  showSoon = () => {
    const trace = this.#begin();
    const look = trace && this.#look(trace);
    const view = this.#loaded[this.by.store.state.view];
    if (!view || !look || look.position < 0 || isMissing(trace, look)) {
      this.show();
      return;
    }
    this.#frame.answers = this.#answersFor(view, trace, look);
    this.#opensDecisive(trace, look);
    this.#showScene(trace, this.#look(trace), '');
    this.by.onWaiting(true);
    if (!this.#isComing) painted().then(() => this.#isComing && this.show());
    this.#isComing = true;
  };

  /** Return the trace to draw, its frame with the answers that are known; null: there is nothing. */
  #begin() {
    const { store, reader } = this.by;
    const { trace } = reader;
    const { view } = store.state;
    // A link may name no view; the state is normalized when its trace arrives.
    if (!trace || !this.sections[view]) return null;
    const isSameView = this.#answered.view === view && this.#answered.trace === trace;
    const answers = isSameView ? this.#frame.answers : {};
    this.#frame = { ...frameNow(reader.catalogue.models), answers };
    this.#answered = { view, trace };
    return trace;
  }

  /** Open the head that decides the prediction, unless another was named. @param {Trace} trace @param {Look} look */
  #opensDecisive(trace, { position }) {
    const { store } = this.by;
    const wanted = decisiveIn(trace, this.#frame, position);
    if (!wanted) return false;
    const before = store.state;
    store.suggest(wanted);
    return before.layer !== store.state.layer || before.head !== store.state.head;
  }

  /** Show what is around the view: map, finding and sentence. @param {Trace} trace @param {Look} look */
  #surround(trace, look) {
    const { state: looked, place, position } = look;
    const { state } = this.by.store;
    const { grid, sentence } = this;
    const page = { ...state, ...this.#frame };
    this.parts.show(trace, page, position < 0 ? queryOf(looked, trace) : position);
    const side = grid?.sides?.rows ?? predictingSide(trace);
    sentence.choose(side, grid?.query === undefined ? queryOf(looked, trace, side) : grid.query);
    sentence.follow(grid?.parts ?? {});
    const { said, label } = insight(trace, state, { state: looked, place });
    sentence.explain(said);
    this.#showScene(trace, look, said);
    // The finding tells what the head reads; the sentence on its row would say it again.
    const isTold = place?.rows === predictingSide(trace) && this.scene.isAbout(state);
    this.insight.textContent = [isTold ? '' : said, label].filter(Boolean).join(' ');
    this.showLayer(trace, { ...state, ...this.scene.subject() }, this.#frame.palette);
    this.#markSentence();
  }

  /** @param {Trace} trace @param {Look} look @param {string} finding of the view */
  #showScene(trace, look, finding) {
    const { state, isHeadGiven } = this.by.store;
    const page = { ...state, ...this.#frame };
    // A translator's own view opens the head that aligns best, which the finding need not be about.
    const isChosen = isHeadGiven && state.view !== 'translate';
    this.scene.show(trace, page, look, { isChosen, finding });
    if (!page.answers.next_why?.isWaiting) this.#onScene();
  }

  /**
   * Draw a view, or say what the model or the length of the text denies it.
   * @param {View} view
   * @param {Trace} trace
   * @param {Look} look
   * @returns {Grid|null}
   */
  #draw(view, trace, look) {
    const { card } = this.by.reader;
    const { layer } = look.state;
    if (layer !== null && isMissing(trace, look)) return this.#awaitLayer(view, trace, layer);
    this.#frame.answers = this.#answersFor(view, trace, look);
    const isTooFar = Boolean(trace.resolution) && view.id !== LONG_VIEW;
    const lack = isTooFar ? ONLY_LONG : card?.sites ? this.by.registry.lackOf(view, card) : '';
    const section = this.sections[view.id];
    if (!lack) return section.show(view, trace, { ...look.state, ...this.#frame });
    section.lacks(lack);
    return null;
  }

  /** Ask for the weights of a layer, and say so. @param {View} view @param {Trace} trace @param {number} layer */
  #awaitLayer(view, trace, layer) {
    const { problem } = this.by.reader.wantLayer(layer);
    this.by.onWaiting(!problem);
    const { length } = trace.tokens;
    this.sections[view.id].lacks(
      problem
        ? messageOf(problem)
        : `The weights of layer ${layer} for ${length} tokens are being read.`,
    );
    return null;
  }

  /** Load a view, and draw it if it is still the open one. @param {string} id */
  async #open(id) {
    await this.load(id);
    if (this.#loaded[id] && this.by.store.state.view === id) this.show();
  }

  /** @param {string} id */
  async load(id) {
    try {
      this.#loaded[id] ??= await this.by.registry.loadView(id);
    } catch (error) {
      this.sections[id]?.fail(error); // a link may name a view that there is not
    }
  }

  /**
   * Return the other answers of the open view; the page shows that they are pending.
   * @param {View} view
   * @param {Trace} trace
   * @param {Look} look
   */
  #answersFor(view, trace, look) {
    const { reader, onWaiting } = this.by;
    const before = this.#frame.answers;
    /** @param {Answers} answers */
    const asked = (answers) => ({
      ...asksOf(view, trace, { ...look.state, ...this.#frame, answers }),
      ...pageAsks(trace, look, answers),
    });
    let answers = withPrevious(reader.answersTo(asked(before)), before);
    // An answer may lead to more requests, as a map leads to its tiles.
    if (hasNews(answers, before)) answers = reader.answersTo(asked(answers));
    onWaiting(Object.entries(answers).some(([name, of]) => of.isWaiting && !OF_PAGE.has(name)));
    return answers;
  }

  /**
   * A pressed token is chosen; where words can be masked, it is masked, or its word comes back.
   * @param {Side} side
   * @param {number} index
   */
  #press(side, index) {
    const { store, reader } = this.by;
    const { trace } = reader;
    if (!trace || !isOf(trace, store.state)) return; // the results are of another text
    const isMasking = trace.card?.has_mask && !isSaved();
    const masked = isMasking ? toggled(trace, index, store.state.words) : null;
    store.change(masked ?? choosing(trace, side, index));
  }

  /** @param {Cell} cell @param {Grid} of */
  #choose({ row, column }, of) {
    this.by.store.change(of.choose?.(row, column) ?? {});
    this.by.announce(`Chosen: ${of.describe(row, column)}`);
  }

  /**
   * Mark the cell under the mouse, finger or keyboard cursor, or none.
   * @param {Cell|null} cell
   * @param {Grid} of
   * @param {boolean} isKeyboard
   */
  #point(cell, of, isKeyboard) {
    this.#pointed = cell && { cell, grid: of };
    this.#markSentence();
    if (cell && isKeyboard) this.by.announce(of.describe(cell.row, cell.column));
  }

  #markSentence() {
    this.sentence.mark(this.grid, this.#pointed, this.#frame.palette);
  }

  /** Show a trace that arrived. @param {Trace} trace */
  take(trace) {
    this.#pointed = null;
    this.grid = null;
    this.sentence.show(trace);
    this.scene.take(trace);
    this.showSoon();
  }

  /** Walk a step in the open view. @param {number} by @returns {boolean} false: there is none */
  walk = (by) => {
    const { store, reader } = this.by;
    const { trace } = reader;
    const { walk } = this.#loaded[store.state.view] ?? {};
    const page = trace && { ...this.#look(trace).state, ...this.#frame };
    const patch = page && walk?.(trace, viewState(page), by);
    if (patch) store.goOn(patch);
    return Boolean(patch);
  };

  /** Turn to another view. @param {boolean} isRevealed it is to be brought into sight */
  turn(isRevealed) {
    this.#pointed = null;
    this.#isNewView = isRevealed;
  }

  /** Cancel the pending requests of the views, or of one of them. @param {string[]} [left] */
  leave(left = Object.keys(this.sections)) {
    for (const id of left) this.sections[id]?.leave();
  }
}

/**
 * Return the head that decides the prediction, or that moves the vector of the text most.
 * @param {Trace} trace
 * @param {{answers: Answers}} frame
 * @param {number} position
 */
function decisiveIn(trace, frame, position) {
  const [most] = moversIn(frame);
  if (most) return { layer: most.layer, head: most.head };
  const reasons = reasonsIn(frame);
  if (!reasons || reasons.position !== position || reasons.decisive === null) return null;
  const [, where, layer, head] = partId(reasons.reasons[reasons.decisive]).split(' ');
  return { layer: Number(layer), head: Number(head), ...(trace.target && { where }) };
}

/** Return true if the weights of the opened layer are not held. @param {Trace} trace @param {Look} look */
function isMissing(trace, { place, state: { layer } }) {
  return place !== null && layer !== null && !holdsLayer(trace, place, layer);
}

/** @param {Card[]} cards of all models */
function frameNow(cards) {
  const height = heightOfDrawing();
  const stretch = pageZoom() === 1 ? 1 : PRESENTED.stretch;
  return { palette: palette(), height, stretch, isSaved: isSaved(), cards, answers: {} };
}

/**
 * A view that throws here reports it in its own place: its figure lacks an answer.
 * @param {View} view
 * @param {Trace} trace
 * @param {PageState} page
 * @returns {Record<string, Ask>}
 */
function asksOf(view, trace, page) {
  try {
    return view.asks?.(trace, viewState(page)) ?? {};
  } catch (error) {
    console.warn(error);
    return {};
  }
}

/** Return true in a page that holds one pass, and asks nobody for others. */
function isSaved() {
  return document.body.matches('.is-saved:not(.is-live)');
}

/** Pixels below a drawing while it is presented, and around one that is not there yet, with its heading; and how wide a square may be. */
const PRESENTED = { below: 44, around: 90, least: 200, stretch: 1.6 };

/** Return the greatest height of a drawing: while it is presented, what the scene leaves of the screen. */
function heightOfDrawing() {
  const zoom = pageZoom();
  if (zoom === 1) return plotHeight(window.innerHeight);
  const plot = document.querySelector('.view:not([hidden]) .plot:not([hidden])');
  const place = plot ?? document.querySelector('#results');
  const top = place?.getBoundingClientRect().top ?? 0;
  const left = (window.innerHeight - top - window.scrollY) / zoom;
  return Math.max(PRESENTED.least, left - (plot ? PRESENTED.below : PRESENTED.around));
}

/** The kinds that no part of the map opens, and those that none of its strip opens. @type {Kind[]} */
const OF_NO_PART = ['loop', 'model'];
/** @type {Kind[]} */
const OF_NO_STRIP = ['embedding', 'stream'];

/** The answers that are about the page, not about the open view. */
const OF_PAGE = new Set(['next_why', 'next_edited', 'map_roles', 'moved']);

/** @typedef {{id: string, title: string, of: Kind, titleFor?: (card: Card) => string, isListed?: (trace: Trace) => boolean, isMore?: boolean}} Listed a view, before it is opened */

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
    if (!reader.trace?.card) return [];
    const { view } = store.state;
    const isInLayers = ['head', 'expert', 'stream'].includes(kindOf(view));
    const wanted = kind === 'layer' ? (isInLayers ? kindOf(view) : 'head') : kind;
    const listed = viewsFor(wanted === 'network' ? 'stream' : wanted, reader.trace.card);
    const ids = listed.map(({ id }) => id);
    return ids.includes(view) ? [view, ...ids.filter((id) => id !== view)] : ids;
  }

  /** Open the view of a part of the map. @param {Part} part */
  function open(part) {
    const [view] = viewsOf(part);
    const isSame = view === store.state.view;
    store.change(openPart(part, view));
    // A press on a head changes the scene, which stays in sight.
    if (isSame && part.kind !== 'head') onSame(view);
  }

  return {
    /** @param {Trace} trace @param {PageState} page @param {number} query that is looked at */
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
      // Those of no part, which go on with the text or compare it, are behind all others.
      const isStrip = matchMedia(NARROW).matches;
      const further = [...OF_NO_PART, ...(isStrip ? OF_NO_STRIP : [])]
        .filter((other) => other !== kind)
        .flatMap((other) => viewsFor(other, card).map((view) => ({ ...view, isMore: true })));
      list.show(
        [...listed, ...further].map(({ id, title, titleFor, isMore }) => ({
          ...{ id, isMore },
          title: titleFor?.(card) ?? title,
        })),
        page.view,
      );
    },
  };
}
