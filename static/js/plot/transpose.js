/**
 * A grid lying on its other side.
 */

/**
 * Rows become columns and columns rows; what a cell holds and says stays.
 * @param {import('./figure.js').Grid} grid
 * @returns {import('./figure.js').Grid}
 */
export function transposedGrid(grid) {
  const turnedCell = (cell) => cell && { row: cell.column, column: cell.row };
  const swapped = (act) => act && ((row, column) => act(column, row));
  return {
    ...grid,
    rows: grid.columns,
    columns: grid.rows,
    rowTitle: grid.columnTitle,
    columnTitle: grid.rowTitle,
    rowLabels: grid.columnLabels,
    columnLabels: grid.rowLabels,
    value: swapped(grid.value),
    describe: swapped(grid.describe),
    tip: swapped(grid.tip),
    tokens: swapped(grid.tokens),
    tint: swapped(grid.tint),
    choose: swapped(grid.choose),
    chosenWeight: swapped(grid.chosenWeight),
    chosen: turnedCell(grid.chosen),
    start: turnedCell(grid.start),
  };
}
