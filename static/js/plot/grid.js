/**
 * A grid lying on its other side.
 */

/**
 * The transposed grid: rows become columns, cells keep their content.
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

/** @typedef {{row: number, column: number, of?: 'row'|'column'}} Cell `of`: its whole row or column is meant */

const PAGE = 8;

const STEPS = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-PAGE, 0],
  PageDown: [PAGE, 0],
};

/**
 * The cell that a key leads to. Movement stops at the edge.
 * @param {Cell} cell
 * @param {string} key as in KeyboardEvent.key
 * @param {{rows: number, columns: number}} grid
 * @param {boolean} [far] Ctrl or Cmd held: Home and End reach for the corners
 * @returns {Cell|null} null for any other key
 */
export function walk({ row, column }, key, { rows, columns }, far = false) {
  if (key === 'Home') return { row: far ? 0 : row, column: 0 };
  if (key === 'End') return { row: far ? rows - 1 : row, column: columns - 1 };
  if (!(key in STEPS)) return null;
  const [down, right] = STEPS[key];
  return { row: limit(row + down, rows), column: limit(column + right, columns) };
}

function limit(index, count) {
  return Math.max(0, Math.min(count - 1, index));
}

/**
 * The cell under a point of the plot area.
 * @param {number} x across the area, 0 to 1
 * @param {number} y down the area, 0 to 1
 * @param {{columns: [number, number], rows: [number, number]}} shown first edge and last edge of what is shown, in cells
 * @param {{rows: number, columns: number}} grid
 * @returns {Cell|null}
 */
export function cellAt(x, y, shown, grid) {
  const column = Math.floor(shown.columns[0] + x * (shown.columns[1] - shown.columns[0]));
  const row = Math.floor(shown.rows[0] + y * (shown.rows[1] - shown.rows[0]));
  const inside =
    x >= 0 &&
    x <= 1 &&
    y >= 0 &&
    y <= 1 &&
    row >= 0 &&
    column >= 0 &&
    row < grid.rows &&
    column < grid.columns;
  return inside ? { row, column } : null;
}
