/**
 * The page, put together: the store holds its state, the reader requests what the state names, and
 * the stage draws it.
 */

import { askWhenRefused, cardOf, wholeOf } from './api/calls.js';
import { followLink } from './api/links.js';
import { Reader } from './api/reader.js';
import { isChapter } from './rules/chapter.js';
import { MAP } from './ui/model_map/parts.js';
import { wordsAfter } from './trace/words.js';
import { choosingModel, createMemo, fieldsOf } from './state/state.js';
import { createAddress, Store, LONG_VIEW } from './state/store.js';
import { createComposer } from './ui/composer.js';
import { createConversation } from './ui/conversation.js';
import { partOf, watchTheme } from './ui/dom.js';
import {
  createKeys,
  createLater,
  createPageStatus,
  createRetrier,
  createSiteMenu,
  createSkip,
  readInWords,
  watchSticky,
  whenSeen,
} from './ui/page.js';
import { createRoving } from './ui/roving.js';
import { Stage } from './ui/stage.js';
import { lackOf, LONG, overviewAsk, request } from './api/answers.js';
import { loadView, VIEWS, viewsFor } from './views/view_registry.js';

/** @import { Change } from './state/store.js' */

/** @param {string} id */
const byId = (id) => partOf(document, `#${id}`, HTMLElement);
const FIELDS = fieldsOf(VIEWS);
const VIEW_IDS = VIEWS.map(({ id }) => id);
/** The card below the page is written again only where it changed. */
const ofCard = createMemo();
let isCardSeen = false;

/** Why the link of the address opened nothing. */
const whyLost = await followLink();
const openedAt = location.hash;
const store = new Store({
  fields: FIELDS,
  views: VIEW_IDS,
  address: createAddress(FIELDS),
  traceNow: () => reader.trace,
  onChange: follow,
});
const retrier = createRetrier(() => reader.start());
const reader = new Reader({
  store,
  retrier,
  asks: { whole: (card) => request([...VIEWS, MAP], card), overview: overviewAsk },
  told: {
    onStart: () => stage.leave(),
    onCatalogue: (catalogue) => composer.offer(catalogue),
    onModel(card, isKnown) {
      const { text, target } = store.state;
      composer.show({ text: text ?? '', target, model: isKnown ? wholeOf(card.id) : '', card });
      conversation?.show(store.state, card);
      showSteps(card);
      showFacts();
    },
    onReading(isReading) {
      const isLong = (store.state.text ?? '').length > LONG;
      pageStatus.waitForTrace(isReading, isLong);
    },
    onLoading: (card) => pageStatus.load(card),
    onProgress: (progress, body) =>
      pageStatus.tell(progress, body, reader.trace?.tokens.length ?? 0),
    onTrace(trace) {
      pageStatus.showResults(readInWords(trace));
      composer.translate(trace.target);
      composer.tellReading(trace);
      stage.take(trace);
    },
    onEmpty() {
      composer.translate(null);
      pageStatus.showNothing();
    },
    onDrop() {
      composer.tellReading(null);
      pageStatus.waitForAnswers(false);
    },
    onProblem(problem, goesOn, isBehind) {
      composer.translate(isBehind && reader.trace ? reader.trace.target : null);
      pageStatus.showProblem(problem, goesOn, isBehind);
    },
    onBeginning: (length) => composer.markFrom(length),
    onAnswer() {
      showFacts();
      stage.showSoon();
    },
  },
});
const pageStatus = createPageStatus(byId, {
  onRetry() {
    retrier.stop();
    reader.start();
  },
  onOffer: (patch) => store.change(patch),
  onCancel: cancel,
});
const composer = createComposer(partOf(document, '#composer', HTMLFormElement), {
  onTyping() {
    reader.abandon();
    stage.leave([store.state.view]);
  },
  onText(text, isTyped) {
    const words = wordsAfter(store.state.text ?? '', text, store.state.words);
    submit({ text, words }, isTyped);
  },
  onFile(text) {
    if (isChapter(text)) {
      openChapters(({ openFile }) => openFile(text, announce));
      return false;
    }
    reader.expectFile(text);
    submit({ text, words: '' }, false);
    return true;
  },
  onExample(example) {
    if (!store.follow(example)) reader.readIfStopped();
  },
  onTarget: (target, isTyped) => submit({ target: target.trim() === '' ? null : target }, isTyped),
  onOffer: ({ model = '', ...text }) => store.change({ ...choosingModel(model), ...text }),
  onModel: (model) =>
    store.chooseModel(
      model,
      reader.card?.examples ?? [],
      cardOf(reader.catalogue, model)?.examples ?? [],
    ),
});
const place = document.getElementById('conversation'); // a saved page has none
const conversation = place && createConversation(place, { onState: store.change });
const stage = new Stage(byId, {
  registry: { views: VIEWS, loadView, viewsFor, lackOf },
  store,
  reader,
  onWaiting: (isWaiting) => pageStatus.waitForAnswers(isWaiting),
  announce,
});
watchTheme(byId('theme'), stage.show);
createSiteMenu(byId('site-more'));
createKeys(byId('keys'), {
  onStep: step,
  onText: () => byId('text').focus(),
  onDrawing: () => drawing()?.focus(),
  onWalk: stage.walk,
  onMap: () => partOf(document, '#map [tabindex="0"]', HTMLElement).focus(),
});
createLater(byId('present'), async () => {
  const { createPresentation } = await import('./ui/present.js');
  return createPresentation(announce, stage.walk);
});
createLater(byId('share'), async () => {
  const { createShare } = await import('./ui/share.js');
  return createShare(sharedNow, announce);
});
const chapters = document.getElementById('chapters'); // a saved page has none
chapters?.addEventListener('click', () => openChapters(({ openList }) => openList(announce)));
if (store.state.chapter !== '')
  openChapters(({ openFromAddress }) => openFromAddress(announce, openedAt));
const whole = document.getElementById('whole'); // of a page in a frame
whole?.addEventListener('click', () =>
  whole.setAttribute('href', location.pathname + location.hash),
);
if (whyLost) import('./ui/share.js').then(({ tellLost }) => tellLost(whyLost));
watchSticky(byId('sentence'));
watchSticky(byId('pinned'), byId('said'));
whenSeen(byId('card'), () => {
  isCardSeen = true;
  reader.wantCard();
  showFacts();
});
askWhenRefused(async (hadKey) => (await import('./ui/dialogs.js')).askForKey(hadKey));
createSkip(partOf(document, '.skip', HTMLAnchorElement), () => drawing() ?? byId('text'));
for (const row of ['examples', 'view-list']) createRoving(byId(row));
createRoving(partOf(document, '.masthead-links', HTMLElement));
window.addEventListener('online', () => reader.retry());
window.addEventListener('popstate', ({ state }) => {
  const before = store.state.chapter;
  if (store.restore(state?.isNamed)) reader.read();
  else stage.show();
  if (before === '' && store.state.chapter !== '')
    openChapters(({ openFromAddress }) => openFromAddress(announce));
});
watchWidth(byId('main'), stage.show);
stage.load(store.state.view);
reader.start();

/** Follow a change of the state. @param {Change} change */
function follow({ before, patch, isTyped, isStep, isOtherText }) {
  const { view } = { ...before, ...patch };
  retrier.stop();
  if (!isTyped && patch.text !== undefined) composer.dropTyping();
  if (view !== before.view) stage.turn(isStep && reader.trace !== null);
  const isOpenedLong =
    store.state.view === LONG_VIEW && before.view !== LONG_VIEW && reader.isBehind;
  if (isOtherText || isOpenedLong) reader.read();
  else if ('off' in patch) stage.showSoon();
  else stage.show();
}

/**
 * Read the typed text, unless it is the one that was read.
 * @param {{text: string, words: string}|{target: string|null}} written
 * @param {boolean} isTyped
 */
function submit(written, isTyped) {
  if (!store.write(written, isTyped)) reader.readIfStopped();
}

/** Cancel the pending requests; the server stops working on them. */
function cancel() {
  if (reader.cancel()) {
    const isKept = reader.trace !== null;
    const kept = isKept ? 'The results below are those of the previous text. ' : '';
    const advice = 'Press Enter in the text box to read the text.';
    pageStatus.say(`Cancelled. ${kept}${advice}`, isKept);
  }
  byId('text').focus();
}

/** @param {(module: typeof import('./ui/chapter.js')) => void} act */
async function openChapters(act) {
  const chapters = await import('./ui/chapter.js');
  chapters.drawBy(() => import('./on_paper.js'));
  act(chapters);
}

/** Return the trace and the drawing that are shared; null: nothing was read yet. */
function sharedNow() {
  const { trace } = reader;
  const grid = stage.grid ?? {};
  return trace && { trace, figure: { grid, held: stage.grid?.held } };
}

/** Show the slider over the states of the model's training, if there are several. @param {import('./trace/card.js').Card} of */
async function showSteps({ id }) {
  const whole = cardOf(reader.catalogue, wholeOf(id));
  const host = byId('steps');
  host.hidden = !chapters || !whole?.steps || whole.steps.length < 2;
  if (host.hidden || !whole) return;
  const { showSteps: show } = await import('./ui/steps.js');
  show(host, whole, id, (model) => store.change({ model }, true));
}

/** Show the facts about the model, when they changed and are in sight. */
async function showFacts() {
  if (!isCardSeen) return;
  const { showCard } = await import('./ui/model_card.js');
  const card = reader.fullCard();
  if (card) ofCard([card], () => showCard(byId('card'), card));
}

/**
 * Go to the next or the previous head or layer; past the end it starts again.
 * @param {'head'|'layer'} what
 * @param {number} by
 */
function step(what, by) {
  const card = reader.trace?.card;
  if (!card) return;
  const count = what === 'head' ? card.n_heads : card.n_layers;
  store.change({ [what]: ((store.state[what] ?? 0) + by + count) % count });
  announce(`Layer ${store.state.layer}, head ${store.state.head}`);
}

/** Return the first drawing of the open view, or the results if there is none. */
function drawing() {
  const results = byId('results');
  if (results.hidden) return null;
  const plots = [...results.querySelectorAll('.view:not([hidden]) .plot:not([hidden])')];
  return plots.find((plot) => plot instanceof HTMLElement) ?? results;
}

/** @param {string} message */
function announce(message) {
  byId('announcer').textContent = message;
}

/** @param {HTMLElement} part @param {() => void} onChange its width is another one */
function watchWidth(part, onChange) {
  let width = 0;
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width === width) return;
    width = contentRect.width;
    requestAnimationFrame(onChange);
  }).observe(part);
}
