/**
 * An attention map as a matrix of square cells, and the grid behind it. Of several heads over each
 * other, a cell has the colour of the head with the largest weight, and a line that of its head.
 */

import { tokensOf } from '../../data/attention.js';
import { share } from '../../data/format.js';
import { columnOf, highestIn, rowOf, valueIn } from '../../data/trace.js';
import { alone, namedUnit, spread, tokensIn, unitLabels, unitOf } from '../../data/words.js';
import { diverging, headColour, sequential } from '../../plot/colour.js';
import { isNarrow, letteringFor, nested } from '../../plot/figure.js';
import { squaresFigure } from '../../plot/map.js';
import { choosing, createMemo, queryOf } from '../../state/state.js';

/**
 * @import { Matrix, Trace } from '../../data/trace.js'
 * @import { Unit } from '../../data/words.js'
 * @import { Drawing, Palette, PlotlyTrace, ViewState } from '../../plot/figure.js'
 * @import { Grid } from '../../plot/grid.js'
 * @import { Scale } from '../../state/attention_switches.js'
 * @import { Subject } from './subject.js'
 */

const memo = createMemo();

/** @param {Trace} trace @param {ViewState} state @param {Subject} subject @returns {Drawing} */
export function matrixDrawing(trace, state, subject) {
  const { matrix, scale, quantity } = subject;
  const { row, column } = chosenIn(trace, state, subject);
  return squaresFigure(
    {
      matrix,
      z: drawn(subject),
      rows: unitLabels(subject.rows),
      columns: unitLabels(subject.columns),
      titles: { rows: 'query: attends', columns: 'key: attended to' },
      quantity: quantity.noun,
      kept: row < 0 ? undefined : { rows: [row], columns: [column] },
      scale: {
        bottom: scale.bottom,
        top: scale.top,
        colours: (scale.isSigned ? diverging : sequential)(state.palette.theme),
        ticks: scale.ticks ?? null,
      },
    },
    state,
  );
}

/**
 * Values mapped to the colour scale: the lowest colour below the threshold, none for masked cells.
 * @param {Subject} subject
 */
function drawn(subject) {
  return memo([subject], () => {
    const { matrix, scale } = subject;
    const least = leastOf(subject);
    return nested({
      ...matrix,
      data: matrix.data.map((value) => (value < least ? scale.bottom : scale.place(value))),
    });
  });
}

/**
 * The threshold below which a cell has the lowest colour.
 * @param {Pick<Subject, 'scale'|'switches'>} subject
 */
export function leastOf({ scale, switches }) {
  if (switches.threshold === 0) return -Infinity;
  return switches.isShare ? switches.threshold : switches.threshold * scale.top;
}

const DIGITS = 4;

/**
 * The row and column of the chosen query and key.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @returns {{query: number, row: number, column: number, isChosen: boolean}} `query` counts tokens; `row` is −1 if that token is hidden; if no key was chosen, `column` is the highest of the row
 */
export function chosenIn(trace, state, { place, matrix, rows, columns }) {
  const query = queryOf(state, trace, place.rows);
  const row = unitOf(rows, query);
  const picked = state.key === null ? -1 : unitOf(columns, state.key);
  const isChosen = row >= 0 && picked >= 0;
  return {
    query,
    row,
    column: isChosen ? picked : highestIn(rowOf(matrix, Math.max(row, 0))),
    isChosen,
  };
}

/** @param {Trace} trace @param {ViewState} state @param {Subject} subject @returns {Grid} */
export function gridOf(trace, state, subject) {
  const { place, matrix, rows, columns, quantity, scale, request, made } = subject;
  const value = valueIn(matrix);
  const counts = {
    rows: tokensOf(trace, place.rows).length,
    columns: tokensOf(trace, place.columns).length,
  };
  const chosen = chosenIn(trace, state, subject);
  return {
    rows: matrix.rows,
    columns: matrix.columns,
    sides: { rows: place.rows, columns: place.columns },
    rowTitle: 'query',
    columnTitle: 'key',
    rowLabels: unitLabels(rows),
    columnLabels: unitLabels(columns),
    quantity: `${quantity.noun}, ${subject.name}${subject.details}`,
    request,
    made,
    value,
    format: (number) => quantity.write(number, DIGITS),
    ...(subject.switches.threshold > 0 && marksOf(subject, value)),
    describe: (row, column) => sentence(subject, row, column),
    tip: (row, column) => [
      `${namedUnit(rows, row)} → ${namedUnit(columns, column)}`,
      muchOf(subject, value(row, column)),
    ],
    tokens: (row, column) => ({ query: tokensIn(rows[row]), key: tokensIn(columns[column]) }),
    rowOf: (token) => unitOf(rows, token),
    columnOf: (token) => unitOf(columns, token),
    ofRow: (row) => rowShown(subject, row, counts),
    ...(place.id === 'cross' && { ofColumn: (column) => columnShown(subject, column, counts) }),
    choose: (row, column) => ({
      ...choosing(trace, place.rows, tokenOf(rows[row], chosen.query)),
      key: tokenOf(columns[column], state.key),
    }),
    chooseHint: 'Enter chooses the cell: its query and its key',
    ceiling: scale.top - scale.bottom,
    isSigned: scale.isSigned,
    chosen: chosen.row < 0 ? {} : { row: chosen.row },
    picked: chosen.isChosen ? { row: chosen.row, column: chosen.column } : null,
    start: { row: Math.max(chosen.row, 0), column: chosen.column },
    rest: atRest(trace, subject, chosen, counts),
    thinned: { rows: letteringFor(state.width), columns: letteringFor(state.width) },
  };
}

/**
 * The readout of the chosen row: its chosen cell, or its highest.
 * @param {Trace} trace
 * @param {Subject} subject
 * @param {ReturnType<typeof chosenIn>} chosen
 * @param {{rows: number, columns: number}} counts
 */
function atRest(trace, subject, { query, row, column, isChosen }, counts) {
  if (row < 0)
    return {
      readout: `${namedUnit(alone(tokensOf(trace, subject.place.rows)), query)} is hidden here`,
    };
  const shown = rowShown(subject, row, counts);
  const isSeen = !Number.isNaN(subject.matrix.data[row * subject.matrix.columns + column]);
  return isChosen && isSeen ? { ...shown, readout: sentence(subject, row, column) } : shown;
}

/**
 * The token that stands for a word: the one chosen before, or its last, which has read the whole
 * word.
 * @param {Unit} unit
 * @param {number|null} before
 */
function tokenOf({ first, last }, before) {
  return before !== null && first <= before && before <= last ? before : last;
}

/**
 * In the table, cells below the threshold are in brackets.
 * @param {Subject} subject
 * @param {(row: number, column: number) => number} value
 */
function marksOf(subject, value) {
  /** @type {(row: number, column: number) => boolean} */
  const isCut = (row, column) => value(row, column) < leastOf(subject);
  /** @type {(row: number, column: number) => string} */
  const write = (row, column) => subject.quantity.write(value(row, column), DIGITS);
  return {
    written: (/** @type {number} */ row, /** @type {number} */ column) =>
      isCut(row, column) ? `(${write(row, column)})` : write(row, column),
    writtenNote: 'in brackets: under the threshold',
  };
}

/** @param {Subject} subject @param {number} value */
function muchOf(subject, value) {
  if (Number.isNaN(value)) return 'hidden: not yet read';
  const much = subject.quantity.write(value, DIGITS);
  return value < leastOf(subject) ? `${much}, under the threshold` : much;
}

/**
 * A row in words, and the tint of each token as its level on the colour scale.
 * @param {Subject} subject
 * @param {number} row
 * @param {{rows: number, columns: number}} counts
 */
function rowShown(subject, row, counts) {
  const values = rowOf(subject.matrix, row);
  return {
    tint: tinted(subject.scale, subject.columns, values, counts.columns),
    readout: sentence(subject, row, highestIn(values), 'sayMost'),
  };
}

/**
 * A column in words. Its numbers belong to different rows, so they need not sum to 1.
 * @param {Subject} subject
 * @param {number} column
 * @param {{rows: number, columns: number}} counts
 */
function columnShown(subject, column, counts) {
  const values = columnOf(subject.matrix, column);
  const row = highestIn(values);
  return {
    tint: tinted(subject.scale, subject.rows, values, counts.rows),
    readout: sentence(subject, row, column, 'sayLookedAt'),
  };
}

/** @param {Scale} scale @param {Unit[]} units @param {Float64Array} values @param {number} count */
function tinted({ place, bottom }, units, values, count) {
  return spread(
    units,
    Float64Array.from(values, (value) => place(value) - bottom),
    count,
  );
}

/**
 * @param {Subject} subject
 * @param {number} row
 * @param {number} column
 * @param {'say'|'sayMost'|'sayLookedAt'} [way]
 */
function sentence(
  { place, matrix, rows, columns, quantity, name, details, overlaid },
  row,
  column,
  way = 'say',
) {
  const value = matrix.data[row * matrix.columns + column];
  const query = namedUnit(rows, row);
  if (Number.isNaN(value))
    return `${query} cannot attend to ${namedUnit(columns, column)}, which comes later (${name}${details})`;
  if (overlaid.length > 0)
    return eachHead(overlaid, query, namedUnit(columns, column), row, column);
  const isItself = place.rows === place.columns && rows[row].first === columns[column].first;
  return `${quantity[way](query, isItself && way !== 'sayLookedAt' ? 'itself' : namedUnit(columns, column), quantity.write(value))} (${name}${details})`;
}

/**
 * The weight of every overlaid head, the largest first.
 * @param {Subject['overlaid']} overlaid
 * @param {string} query
 * @param {string} key
 * @param {number} row
 * @param {number} column
 */
function eachHead(overlaid, query, key, row, column) {
  const each = overlaid
    .map(({ head, matrix }) => ({ head, weight: matrix.data[row * matrix.columns + column] }))
    .sort((a, b) => b.weight - a.weight)
    .map(({ head, weight }) => `head ${head} ${share(weight, 2)}`);
  return `${query} to ${key}: ${each.join(', ')}`;
}

/** @typedef {{head: number, matrix: Matrix}} HeadMatrix */

/**
 * The heatmap of the largest weights, split into one of each head.
 * @param {Drawing} drawing
 * @param {HeadMatrix[]} overlaid
 * @param {{palette: Palette, width: number}} frame
 * @returns {Drawing}
 */
export function overlaidMatrix({ data: [map], layout }, overlaid, { palette, width }) {
  const { columns } = overlaid[0].matrix;
  /** @param {number} at */
  const winner = (at) =>
    overlaid.reduce(
      (best, { matrix }, index) =>
        matrix.data[at] > overlaid[best].matrix.data[at] ? index : best,
      0,
    );
  const maps = overlaid.map((_, index) => ({
    ...map,
    z: map.z.map((/** @type {(number|null)[]} */ row, /** @type {number} */ y) =>
      row.map((value, x) => (winner(y * columns + x) === index ? value : null)),
    ),
    colorscale: [
      [0, palette.surface],
      [1, headColour(palette.theme, index)],
    ],
    showscale: false,
  }));
  return { data: [...maps, ...legendTraces(overlaid, palette)], layout: withLegend(layout, width) };
}

/**
 * The lines of each head in its colour, the strongest on top, over the words of the largest weights.
 * @param {typeof import('../../plot/line_map.js').linesFigure} linesFigure
 * @param {import('../../plot/line_map.js').Wanted} wanted
 * @param {HeadMatrix[]} overlaid
 */
export function overlaidLines(linesFigure, wanted, overlaid) {
  const { palette, width } = wanted;
  const whole = linesFigure(wanted);
  /** @type {PlotlyTrace[]} */
  const found = overlaid.flatMap(({ matrix }, index) =>
    linesFigure({ ...wanted, weights: matrix })
      .data.filter((trace) => isLine(trace, palette))
      .map((trace) => ({
        ...trace,
        showlegend: false,
        line: { ...trace.line, color: headColour(palette.theme, index) },
      })),
  );
  const lines = found.sort((a, b) => a.opacity - b.opacity || a.line.width - b.line.width);
  const others = whole.data
    .filter((trace) => !isLine(trace, palette) && !trace.marker)
    .map((trace) => ({ ...trace, showlegend: false }));
  return {
    ...whole,
    data: [...lines, ...others, ...legendTraces(overlaid, palette)],
    layout: withLegend(whole.layout, width, true),
  };
}

/** @param {PlotlyTrace} trace @param {Palette} palette */
function isLine({ mode, line }, palette) {
  return mode === 'lines' && line.color !== palette.surface;
}

/**
 * @param {HeadMatrix[]} overlaid
 * @param {Palette} palette
 * @returns {PlotlyTrace[]} without points, for the legend alone
 */
function legendTraces(overlaid, { theme }) {
  return overlaid.map(({ head }, index) => ({
    type: 'scatter',
    mode: 'markers',
    x: [null],
    y: [null],
    name: `head ${head}`,
    showlegend: true,
    hoverinfo: 'none',
    marker: { symbol: 'square', size: 12, color: headColour(theme, index) },
  }));
}

/**
 * The legend in place of the colour bar.
 * @param {import('../../plot/figure.js').Layout} layout
 * @param {number} width
 * @param {boolean} [isBelow]
 */
function withLegend(layout, width, isBelow = isNarrow(width)) {
  const [, ...annotations] = layout.annotations ?? [];
  const place = isBelow
    ? { orientation: 'h', x: 0, xanchor: 'left', y: 0, yanchor: 'top' }
    : { orientation: 'v', x: 1.01, xanchor: 'left', y: 1, yanchor: 'top' };
  return {
    ...layout,
    annotations,
    showlegend: true,
    legend: { ...place, itemclick: false, itemdoubleclick: false, font: { size: 12 } },
  };
}
