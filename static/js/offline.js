/**
 * A page that holds its trace and needs no server: the Attention view over what was captured.
 * `headlight trace "…" --html FILE` writes it; whatever it imports stands in the same file.
 */

import { offlineView } from './state/offline_view.js';
import { plotHeight } from './plot/figure.js';
import { predictingSide } from './data/attention.js';
import {
  normalized,
  choosing,
  fieldsOf,
  isQueryLookedAt,
  queryOf,
  standardsOf,
} from './state/state.js';
import { readInWords } from './ui/page.js';
import { traceFromSafetensors } from './data/trace.js';
import { showCard } from './ui/composer.js';
import { createSentence } from './ui/sentence.js';
import { watchSticky } from './ui/page.js';
import { createTheme, palette, partOf } from './ui/dom.js';
import { createViewSection } from './ui/view_section.js';
import { attention } from './views/attention/attention.js';
import { createHeadsBlock } from './ui/heads_block.js';

/**
 * @import { Cell, Grid } from './plot/grid.js'
 * @import { Patch } from './state/state.js'
 * @import { PointedCell } from './ui/sentence.js'
 */

/** @param {string} id */
const byId = (id) => partOf(document, `#${id}`, HTMLElement);
const bytes = Uint8Array.from(atob(byId('answer').textContent.trim()), (letter) =>
  letter.charCodeAt(0),
);
const card = JSON.parse(byId('model').textContent);
const trace = { ...traceFromSafetensors(bytes.buffer), card };
const view = { ...offlineView(attention, trace), createOverview: createHeadsBlock };
let state = normalized(standardsOf(fieldsOf([attention])), trace, [view.id]);
/** @type {Grid|null} */
let grid = null;
/** @type {PointedCell|null} */
let pointed = null;
let width = 0;

const section = createViewSection(view, {
  onCell: point,
  onChoose: choose,
  onState: change,
  onGoingOn: change,
  onRedraw: show,
  announce,
});
const sentence = createSentence(byId('sentence'), {
  onChoose: (side, index) => change(choosing(trace, side, index)),
  onPress: (side, index) => change(choosing(trace, side, index)),
  onPoint: mark,
});
byId('views').append(section.element);
section.element.hidden = false;
createTheme(byId('theme'), show);
watchSticky(byId('sentence'));
sentence.show(trace);
byId('mask-hint').textContent = '';
byId('status').textContent = readInWords(trace);
showCard(byId('card'), card);
partOf(document, '#card .card-link', HTMLElement).remove();

/** @param {Patch} patch */
function change(patch) {
  state = normalized({ ...state, ...patch }, trace, [view.id]);
  show();
}

function show() {
  grid = section.show(view, trace, {
    ...state,
    palette: palette(),
    height: plotHeight(window.innerHeight),
    cards: [card],
    answers: { attention: { trace } },
  });
  const side = grid?.sides?.rows ?? predictingSide(trace);
  sentence.choose(
    side,
    grid?.query === undefined ? queryOf(state, trace, side) : grid.query,
    isQueryLookedAt(state, trace, side),
  );
  mark();
}

/**
 * @param {Cell} cell
 * @param {Grid} of
 */
function choose({ row, column }, of) {
  change(of.choose?.(row, column) ?? {});
  announce(`Chosen: ${of.describe(row, column)}`);
}

/**
 * @param {Cell|null} cell
 * @param {Grid} of
 * @param {boolean} isKeyboard
 */
function point(cell, of, isKeyboard) {
  pointed = cell && { cell, grid: of };
  mark();
  if (cell && isKeyboard) announce(of.describe(cell.row, cell.column));
}

function mark() {
  sentence.mark(grid, pointed, palette());
}

/** @param {string} message */
function announce(message) {
  byId('announcer').textContent = message;
}

new ResizeObserver(([{ contentRect }]) => {
  if (contentRect.width === width) return;
  width = contentRect.width;
  requestAnimationFrame(show);
}).observe(byId('main'));
