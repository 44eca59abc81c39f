/**
 * A page that holds its trace and needs no server: the Attention view over what was captured.
 * `headlight trace "…" --html FILE` writes it; whatever it imports stands in the same file.
 */

import { shownOf } from './core/held.js';
import { plotHeight } from './core/figure.js';
import { predictingSide } from './core/places.js';
import { readInWords, settled } from './core/settle.js';
import { choosing, fieldsOf, isQueryLookedAt, queryOf } from './core/state.js';
import { standardsOf } from './core/fields.js';
import { traceFromSafetensors } from './core/trace.js';
import { showCard } from './components/model_card.js';
import { createSentence } from './components/sentence.js';
import { watchSticky } from './components/sticky.js';
import { createTheme, palette } from './components/theme.js';
import { createViewSection } from './components/view_section.js';
import { attention } from './views/attention.js';

const byId = (id) => document.getElementById(id);
const bytes = Uint8Array.from(atob(byId('answer').textContent.trim()), (letter) =>
  letter.charCodeAt(0),
);
const card = JSON.parse(byId('model').textContent);
const trace = { ...traceFromSafetensors(bytes.buffer), card };
const view = shownOf(attention, trace);
let state = settled(standardsOf(fieldsOf([attention])), trace, [view.id]);
let grid = null;
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
byId('card').querySelector('.card-link').remove();

function change(patch) {
  state = settled({ ...state, ...patch }, trace, [view.id]);
  show();
}

function show() {
  grid = section.show(trace, {
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

function choose({ row, column }, of) {
  change(of.choose(row, column));
  announce(`Chosen: ${of.describe(row, column)}`);
}

function point(cell, of, isKeyboard) {
  pointed = cell && { cell, grid: of };
  mark();
  if (cell && isKeyboard) announce(of.describe(cell.row, cell.column));
}

function mark() {
  sentence.mark(grid, pointed, palette());
}

function announce(message) {
  byId('announcer').textContent = message;
}

new ResizeObserver(([{ contentRect }]) => {
  if (contentRect.width === width) return;
  width = contentRect.width;
  requestAnimationFrame(show);
}).observe(byId('main'));
