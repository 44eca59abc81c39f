/** An attention map as a matrix of square cells, and the grid behind it. */

import { tokensOf } from '../../trace/attention.js';
import { capitalised } from '../../words/lists.js';
import { tick } from '../../words/numbers.js';
import { columnOf, highestIn, rowOf, valueIn } from '../../trace/trace.js';
import { alone, namedUnit, spread, tokensIn, unitLabels, findUnit } from '../../trace/words.js';
import { chart } from '../../plot/chart.js';
import { roleBands } from '../../plot/roles.js';
import { cell } from '../../plot/marks/mark.js';
import { band, linearTicks } from '../../plot/scales.js';
import { choosing, createMemo, queryOf } from '../../state/state.js';

/**
 * @import { Scale } from '../../state/attention_switches.js'
 * @import { Subject } from './chosen_weights.js'
 */

const memo = createMemo();

/** @param {Trace} trace @param {ViewState} state @param {Subject} subject */
export function matrixChart(trace, state, subject) {
  const { matrix, scale, quantity } = subject;
  const { palette } = state;
  const { row, column } = chosenIn(trace, state, subject);
  const { rows, columns, ...table } = tableOf(subject);
  /** @type {Ramp} */
  const ramp = {
    title: quantity.noun,
    domain: [scale.bottom, scale.top],
    isDiverging: scale.isSigned,
    ticks: scale.ticks ?? linearTicks([scale.bottom, scale.top], MOST_TICKS),
    write: scale.write ?? tick,
  };
  const kept = row < 0 ? undefined : { rows: [row], columns: [column] };
  return chart(
    {
      x: band(columns.labels, { title: 'key: attended to', ink: palette.key, keep: kept?.columns }),
      y: band(rows.labels, {
        title: subject.isWritten ? WRITTEN : 'query: attends',
        ink: palette.query,
        keep: kept?.rows,
      }),
      marks: [
        cell(matrix, { ramp, fill: shades(subject), ...describeCells(trace, state, subject) }),
        ...roleBands(trace, subject.place, subject),
      ],
      size: { isSquare: true, isZoomable: true },
      table: { rows, columns, ...table },
      sentence: sentenceOf(trace, state, subject),
      cursor: cursorOf(trace, state, subject),
    },
    state,
  );
}

/**
 * Map values to the colour scale; masked cells have none.
 * @param {Subject} subject
 * @returns {Matrix}
 */
function shades(subject) {
  const { matrix, scale } = subject;
  return memo([subject], () => ({ ...matrix, data: matrix.data.map(scale.place) }));
}

/** The title of rows that are named by what is written from them. */
export const WRITTEN = 'token that is written';
const DIGITS = 4;
const MOST_TICKS = 6;

/**
 * Return the row and column of the chosen query and key.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @returns {{query: number, row: number, column: number, isChosen: boolean}} `query` counts tokens; `row` is −1 if that token is hidden; if no key was chosen, `column` is the highest of the row
 */
export function chosenIn(trace, state, { place, isWritten, matrix, rows, columns, switches }) {
  const chosen = queryOf(state, trace, place.rows);
  // By default the token from which the last word is written.
  const end = tokensOf(trace, place.rows).length - 1;
  const query = isWritten && state.query === null ? Math.min(chosen + 1, end) : chosen;
  const isOther = Boolean(switches.pair) && rows.length > 0 && findUnit(rows, query) < 0;
  const row = isOther ? 0 : findUnit(rows, query); // of a pair, the first row that is kept
  const picked = state.key === null ? -1 : findUnit(columns, state.key);
  const isChosen = row >= 0 && picked >= 0;
  return {
    query: isOther ? rows[0].last : query,
    row,
    column: isChosen ? picked : highestIn(rowOf(matrix, Math.max(row, 0))),
    isChosen,
  };
}

/** @param {Subject} subject */
export function tableOf(subject) {
  const { rows, columns, quantity, name, details, request, made } = subject;
  return {
    rows: { title: subject.isWritten ? WRITTEN : 'query', labels: unitLabels(rows) },
    columns: { title: 'key', labels: unitLabels(columns) },
    quantity: `${quantity.noun}, ${name}${details}`,
    request,
    made,
  };
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @returns {Meaning<{row: number, column: number}>} of a cell
 */
export function describeCells(trace, state, subject) {
  const { place, matrix, rows, columns, quantity } = subject;
  const value = valueIn(matrix);
  const { query } = chosenIn(trace, state, subject);
  return {
    value: ({ row, column }) => value(row, column),
    format: (number) => quantity.write(number, DIGITS),
    say: ({ row, column }) => sentence(subject, row, column),
    name: ({ row, column }) => `${namedUnit(rows, row)} → ${namedUnit(columns, column)}`,
    number: ({ row, column }) => muchOf(subject, value(row, column)),
    tokens: ({ row, column }) => ({ query: tokensIn(rows[row]), key: tokensIn(columns[column]) }),
    choose: ({ row, column }) => ({
      ...choosing(trace, place.rows, tokenOf(rows[row], query)),
      key: tokenOf(columns[column], state.key),
    }),
  };
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @returns {Partial<SentenceLink>}
 */
export function sentenceOf(trace, state, subject) {
  const { place, rows, columns, scale } = subject;
  const counts = {
    rows: tokensOf(trace, place.rows).length,
    columns: tokensOf(trace, place.columns).length,
  };
  return {
    sides: { rows: place.rows, columns: place.columns },
    rowOf: (token) => findUnit(rows, token),
    columnOf: (token) => findUnit(columns, token),
    ofRow: (row) => rowShown(subject, row, counts),
    ...(place.id === 'cross' && { ofColumn: (column) => columnShown(subject, column, counts) }),
    ceiling: scale.top - scale.bottom,
    isSigned: scale.isSigned,
    rest: atRest(trace, subject, chosenIn(trace, state, subject), counts),
  };
}

/** @param {Trace} trace @param {ViewState} state @param {Subject} subject @returns {Partial<CellCursor>} */
export function cursorOf(trace, state, subject) {
  const { row, column, isChosen } = chosenIn(trace, state, subject);
  return {
    chooseHint: 'Enter chooses the cell: its query and its key',
    chosen: row < 0 ? undefined : { row },
    picked: isChosen ? { row, column } : null,
    start: { row: Math.max(row, 0), column },
  };
}

/**
 * Return the readout of the chosen row: its chosen cell, or its highest.
 * @param {Trace} trace
 * @param {Subject} subject
 * @param {ReturnType<typeof chosenIn>} chosen
 * @param {{rows: number, columns: number}} counts
 */
function atRest(trace, subject, { query, row, column, isChosen }, counts) {
  if (row < 0)
    return {
      readout: `${namedUnit(alone(tokensOf(trace, subject.place.rows)), query)} is ${subject.isWritten && query === 0 ? 'given, not written' : 'hidden here'}`,
    };
  const shown = rowShown(subject, row, counts);
  const isSeen = !Number.isNaN(subject.matrix.data[row * subject.matrix.columns + column]);
  return isChosen && isSeen ? { ...shown, readout: sentence(subject, row, column) } : shown;
}

/**
 * Return the token that represents a word: the one chosen before, or its last, which has read the
 * whole word.
 * @param {Unit} unit
 * @param {number|null} before
 */
function tokenOf({ first, last }, before) {
  return before !== null && first <= before && before <= last ? before : last;
}

/** @param {Subject} subject @param {number} value */
function muchOf(subject, value) {
  if (Number.isNaN(value)) return 'hidden: not yet read';
  return subject.quantity.write(value, DIGITS);
}

/**
 * Return a row in words, and the tint of each token as its level on the colour scale.
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
 * Return a column in words. Its numbers belong to different rows, so they need not sum to 1.
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
  { place, isWritten, matrix, rows, columns, quantity, name, details },
  row,
  column,
  way = 'say',
) {
  const value = matrix.data[row * matrix.columns + column];
  const query = `${isWritten ? 'the row that wrote ' : ''}${namedUnit(rows, row)}`;
  if (Number.isNaN(value))
    return `${query} cannot attend to ${namedUnit(columns, column)}, which comes later (${name}${details})`;
  const isItself = place.rows === place.columns && rows[row].first === columns[column].first;
  const key = isItself && way !== 'sayLookedAt' ? 'itself' : namedUnit(columns, column);
  // A cell is spoken with the digits of its tip.
  const much = way === 'say' ? quantity.write(value, DIGITS) : quantity.write(value);
  const said = `${quantity[way](query, key, much)} (${name}${details})`;
  return isWritten ? capitalised(said) : said;
}
