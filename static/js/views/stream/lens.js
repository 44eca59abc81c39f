/**
 * The logit lens: the model's prediction from each layer at every position, and the likeliest
 * tokens of one cell as bars.
 */

import { modelName } from '../../api/calls.js';
import { noticeOf } from '../../api/answers.js';
import { guessesIn, marker, wordsFor, guessChart } from '../../plot/bars.js';
import { percent } from '../../words/numbers.js';
import { shortened } from '../../words/text.js';
import { guessInWords, tokenName } from '../../words/tokens.js';
import { placeInWords } from '../../trace/word_names.js';
import { range } from '../../trace/trace.js';
import { isRating, predictingSide, tokensOf } from '../../trace/attention.js';
import { chart } from '../../plot/chart.js';
import { isNarrow, band } from '../../plot/scales.js';
import { cell } from '../../plot/marks/mark.js';
import { rule, text } from '../../plot/marks/decorations.js';
import { choosing, queryOf } from '../../state/state.js';

const SHOWN = 12;
const REQUEST = { capture: [], analyses: ['logit_lens'] };
const TITLE = 'Logit lens';

/**
 * Return the request of the lens; none for a model without one.
 * @param {Trace} trace
 * @returns {Record<string, Ask>}
 */
export function lensAsks({ card }) {
  return hasLens(card) ? { lens: REQUEST } : {};
}

/** @param {Card|undefined} card */
function hasLens(card) {
  return !isRating({ card }) && (card?.analyses?.includes('logit_lens') ?? true);
}

/**
 * The map; below it the chosen cell and, unless it is in the last layer, the last layer.
 * @param {Trace} _
 * @param {ViewState} state
 */
export function lensPanels(_, state) {
  const lens = lensIn(state);
  if (!lens) return [{ id: 'lens', state: { drawn: 'lens' } }];
  const last = lens.probabilities.shape[0] - 1;
  const bars = chosenLayer(state, lens) === last ? [last] : [chosenLayer(state, lens), last];
  return [
    { id: 'lens', state: { drawn: 'lens' } },
    ...bars.map((layer, index) => ({
      id: index === 0 ? 'cell' : 'last',
      state: { drawn: 'guesses', read: layer },
    })),
  ];
}

/**
 * @param {Trace} trace
 * @param {ViewState} state with the panel’s `stream_layer`, `drawn`, `read`
 * @returns {Figure}
 */
export function lensFigure(trace, state) {
  if (!hasLens(trace.card)) {
    return {
      title: TITLE,
      notice: `${modelName(trace.card, trace.model)} has no logit lens: its layers cannot be decoded early.`,
    };
  }
  const lens = lensIn(state);
  if (!lens) return { title: TITLE, notice: noticeOf(state.answers?.lens) };
  const subject = subjectOf(trace, state, lens);
  return state.drawn === 'guesses' ? barsFigure(state, subject) : mapFigure(trace, state, subject);
}

/** @typedef {{ids: NamedArray, probabilities: NamedArray, texts: string[][][]}} LensAnalysis the analysis, by layer and position */

/** @param {ViewState} state @returns {LensAnalysis|null} */
function lensIn({ answers }) {
  return answers?.lens?.trace?.analyses.logit_lens ?? null;
}

/** @param {Record<string, any>} state @param {LensAnalysis} lens @returns {number} */
function chosenLayer({ stream_layer: layer }, { probabilities: { shape } }) {
  return Math.min(layer ?? Infinity, shape[0] - 1);
}

/**
 * The subject: the likeliest token of every cell, and the names of cells and positions.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {LensAnalysis} lens
 */
function subjectOf(trace, state, lens) {
  const side = predictingSide(trace);
  const tokens = tokensOf(trace, side);
  const [layers, count, ranks] = lens.probabilities.shape;
  const markers = tokens.map((_, position) => marker(trace, tokens, position, state.words ?? ''));
  /** @type {(layer: number, position: number) => string} */
  const textAt = (layer, position) => lens.texts[layer][position][0];
  /** @type {(layer: number, position: number) => number} */
  const first = (layer, position) => (layer * count + position) * ranks;
  const data = Float64Array.from(
    { length: layers * count },
    (_, at) => lens.probabilities.data[at * ranks] * lens.probabilities.scale,
  );
  return {
    lens,
    side,
    tokens,
    /** @param {number} position */
    placeAt: (position) => placeInWords(trace, side, position),
    markers,
    textAt,
    words: wordsFor(trace),
    query: queryOf(state, trace),
    layer: chosenLayer(state, lens),
    last: layers - 1,
    probabilities: { rows: layers, columns: count, data },
    markAt: (/** @type {number} */ layer, /** @type {number} */ position) =>
      markers[position](lens.ids.data[first(layer, position)], textAt(layer, position)),
  };
}

/** @param {Trace} trace @param {ViewState} state @param {ReturnType<typeof subjectOf>} subject */
function mapFigure(trace, state, subject) {
  const { side, tokens, probabilities, markAt, words, query, layer } = subject;
  const { rows, columns } = probabilities;
  const { palette } = state;
  const setting = settingFor(columns, rows, state.width);
  const right = range(rows * columns)
    .map((at) => ({ row: Math.floor(at / columns), column: at % columns }))
    .filter(({ row, column }) => markAt(row, column).mark !== '')
    .map(({ row, column }) => setting.place(row, column));
  return {
    title: `${TITLE}: the prediction of each layer`,
    summary: `Logit lens: the likeliest token after each of ${rows} layers at each of ${columns} positions.`,
    help: `Underlined: the token that ${words.came}.`,
    ...chart(
      {
        x: band(range(setting.perLine).map(() => '')),
        y: band(setting.labels, { size: TYPE }),
        marks: [
          guessCells(trace, setting.place, subject),
          text(tokens, {
            x: (_, position) => setting.place(0, position).x,
            y: (_, position) => setting.place(0, position).y - 0.88,
            text: (token) => shortened(tokenName(token), Math.floor((setting.cell - 6) / LETTER)),
            ink: palette.muted,
          }),
          rule(right, {
            from: ({ x, y }) => ({ x: x - 0.44, y: y + 0.47 }),
            to: ({ x, y }) => ({ x: x + 0.44, y: y + 0.47 }),
            stroke: palette.key,
            width: 2.5,
          }),
        ],
        size: { cell: setting.cell, row: CELL.height },
        table: {
          rows: { title: 'after layer', labels: range(rows).map((row) => `layer ${row}`) },
          columns: {
            title: 'token',
            labels: tokens.map((token, position) => `${position} ${tokenName(token)}`),
          },
          quantity: 'probability of the likeliest token by logit lens',
          request: REQUEST,
        },
        sentence: {
          sides: { rows: side, columns: side },
          ofColumn: (column) => ({ readout: columnInWords(subject, column) }),
          rest: { readout: sentence(subject, layer, query) },
        },
        cursor: {
          chooseHint: 'Enter opens the likeliest tokens of the cell',
          note: 'Choose a cell to open its likeliest tokens below.',
          chosen: { row: layer, column: query },
          start: { row: layer, column: query },
        },
      },
      state,
    ),
  };
}

/**
 * Draw the likeliest token of each layer at each position.
 * @param {Trace} trace
 * @param {ReturnType<typeof settingFor>['place']} place
 * @param {ReturnType<typeof subjectOf>} subject
 */
function guessCells(trace, place, subject) {
  const { side, placeAt, probabilities, textAt, words } = subject;
  /** @param {{row: number, column: number}} cell */
  const guess = ({ row, column }) => `“${guessInWords(textAt(row, column))}”`;
  return cell(probabilities, {
    ramp: { title: 'probability of the likeliest token', domain: [0, 1] },
    place,
    gap: [2, 4],
    isCut: true,
    text: ({ row, column }) => guessInWords(textAt(row, column)),
    format: (value) => percent(value),
    written: (at) => `${guess(at)} ${percent(at.value)}`,
    name: (at) =>
      `${guess(at)} by layer ${at.row}, ${words.preposition.toLowerCase()} ${placeAt(at.column)}`,
    say: ({ row, column }) => sentence(subject, row, column),
    tokens: ({ column }) => ({ query: column }),
    choose: ({ row, column }) => ({
      ...choosing(trace, side, column),
      stream_layer: row === probabilities.rows - 1 ? null : row,
    }),
  });
}

/** @param {ReturnType<typeof subjectOf>} subject @param {number} layer @param {number} position */
function sentence(
  { placeAt, words, probabilities: { columns, data }, textAt, markAt, last },
  layer,
  position,
) {
  const where = layer === last ? `layer ${layer} (the last)` : `layer ${layer}`;
  const { markInWords } = markAt(layer, position);
  return `${words.preposition} ${placeAt(position)}, ${where} predicts “${guessInWords(textAt(layer, position))}” with probability ${percent(data[layer * columns + position])}${markInWords}`;
}

/** @param {ReturnType<typeof subjectOf>} subject @param {number} position */
function columnInWords(
  { placeAt, words, probabilities: { rows, columns, data }, textAt },
  position,
) {
  const guesses = Array.from(
    { length: rows },
    (_, layer) =>
      `“${guessInWords(textAt(layer, position))}” ${percent(data[layer * columns + position])}`,
  );
  return `${words.preposition} ${placeAt(position)}, layer by layer: ${guesses.join(', ')}`;
}

/** @param {ViewState} state @param {ReturnType<typeof subjectOf>} subject */
function barsFigure(state, subject) {
  const { lens, side, placeAt, markers, words, query, last } = subject;
  const layer = state.read;
  const guesses = guessesIn(
    { ...lens, texts: lens.texts[layer][query] },
    [layer, query],
    markers[query],
    SHOWN,
  );
  const place = `${words.preposition} ${placeAt(query)}`;
  /** @param {number} row */
  const say = (row) =>
    `${place}, “${guessInWords(guesses[row].text)}” has probability ${percent(guesses[row].probability)}, rank ${row + 1}${guesses[row].markInWords} (after layer ${layer})`;
  return {
    title: `${place}, read after layer ${layer}${layer === last ? ' (the last)' : ''}`,
    summary: `The ${guesses.length} likeliest tokens ${place.toLowerCase()}, read off after layer ${layer}.`,
    ...guessChart(
      guesses,
      {
        event: words.event,
        side,
        query,
        say,
        table: {
          quantity: `probability of ${words.event}, token ${query}, after layer ${layer}`,
          request: REQUEST,
        },
      },
      state,
    ),
  };
}

const CELL = { roomy: { least: 54, most: 104 }, tight: { least: 46, most: 80 }, height: 26 };
const LETTER = 6.6;
const TYPE = 13;

/**
 * Return the layout of the lens: lines of `perLine` positions. The first row of a line holds the
 * tokens, the others the layers.
 * @param {number} count of positions
 * @param {number} layers
 * @param {number} width pixels
 */
function settingFor(count, layers, width) {
  const isTight = isNarrow(width);
  const { least, most } = isTight ? CELL.tight : CELL.roomy;
  const room = width - (isTight ? 46 : 84);
  const lines = Math.ceil(count / Math.max(1, Math.min(count, Math.floor(room / least))));
  const perLine = Math.ceil(count / lines);
  const head = isTight ? 'layer' : 'after layer';
  return {
    perLine,
    cell: Math.min(most, room / perLine),
    labels: range(lines).flatMap(() => [head, ...range(layers).map(String)]),
    place: (/** @type {number} */ layer, /** @type {number} */ position) => ({
      x: position % perLine,
      y: Math.floor(position / perLine) * (layers + 1) + 1 + layer,
    }),
  };
}
