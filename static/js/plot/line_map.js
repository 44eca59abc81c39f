/**
 * Two columns of words joined by lines: thickness and colour show the weight, and strong lines
 * carry its number. Axes count pixels of the plot area, downwards, so that words lie inside it and
 * can be pointed at. Lines of similar weight share a Plotly trace, so the number of traces stays
 * small.
 */

import { css, computeLevel, plotlyScale, sequential } from './colour.js';
import { baseLayout } from './chart.js';
import { colourBar, colourBarTitle } from './layout.js';
import { isNarrow, labelWidth, letteringFor } from './scales.js';
import { buildHits, isLeft } from './line_hits.js';
import { binned, LEAST_NUMBER, chooseLines, NUMBER, numberPlaces } from './lines.js';
import { reader } from './marks/mark.js';
import { buildReadGrid } from './grid.js';
import { extent } from '../trace/trace.js';
import { share } from '../words/numbers.js';
import { escapeForPlotly, shortened } from '../words/text.js';

/**
 * @import { Matrix } from '../trace/trace.js'
 * @import { Table } from './chart.js'
 * @import { Drawing, Frame, Layout, Palette, PlotlyTrace } from './figure.js'
 * @import { Hits, Meaning } from './marks/mark.js'
 * @import { CellCursor, Grid, SentenceLink } from './grid.js'
 * @import { Line, Span } from './lines.js'
 */

/**
 * @typedef {Object} Wanted
 * @property {string[]} rows names of the words that attend
 * @property {string[]} columns names of the words attended to
 * @property {Matrix} weights rows by columns; NaN or 0: no line
 * @property {{rows: string, columns: string}} titles the headings of the two columns of words
 * @property {string} quantity under the colour bar
 * @property {Palette} palette
 * @property {number} width pixels the drawing may take
 * @property {number} height pixels it takes if there are words enough
 * @property {number} [threshold] lines of less weight are left out
 * @property {number} [ceiling] the weight of the thickest line; the greatest weight unless given
 * @property {'rows'|'columns'} [left] the words at the left
 * @property {number|null} [chosenRow] whose lines stand out from the others
 * @property {{wide: number, narrow: number}} [letters] after which a word is cut, on a wide page and on a phone
 */

/** @typedef {Omit<Wanted, 'rows'|'columns'|'palette'|'width'|'height'> & {meaning: Meaning<{row: number, column: number}>, table: Table & {rows: {title: string, labels: string[]}, columns: {title: string, labels: string[]}}, sentence?: Partial<SentenceLink>, cursor?: Partial<CellCursor>}} LinesChart the names of the words are the labels of the table */

/** @typedef {ReturnType<typeof boxFor>} Box the places of all parts */
/** @typedef {ReturnType<typeof inkFor>} Ink */

const STEPS = 12;
const MOST_LINES = 1200;
const MOST_NUMBERS = 120;
/** The thickest line takes a fifth of a word’s height. */
const THICKNESS = { least: 0.8, ofPitch: 0.2 };
const PITCH = { least: 15, most: 30 };
const HEAD_ROOM = 26;
const GAP = 8;
const WIDEST_SPAN = 420;
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
  const grid = buildReadGrid(mark, {
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
 * @returns {{data: PlotlyTrace[], layout: Layout, geometry: Hits, drawn: Line[], left: number}} `left`: how many lines were too many
 */
export function linesFigure(wanted) {
  const { weights, threshold = 0, chosenRow = null, palette } = wanted;
  const { lines, left } = chooseLines(weights, { threshold, most: MOST_LINES });
  const ceiling = wanted.ceiling ?? (extent(weights) || 1);
  const box = boxFor(wanted);
  const ink = inkFor(palette, ceiling, box.pitch * THICKNESS.ofPitch);
  const prominent = lines.filter(({ row }) => chosenRow === null || row === chosenRow);
  const numbers = numberPlaces(
    prominent.filter(({ weight }) => weight >= LEAST_NUMBER),
    box.spanOf,
    NUMBER,
    MOST_NUMBERS,
  );
  return {
    data: [
      ...lineTraces(lines, chosenRow, ceiling, box, ink),
      ...numberTraces(numbers, palette),
      ...wordTraces(wanted, box),
      scaleTrace(palette, ceiling, ink),
    ],
    layout: layoutFor(wanted, box),
    geometry: buildHits(wanted, { lines, numbers, ceiling, box, ink }),
    drawn: lines,
    left,
  };
}

/** Return the positions of all parts, in pixels of the plot area. @param {Wanted} wanted */
function boxFor({ rows, columns, titles, width, height, left = 'rows', letters }) {
  const standard = letteringFor(width);
  const most = letters?.[isNarrow(width) ? 'narrow' : 'wide'] ?? standard.letters;
  const lettering = { ...standard, letters: most };
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
    head: HEAD_ROOM,
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
 * Return the colour and thickness of a weight.
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
    colour: (weight) => css(stretched, computeLevel(weight, ceiling)),
    /** @param {number} weight */
    width: (weight) =>
      THICKNESS.least + (thickest - THICKNESS.least) * Math.min(1, weight / ceiling),
  };
}

/**
 * Return the traces of lines, one per step of weight; de-emphasised lines come first.
 * @param {Line[]} lines
 * @param {number|null} chosenRow
 * @param {number} ceiling
 * @param {Box} box
 * @param {Ink} ink
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
 * Return the traces of numbers. A number has a background, so that no line crosses it.
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

/** @param {Wanted} wanted @param {Box} box */
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

/**
 * Return an invisible trace that carries the colour bar.
 * @param {Palette} palette
 * @param {number} ceiling
 * @param {Ink} ink
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

/** @param {Wanted} wanted @param {Box} box */
function layoutFor({ palette, titles, quantity }, box) {
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
    font: { size: 13, color: side === 'row' ? palette.query : palette.key },
  });
  const bare = { showgrid: false, zeroline: false, showticklabels: false, ticks: '' };
  return {
    ...baseLayout(palette, {
      width: across + margin.l + margin.r,
      height: down + margin.t + margin.b,
      margin,
    }),
    annotations: [
      colourBarTitle(quantity, palette, 'h'),
      title(titles.rows, 'row'),
      title(titles.columns, 'column'),
    ],
    xaxis: { ...bare, range: [0, across] },
    yaxis: { ...bare, range: [down, 0] },
  };
}
