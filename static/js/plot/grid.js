/**
 * The grid behind a drawing: its numbers, its link to the sentence and the cursor over its cells.
 * All are read from the first mark of a chart that has numbers. The sentence shows the cell or
 * token that is pointed at.
 */

import { amount, decimal } from '../words/numbers.js';
import { letteringOf } from './scales.js';
/**
 * @import { Side } from '../trace/attention.js'
 * @import { Picture } from './colour.js'
 * @import { Table } from './chart.js'
 * @import { Scale } from './scales.js'
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
 * @property {Request & {model?: string, text?: string, target?: string|null}} [request] the trace of the API that holds these numbers
 * @property {string} [about] what is compared, for a caption: the tokens and the place, without a full stop
 * @property {Request & {model?: string, text?: string, target?: string|null}} [before] the same of the pass that it is compared with
 * @property {{label: string, value: (row: number) => number, format: (value: number) => string}[]} [ofRows] other numbers of each row
 * @property {string} [made] how the numbers are computed from the answer, if the answer does not hold them
 * @property {Call} [call] for numbers that are not part of a trace
 */

/** @typedef {Ask} Request */

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
 * @property {Partial<Record<Side, [number, number][]>>} [parts] the tokens of a long text that are drawn; the first part is brought into sight
 * @property {{ask: Ask, trace: Trace}[]} [held] the answers that a saved page of a long text takes as they are
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
 * @property {string} [chooseHint] names what Enter does, if not choosing the cell’s token
 * @property {string} [note] other things to do with the drawing
 * @property {{row?: number, column?: number}} [chosen] the row or column of the chosen token
 * @property {Cell|null} [picked] a chosen cell, not only its row
 * @property {Cell} [start] where the keyboard enters
 * @property {Hits} [geometry] of a drawing whose cells are not a plain matrix on its axes
 * @property {string} [kind] for screen readers, if not a heatmap or a bar chart
 * @property {(row: number) => Picture|null} [picture] a map that the tip shows
 * @property {(box: Box) => Patch} [brush] the change of state when a box is drawn over the plot
 * @property {number[]} [only] the rows that are selected: the table lists no others
 * @property {boolean} [isOpen] the table is open from the start
 * @property {boolean} [isReadFromStart] a large map opens on its first columns, not on the row’s greatest number
 * @property {{columns: Lettering, rows: Lettering}} [thinned] how labels thin out when zoomed; absent: no zoom
 */

/** @typedef {NumberGrid & SentenceLink & CellCursor} Grid */

/** @typedef {{x0: number, x1: number, y0: number, y1: number}} Box */

/**
 * Emphasis on one cell of a drawing, in the coordinates of the axes.
 * @typedef {Object} Highlight
 * @property {Box} veil the part of the drawing that steps back
 * @property {(Box & {width: number, colour: string})[]} lines
 * @property {{x: number, y: number, text: string, isStrong: boolean}[]} numbers
 */

/**
 * Return the transposed grid: rows become columns, cells keep their content.
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
export function findHighlight(grid, pointed) {
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

/** @param {Chart} spec @param {Plan} plan @param {number} width of the drawing @returns {Grid} */
export function buildGrid(spec, plan, width) {
  const { x, y, marks, panes, isSwapped = false, table, sentence, cursor, size } = spec;
  const all = [...marks, ...(panes?.marks ?? [])];
  const mark = all.find((each) => each.table && each.meaning.value) ?? marks[0];
  const rows = mark.table?.rowLabels;
  const grid = buildReadGrid(mark, {
    rows: { title: rows ? 'curve' : titleOf(y), labels: rows ?? labelsOf(y, []), ...table.rows },
    columns: { title: titleOf(x), labels: labelsOf(x, mark.reach.x), ...table.columns },
    isOfCurves: Boolean(rows),
    table,
    sentence: { ...linkOf(x, y, mark), ...sentence },
    cursor: {
      geometry: mark.hits?.(plan),
      ...(size?.isZoomable && {
        thinned: { columns: letteringOf(x, width), rows: letteringOf(y, width) },
      }),
      ...cursor,
    },
  });
  return isSwapped ? transposedGrid(grid) : grid;
}

/**
 * @param {Mark<any>} mark with numbers
 * @param {{rows: {title: string, labels: string[]}, columns: {title: string, labels: string[]}, isOfCurves?: boolean, table: Table, sentence?: Partial<SentenceLink & CellCursor>, cursor?: Partial<CellCursor>}} of
 * @returns {Grid}
 */
export function buildReadGrid(
  mark,
  { rows: named, columns: across, isOfCurves, table, sentence, cursor },
) {
  const { rows: _, columns: __, ...source } = table;
  const { rows = 0, columns = 0, datum = () => null, kind } = mark.table ?? {};
  const { value = () => NaN, written, tokens, choose, weight } = mark.meaning;
  // The default takes the number only: its second argument would be a count of digits.
  /** @param {number} number @param {any} [each] */
  const format = (number, each) => mark.meaning.format?.(number, each) ?? decimal(number);
  const { more = () => [] } = mark.meaning;
  /** @template T @param {(datum: any) => T} channel @returns {(row: number, column: number) => T} */
  const at = (channel) => (row, column) => channel(datum(row, column));
  const number = at((each) => (Number.isNaN(value(each)) ? 'nothing' : format(value(each), each)));
  const name = mark.meaning.name
    ? at(mark.meaning.name)
    : (/** @type {number} */ row, /** @type {number} */ column) =>
        `${isOfCurves ? '' : `${named.title} `}${named.labels[row]}, ${across.title} ${across.labels[column]}`;
  const much = mark.meaning.number ? at(mark.meaning.number) : number;
  return {
    rows,
    columns,
    rowTitle: named.title,
    columnTitle: across.title,
    rowLabels: named.labels,
    columnLabels: across.labels,
    ...source,
    kind,
    value: at(value),
    format,
    ...(written && { written: at(written) }),
    describe: mark.meaning.say
      ? at(mark.meaning.say)
      : (row, column) => `${name(row, column)}: ${much(row, column)}`,
    tip: (row, column) => [name(row, column), much(row, column), ...more(datum(row, column))],
    tokens: tokens ? at(tokens) : () => ({}),
    ...(choose && { choose: at(choose) }),
    ...(weight && { chosenWeight: at(weight) }),
    start: { row: 0, column: 0 },
    ...sentence,
    ...cursor,
  };
}

/** @param {Scale} scale @param {number[]} places @returns {string[]} */
function labelsOf(scale, places) {
  if (scale.kind === 'band') return scale.labels;
  const write = ('write' in scale && scale.write) || ((value) => amount(value, 6));
  return places.map((place) => write(place));
}

/** @param {Scale} scale */
function titleOf(scale) {
  return ('title' in scale && scale.title) || '';
}

/** Link the cells over a band of tokens to the sentence. @param {Scale} x @param {Scale} y @param {Mark<any>} mark */
function linkOf(x, y, { meaning }) {
  const isAcross = x.kind === 'band' && Boolean(x.tokens);
  const band = isAcross ? x : y;
  if (band.kind !== 'band' || !band.tokens) return {};
  const { side, query, choose } = band.tokens;
  const last = band.labels.length - 1;
  const at = Math.min(query, last);
  const chosen = query > last ? {} : isAcross ? { column: query } : { row: query };
  /** @param {number} row @param {number} column */
  const token = (row, column) => (isAcross ? column : row);
  return {
    sides: { rows: side, columns: side },
    chosen,
    start: isAcross ? { row: 0, column: at } : { row: at, column: 0 },
    ...(!meaning.tokens && {
      tokens: (/** @type {number} */ row, /** @type {number} */ column) => ({
        query: token(row, column),
      }),
    }),
    ...(choose &&
      !meaning.choose && {
        choose: (/** @type {number} */ row, /** @type {number} */ column) =>
          choose(token(row, column)),
      }),
  };
}
