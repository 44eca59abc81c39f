/**
 * The numbers behind an alignment: for the keyboard, the table, the exports and the two sentences.
 */

import { strongestOf } from '../../plot/lines.js';
import { share } from '../../data/number.js';
import { columnOf, rowOf } from '../../data/trace.js';
import { namedUnit, spread, tokensIn, unitLabels, unitOf } from '../../data/words.js';

/** @typedef {import('../../data/alignment.js').Alignment} Alignment */

/**
 * @param {import('../../data/trace.js').Trace} trace
 * @param {Object} state
 * @param {Alignment} subject
 * @returns {import('../../plot/figure.js').Grid}
 */
export function gridOf(trace, state, subject) {
  const { rows, columns, weights } = subject;
  const value = (row, column) => weights.data[row * weights.columns + column];
  const row = state.query === null ? -1 : unitOf(rows, state.query);
  const start = Math.max(row, 0);
  return {
    rows: rows.length,
    columns: columns.length,
    sides: { rows: 'target', columns: 'source' },
    rowTitle: 'word of the translation',
    columnTitle: 'word of the sentence',
    rowLabels: unitLabels(rows),
    columnLabels: unitLabels(columns),
    quantity: 'alignment weight',
    request: { capture: [], analyses: ['alignment'] },
    value,
    format: (weight) => share(weight, 4),
    describe: (at, column) => sentence(subject, at, column),
    tip: (at, column) => [
      `${namedUnit(columns, column)} — ${namedUnit(rows, at)}`,
      share(value(at, column), 4) + (isLinked(subject, at, column) ? ', linked' : ''),
    ],
    tokens: (at, column) => ({ query: tokensIn(rows[at]), key: tokensIn(columns[column]) }),
    rowOf: (token) => unitOf(rows, token),
    columnOf: (token) => unitOf(columns, token),
    ofRow: (at) => rowShown(trace, subject, at),
    ofColumn: (column) => columnShown(trace, subject, column),
    choose: (at, column) =>
      at === row
        ? { query: null, source: null }
        : { query: rows[at].last, source: columns[column].last },
    chooseHint: 'Enter keeps the lines of the word of the translation, and lets go of them',
    ceiling: 1,
    ...(row >= 0 && { chosen: { row } }),
    start: { row: start, column: strongestOf(weights, { row: start }) },
    rest: row < 0 ? { readout: restOf(subject) } : rowShown(trace, subject, row),
  };
}

function rowShown(trace, subject, row) {
  const tint = spread(subject.columns, rowOf(subject.weights, row), trace.tokens.length);
  return {
    tint,
    readout: sentence(subject, row, strongestOf(subject.weights, { row }), 'looks most at'),
  };
}

function columnShown(trace, subject, column) {
  const tint = spread(subject.rows, columnOf(subject.weights, column), trace.target_tokens.length);
  const row = strongestOf(subject.weights, { column });
  return {
    tint,
    readout: `${namedUnit(subject.columns, column)} is looked at most by ${namedUnit(subject.rows, row)}, with weight ${share(subject.weights.data[row * subject.weights.columns + column])}`,
  };
}

function sentence(subject, row, column, verb = 'looks at') {
  const { rows, columns, weights } = subject;
  const weight = weights.data[row * weights.columns + column];
  return `${namedUnit(rows, row)} ${verb} ${namedUnit(columns, column)} with weight ${share(weight)}${isLinked(subject, row, column) ? '; the two are linked' : ''}`;
}

function isLinked({ links }, row, column) {
  return links.some((link) => link.row === row && link.column === column);
}

function restOf({ rows, columns, links }) {
  const reached = new Set(links.map(({ column }) => column)).size;
  return `${links.length} of ${rows.length} words of the translation are linked, to ${reached} of ${columns.length} words of the sentence`;
}
