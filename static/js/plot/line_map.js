/**
 * Two columns of words joined by lines: thickness and colour show the weight, and strong lines
 * carry its number. Axes count pixels of the plot area, downwards, so that words lie inside it and
 * can be pointed at. Lines of similar weight share a Plotly trace, so the number of traces stays
 * small.
 */

import { css, levelOf, plotlyScale, sequential } from './colour.js';
import { baseLayout, colourBar, colourBarTitle, labelWidth, letteringFor } from './figure.js';
import { swatchNotes } from './legend.js';
import { reader } from './marks/reader.js';
import { readOf } from './reading.js';
import { columnOf, extent, highestIn, rowOf } from '../data/trace.js';
import { share, escapeForPlotly, shortened } from '../data/format.js';

/**
 * @import { Matrix } from '../data/trace.js'
 * @import { Table } from './chart.js'
 * @import { Drawing, Frame, Layout, Lettering, Palette, PlotlyTrace } from './figure.js'
 * @import { Cell, CellCursor, Geometry, Grid, Highlight, SentenceLink } from './grid.js'
 * @import { Meaning } from './marks/mark.js'
 */

/**
 * @typedef {Object} Wanted
 * @property {string[]} rows names of the words that attend
 * @property {string[]} columns names of the words attended to
 * @property {Matrix} weights rows by columns; NaN or 0: no line
 * @property {{rows: string, columns: string}} titles what stands over the two columns of words
 * @property {string} quantity under the colour bar
 * @property {Palette} palette
 * @property {number} width pixels the drawing may take
 * @property {number} height pixels it takes if there are words enough
 * @property {number} [threshold] lines of less weight are left out
 * @property {number} [ceiling] the weight of the thickest line; the greatest weight unless given
 * @property {'rows'|'columns'} [left] which words stand at the left
 * @property {number|null} [chosenRow] whose lines stand out from the others
 * @property {Lettering} [lettering] of the words
 * @property {{name: string, colour: string, weights: Matrix}[]} [overlaid] whose lines are drawn over each other in place of those of `weights`
 */

/** @typedef {Omit<Wanted, 'rows'|'columns'|'palette'|'width'|'height'> & {meaning: Meaning<{row: number, column: number}>, table: Table & {rows: {title: string, labels: string[]}, columns: {title: string, labels: string[]}}, sentence?: Partial<SentenceLink>, cursor?: Partial<CellCursor>}} LinesChart the names of the words are the labels of the table */

const STEPS = 12;
const MOST_LINES = 1200;
const MOST_NUMBERS = 120;
/** Lines below this weight show their number only in the tooltip and the table. */
const LEAST_NUMBER = 0.1;
const NUMBER = { width: 34, height: 14, size: 11, letter: 6.6 };
/** The thickest line takes a fifth of a word’s height. */
const THICKNESS = { least: 0.8, ofPitch: 0.2 };
const PITCH = { least: 15, most: 30 };
const HEAD_ROOM = 26;
const GAP = 8;
const WIDEST_SPAN = 420;
const REACH = 7;
/** The palest colours are invisible as lines, so the scale starts a fifth of the way up. */
const FIRST_LEVEL = 51;
/** The opacity of a de-emphasised line. */
const FADED = 0.25;

/**
 * @param {LinesChart} spec
 * @param {Pick<Frame, 'width'|'height'|'palette'>} frame
 * @returns {{drawing: Drawing & {grid: Grid}, drawn: Line[], left: number}} `left`: how many lines were too many
 */
export function linesChart(
  { meaning, table, sentence, cursor, ...spec },
  { width, height, palette },
) {
  const [rows, columns] = [table.rows.labels, table.columns.labels];
  const wanted = { ...spec, rows, columns, palette, width, height };
  const { data, layout, geometry, drawn, left } = linesFigure(wanted);
  const mark = reader(rows.length, columns.length, { ...meaning, kind: 'diagram of lines' });
  const grid = readOf(mark, {
    rows: table.rows,
    columns: table.columns,
    table,
    sentence,
    cursor: { geometry, ...cursor },
  });
  return { drawing: { data, layout, grid }, drawn, left };
}

/**
 * @param {Wanted} wanted
 * @returns {{data: PlotlyTrace[], layout: Layout, geometry: Geometry, drawn: Line[], left: number}} `left`: how many lines were too many
 */
export function linesFigure(wanted) {
  const { weights, threshold = 0, chosenRow = null, overlaid = [], palette } = wanted;
  const { lines, left } = linesOf(weights, { threshold, most: MOST_LINES });
  const ceiling = wanted.ceiling ?? (extent(weights) || 1);
  const box = boxFor(wanted);
  const ink = inkFor(palette, ceiling, box.pitch * THICKNESS.ofPitch);
  const stands = lines.filter(({ row }) => chosenRow === null || row === chosenRow);
  const numbers = numberPlaces(
    stands.filter(({ weight }) => weight >= LEAST_NUMBER),
    box.spanOf,
    NUMBER,
    MOST_NUMBERS,
  );
  /** @param {Matrix} of @param {string} colour */
  const inColour = (of, colour) => {
    const kept = linesOf(of, { threshold, most: MOST_LINES }).lines;
    return lineTraces(kept, chosenRow, ceiling, box, { ...ink, colour: () => colour });
  };
  // The strongest lines of all are on top.
  const coloured = overlaid
    .flatMap(({ weights: of, colour }) => inColour(of, colour))
    .sort((a, b) => a.opacity - b.opacity || a.line.width - b.line.width);
  const isOne = overlaid.length === 0;
  return {
    data: [
      ...(isOne ? lineTraces(lines, chosenRow, ceiling, box, ink) : coloured),
      ...numberTraces(numbers, palette),
      ...wordTraces(wanted, box),
      ...(isOne ? [scaleTrace(palette, ceiling, ink)] : []),
    ],
    layout: layoutFor(wanted, box),
    geometry: geometryOf(wanted, { lines, numbers, ceiling, box, ink }),
    drawn: lines,
    left,
  };
}

/** The positions of all parts, in pixels of the plot area. @param {Wanted} wanted */
function boxFor({
  rows,
  columns,
  titles,
  width,
  height,
  left = 'rows',
  lettering = letteringFor(width),
}) {
  const sides = [
    [...rows, titles.rows],
    [...columns, titles.columns],
  ];
  const widths = (left === 'rows' ? sides : sides.reverse()).map(
    (labels) => labelWidth(labels, lettering) + 2 * GAP,
  );
  const margin = { l: 4, r: 4, t: 4, b: 58 };
  const room = width - margin.l - margin.r;
  const span = Math.max(60, Math.min(WIDEST_SPAN, room - widths[0] - widths[1]));
  const count = Math.max(rows.length, columns.length);
  // One screen high, however many words there are; words that have no room are left out.
  const pitch = Math.min(PITCH.most, (height - HEAD_ROOM - margin.t - margin.b) / count);
  const length = count * pitch;
  const [start, end] = [widths[0], widths[0] + span];
  /** @param {number} index @param {number} of */
  const at = (index, of) => HEAD_ROOM + ((index + 0.5) * length) / of;
  /** @type {Record<'row'|'column', (index: number) => number>} */
  const y = { row: (row) => at(row, rows.length), column: (column) => at(column, columns.length) };
  const x = left === 'rows' ? { row: start, column: end } : { row: end, column: start };
  return {
    lettering,
    margin,
    left,
    start,
    end,
    x,
    y,
    pitch,
    wordHeight: Math.min(20, pitch),
    across: widths[0] + span + widths[1],
    down: HEAD_ROOM + length,
    /** @param {{row: number, column: number}} line @returns {Span} */
    spanOf: ({ row, column }) => ({
      from: { x: x.row, y: y.row(row) },
      to: { x: x.column, y: y.column(column) },
    }),
  };
}

/**
 * Colour and thickness of a weight.
 * @param {Palette} palette
 * @param {number} ceiling
 * @param {number} thickest
 */
function inkFor({ theme }, ceiling, thickest) {
  const scale = sequential(theme);
  const colours = scale.slice(FIRST_LEVEL * 3);
  const levels = colours.length / 3 - 1;
  const stretched = new Uint8Array(256 * 3);
  for (let level = 0; level < 256; level += 1) {
    const from = Math.round((level / 255) * levels) * 3;
    stretched.set(colours.subarray(from, from + 3), level * 3);
  }
  return {
    scale: stretched,
    /** @param {number} weight */
    colour: (weight) => css(stretched, levelOf(weight, ceiling)),
    /** @param {number} weight */
    width: (weight) =>
      THICKNESS.least + (thickest - THICKNESS.least) * Math.min(1, weight / ceiling),
  };
}

/**
 * De-emphasised lines come first, one trace per step of weight.
 * @param {Line[]} lines
 * @param {number|null} chosenRow
 * @param {number} ceiling
 * @param {ReturnType<typeof boxFor>} box
 * @param {ReturnType<typeof inkFor>} ink
 */
function lineTraces(lines, chosenRow, ceiling, box, ink) {
  /** @param {Line} line */
  const isBack = ({ row }) => chosenRow !== null && row !== chosenRow;
  /** @param {Line[]} bin @param {number} step @param {number} opacity */
  const trace = (bin, step, opacity) => {
    const weight = ((step + 0.5) / STEPS) * ceiling;
    const spans = bin.map(box.spanOf);
    return {
      type: 'scatter',
      mode: 'lines',
      x: spans.flatMap(({ from, to }) => [from.x, to.x, null]),
      y: spans.flatMap(({ from, to }) => [from.y, to.y, null]),
      line: { color: ink.colour(weight), width: ink.width(weight), simplify: false },
      opacity,
      hoverinfo: 'none',
    };
  };
  /** @param {Line[]} some @param {number} opacity */
  const traces = (some, opacity) =>
    binned(some, ceiling, STEPS).flatMap((bin, step) =>
      bin.length > 0 ? [trace(bin, step, opacity)] : [],
    );
  return [
    ...traces(lines.filter(isBack), FADED),
    ...traces(
      lines.filter((line) => !isBack(line)),
      1,
    ),
  ];
}

/**
 * A number has a background, so that no line crosses it.
 * @param {ReturnType<typeof numberPlaces>} numbers
 * @param {Palette} palette
 */
function numberTraces(numbers, palette) {
  if (numbers.length === 0) return [];
  const texts = numbers.map(({ line }) => share(line.weight, 2));
  /** @param {number} index */
  const half = (index) => (texts[index].length * NUMBER.letter) / 2 + 1;
  return [
    {
      type: 'scatter',
      mode: 'lines',
      x: numbers.flatMap(({ at }, index) => [at.x - half(index), at.x + half(index), null]),
      y: numbers.flatMap(({ at }) => [at.y, at.y, null]),
      line: { color: palette.surface, width: NUMBER.height, simplify: false },
      opacity: 0.85,
      hoverinfo: 'none',
    },
    {
      type: 'scatter',
      mode: 'text',
      x: numbers.map(({ at }) => at.x),
      y: numbers.map(({ at }) => at.y),
      text: texts.map(escapeForPlotly),
      textfont: { size: NUMBER.size, color: palette.ink },
      hoverinfo: 'none',
    },
  ];
}

/** @param {Wanted} wanted @param {ReturnType<typeof boxFor>} box */
function wordTraces({ rows, columns, palette, chosenRow = null }, box) {
  const every = Math.max(1, Math.ceil(PITCH.least / box.pitch));
  /** @param {number} index @param {'row'|'column'} side */
  const isWritten = (index, side) => {
    if (side === 'column' || chosenRow === null || every === 1) return index % every === 0;
    return index === chosenRow || (index % every === 0 && Math.abs(index - chosenRow) >= every);
  };
  /** @param {string[]} labels @param {'row'|'column'} side @param {string[]|string} colours */
  const words = (labels, side, colours) => ({
    type: 'scatter',
    mode: 'text',
    x: labels.map(() => box.x[side] + (isLeft(side, box) ? -GAP / 2 : GAP / 2)),
    y: labels.map((_, index) => box.y[side](index)),
    text: labels.map((label, index) =>
      isWritten(index, side) ? escapeForPlotly(shortened(label, box.lettering.letters)) : '',
    ),
    textposition: isLeft(side, box) ? 'middle left' : 'middle right',
    textfont: { size: box.lettering.size, color: colours },
    cliponaxis: false,
    hoverinfo: 'none',
  });
  return [
    words(
      rows,
      'row',
      rows.map((_, row) => (row === chosenRow ? palette.query : palette.ink)),
    ),
    words(columns, 'column', palette.ink),
  ];
}

/** @param {'row'|'column'} side @param {ReturnType<typeof boxFor>} box */
function isLeft(side, { left }) {
  return left === `${side}s`;
}

/**
 * An invisible trace that carries the colour bar.
 * @param {Palette} palette
 * @param {number} ceiling
 * @param {ReturnType<typeof inkFor>} ink
 */
function scaleTrace(palette, ceiling, { scale }) {
  return {
    type: 'scatter',
    mode: 'markers',
    x: [null],
    y: [null],
    marker: {
      color: [0],
      cmin: 0,
      cmax: ceiling,
      colorscale: plotlyScale(scale),
      showscale: true,
      colorbar: { ...colourBar(palette, 'h'), nticks: 5, thickness: 6 },
    },
    hoverinfo: 'none',
  };
}

/** @param {Wanted} wanted @param {ReturnType<typeof boxFor>} box */
function layoutFor({ palette, titles, quantity, overlaid = [] }, box) {
  const { margin, across, down, start, end } = box;
  /** @param {string} text @param {'row'|'column'} side */
  const title = (text, side) => ({
    text,
    showarrow: false,
    xref: 'x',
    yref: 'y',
    yanchor: 'middle',
    y: HEAD_ROOM / 2,
    x: isLeft(side, box) ? start - GAP / 2 : end + GAP / 2,
    xanchor: isLeft(side, box) ? 'right' : 'left',
    font: { size: 12, color: side === 'row' ? palette.query : palette.key },
  });
  const bare = { showgrid: false, zeroline: false, showticklabels: false, ticks: '' };
  return {
    ...baseLayout(palette, {
      width: across + margin.l + margin.r,
      height: down + margin.t + margin.b,
      margin,
    }),
    annotations: [
      ...(overlaid.length === 0 ? [colourBarTitle(quantity, palette, 'h')] : []),
      ...swatchNotes(overlaid, true),
      title(titles.rows, 'row'),
      title(titles.columns, 'column'),
    ],
    xaxis: { ...bare, range: [0, across] },
    yaxis: { ...bare, range: [down, 0] },
  };
}

/**
 * @typedef {Object} Parts
 * @property {Line[]} lines
 * @property {ReturnType<typeof numberPlaces>} numbers
 * @property {number} ceiling
 * @property {ReturnType<typeof boxFor>} box
 * @property {ReturnType<typeof inkFor>} ink
 */

/** @param {Wanted} wanted @param {Parts} parts @returns {Geometry} */
function geometryOf({ weights, rows, columns }, { lines, numbers, ceiling, box, ink }) {
  const places = new Map(numbers.map(({ line, at }) => [keyOf(line), at]));
  /** @param {{row: number, column: number}} pair */
  const numberAt = (pair) => places.get(keyOf(pair)) ?? along(box.spanOf(pair), 0.5);
  /** @param {'row'|'column'} side @param {number} index */
  const wordBox = (side, index) => {
    const [x0, x1] = isLeft(side, box) ? [0, box.start] : [box.end, box.across];
    return {
      x0,
      x1,
      y0: box.y[side](index) - box.wordHeight / 2,
      y1: box.y[side](index) + box.wordHeight / 2,
    };
  };
  return {
    box(row, column) {
      if (column === undefined) return row === undefined ? null : wordBox('row', row);
      if (row === undefined) return wordBox('column', column);
      const at = numberAt({ row, column });
      return {
        x0: at.x - NUMBER.width / 2,
        x1: at.x + NUMBER.width / 2,
        y0: at.y - NUMBER.height / 2,
        y1: at.y + NUMBER.height / 2,
      };
    },
    at(x, y) {
      if (x > box.start && x < box.end) {
        const line = nearestLine({ x, y }, lines, box.spanOf, REACH, ceiling);
        return line && { row: line.row, column: line.column };
      }
      const side = x <= box.start === isLeft('row', box) ? 'row' : 'column';
      const index = indexAt(y, side === 'row' ? rows.length : columns.length, box);
      return index === null ? null : wordCell(weights, side, index);
    },
    highlight: (cell) => highlightOf(cell, weights, { box, ink, numberAt }),
  };
}

/** @param {{row: number, column: number}} of */
function keyOf({ row, column }) {
  return `${row} ${column}`;
}

/** @param {number} y @param {number} count @param {ReturnType<typeof boxFor>} box */
function indexAt(y, count, { down }) {
  const index = Math.floor(((y - HEAD_ROOM) / (down - HEAD_ROOM)) * count);
  return index >= 0 && index < count ? index : null;
}

/**
 * A word selects its strongest line; `of` names the side it stands on.
 * @param {Matrix} weights
 * @param {'row'|'column'} side
 * @param {number} index
 * @returns {Cell}
 */
function wordCell(weights, side, index) {
  if (side === 'row')
    return { row: index, column: strongestOf(weights, { row: index }), of: 'row' };
  return { row: strongestOf(weights, { column: index }), column: index, of: 'column' };
}

/**
 * The lines of the selected word, each with its number near the far end; for a selected line or
 * cell, the lines of its query.
 * @param {Cell} cell
 * @param {Matrix} weights
 * @param {Pick<Parts, 'box'|'ink'> & {numberAt: (pair: {row: number, column: number}) => Point}} drawn
 * @returns {Highlight}
 */
function highlightOf({ row, column, of = 'row' }, weights, { box, ink, numberAt }) {
  const count = of === 'row' ? weights.columns : weights.rows;
  const lines = Array.from({ length: count }, (_, index) => {
    const pair = of === 'row' ? { row, column: index } : { row: index, column };
    return { ...pair, weight: weights.data[pair.row * weights.columns + pair.column] };
  })
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => a.weight - b.weight);
  /** @param {Line} line */
  const isMeant = (line) => line.row === row && line.column === column;
  /** @param {Line} line */
  const placeOf = (line) =>
    isMeant(line) ? numberAt(line) : along(box.spanOf(line), of === 'row' ? 0.8 : 0.2);
  return {
    veil: { x0: box.start, x1: box.end, y0: HEAD_ROOM, y1: box.down },
    lines: lines.map((line) => {
      const { from, to } = box.spanOf(line);
      return {
        x0: from.x,
        x1: to.x,
        y0: from.y,
        y1: to.y,
        width: ink.width(line.weight),
        colour: ink.colour(line.weight),
      };
    }),
    numbers: lines
      .filter((line) => line.weight >= LEAST_NUMBER || isMeant(line))
      .map((line) => ({ ...placeOf(line), text: share(line.weight, 2), isStrong: isMeant(line) })),
  };
}

/** @typedef {{row: number, column: number, weight: number}} Line */
/** @typedef {{x: number, y: number}} Point */
/** @typedef {{from: Point, to: Point}} Span where a line starts and ends, in pixels */

/** Candidate positions of a number along its line, the best first. */
const PLACES = [0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78, 0.14, 0.86];
/** Within this many pixels the stronger line counts as the nearer. */
const PULL = 3;

/**
 * The pairs with a positive weight of at least the threshold, weakest first, so that the strongest
 * is drawn last; if there are too many, only the strongest.
 * @param {Matrix} weights NaN: there can be no line
 * @param {{threshold?: number, most?: number}} [limits]
 * @returns {{lines: Line[], left: number}} `left`: how many reach the threshold and are left out
 */
export function linesOf({ columns, data }, { threshold = 0, most = Infinity } = {}) {
  /** @type {Line[]} */
  const found = [];
  data.forEach((weight, at) => {
    if (weight > 0 && weight >= threshold)
      found.push({ row: Math.floor(at / columns), column: at % columns, weight });
  });
  found.sort((a, b) => a.weight - b.weight);
  const left = Math.max(0, found.length - most);
  return { lines: found.slice(left), left };
}

/**
 * Bin the lines by weight.
 * @param {Line[]} lines
 * @param {number} ceiling the weight of the strongest step
 * @param {number} steps
 * @returns {Line[][]} weakest first; empty steps are there too
 */
export function binned(lines, ceiling, steps) {
  /** @type {Line[][]} */
  const bins = Array.from({ length: steps }, () => []);
  for (const line of lines) {
    bins[Math.max(0, Math.min(steps - 1, Math.ceil((line.weight / ceiling) * steps) - 1))].push(
      line,
    );
  }
  return bins;
}

/**
 * Place numbers on their lines, strongest first, each at its first free candidate; a line without a
 * free candidate has no number.
 * @param {Line[]} lines
 * @param {(line: Line) => Span} spanOf
 * @param {{width: number, height: number}} size of a number, in pixels
 * @param {number} most numbers
 * @returns {{line: Line, at: Point}[]}
 */
export function numberPlaces(lines, spanOf, { width, height }, most) {
  /** @type {{line: Line, at: Point}[]} */
  const taken = [];
  /** @param {Point} point */
  const isFree = (point) =>
    taken.every(
      ({ at }) => Math.abs(at.x - point.x) >= width || Math.abs(at.y - point.y) >= height,
    );
  for (const line of [...lines].sort((a, b) => b.weight - a.weight)) {
    if (taken.length >= most) break;
    const span = spanOf(line);
    const at = PLACES.map((part) => along(span, part)).find(isFree);
    if (at) taken.push({ line, at });
  }
  return taken;
}

/**
 * @param {Span} span
 * @param {number} part of the way, 0 to 1
 * @returns {Point}
 */
function along({ from, to }, part) {
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
}

/**
 * The line under a point or the nearest within reach; of equally near lines the stronger.
 * @param {Point} point
 * @param {Line[]} lines
 * @param {(line: Line) => Span} spanOf
 * @param {number} reach pixels
 * @param {number} ceiling the greatest weight
 * @returns {Line|null}
 */
export function nearestLine(point, lines, spanOf, reach, ceiling) {
  let best = null;
  let least = Infinity;
  for (const line of lines) {
    const distance = distanceTo(point, spanOf(line));
    const score = distance - (PULL * line.weight) / ceiling;
    if (distance <= reach && score < least) [best, least] = [line, score];
  }
  return best;
}

/** @param {Point} point @param {Span} span */
function distanceTo(point, { from, to }) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const part = ((point.x - from.x) * dx + (point.y - from.y) * dy) / (dx * dx + dy * dy || 1);
  const nearest = along({ from, to }, Math.max(0, Math.min(1, part)));
  return Math.hypot(point.x - nearest.x, point.y - nearest.y);
}

/**
 * The strongest cell of a row or of a column.
 * @param {Matrix} weights
 * @param {{row: number, column?: undefined}|{row?: undefined, column: number}} of one of the two
 * @returns {number} index of the column, or of the row
 */
export function strongestOf(weights, { row, column }) {
  return highestIn(row === undefined ? columnOf(weights, column) : rowOf(weights, row));
}
