/**
 * The logit lens: what the model would predict if it stopped after a layer, at every position; and
 * the likeliest tokens of one cell as bars.
 */

import { noticeOf } from '../../api/request_cache.js';
import { modelName } from '../../api/catalogue.js';
import { guessesIn, marker, nameOfGuess, wordsFor } from '../../data/guesses.js';
import { percent } from '../../data/number.js';
import { bytesInWords } from '../../data/pieces.js';
import { predictingSide, tokensOf } from '../../data/places.js';
import { choosing, queryOf } from '../../state/state.js';
import { named, nameOf, quoted } from '../../data/text.js';
import { guessBars, guessesGrid } from '../../plot/guess_bars.js';
import { geometryOf, lensMap, settingFor } from './lens_drawing.js';

const SHOWN = 12;
const REQUEST = { capture: [], analyses: ['logit_lens'] };
const TITLE = 'Logit lens';

/** What the lens asks for; nothing of a model that has none. */
export function lensAsks({ card }) {
  return hasLens(card) ? { lens: REQUEST } : {};
}

function hasLens(card) {
  return card?.analyses?.includes('logit_lens') ?? true;
}

/** The map; below it the chosen cell, and beside that the last layer, unless that is the chosen one. */
export function lensPanels(_, state) {
  const found = lensIn(state);
  if (!found) return [{ id: 'lens', state: { drawn: 'lens' } }];
  const last = found.probabilities.shape[0] - 1;
  const bars = chosenLayer(state, found) === last ? [last] : [chosenLayer(state, found), last];
  return [
    { id: 'lens', state: { drawn: 'lens' } },
    ...bars.map((layer, index) => ({
      id: index === 0 ? 'cell' : 'last',
      state: { drawn: 'guesses', read: layer },
    })),
  ];
}

/**
 * @param {import('../../data/trace.js').Trace} trace
 * @param {import('../../state/state.js').State & import('../../plot/figure.js').Frame & {stream_layer: number|null, drawn: string, read?: number}} state
 * @returns {import('../../plot/figure.js').Figure}
 */
export function lensFigure(trace, state) {
  if (!hasLens(trace.card)) {
    return {
      title: TITLE,
      notice: `${modelName(trace.card, trace.model)} has no logit lens: its layers do not lead to a prediction that can be read off early.`,
    };
  }
  const found = lensIn(state);
  if (!found) return { title: TITLE, notice: noticeOf(state.answers?.lens) };
  const subject = subjectOf(trace, state, found);
  return state.drawn === 'guesses'
    ? barsFigure(trace, state, subject)
    : mapFigure(trace, state, subject);
}

function lensIn({ answers }) {
  return answers?.lens?.trace?.analyses.logit_lens ?? null;
}

function chosenLayer({ stream_layer: layer }, { probabilities: { shape } }) {
  return Math.min(layer ?? Infinity, shape[0] - 1);
}

/** What is shown: the likeliest token of every cell, and how cells and places are called. */
function subjectOf(trace, state, found) {
  const side = predictingSide(trace);
  const tokens = tokensOf(trace, side);
  const [layers, count, ranks] = found.probabilities.shape;
  const markers = tokens.map((_, position) => marker(trace, tokens, position, state.words ?? ''));
  const textAt = (layer, position) => found.texts[layer][position][0];
  const first = (layer, position) => (layer * count + position) * ranks;
  const data = Float64Array.from(
    { length: layers * count },
    (_, at) => found.probabilities.data[at * ranks] * found.probabilities.scale,
  );
  return {
    found,
    side,
    tokens,
    markers,
    textAt,
    words: wordsFor(trace),
    query: queryOf(state, trace),
    layer: chosenLayer(state, found),
    last: layers - 1,
    probabilities: { rows: layers, columns: count, data },
    markAt: (layer, position) =>
      markers[position](found.ids.data[first(layer, position)], textAt(layer, position)),
  };
}

function mapFigure(trace, state, subject) {
  const { tokens, probabilities, textAt, markAt, words } = subject;
  const lens = {
    tokens,
    probabilities,
    nameAt: (layer, position) =>
      bytesInWords(textAt(layer, position)) ?? nameOf({ text: textAt(layer, position) }),
    isRight: (layer, position) => markAt(layer, position).mark !== '',
  };
  return {
    title: `${TITLE}: what each layer would expect`,
    summary: `Logit lens: the likeliest token after each of ${probabilities.rows} layers at each of ${probabilities.columns} positions.`,
    help: `Underlined: the guess is right, it ${words.came}.`,
    ...lensMap(lens, state),
    grid: mapGrid(trace, state, subject),
  };
}

function mapGrid(trace, state, subject) {
  const { side, tokens, probabilities, textAt, query, layer } = subject;
  const { rows, columns, data } = probabilities;
  const value = (row, column) => data[row * columns + column];
  const guess = (row, column) => `“${nameOfGuess(textAt(row, column))}”`;
  return {
    rows,
    columns,
    kind: 'heatmap',
    sides: { rows: side, columns: side },
    rowTitle: 'after layer',
    columnTitle: 'token',
    rowLabels: Array.from({ length: rows }, (_, row) => `layer ${row}`),
    columnLabels: tokens.map((token, position) => `${position} ${nameOf(token)}`),
    quantity: 'probability of the likeliest token by logit lens',
    request: REQUEST,
    value,
    format: (probability) => percent(probability),
    written: (row, column) => `${guess(row, column)} ${percent(value(row, column))}`,
    describe: (row, column) => sentence(subject, row, column),
    tip: (row, column) => [
      `${guess(row, column)} by layer ${row}, ${subject.words.preposition.toLowerCase()} ${named(tokens, column)}`,
      percent(value(row, column)),
    ],
    tokens: (_, column) => ({ query: column }),
    ofColumn: (column) => ({ tint: null, readout: columnInWords(subject, column) }),
    choose: (row, column) => ({
      ...choosing(trace, side, column),
      stream_layer: row === rows - 1 ? null : row,
    }),
    chooseHint: 'Enter opens the likeliest tokens of the cell',
    note: 'Choose a cell to open its likeliest tokens below.',
    chosen: { row: layer, column: query },
    start: { row: layer, column: query },
    rest: { readout: sentence(subject, layer, query) },
    geometry: geometryOf(settingFor(columns, rows, state.width)),
  };
}

function sentence(
  { tokens, words, probabilities: { columns, data }, textAt, markAt, last },
  layer,
  position,
) {
  const where = layer === last ? `layer ${layer}, the last,` : `layer ${layer}`;
  const { markInWords } = markAt(layer, position);
  return `${words.preposition} ${named(tokens, position)}, ${where} would expect “${nameOfGuess(textAt(layer, position))}” with probability ${percent(data[layer * columns + position])}${markInWords}`;
}

function columnInWords(
  { tokens, words, probabilities: { rows, columns, data }, textAt },
  position,
) {
  const read = Array.from(
    { length: rows },
    (_, layer) =>
      `“${nameOfGuess(textAt(layer, position))}” ${percent(data[layer * columns + position])}`,
  );
  return `${words.preposition} ${named(tokens, position)}, layer by layer: ${read.join(', ')}`;
}

function barsFigure(trace, state, subject) {
  const { found, side, tokens, markers, words, query, last } = subject;
  const layer = state.read;
  const guesses = guessesIn(
    { ...found, texts: found.texts[layer][query] },
    [layer, query],
    markers[query],
    SHOWN,
  );
  const place = `${words.preposition} ${quoted(tokens[query])}`;
  const reader =
    layer === last ? `layer ${layer}, the last: what the model predicts` : `layer ${layer}`;
  const say = (row) =>
    `${place}, “${guesses[row].name}” has probability ${percent(guesses[row].probability)}, rank ${row + 1}${guesses[row].markInWords} (after layer ${layer})`;
  return {
    title: `${place}, by ${reader}`,
    summary: `The ${guesses.length} likeliest tokens ${place.toLowerCase()}, read off after layer ${layer}.`,
    ...guessBars(state, guesses, words),
    grid: {
      ...guessesGrid(guesses, { side, query, say }),
      quantity: `probability of ${words.event}, token ${query}, after layer ${layer}`,
      request: REQUEST,
    },
  };
}
