/**
 * The page: state in, requests out, views on the screen.
 */

import { asProblem, fetchModels, fetchTrace, Problem } from './core/api.js';
import { sequential } from './core/colour.js';
import { counted } from './core/number.js';
import { strongestHeads } from './core/patterns.js';
import { layersWith, request } from './core/sites.js';
import { clamp, INITIAL, queryOf, readFragment, writeFragment } from './core/state.js';
import { createChips } from './components/chips.js';
import { createComposer } from './components/composer.js';
import { showCard } from './components/model_card.js';
import { createNotice } from './components/notice.js';
import { plotly } from './components/plotly.js';
import { createRetrier } from './components/retrier.js';
import { watchSticky } from './components/sticky.js';
import { createTabs } from './components/tabs.js';
import { createTheme, palette } from './components/theme.js';
import { createViewSection } from './components/view_section.js';
import { VIEWS } from './views/registry.js';

const byId = (id) => document.getElementById(id);
const LARGEST_PLOT = 760;

/** @type {import('./core/state.js').State} */
let state = { ...INITIAL, ...readFragment(location.hash) };
let catalogue = { default: '', models: [] };
/** @type {import('./core/trace.js').Trace|null} */
let trace = null;
let controller = null;
let pointed = null;
let frame = { palette: palette(), height: LARGEST_PLOT };
/** @type {import('./core/figure.js').Grid|null} */
let grid = null;
let width = 0;

const retrier = createRetrier(start);
const notice = createNotice(byId('notice'), { onRetry: () => { retrier.stop(); start(); } });
const composer = createComposer(byId('composer'), {
  onTyping: () => { controller?.abort(); retrier.stop(); },
  onText: submit,
  onModel: (model) => change({ model, layer: null, head: null, query: null }),
});
const chips = createChips(byId('chips'), { onChoose: (query) => change({ query }) });
const tabs = createTabs(byId('tabs'), VIEWS, { onChoose: (view) => change({ view }) });
const sections = Object.fromEntries(VIEWS.map((view) => [view.id, createViewSection(view, {
  onCell: point,
  onChoose: (cell, grid) => change(grid.choose(cell.row, cell.column)),
  onState: change,
  announce,
})]));
byId('views').append(...VIEWS.map(({ id }) => sections[id].element));
createTheme(byId('theme'), show);
watchSticky(byId('sentence'));

/** Reads the text unless it is the very one that was read. */
function submit(text, isTyped) {
  if (text !== state.text) change({ text, query: null }, isTyped);
  else if (!trace || controller.signal.aborted) read();
}

function cardOf(id) {
  return catalogue.models.find((card) => card.id === id);
}

/** Asks what models there are, then for the trace; a restarted server may have others. */
async function start() {
  const signal = newSignal();
  wait(true);
  try {
    const found = await fetchModels(signal);
    if (signal.aborted) return;
    catalogue = found;
    composer.offer(catalogue);
    if (catalogue.models.length === 0) throw new Problem({ title: 'No model is here', detail: 'The server offers none.', status: 500 });
    await read();
  } catch (error) {
    if (!signal.aborted) fail(error);
  }
}

/** Whatever was asked before is no longer wanted. */
function newSignal() {
  controller?.abort();
  controller = new AbortController();
  return controller.signal;
}

/**
 * Changes the state, the address and whatever depends on them.
 * @param {Partial<import('./core/state.js').State>} patch
 * @param {boolean} [isTyped] typing rewrites the address instead of adding to the history
 */
function change(patch, isTyped = false) {
  const before = state;
  retrier.stop();
  state = { ...state, ...patch };
  if (state.view !== before.view) pointed = null;
  const address = writeFragment(state);
  if (address !== location.hash) history[isTyped ? 'replaceState' : 'pushState'](null, '', address);
  if (state.text !== before.text || state.model !== before.model) read();
  else show();
}

/** Asks for the trace of the text; a request still on its way is dropped. */
async function read() {
  if (catalogue.models.length === 0) { await start(); return; }
  const signal = newSignal();
  const wanted = cardOf(state.model || catalogue.default);
  const card = wanted ?? cardOf(catalogue.default) ?? catalogue.models[0];
  state.text ??= card.examples[0]?.text ?? '';
  composer.show({ text: state.text, model: wanted?.id ?? '', card });
  showCard(byId('card'), card);
  if (!wanted) { fail(unknownModel()); return; }
  if (state.text.trim() === '') { empty(); return; }
  wait(true);
  try {
    const answer = await fetchTrace({ model: card.id, text: state.text, ...request(VIEWS, card) }, signal);
    if (signal.aborted) return;
    trace = { ...answer, card };
    arrived();
  } catch (error) {
    if (!signal.aborted) fail(error);
  }
}

function unknownModel() {
  const known = catalogue.models.map(({ id }) => id).join(', ');
  return new Problem({ title: 'Unknown model', detail: `There is no model “${state.model}” here; there are: ${known}.`, status: 404 });
}

function arrived() {
  wait(false);
  allIsWell();
  byId('empty').hidden = true;
  byId('results').hidden = false;
  byId('status').textContent = statusOf(trace);
  pointed = null;
  settle();
  history.replaceState(null, '', writeFragment(state));
  chips.show(trace);
  show();
}

/** Brings the state within what the trace holds; where nobody chose a head, opens a telling one. */
function settle() {
  const layers = layersWith(trace.tensors, 'self_attention.weights');
  const heads = layers.length > 0 ? trace.tensors[layers[0].site].shape[0] : 0;
  state = clamp(state, { layers: layers.length, heads, tokens: trace.tokens.length, views: VIEWS.map(({ id }) => id) });
  if (state.layer !== null && state.head !== null) return;
  const found = strongestHeads(trace);
  const { layer = 0, head = 0 } = found.find(({ id }) => id === 'induction') ?? found[0] ?? {};
  state = { ...state, layer: state.layer ?? layer, head: state.head ?? head };
}

function statusOf({ tokens, card, timings }) {
  const total = Object.values(timings).reduce((sum, milliseconds) => sum + milliseconds, 0);
  const time = total > 0 ? `, read in ${Math.max(1, Math.round(total))} ms` : '';
  return `${counted(tokens.length, 'token')} of at most ${card.max_tokens}${time}`;
}

function wait(isWaiting) {
  byId('beam').hidden = !isWaiting;
  byId('main').setAttribute('aria-busy', String(isWaiting));
  byId('results').classList.toggle('is-stale', isWaiting);
  if (isWaiting && byId('notice').hidden) byId('status').textContent = 'Reading…';
}

function empty() {
  wait(false);
  allIsWell();
  trace = null;
  byId('status').textContent = '';
  byId('results').hidden = true;
  byId('empty').hidden = false;
}

function allIsWell() {
  retrier.stop();
  notice.clear();
}

function fail(error) {
  const problem = asProblem(error);
  wait(false);
  trace = null;
  byId('status').textContent = '';
  byId('results').hidden = true;
  byId('empty').hidden = true;
  notice.show(problem, retrier.after(problem));
}

/** Draws the open view. */
function show() {
  if (!trace) return;
  tabs.choose(state.view);
  for (const { id } of VIEWS) sections[id].element.hidden = id !== state.view;
  chips.choose(queryOf(state, trace));
  frame = { palette: palette(), height: plotHeight() };
  grid = sections[state.view].show(trace, { ...state, ...frame });
  markSentence();
}

function plotHeight() {
  return Math.max(320, Math.min(LARGEST_PLOT, window.innerHeight - 120));
}

/** A cell is pointed at, by mouse, finger or keyboard; or none is any more. */
function point(cell, of, isKeyboard) {
  pointed = cell && { cell, grid: of };
  markSentence();
  if (cell && isKeyboard) announce(of.describe(cell.row, cell.column));
}

/** The sentence follows the cursor; without one it shows what the view says at rest. */
function markSentence() {
  const scale = sequential(frame.palette.theme);
  if (pointed) {
    const { cell: { row, column }, grid: of } = pointed;
    chips.mark(of.tokens(row, column));
    chips.tint(of.tint?.(row) ?? null, scale, of.ceiling);
    byId('readout').textContent = of.describe(row, column);
    return;
  }
  chips.mark({});
  chips.tint(grid?.rest?.tint ?? null, scale, grid?.ceiling);
  byId('readout').textContent = grid?.rest?.readout ?? '';
}

function announce(message) {
  byId('announcer').textContent = message;
}

window.addEventListener('popstate', () => {
  const before = state;
  state = { ...INITIAL, ...readFragment(location.hash) };
  if (state.text !== before.text || state.model !== before.model) read();
  else { if (trace) settle(); show(); }
});
new ResizeObserver(([{ contentRect }]) => {
  if (contentRect.width === width) return;
  width = contentRect.width;
  requestAnimationFrame(show);
}).observe(byId('main'));
plotly().catch(() => {});
start();
