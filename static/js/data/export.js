/**
 * The numbers of a drawing, as they are taken along: for a spreadsheet, or for a program.
 */

import { originOf } from './call.js';
import { csv } from './csv.js';
import { exact } from './number.js';

/** @typedef {import('../plot/grid.js').Grid} Grid */

/** What a function of row and column gives, cell by cell; nothing is null. */
function cellsOf({ rows, columns }, value) {
  const cell = (row, column) => {
    const found = value(row, column);
    return found === undefined || Number.isNaN(found) ? null : Number(exact(found));
  };
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_, column) => cell(row, column)),
  );
}

/**
 * Where cells were chosen, their weights follow in rows of their own.
 * @param {Grid} grid
 * @returns {string}
 */
export function csvOf(grid) {
  const header = [cornerOf(grid), ...grid.columnLabels];
  const body = (value, suffix) =>
    cellsOf(grid, value).map((cells, row) => [
      grid.rowLabels[row] + suffix,
      ...cells.map((cell) => (cell === null ? '' : String(cell))),
    ]);
  const weights = grid.chosenWeight ? body(grid.chosenWeight, ': weight where chosen') : [];
  return csv([header, ...body(grid.value, ''), ...weights]);
}

/** @param {Grid} grid what rows and columns are */
export function cornerOf({ rowTitle, columnTitle }) {
  return columnTitle ? `${rowTitle} \\ ${columnTitle}` : rowTitle;
}

/**
 * @param {import('./trace.js').Trace} trace
 * @param {Grid} grid
 * @param {Object[]} cards of all models
 * @returns {Object} ready for JSON
 */
export function numbersOf(trace, grid, cards) {
  return {
    ...originOf(trace, grid, cards),
    quantity: grid.quantity,
    axes: [grid.rowTitle, grid.columnTitle],
    rows: grid.rowLabels,
    columns: grid.columnLabels,
    values: cellsOf(grid, grid.value),
    ...(grid.chosenWeight && { weights_where_chosen: cellsOf(grid, grid.chosenWeight) }),
  };
}
