/**
 * The page: state in, requests out, views on the screen.
 */

import { fetchAnswer, fetchModels, readyModel } from './api/answers.js';
import { bodyOf, createRequestCache } from './api/request_cache.js';
import {
  askWhenRefused,
  asProblem,
  fittingText,
  inTokens,
  isForOverview,
  isTooLong,
  isWorthRetrying,
  cardOf,
  NO_MODELS,
  refusalOf,
} from './api/calls.js';
import { plotHeight, viewState } from './plot/figure.js';
import { toggled, wordsAfter } from './data/words.js';
import { placeOf, predictingSide } from './data/attention.js';
import {
  normalized,
  beginning,
  choosing,
  fieldsOf,
  NOTHING_CHOSEN,
  isQueryLookedAt,
  opened,
  queryOf,
  standardsOfText,
  elsewhere,
} from './state/state.js';
import { createAddress } from './state/store.js';
import { MAP, openingOf } from './data/model_parts.js';
import { insightOf, headToOpen } from './data/head_insight.js';
import { createComposer, showCard } from './ui/composer.js';
import { watchTheme, pageZoom, palette, partOf } from './ui/dom.js';
import {
  askForKey,
  readInWords,
  createKeys,
  createRetrier,
  createLater,
  createSiteMenu,
  createSkip,
  markTour,
  createPageStatus,
  watchSticky,
} from './ui/page.js';
import { createModelMap, createViewList } from './ui/model_map.js';
import { createSentence } from './ui/sentence.js';
import { createViewSection } from './ui/view_section.js';
import { lackOf, overviewAsk, request } from './views/entry.js';
import { loadView, VIEWS, viewsFor } from './views/registry.js';

/**
 * @import { Problem } from './api/calls.js'
 * @import { Side } from './data/attention.js'
 * @import { Kind, Part } from './data/model_parts.js'
 * @import { Ask, Card, Example, Trace } from './data/trace.js'
 * @import { PageState, View } from './plot/figure.js'
 * @import { Cell, Grid, PointedCell } from './plot/grid.js'
 * @import { Patch, State } from './state/state.js'
 */

/** @param {string} id */
const byId = (id) => partOf(document, `#${id}`, HTMLElement);
const FIELDS = fieldsOf(VIEWS);
const VIEW_IDS = VIEWS.map(({ id }) => id);
const address = createAddress(FIELDS);
/** The page's own choice of a head. */
const NO_HEAD = { layer: null, head: null, where: '' };
/** The view that shows texts of any length. */
const LONG_VIEW = 'long';
const ONLY_LONG = 'The text is too long for this view. “Overview” shows its attention.';
/** The state that a new text or model resets. */
const AFRESH = { ...NOTHING_CHOSEN, ...standardsOfText(FIELDS) };

/** The views that were opened, by id. @type {Record<string, View>} */
const loaded = {};

/** @type {State} */
let state = address.read();
let catalogue = NO_MODELS;
/** The card of the model in use, in short. @type {Card|null} */
let card = null;
/** The card below the page: in short until the full one arrives. @type {Card|null} */
let shownCard = null;
/** @type {Trace|null} */
let trace = null;
let controller = new AbortController();
/** Whether the results are of an earlier text, because the server did not respond. */
let isBehind = false;
/** @type {PointedCell|null} */
let pointed = null;
/** @type {Pick<PageState, 'palette'|'height'|'cards'|'answers'>} */
let frame = { palette: palette(), height: plotHeight(window.innerHeight), cards: [], answers: {} };
/** The view and the trace to which the answers of the frame belong. @type {{view: string, trace: Trace|null}} */
let answered = { view: '', trace: null };
/** @type {Grid|null} */
let grid = null;
let width = 0;
/** The text of the last file; if it is too long for the other views, the overview opens. */
let fileText = '';
/** Whether the reader just opened the view: then it is brought into sight. */
let isNewView = false;
/** Whether the reader chose layer, head or place; until then the page chooses them for each text. */
let isHeadChosen = choosesHead(state);

const retrier = createRetrier(start);
const answers = createRequestCache({
  fetch: (body, signal) => fetchAnswer(catalogue, body, signal, (share) => pageStatus.tell(share)),
  onArrival: () => {
    showFacts();
    show();
  },
});
const pageStatus = createPageStatus(byId, {
  onRetry: () => {
    retrier.stop();
    start();
  },
  onOffer: change,
  onCancel: cancel,
});
const composer = createComposer(partOf(document, '#composer', HTMLFormElement), {
  onTyping: () => {
    controller.abort();
    retrier.stop();
    sections[state.view]?.leave();
  },
  onText: (text, isTyped) =>
    submit({ text, words: wordsAfter(state.text ?? '', text, state.words) }, isTyped),
  onFile: (text) => {
    fileText = text;
    submit({ text, words: '' }, false);
  },
  onExample: follow,
  onTarget: (target, isTyped) => submit({ target: target.trim() === '' ? null : target }, isTyped),
  onModel: chooseModel,
});
const sentence = createSentence(byId('sentence'), {
  onChoose: (side, index) => {
    if (trace) change(choosing(trace, side, index));
  },
  onPress: press,
  onPoint: markSentence,
});
const map = createModelMap(byId('map'), byId('map-caption'), { onChoose: openPart });
const viewList = createViewList(byId('view-list'), { onChoose: (view) => change({ view }) });
const sections = Object.fromEntries(
  VIEWS.map((view) => [
    view.id,
    createViewSection(view, {
      onCell: point,
      onChoose: choose,
      onState: change,
      onGoingOn: goOn,
      onRedraw: show,
      announce,
    }),
  ]),
);
byId('views').append(...VIEW_IDS.map((id) => sections[id].element));
watchTheme(byId('theme'), show);
createSiteMenu(byId('site-more'));
markTour(byId('tour'));
createLater(byId('tour'), async () => {
  const { createTour, stopsFor } = await import('./ui/tour.js');
  return createTour(byId('tour'), stopsFor(VIEW_IDS), {
    onView: async (view) => {
      await load(view);
      goOn({ view });
    },
  });
});
createKeys(byId('keys'), {
  onStep: step,
  onText: () => byId('text').focus(),
  onMap: () => partOf(document, '#map [tabindex="0"]', HTMLElement).focus(),
});
createLater(byId('present'), async () => {
  const { createPresentation } = await import('./ui/present.js');
  return createPresentation(announce);
});
watchSticky(byId('sentence'));
askWhenRefused(askForKey);
createSkip(partOf(document, '.skip', HTMLAnchorElement), byId('text'));

/** @param {Patch} patch */
function choosesHead({ layer = null, head = null, where = '' }) {
  return layer !== null || head !== null || where !== '';
}

/**
 * Reads the typed text, unless it is the one that was read.
 * @param {{text: string, words: string}|{target: string|null}} written
 * @param {boolean} isTyped
 */
function submit(written, isTyped) {
  const isAnew = isReadAnew({ ...state, ...written }, state);
  if (isAnew) change({ ...(isHeadChosen ? {} : NO_HEAD), ...AFRESH, ...written }, isTyped);
  else if (!trace || isBehind || controller.signal.aborted) read();
}

/** Reads an example and opens it at its own place. @param {Example} example */
function follow({ text, opens }) {
  const written = { text, words: '', target: null, ...opened(opens) };
  if (isReadAnew({ ...state, ...written }, state)) change({ ...AFRESH, ...NO_HEAD, ...written });
  else change(written);
  isHeadChosen = false;
  if (!trace || isBehind || controller.signal.aborted) read();
}

/**
 * Another model: an example that was not edited gives way to one of its own.
 * @param {string} model
 */
function chooseModel(model) {
  const isExample = card?.examples.some(({ text }) => text === state.text);
  const [example] = cardOf(catalogue, model)?.examples ?? [];
  const own =
    isExample && example ? { text: example.text, words: '', ...opened(example.opens) } : {};
  change({ model, target: null, ...AFRESH, ...NO_HEAD, ...own });
  isHeadChosen = false;
}

/** @param {State} now @param {State} before */
function isReadAnew(now, before) {
  return now.text !== before.text || now.model !== before.model || now.target !== before.target;
}

/**
 * A pressed token is chosen; where words can be masked, it is masked, or its word comes back.
 * @param {Side} side
 * @param {number} index
 */
function press(side, index) {
  if (!trace || trace.text !== state.text) return; // the results are of another text
  const isMasking = trace.card?.has_mask && !document.body.classList.contains('is-saved');
  const masked = isMasking ? toggled(trace, index, state.words) : null;
  change(masked ?? choosing(trace, side, index));
}

/** Fetches the models, then the trace; a restarted server may have other models. */
async function start() {
  const signal = newSignal();
  pageStatus.waitForTrace(true);
  try {
    await fetchCatalogue(signal);
    if (signal.aborted) return;
    if (catalogue.models.length === 0) throw refusalOf(catalogue, state.model);
    await read();
  } catch (error) {
    if (!signal.aborted) fail(error);
  }
}

/** Cancels all pending requests. */
function newSignal() {
  controller.abort();
  for (const id of VIEW_IDS) sections[id].leave();
  controller = new AbortController();
  return controller.signal;
}

/**
 * Changes the state, the address and whatever depends on them.
 * @param {Partial<State>} patch
 * @param {boolean} [isTyped] what is typed in one go is one step of the history
 * @param {(state: State, isTyped: boolean) => void} [note] where the address is concerned
 */
function change(patch, isTyped = false, note = address.write) {
  const before = state;
  isHeadChosen ||= choosesHead(patch);
  retrier.stop();
  if (!isTyped && patch.text !== undefined) composer.dropTyping();
  state = { ...state, ...patch };
  if (state.view !== before.view) {
    pointed = null;
    isNewView = note === address.write && trace !== null;
  }
  const isAnew = isReadAnew(state, before);
  if (!isAnew) normalize();
  note(state, isTyped);
  const isOpenedLong =
    state.view === LONG_VIEW && before.view !== LONG_VIEW && (!trace || isBehind);
  if (isAnew || isOpenedLong) read();
  else show();
}

/**
 * Changes the state without a new step of the history, as a tour or a running text does.
 * @param {Patch} patch
 */
function goOn(patch) {
  change(patch, false, address.rewrite);
}

/** Requests the trace of the text; a pending request is cancelled. */
async function read() {
  if (catalogue.models.length === 0) {
    await start();
    return;
  }
  const signal = newSignal();
  const wanted = cardOf(catalogue, state.model);
  card = wanted ?? cardOf(catalogue, '') ?? catalogue.models[0];
  if (state.text === null) state = beginning(state, card.examples[0]);
  if (card.kind !== 'encoder-decoder') state.target = null;
  const text = state.text ?? '';
  composer.show({ text, target: state.target, model: wanted?.id ?? '', card });
  showFacts();
  if (!wanted) {
    fail(refusalOf(catalogue, state.model));
    return;
  }
  if (text.trim() === '') {
    drop();
    retrier.stop();
    composer.translate(null);
    pageStatus.showNothing();
    return;
  }
  pageStatus.waitForTrace(true);
  try {
    card = await readyModel(card, signal, pageStatus.load);
    if (signal.aborted) return;
    // A foreign model's short card is complete once it is loaded.
    if (card !== wanted && wanted.state !== 'loaded') await fetchCatalogue(signal);
    composer.show({ text, target: state.target, model: card.id, card });
    showFacts();
    const asked = { model: card.id, text, ...(state.target !== null && { target: state.target }) };
    const answer = await fetchOf(asked, card, signal);
    if (signal.aborted) return;
    answers.retry();
    arrived({ ...answer, asked });
  } catch (error) {
    if (!signal.aborted) fail(error);
  }
}

/**
 * The trace of a text; of one that is too long for the other views, what the overview shows.
 * @param {Ask} asked
 * @param {Card} of
 * @param {AbortSignal} signal
 */
async function fetchOf(asked, of, signal) {
  try {
    return await fetchAnswer(catalogue, { ...asked, ...request([...VIEWS, MAP], of) }, signal);
  } catch (error) {
    if (!isForOverview(asProblem(error), of) || signal.aborted) throw error;
    if (asked.text === fileText) state = { ...state, view: LONG_VIEW };
    if (state.view !== LONG_VIEW) throw error;
    return await fetchAnswer(catalogue, { ...asked, ...overviewAsk(of) }, signal, pageStatus.tell);
  }
}

/** @param {AbortSignal} signal */
async function fetchCatalogue(signal) {
  const found = await fetchModels(signal);
  if (signal.aborted) return;
  catalogue = found;
  composer.offer(catalogue);
}

/**
 * The facts about the model, whose full card is on its way together with the trace. That of a foreign
 * model was read when it was loaded: an answer from before knows less.
 */
function showFacts() {
  if (!card) return;
  const found = card.sites ? card : (answers.find({ card: card.id }).trace?.card ?? card);
  if (found === shownCard) return;
  shownCard = found;
  showCard(byId('card'), found);
}

/** @param {Trace} of the new one */
function arrived(of) {
  trace = of;
  isBehind = false;
  pageStatus.waitForTrace(false);
  retrier.stop();
  pageStatus.showResults(readInWords(of));
  pointed = null;
  grid = null;
  normalize();
  address.rewrite(state);
  composer.translate(of.target);
  composer.tellReading(of);
  sentence.show(of);
  show();
}

function normalize() {
  if (trace) state = normalized(state, trace, VIEW_IDS);
}

/** Cancels the pending requests; the server stops working on them. */
function cancel() {
  if (pageStatus.isReading()) {
    controller.abort();
    pageStatus.waitForTrace(false);
    pageStatus.say(
      `Cancelled. ${trace ? 'The results below are those of the previous text. ' : ''}Press Enter in the text box to read the text.`,
    );
  } else {
    answers.cancel();
  }
  byId('text').focus();
}

/** Drops the trace and all pending requests. */
function drop() {
  trace = null;
  composer.tellReading(null);
  isBehind = false;
  want({});
  pageStatus.waitForAnswers(false);
  pageStatus.waitForTrace(false);
}

/** Shows a problem; after a failed connection the earlier results stay. @param {unknown} error */
function fail(error) {
  const problem = card ? inTokens(asProblem(error), card) : asProblem(error);
  if (state.target !== null) problem.texts = 'the text or your translation';
  isBehind = trace !== null && (isWorthRetrying(problem) || isTooLong(problem));
  if (isBehind) pageStatus.waitForTrace(false);
  else drop();
  composer.translate(isBehind && trace ? trace.target : null);
  const read = state.target === null ? card : null;
  if (read && state.view !== LONG_VIEW && isForOverview(problem, read))
    problem.further = { label: 'Show an overview of the whole text', patch: { view: LONG_VIEW } };
  pageStatus.showProblem(problem, retrier.after(problem), isBehind);
  if (read && isTooLong(problem)) offerBeginning(problem, read);
}

/**
 * Marks what does not fit in the box, and offers to read what does.
 * @param {Problem} problem
 * @param {Card} of
 */
async function offerBeginning(problem, of) {
  const { text } = state;
  const { signal } = controller;
  try {
    const fitting = await fittingText({ card: of, text: text ?? '' }, problem, signal);
    if (signal.aborted || state.text !== text) return;
    composer.markFrom(fitting.text.length);
    const offer = { label: `Read ${fitting.words}`, patch: { ...AFRESH, text: fitting.text } };
    pageStatus.showProblem(Object.assign(problem, { offer }), false, isBehind);
  } catch {
    // The problem itself is told already.
  }
}

/** Pixels of the page on one screen; while it is presented, tokens and the bar take some. */
function heightOfScreen() {
  const zoom = pageZoom();
  return zoom > 1 ? window.innerHeight / zoom - 110 : window.innerHeight;
}

/** Draws the open view. */
function show() {
  // A link may name no view; the state is normalized when its trace arrives.
  if (!trace || !sections[state.view]) return;
  for (const id of VIEW_IDS) {
    sections[id].element.hidden = id !== state.view;
    if (id !== state.view) sections[id].leave();
  }
  frame = {
    palette: palette(),
    height: plotHeight(heightOfScreen()),
    cards: catalogue.models,
    answers: answered.view === state.view && answered.trace === trace ? frame.answers : {},
  };
  answered = { view: state.view, trace };
  const view = loaded[state.view];
  grid = null;
  if (view) {
    frame.answers = answersFor(view, trace);
    const isTooFar = Boolean(trace.resolution) && view.id !== LONG_VIEW;
    const lack = isTooFar ? ONLY_LONG : card?.sites ? lackOf(view, card) : '';
    if (lack) sections[view.id].lacks(lack);
    else grid = sections[view.id].show(view, trace, { ...looking(), ...frame });
  } else open(state.view);
  showMap(trace);
  if (view && isNewView) {
    isNewView = false;
    sections[view.id].reveal(byId('sentence').offsetHeight);
  }
  const side = grid?.sides?.rows ?? predictingSide(trace);
  sentence.choose(side, grid?.query === undefined ? queryOf(looking(), trace, side) : grid.query);
  sentence.explain(insight(trace));
  markSentence();
}

/**
 * The state with the row that a head's view shows, if none was chosen: a mask, or a telling one.
 * @returns {State & Record<string, any>}
 */
function looking() {
  const place = trace && placeShown(trace);
  if (!trace || !place || isQueryLookedAt(state, trace, place.rows)) return state;
  const { query } = headToOpen(trace, place, state);
  return query === null ? state : { ...state, ...choosing(trace, place.rows, query) };
}

/** The sentence on the chosen row of the chosen head. @param {Trace} of */
function insight(of) {
  const place = placeShown(of);
  /** @type {Patch} */
  const { attention_which: which = 'head', attention_what: what, layer, head } = state;
  if (
    !place ||
    which !== 'head' ||
    (what ?? 'weights') !== 'weights' ||
    layer === null ||
    head === null
  )
    return '';
  return insightOf(of, { where: state.where, layer, head }, queryOf(looking(), of, place.rows));
}

/** The attention that a view of heads shows; null: no such view is open. @param {Trace} of */
function placeShown(of) {
  return openKind() === 'head' ? placeOf(state, of) : null;
}

/** The kind of part whose view is open. @returns {Kind} */
function openKind() {
  return VIEWS.find(({ id }) => id === state.view)?.of ?? 'model';
}

/**
 * The views that a part opens: the open one, if it is about such a part already, comes first.
 * @param {Part} part
 * @returns {string[]}
 */
function viewsOfPart({ kind }) {
  if (kind === 'tokens') return ['sentence'];
  if (!trace?.card) return [];
  const isInLayers = ['head', 'expert', 'stream'].includes(openKind());
  const wanted = kind === 'layer' ? (isInLayers ? openKind() : 'head') : kind;
  const ids = viewsFor(wanted === 'network' ? 'stream' : wanted, trace.card).map(({ id }) => id);
  return ids.includes(state.view) ? [state.view, ...ids.filter((id) => id !== state.view)] : ids;
}

/** Opens the view of a part of the map; the tokens are those of the sentence. @param {Part} part */
function openPart(part) {
  const [view] = viewsOfPart(part);
  if (part.kind === 'tokens') {
    partOf(
      byId(part.stack === 'decoder' && trace?.target_tokens ? 'target-chips' : 'chips'),
      '[tabindex="0"]',
      HTMLElement,
    ).focus();
    return;
  }
  const specialities =
    part.kind === 'expert' && shownCard?.expert_tokens ? { experts_show: 'specialities' } : {};
  const isSame = view === state.view;
  change({ ...openingOf(part, view), ...specialities });
  if (isSame) sections[view].bringDrawing();
}

/**
 * Goes to the next or the previous head or layer; past the end it starts again.
 * @param {'head'|'layer'} what
 * @param {number} by
 */
function step(what, by) {
  const own = trace?.card;
  if (!trace || !own) return;
  const count = what === 'head' ? own.n_heads : own.n_layers;
  const next = ((state[what] ?? 0) + by + count) % count;
  change({ [what]: next });
  announce(`Layer ${state.layer}, head ${state.head}`);
}

/** @param {Trace} of */
function showMap(of) {
  const { card: own } = of;
  if (!own) return;
  const whole = viewState({ ...state, ...frame });
  map.show(of, own, {
    state: whole,
    kind: openKind(),
    query: queryOf(looking(), of),
    route: loaded[state.view]?.route?.(of, whole) ?? [],
    viewsOf: viewsOfPart,
  });
  viewList.show(
    viewsFor(openKind(), own).map(({ id, title, titleFor }) => ({
      id,
      title: titleFor?.(own) ?? title,
    })),
    state.view,
  );
}

/** Loads a view, and draws it if it is still the open one. @param {string} id */
async function open(id) {
  await load(id);
  if (loaded[id] && state.view === id) show();
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
 * The further answers of the open view; while they are pending, the page shows it.
 * @param {View} view
 * @param {Trace} of
 */
function answersFor(view, of) {
  const ask = () =>
    want(Object.fromEntries(asksOf(view, of).map(([name, body]) => [name, bodyOf(body, of)])));
  const before = frame.answers;
  let found = ask();
  // Until an answer is here, a drawing may show the one to the last settings.
  for (const [name, answer] of Object.entries(found)) {
    const last = before[name]?.trace ?? before[name]?.previous;
    if (answer.isWaiting && last) found[name] = { ...answer, previous: last };
  }
  // An answer may lead to further requests, as a map leads to its tiles.
  if (Object.entries(found).some(([name, { trace: now }]) => now && now !== before[name]?.trace)) {
    frame.answers = found;
    found = ask();
  }
  pageStatus.waitForAnswers(Object.values(found).some((answer) => answer.isWaiting));
  return found;
}

/**
 * Answers by name. The card of the model in use stays wanted, but nothing is held up for it.
 * @param {Record<string, Ask>} bodies
 */
function want(bodies) {
  const { ofPage, ...found } = answers.want({
    ...bodies,
    ...(card && { ofPage: { card: card.id } }),
  });
  return found;
}

/**
 * A view that throws here reports it in its own place: its figure lacks an answer.
 * @param {View} view
 * @param {Trace} of
 */
function asksOf(view, of) {
  try {
    return Object.entries(view.asks?.(of, viewState({ ...looking(), ...frame })) ?? {});
  } catch (error) {
    console.warn(error);
    return [];
  }
}

/** @param {Cell} cell @param {Grid} of */
function choose({ row, column }, of) {
  change(of.choose?.(row, column) ?? {});
  announce(`Chosen: ${of.describe(row, column)}`);
}

/**
 * Marks the cell under the mouse, finger or keyboard cursor, or none.
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

/** @param {string} message */
function announce(message) {
  byId('announcer').textContent = message;
}

window.addEventListener('popstate', () => {
  const before = state;
  state = address.read();
  if (isReadAnew(state, before)) {
    read();
    return;
  }
  state = { ...state, ...elsewhere(before, state.view, FIELDS) };
  normalize();
  show();
});
new ResizeObserver(([{ contentRect }]) => {
  if (contentRect.width === width) return;
  width = contentRect.width;
  requestAnimationFrame(show);
}).observe(byId('main'));
VIEWS.find(({ id }) => id === state.view)
  ?.load()
  .catch(() => {});
start();
