/**
 * What is read of a chart: the grid of numbers, words and links that the cursor, the table, the exports
 * and the sentence use, from the first mark with numbers.
 */

import { amount, decimal } from '../data/format.js';
import { transposedGrid } from './grid.js';
import { letteringOf } from './scales.js';

/**
 * @import { Chart, Table } from './chart.js'
 * @import { CellCursor, Grid, SentenceLink } from './grid.js'
 * @import { Mark, Plan } from './marks/mark.js'
 * @import { Scale } from './scales.js'
 */

/** @param {Chart} spec @param {Plan} plan @param {number} width of the drawing @returns {Grid} */
export function gridOf(spec, plan, width) {
  const { x, y, marks, panes = [], isSwapped = false, table, sentence, cursor, size } = spec;
  const all = [...marks, ...panes.flatMap((pane) => pane.marks)];
  const mark = all.find((each) => each.table && each.meaning.value) ?? marks[0];
  const rows = mark.table?.rowLabels;
  const grid = readOf(mark, {
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
export function readOf(
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

/** What a band of tokens says of the cells over it. @param {Scale} x @param {Scale} y @param {Mark<any>} mark */
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
