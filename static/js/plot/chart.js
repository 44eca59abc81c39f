/**
 * A chart from its marks: the room that scales and legends take, Plotly's data and layout, and what
 * the cursor, the table, the exports and the sentence read of it. No other module of a chart names a
 * key of Plotly's.
 */

import { amount, decimal, escapeForPlotly } from '../data/format.js';
import { baseLayout, isNarrow, labelWidth, shortBarTitle, shortBarWidth } from './figure.js';
import { transposedGrid } from './grid.js';
import { legendFor, legendNotes } from './legend.js';
import { axisOf, labelRoom, leanOf, letteringOf } from './scales.js';

/**
 * @import { Drawing, Frame } from './figure.js'
 * @import { CellCursor, Grid, NumberGrid, SentenceLink } from './grid.js'
 * @import { Mark, Plan } from './marks/mark.js'
 * @import { Ramp, Scale } from './scales.js'
 */

/**
 * @typedef {Object} Chart
 * @property {Scale} x
 * @property {Scale} y
 * @property {Mark<any>[]} marks the last is drawn on top; the cursor reads the one that has words
 * @property {boolean} [isSwapped] x runs down and y across, as on a narrow page
 * @property {{widest?: number, height?: number, row?: number, cell?: number, square?: number}} [size] pixels: of the whole, of the plot, of a row, of a column, of the side of a square plot
 * @property {Table} table
 * @property {Partial<SentenceLink>} [sentence] beyond what a band of tokens says
 * @property {Partial<CellCursor>} [cursor]
 */

/** @typedef {{rows?: {title: string, labels?: string[]}, columns?: {title: string, labels?: string[]}} & Pick<NumberGrid, 'quantity'> & Partial<Pick<NumberGrid, 'request'|'before'|'made'|'call'|'ofRows'|'writtenNote'>>} Table titles and labels are those of the scales unless given */

/** @param {Chart} spec @param {Pick<Frame, 'width'|'palette'>} frame @returns {Drawing & {grid: Grid}} */
export function chart(spec, { width, palette }) {
  const { x, y, marks, isSwapped = false } = spec;
  const [across, down] = isSwapped ? [y, x] : [x, y];
  const ramp = marks.find((mark) => mark.ramp && mark.ramp.legend !== 'none')?.ramp;
  const legend = legendFor(marks, width);
  const box = boxOf({ across, down, ramp, legend, size: spec.size ?? {} }, width);
  const { inner, margin } = box;
  /** @param {Scale} scale @param {'x'|'y'} name */
  const axis = (scale, name) =>
    axisOf(scale, {
      values: marks.flatMap(({ reach }) => reach[name]),
      pixels: scale === down ? inner.height : inner.width,
      width,
      isDown: scale === down,
      palette,
    });
  /** @type {Plan} */
  const plan = {
    x: axis(x, 'x'),
    y: axis(y, 'y'),
    palette,
    width: box.width,
    inner,
    cell: { width: inner.width / countOf(across), height: inner.height / countOf(down) },
    isSwapped,
    barAt: -box.foot / inner.height,
  };
  const drawn = marks.map((mark) => mark.draw(plan));
  const [drawnAcross, drawnDown] = isSwapped ? [plan.y, plan.x] : [plan.x, plan.y];
  return {
    data: drawn.flatMap(({ traces = [] }) => traces),
    layout: {
      ...baseLayout(palette, { width: box.width, height: box.height, margin }),
      xaxis: plainAxis(drawnAcross),
      yaxis: plainAxis(drawnDown),
      shapes: drawn.flatMap(({ shapes = [] }) => shapes),
      annotations: [
        ...drawn.flatMap(({ notes = [] }) => notes),
        ...legendNotes(legend, plan, margin.l),
        ...(ramp ? [rampTitle(ramp, palette, box)] : []),
      ],
    },
    grid: gridOf(spec, plan),
  };
}

/** @param {Scale} scale */
function countOf(scale) {
  return scale.kind === 'band' ? scale.labels.length : 1;
}

/** @param {Plan['x']} axis */
function plainAxis({ range, axis }) {
  const bare = { ticks: '', showgrid: false, zeroline: false, showline: false, automargin: false };
  return { ...bare, ...axis, range };
}

const BAR = { room: 40, below: 18 };
const HEIGHT = { wide: 306, roomy: 218, narrow: 174 };
const WIDE = 640;

/**
 * @param {{across: Scale, down: Scale, ramp?: Ramp, legend: ReturnType<typeof legendFor>, size: NonNullable<Chart['size']>}} parts
 * @param {number} available
 */
function boxOf({ across, down, ramp, legend, size }, available) {
  const most = Math.min(available, size.widest ?? Infinity);
  const isTop = across.kind === 'band' && across.side === 'top';
  const foot = isTop ? 0 : footOf(across, available);
  const l = leftOf(down, available);
  const isTitleBelow = Boolean(ramp) && shortBarWidth(ramp?.title ?? '') > most - l;
  const least = across.kind === 'band' ? leanOf(across, available) : 0;
  const side = size.square && Math.min(size.square, most - l - 12);
  const rest = most - l - Math.max(least, legend.right, 4) - (size.cell ? 0 : 8);
  const rows = down.kind === 'band' ? (size.row ?? 22) * countOf(down) : heightOf(size, available);
  const inner = {
    width: side ?? Math.min(size.cell ? size.cell * countOf(across) : Infinity, rest),
    height: side ?? rows,
  };
  const bar = ramp && !isTitleBelow ? shortBarWidth(ramp.title) - inner.width : 0;
  const margin = {
    l,
    r: Math.max(Math.max(least, legend.right, 4) + (side || size.cell ? 0 : 8), bar),
    t: (isTop && across.kind === 'band' ? labelRoom(across, available) + 14 : 8) + legend.top,
    b: foot + (ramp ? BAR.room + (isTitleBelow ? BAR.below : 0) : 0),
  };
  return {
    inner,
    margin,
    foot: foot && foot + 6,
    isTitleBelow,
    width: inner.width + margin.l + margin.r,
    height: inner.height + margin.t + margin.b,
  };
}

/** @param {Scale} down @param {number} width */
function leftOf(down, width) {
  if (down.kind !== 'band') return 56;
  return labelWidth(down.labels, letteringOf(down, width)) + 14 + (down.title ? 20 : 0);
}

/** @param {Scale} across @param {number} width @returns {number} pixels below the plot */
function footOf(across, width) {
  if (across.kind !== 'band') return 44;
  const labels = across.labels.some(Boolean) ? 24 : 6;
  const long = across.isSlanted ? labelRoom(across, width) + 18 : labels;
  return long + (across.title ? 20 : 0);
}

/** @param {NonNullable<Chart['size']>} size @param {number} width */
function heightOf({ height }, width) {
  return height ?? (width >= WIDE ? HEIGHT.wide : isNarrow(width) ? HEIGHT.narrow : HEIGHT.roomy);
}

/** @param {Ramp} ramp @param {Frame['palette']} palette @param {ReturnType<typeof boxOf>} box */
function rampTitle({ title }, palette, { foot, isTitleBelow }) {
  const note = shortBarTitle(escapeForPlotly(title), palette);
  if (isTitleBelow) return { ...note, xshift: 0, yshift: -32 - foot };
  return { ...note, xshift: note.xshift + 8, yshift: note.yshift - foot };
}

/** @param {Scale} scale @param {number[]} places @returns {string[]} */
function labelsOf(scale, places) {
  if (scale.kind === 'band') return scale.labels;
  const write = scale.write ?? ((value) => amount(value, 6));
  return places.map(write);
}

/** @param {Chart} chart @param {Plan} plan @returns {Grid} */
function gridOf({ x, y, marks, isSwapped, table, sentence, cursor }, plan) {
  const mark = marks.find((one) => one.table && one.meaning.value) ?? marks[0];
  const { rows: rowsNamed, columns: columnsNamed, ...source } = table;
  const { rows = 0, columns = 0, datum = () => null, rowLabels, kind } = mark.table ?? {};
  const { value = () => NaN, format = decimal, written, tokens, choose } = mark.meaning;
  const rowNames = rowsNamed?.labels ?? rowLabels ?? labelsOf(y, []);
  const columnNames = columnsNamed?.labels ?? labelsOf(x, mark.reach.x);
  const titles = {
    row: rowsNamed?.title ?? (rowLabels ? 'curve' : (y.title ?? '')),
    column: columnsNamed?.title ?? x.title ?? '',
  };
  /** @template T @param {(datum: any) => T} channel @returns {(row: number, column: number) => T} */
  const at = (channel) => (row, column) => channel(datum(row, column));
  const number = at((one) => (Number.isNaN(value(one)) ? 'nothing' : format(value(one), one)));
  const name = mark.meaning.name
    ? at(mark.meaning.name)
    : (/** @type {number} */ row, /** @type {number} */ column) =>
        `${rowLabels ? '' : `${titles.row} `}${rowNames[row]}, ${titles.column} ${columnNames[column]}`;
  const much = mark.meaning.number ? at(mark.meaning.number) : number;
  /** @type {Grid} */
  const grid = {
    rows,
    columns,
    rowTitle: titles.row,
    columnTitle: titles.column,
    rowLabels: rowNames,
    columnLabels: columnNames,
    ...source,
    kind,
    value: at(value),
    format,
    ...(written && { written: at(written) }),
    describe: mark.meaning.say
      ? at(mark.meaning.say)
      : (row, column) => `${name(row, column)}: ${much(row, column)}`,
    tip: (row, column) => [name(row, column), much(row, column)],
    tokens: tokens ? at(tokens) : () => ({}),
    ...(choose && { choose: at(choose) }),
    start: { row: 0, column: 0 },
    geometry: mark.hits?.(plan),
    ...linkOf(x, mark),
    ...sentence,
    ...cursor,
  };
  return isSwapped ? transposedGrid(grid) : grid;
}

/** What a band of tokens says of the cells over it. @param {Scale} x @param {Mark<any>} mark */
function linkOf(x, { meaning }) {
  if (x.kind !== 'band' || !x.tokens) return {};
  const { side, query, choose } = x.tokens;
  return {
    sides: { rows: side, columns: side },
    chosen: { column: query },
    start: { row: 0, column: query },
    ...(!meaning.tokens && {
      tokens: (/** @type {number} */ _, /** @type {number} */ column) => ({ query: column }),
    }),
    ...(choose &&
      !meaning.choose && {
        choose: (/** @type {number} */ _, /** @type {number} */ column) => choose(column),
      }),
  };
}
