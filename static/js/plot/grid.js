/**
 * The grid behind a drawing: its numbers, its link to the sentence, the cursor over its cells, and
 * what the sentence shows of a cell or a token that is pointed at.
 */

/**
 * @import { Side } from '../data/attention.js'
 * @import { Call, Made } from '../data/request_code.js'
 * @import { Edit, Matrix } from '../data/trace.js'
 * @import { Patch } from '../state/state.js'
 * @import { Lettering } from './figure.js'
 */

/** @typedef {{row: number, column: number, of?: 'row'|'column'}} Cell `of`: its whole row or column is meant */

/**
 * The numbers behind a drawing: what the table lists and the CSV file holds.
 * @typedef {Object} NumberGrid
 * @property {number} rows
 * @property {number} columns
 * @property {string} rowTitle of the axis of rows: “query”
 * @property {string} columnTitle
 * @property {string[]} rowLabels
 * @property {string[]} columnLabels
 * @property {string} quantity of a cell, for the caption of the table and the export
 * @property {(row: number, column: number) => number} value NaN: none
 * @property {(value: number) => string} format
 * @property {(row: number, column: number) => string} [written] a cell of the table, if it says more than its number
 * @property {string} [writtenNote] explains the marks in it
 * @property {Request & {model?: string, text?: string, target?: string|null}} [request] the trace of the API that holds these numbers
 * @property {Request & {model?: string, text?: string, target?: string|null}} [before] the same of the pass that it is compared with
 * @property {{label: string, value: (row: number) => number, format: (value: number) => string}[]} [ofRows] further numbers of each row
 * @property {Made} [made] how the numbers are computed from the answer, if the answer does not hold them
 * @property {Call} [call] for numbers that are not part of a trace
 */

/** @typedef {{capture?: string[], layers?: number[], heads?: number[], analyses?: string[], edits?: Edit[], logit_difference?: {position: number, token?: number, against?: number}, patching?: {text: string, parts: string[]}}} Request */

/** @typedef {{readout: string, tint?: Float64Array}} Shown a sentence in words, and weights over the tokens of the columns */

/**
 * The marks and tints of the sentence above the drawing.
 * @typedef {Object} SentenceLink
 * @property {(row: number, column: number) => {query?: number|number[], key?: number|number[]}} tokens to mark
 * @property {{rows: Side, columns: Side}} [sides] whose tokens rows and columns are; absent: the source’s
 * @property {number|null} [query] the token whose row it is, if that is not the chosen one; null: none
 * @property {(token: number) => number} [rowOf] the row of a token; −1: none; absent: rows are tokens
 * @property {(token: number) => number} [columnOf] the column of a token
 * @property {(row: number) => Shown} [ofRow]
 * @property {(column: number) => Shown} [ofColumn] if rows and columns belong to different sentences
 * @property {(index: number) => Shown} [ofToken] if rows are not tokens
 * @property {(row: number, column: number) => Float64Array|null} [tint] of a cell, if it is not its row’s
 * @property {Shown} [rest] while nothing is pointed at
 * @property {number} [ceiling] the value at the top of the colour scale
 * @property {boolean} [isSigned] zero is in the middle of the colour scale
 */

/**
 * Access to the cells by pointer and keyboard.
 * @typedef {Object} CellCursor
 * @property {(row: number, column: number) => string} describe a sentence for the screen reader and the readout
 * @property {(row: number, column: number) => string[]} tip the name of the cell, and its number
 * @property {(row: number, column: number) => number|undefined} [chosenWeight] of a cell that the model chose
 * @property {(row: number, column: number) => Patch} [choose] the change of state when a cell is chosen
 * @property {boolean} [writes] choosing a cell changes the text
 * @property {(key: string, cell: Cell|null) => Patch|null} [move] the change of state that `+`, `-`, `0` and Shift with an arrow key (`Shift+ArrowUp`) make
 * @property {Pan} [pan] moves the map under the fingers
 * @property {string} [chooseHint] names what Enter does, if not choosing the cell’s token
 * @property {string} [note] further things to do with the drawing
 * @property {{row?: number, column?: number}} [chosen] the row or column of the chosen token
 * @property {Cell|null} [picked] a chosen cell, not only its row
 * @property {Cell} [start] where the keyboard enters
 * @property {Geometry} [geometry] of a drawing whose cells are not a plain matrix on its axes
 * @property {string} [kind] for screen readers, if not a heatmap or a bar chart
 * @property {boolean} [isReadFromStart] a large map opens on its first columns, not on the row’s greatest number
 * @property {{columns: Lettering, rows: Lettering}} [thinned] how labels thin out when zoomed; absent: no zoom
 */

/** @typedef {NumberGrid & SentenceLink & CellCursor} Grid */

/** @typedef {{x0: number, x1: number, y0: number, y1: number}} Box */

/**
 * A map that can be moved under the fingers, over numbers that are at hand. Boxes count the cells of
 * the whole map.
 * @typedef {Object} Pan
 * @property {Box} box what is shown
 * @property {{across: number, down: number}} most cells of the whole map
 * @property {number} least cells a side
 * @property {{matrix: Matrix, box: Box}[]} layers the coarsest first; NaN: nothing
 * @property {Uint8Array} colours
 * @property {number} top the value at the end of the colours
 * @property {(box: Box) => Patch} patch the change of state that shows a box
 */

/**
 * The position of the cells, in the coordinates of the axes.
 * @typedef {Object} Geometry
 * @property {(row?: number, column?: number) => Box|null} box null: not in the drawing
 * @property {(x: number, y: number) => Cell|null} at
 * @property {(cell: Cell) => Highlight} [highlight] while a cell is pointed at
 */

/**
 * Emphasis on one cell of a drawing, in the coordinates of the axes.
 * @typedef {Object} Highlight
 * @property {Box} veil the part of the drawing that steps back
 * @property {(Box & {width: number, colour: string})[]} lines
 * @property {{x: number, y: number, text: string, isStrong: boolean}[]} numbers
 */

/** Pixels: a map whose cells would be smaller opens on a part of it. */
const LEAST_CELL = 4;

/**
 * The part of a large map that it opens on: around the chosen row and its greatest number.
 * @param {Grid} grid
 * @param {{width: number, height: number}} pixels of the map
 * @returns {Box|null} in cells; null: all of it has room
 */
export function openingBox(grid, { width, height }) {
  const { rows, columns, value, query, start, thinned, isReadFromStart } = grid;
  const [across, down] = [width / LEAST_CELL, height / LEAST_CELL].map(Math.floor);
  if (!thinned || (across >= columns && down >= rows)) return null;
  const row = query ?? start?.row ?? 0;
  const last = isReadFromStart ? 1 : columns;
  let column = 0;
  for (let one = 1; one < last; one += 1)
    if (value(row, one) > (value(row, column) || 0)) column = one;
  /** @param {number} at @param {number} length @param {number} end */
  const part = (at, length, end) => {
    const size = Math.min(length, end);
    const first = Math.max(0, Math.min(end - size, Math.round(at - size / 2)));
    return [first, first + size];
  };
  const [x0, x1] = part(column, across, columns);
  const [y0, y1] = part(row, down, rows);
  return { x0, x1, y0, y1 };
}

/**
 * The transposed grid: rows become columns, cells keep their content.
 * @param {Grid} grid
 * @returns {Grid}
 */
export function transposedGrid(grid) {
  /**
   * @template T
   * @param {(row: number, column: number) => T} act
   * @returns {(row: number, column: number) => T}
   */
  const swapped = (act) => (row, column) => act(column, row);
  const { tint, choose, chosenWeight, chosen, start } = grid;
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
    tint: tint && swapped(tint),
    choose: choose && swapped(choose),
    chosenWeight: chosenWeight && swapped(chosenWeight),
    chosen: chosen && { row: chosen.column, column: chosen.row },
    start: start && { row: start.column, column: start.row },
  };
}

const PAGE = 8;

/** @type {Record<string, [number, number]>} */
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

/** @param {number} index @param {number} count */
function limit(index, count) {
  return Math.max(0, Math.min(count - 1, index));
}

/** @typedef {{left: number, top: number, width: number, height: number}} Pixels */

/** @typedef {Pixels & {window: {columns: [number, number], rows: [number, number]}, axes: {x: [number, number], y: [number, number]}}} Area of a plot, in pixels, cells and coordinates */

/**
 * The cell under a point of the plot area.
 * @param {number} x across the area, 0 to 1
 * @param {number} y down the area, 0 to 1
 * @param {Pick<Area, 'window'|'axes'>} area
 * @param {Pick<Grid, 'rows'|'columns'|'geometry'>} grid
 * @returns {Cell|null}
 */
export function cellAt(x, y, area, grid) {
  if (x < 0 || x > 1 || y < 0 || y > 1) return null;
  if (grid.geometry) return grid.geometry.at(along(x, area.axes.x), along(y, area.axes.y));
  const shown = windowFor(area, grid);
  const column = Math.floor(along(x, shown.columns));
  const row = Math.floor(along(y, shown.rows));
  const isInside = row >= 0 && column >= 0 && row < grid.rows && column < grid.columns;
  return isInside ? { row, column } : null;
}

/** @param {number} part @param {[number, number]} ends */
function along(part, [from, to]) {
  return from + part * (to - from);
}

/**
 * A bar has no columns to tell apart: the whole width is its one cell.
 * @param {Pick<Area, 'window'>} area
 * @param {{columns: number}} grid
 * @returns {Area['window']}
 */
function windowFor({ window }, grid) {
  return grid.columns > 1 ? window : { ...window, columns: [0, 1] };
}

/**
 * Pixels of a cell, a whole row (no column) or a whole column (no row), cut to the plot area.
 * @param {number|undefined} row
 * @param {number|undefined} column
 * @param {Area} area
 * @param {Grid} grid
 * @returns {Pixels|null}
 */
export function boxOf(row, column, area, grid) {
  if (grid.geometry) return boxIn(grid.geometry.box(row, column), area);
  const { columns, rows } = windowFor(area, grid);
  const across = span(column, columns, area.left, area.width);
  const down = span(row, rows, area.top, area.height);
  return across && down && { left: across[0], width: across[1], top: down[0], height: down[1] };
}

/**
 * Pixels of a box that a drawing of its own geometry gives in the coordinates of its axes.
 * @param {Box|null} box
 * @param {Area} area
 * @returns {Pixels|null}
 */
function boxIn(box, { left, top, width, height, axes }) {
  if (!box) return null;
  const across = (/** @type {number} */ x) =>
    left + ((x - axes.x[0]) / (axes.x[1] - axes.x[0])) * width;
  const down = (/** @type {number} */ y) =>
    top + ((y - axes.y[0]) / (axes.y[1] - axes.y[0])) * height;
  const [x0, x1] = [across(box.x0), across(box.x1)].sort((a, b) => a - b);
  const [y0, y1] = [down(box.y0), down(box.y1)].sort((a, b) => a - b);
  return { left: x0, width: x1 - x0, top: y0, height: y1 - y0 };
}

/**
 * @param {number|undefined} index
 * @param {[number, number]} window
 * @param {number} start
 * @param {number} length
 * @returns {[number, number]|null}
 */
function span(index, [first, last], start, length) {
  if (index === undefined) return [start, length];
  const unit = length / (last - first);
  const from = Math.max(0, (index - first) * unit);
  const to = Math.min(length, (index + 1 - first) * unit);
  return to > from ? [start + from, to - from] : null;
}

/**
 * @typedef {Object} SentenceMarks
 * @property {Partial<Record<Side, {query?: number|number[], key?: number|number[]}>>} marks
 * @property {Partial<Record<Side, Float64Array|null>>} tints
 * @property {string} readout
 * @property {number} [ceiling]
 * @property {boolean} [isSigned]
 */

/**
 * @typedef {{cell: Cell, grid: Grid, side?: undefined, index?: undefined}} PointedCell
 * @typedef {{side: Side, index: number, cell?: undefined, grid?: undefined}} PointedToken
 */

/** @type {{rows: Side, columns: Side}} */
const ONE_SIDE = { rows: 'source', columns: 'source' };

/**
 * @param {Grid|null} grid of the open view
 * @param {PointedCell|PointedToken|null} pointed
 * @returns {SentenceMarks}
 */
export function highlightOf(grid, pointed) {
  if (pointed?.cell) return ofCell(pointed.grid, pointed.cell);
  return (pointed && grid && ofToken(grid, /** @type {PointedToken} */ (pointed))) ?? atRest(grid);
}

/** @param {Grid} grid @param {Cell} cell @returns {SentenceMarks} */
function ofCell(grid, { row, column }) {
  const sides = grid.sides ?? ONE_SIDE;
  const { query, key } = grid.tokens(row, column);
  return {
    marks:
      sides.rows === sides.columns
        ? { [sides.rows]: { query, key } }
        : { [sides.rows]: { query }, [sides.columns]: { key } },
    tints: {
      [sides.columns]: (grid.tint ? grid.tint(row, column) : grid.ofRow?.(row).tint) ?? null,
    },
    readout: grid.describe(row, column),
    ...scaleOf(grid),
  };
}

/**
 * A token of the rows shows its row, one of other columns its column; of other tokens there is nothing to show.
 * @param {Grid} grid
 * @param {PointedToken} pointedToken
 */
function ofToken(grid, { side, index }) {
  const sides = grid.sides ?? ONE_SIDE;
  /** @param {'query'|'key'} mark @param {number|number[]|undefined} tokens @param {Shown} shown */
  const marked = (mark, tokens, { tint, readout }) => ({
    marks: { [side]: { [mark]: tokens } },
    tints: { [mark === 'query' ? sides.columns : sides.rows]: tint },
    readout,
    ...scaleOf(grid),
  });
  if (side === sides.rows && grid.ofToken) return marked('query', index, grid.ofToken(index));
  const row = grid.rowOf ? grid.rowOf(index) : index;
  const column = grid.columnOf ? grid.columnOf(index) : index;
  if (side === sides.rows && grid.ofRow && row >= 0)
    return marked('query', grid.rowOf ? grid.tokens(row, 0).query : index, grid.ofRow(row));
  if (side === sides.columns && grid.ofColumn && column >= 0)
    return marked('key', grid.columnOf ? grid.tokens(0, column).key : index, grid.ofColumn(column));
  return null;
}

/** @param {Grid|null} grid */
function scaleOf(grid) {
  return { ceiling: grid?.ceiling ?? 1, isSigned: Boolean(grid?.isSigned) };
}

/** @param {Grid|null} grid @returns {SentenceMarks} */
function atRest(grid) {
  return {
    marks: {},
    tints: grid?.rest?.tint ? { [(grid.sides ?? ONE_SIDE).columns]: grid.rest.tint } : {},
    readout: grid?.rest?.readout ?? '',
    ...scaleOf(grid),
  };
}
