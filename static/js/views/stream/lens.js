/**
 * The logit lens: the model's prediction from each layer at every position, and the likeliest
 * tokens of one cell as bars.
 */

import { modelName } from '../../api/calls.js';
import { noticeOf } from '../../api/request_cache.js';
import { guessesIn, marker, nameOfGuess, wordsFor } from '../../plot/bars.js';
import {
  percent,
  bytesInWords,
  escapeForPlotly,
  named,
  nameOf,
  quoted,
  shortened,
} from '../../data/format.js';
import { range } from '../../data/trace.js';
import { predictingSide, tokensOf } from '../../data/attention.js';
import { inkOn, levelOf, sequential } from '../../plot/colour.js';
import {
  baseLayout,
  downwards,
  heatmapTrace,
  isNarrow,
  shortBar,
  shortBarTitle,
  shortBarWidth,
} from '../../plot/figure.js';
import { guessBars, guessesGrid } from '../../plot/bars.js';
import { choosing, queryOf } from '../../state/state.js';

/**
 * @import { Ask, Card, Matrix, NamedArray, Token, Trace } from '../../data/trace.js'
 * @import { Drawing, Figure, Frame, Palette, ViewState } from '../../plot/figure.js'
 * @import { Geometry, Grid } from '../../plot/grid.js'
 */

const SHOWN = 12;
const REQUEST = { capture: [], analyses: ['logit_lens'] };
const TITLE = 'Logit lens';

/**
 * The request of the lens; none for a model without one.
 * @param {Trace} trace
 * @returns {Record<string, Ask>}
 */
export function lensAsks({ card }) {
  return hasLens(card) ? { lens: REQUEST } : {};
}

/** @param {Card|undefined} card */
function hasLens(card) {
  return card?.analyses?.includes('logit_lens') ?? true;
}

/**
 * The map; below it the chosen cell and, unless it is in the last layer, the last layer.
 * @param {Trace} _
 * @param {ViewState} state
 */
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
  const found = lensIn(state);
  if (!found) return { title: TITLE, notice: noticeOf(state.answers?.lens) };
  const subject = subjectOf(trace, state, found);
  return state.drawn === 'guesses' ? barsFigure(state, subject) : mapFigure(trace, state, subject);
}

/** @typedef {{ids: NamedArray, probabilities: NamedArray, texts: string[][][]}} Found the analysis, by layer and position */

/** @param {ViewState} state @returns {Found|null} */
function lensIn({ answers }) {
  return answers?.lens?.trace?.analyses.logit_lens ?? null;
}

/** @param {Record<string, any>} state @param {Found} found @returns {number} */
function chosenLayer({ stream_layer: layer }, { probabilities: { shape } }) {
  return Math.min(layer ?? Infinity, shape[0] - 1);
}

/**
 * The subject: the likeliest token of every cell, and the names of cells and positions.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Found} found
 */
function subjectOf(trace, state, found) {
  const side = predictingSide(trace);
  const tokens = tokensOf(trace, side);
  const [layers, count, ranks] = found.probabilities.shape;
  const markers = tokens.map((_, position) => marker(trace, tokens, position, state.words ?? ''));
  /** @type {(layer: number, position: number) => string} */
  const textAt = (layer, position) => found.texts[layer][position][0];
  /** @type {(layer: number, position: number) => number} */
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
    markAt: (/** @type {number} */ layer, /** @type {number} */ position) =>
      markers[position](found.ids.data[first(layer, position)], textAt(layer, position)),
  };
}

/** @param {Trace} trace @param {ViewState} state @param {ReturnType<typeof subjectOf>} subject */
function mapFigure(trace, state, subject) {
  const { tokens, probabilities, textAt, markAt, words } = subject;
  const lens = {
    tokens,
    probabilities,
    nameAt: (/** @type {number} */ layer, /** @type {number} */ position) =>
      bytesInWords(textAt(layer, position)) ?? nameOf({ text: textAt(layer, position) }),
    isRight: (/** @type {number} */ layer, /** @type {number} */ position) =>
      markAt(layer, position).mark !== '',
  };
  return {
    title: `${TITLE}: the prediction of each layer`,
    summary: `Logit lens: the likeliest token after each of ${probabilities.rows} layers at each of ${probabilities.columns} positions.`,
    help: `Underlined: the token that ${words.came}.`,
    ...lensMap(lens, state),
    grid: mapGrid(trace, state, subject),
  };
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {ReturnType<typeof subjectOf>} subject
 * @returns {Grid}
 */
function mapGrid(trace, state, subject) {
  const { side, tokens, probabilities, textAt, query, layer } = subject;
  const { rows, columns, data } = probabilities;
  /** @param {number} row @param {number} column */
  const value = (row, column) => data[row * columns + column];
  /** @param {number} row @param {number} column */
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
    ofColumn: (column) => ({ readout: columnInWords(subject, column) }),
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

/** @param {ReturnType<typeof subjectOf>} subject @param {number} layer @param {number} position */
function sentence(
  { tokens, words, probabilities: { columns, data }, textAt, markAt, last },
  layer,
  position,
) {
  const where = layer === last ? `layer ${layer} (the last)` : `layer ${layer}`;
  const { markInWords } = markAt(layer, position);
  return `${words.preposition} ${named(tokens, position)}, ${where} predicts “${nameOfGuess(textAt(layer, position))}” with probability ${percent(data[layer * columns + position])}${markInWords}`;
}

/** @param {ReturnType<typeof subjectOf>} subject @param {number} position */
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

/** @param {ViewState} state @param {ReturnType<typeof subjectOf>} subject */
function barsFigure(state, subject) {
  const { found, side, tokens, markers, words, query, last } = subject;
  const layer = state.read;
  const guesses = guessesIn(
    { ...found, texts: found.texts[layer][query] },
    [layer, query],
    markers[query],
    SHOWN,
  );
  const place = `${words.preposition} ${quoted(tokens[query])}`;
  /** @param {number} row */
  const say = (row) =>
    `${place}, “${guesses[row].name}” has probability ${percent(guesses[row].probability)}, rank ${row + 1}${guesses[row].markInWords} (after layer ${layer})`;
  return {
    title: `${place}, read after layer ${layer}${layer === last ? ' (the last)' : ''}`,
    summary: `The ${guesses.length} likeliest tokens ${place.toLowerCase()}, read off after layer ${layer}.`,
    ...guessBars(state, guesses, words),
    grid: {
      ...guessesGrid(guesses, { side, query, say }),
      quantity: `probability of ${words.event}, token ${query}, after layer ${layer}`,
      request: REQUEST,
    },
  };
}

const CELL = { roomy: { least: 54, most: 104 }, tight: { least: 46, most: 80 }, height: 26 };
const LETTER = 6.6;
const TYPE = 11;
const BAR_TITLE = 'probability of the likeliest token';

/**
 * The layout of the lens: `lines` lines of `perLine` positions. The first row of a line holds the
 * tokens, the others the layers.
 * @typedef {Object} Setting
 * @property {number} layers
 * @property {number} count
 * @property {number} perLine
 * @property {number} lines
 * @property {number} cell width in pixels
 * @property {{l: number, r: number, t: number, b: number}} margin
 */

/**
 * @param {number} count of positions
 * @param {number} layers
 * @param {number} width pixels
 * @returns {Setting}
 */
export function settingFor(count, layers, width) {
  const { least, most } = isNarrow(width) ? CELL.tight : CELL.roomy;
  const margin = { l: isNarrow(width) ? 42 : 76, r: 4, t: 0, b: 44 };
  const room = width - margin.l - margin.r;
  const lines = Math.ceil(count / Math.max(1, Math.min(count, Math.floor(room / least))));
  const perLine = Math.ceil(count / lines);
  const cell = Math.min(most, room / perLine);
  return {
    layers,
    count,
    perLine,
    lines,
    cell,
    margin: { ...margin, r: Math.max(margin.r, beyond(cell * perLine, width - margin.l)) },
  };
}

/**
 * The width that the colour bar needs beyond a map of few tokens.
 * @param {number} map
 * @param {number} most
 */
function beyond(map, most) {
  return Math.min(shortBarWidth(BAR_TITLE), most) - map;
}

/**
 * The geometry of the cells of layers by positions.
 * @param {Setting} setting
 * @returns {Geometry}
 */
export function geometryOf({ layers, count, perLine, lines }) {
  const block = layers + 1;
  return {
    box: (row, column) => {
      if (column === undefined) return null;
      const top = Math.floor(column / perLine) * block + 1;
      const x = column % perLine;
      const [first, last] = row === undefined ? [0, layers - 1] : [row, row];
      return { x0: x - 0.5, x1: x + 0.5, y0: top + first - 0.5, y1: top + last + 0.5 };
    },
    at: (x, y) => {
      const line = Math.floor((y + 0.5) / block);
      const row = Math.round(y) - line * block - 1;
      const column = line * perLine + Math.round(x);
      const isInside =
        line >= 0 &&
        line < lines &&
        row >= 0 &&
        row < layers &&
        x > -0.5 &&
        x < perLine - 0.5 &&
        column < count;
      return isInside ? { row, column } : null;
    },
  };
}

/**
 * @param {{tokens: Token[], probabilities: Matrix, nameAt: (layer: number, position: number) => string, isRight: (layer: number, position: number) => boolean}} lens layers by positions
 * @param {Frame} state
 * @returns {Drawing}
 */
export function lensMap({ tokens, probabilities, nameAt, isRight }, { palette, width }) {
  const setting = settingFor(tokens.length, probabilities.rows, width);
  const { margin, perLine, lines, layers, cell } = setting;
  const cells = cellsOf(setting);
  const rows = lines * (layers + 1);
  return {
    data: [
      heatmap(cells, probabilities, setting, palette),
      heads(tokens, setting, palette),
      names(cells, { probabilities, nameAt }, setting, palette),
      underlines(
        cells.filter(({ layer, position }) => isRight(layer, position)),
        palette,
      ),
    ],
    layout: {
      ...baseLayout(palette, {
        width: margin.l + perLine * cell + margin.r,
        height: rows * CELL.height + margin.t + margin.b,
        margin,
      }),
      annotations: [shortBarTitle(BAR_TITLE, palette)],
      xaxis: { ...bareAxis(perLine), tickvals: [] },
      yaxis: downwards({
        ...bareAxis(rows),
        ...layerTicks(setting, isNarrow(width)),
        tickfont: { size: TYPE, color: palette.muted },
      }),
    },
  };
}

/** Every cell with its place on the axes. @param {Setting} setting */
function cellsOf({ count, layers, perLine }) {
  return Array.from({ length: count }, (_, position) =>
    Array.from({ length: layers }, (__, layer) => ({
      layer,
      position,
      x: position % perLine,
      y: Math.floor(position / perLine) * (layers + 1) + 1 + layer,
    })),
  ).flat();
}

/**
 * @param {ReturnType<typeof cellsOf>[number][]} cells
 * @param {Matrix} matrix
 * @param {Setting} setting
 * @param {Palette} palette
 */
function heatmap(cells, { columns, data }, { perLine, lines, layers }, palette) {
  const z = Array.from({ length: lines * (layers + 1) }, () => new Array(perLine).fill(null));
  for (const { layer, position, x, y } of cells) z[y][x] = data[layer * columns + position];
  return heatmapTrace(z, { colours: sequential(palette.theme) }, shortBar(palette), [2, 4]);
}

/**
 * The tokens above their columns.
 * @param {Token[]} tokens
 * @param {Setting} setting
 * @param {Palette} palette
 */
function heads(tokens, { perLine, layers, cell }, palette) {
  return {
    ...textTrace(),
    x: tokens.map((_, position) => position % perLine),
    y: tokens.map((_, position) => Math.floor(position / perLine) * (layers + 1) + 0.12),
    text: tokens.map((token) => fitted(nameOf(token), cell)),
    textfont: { size: TYPE, color: palette.muted },
  };
}

/**
 * @param {ReturnType<typeof cellsOf>[number][]} cells
 * @param {{probabilities: Matrix, nameAt: (layer: number, position: number) => string}} of
 * @param {Setting} setting
 * @param {Palette} palette
 */
function names(cells, { probabilities: { columns, data }, nameAt }, { cell }, palette) {
  const scale = sequential(palette.theme);
  return {
    ...textTrace(),
    x: cells.map(({ x }) => x),
    y: cells.map(({ y }) => y),
    text: cells.map(({ layer, position }) => fitted(nameAt(layer, position), cell)),
    textfont: {
      size: TYPE,
      color: cells.map(({ layer, position }) =>
        inkOn(scale, levelOf(data[layer * columns + position], 1)),
      ),
    },
  };
}

function textTrace() {
  return { type: 'scatter', mode: 'text', hoverinfo: 'none', cliponaxis: false };
}

/**
 * A name cut to the width of a cell, escaped for Plotly.
 * @param {string} name
 * @param {number} width
 */
function fitted(name, width) {
  return escapeForPlotly(shortened(name, Math.max(1, Math.floor((width - 6) / LETTER))));
}

/**
 * Underlines of the correct cells, as one path.
 * @param {ReturnType<typeof cellsOf>[number][]} cells
 * @param {Palette} palette
 */
function underlines(cells, palette) {
  return {
    type: 'scatter',
    mode: 'lines',
    x: cells.flatMap(({ x }) => [x - 0.44, x + 0.44, null]),
    y: cells.flatMap(({ y }) => [y + 0.47, y + 0.47, null]),
    line: { color: palette.key, width: 2.5 },
    hoverinfo: 'none',
    cliponaxis: false,
  };
}

/** @param {number} count */
function bareAxis(count) {
  return {
    range: [-0.5, count - 0.5],
    tickmode: 'array',
    ticks: '',
    showgrid: false,
    zeroline: false,
    showline: false,
    title: { text: '' },
  };
}

/** @param {Setting} setting @param {boolean} isTight */
function layerTicks({ lines, layers }, isTight) {
  const tickvals = range(lines * (layers + 1));
  const head = isTight ? 'layer' : 'after layer';
  return {
    tickvals,
    ticktext: tickvals.map((row) =>
      row % (layers + 1) === 0 ? head : String((row % (layers + 1)) - 1),
    ),
  };
}
