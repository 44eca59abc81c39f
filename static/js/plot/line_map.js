/**
 * Two columns of words joined by lines: thickness and colour show the weight, and strong lines
 * carry its number. Axes count pixels of the plot area, downwards, so that words lie inside it and
 * can be pointed at. Lines of similar weight share a mark, so the number of traces stays small.
 */

import { css, computeLevel, plotlyScale, sequential, translucent } from './colour.js';
import { chart } from './chart.js';
import { isNarrow, labelWidth, letteringFor, pixels } from './scales.js';
import {
  along,
  binned,
  chooseLines,
  findStrongest,
  LEAST_NUMBER,
  nearestLine,
  NUMBER,
  numberPlaces,
} from './lines.js';
import { rule, text } from './marks/decorations.js';
import { reader, SILENT } from './marks/mark.js';
import { extent } from '../trace/trace.js';
import { share } from '../words/numbers.js';
import { shortened } from '../words/text.js';

/**
 * @import { Table } from './chart.js'
 * @import { Cell, Highlight } from './grid.js'
 * @import { Line, Point, Span } from './lines.js'
 */

/**
 * @typedef {Object} LinesChart the names of the words are the labels of the table
 * @property {Matrix} weights rows by columns; NaN or 0: no line
 * @property {{rows: string, columns: string}} titles the headings of the two columns of words
 * @property {string} quantity of the colour bar
 * @property {number} [threshold] lines of less weight are left out
 * @property {number} [ceiling] the weight of the thickest line; the greatest weight unless given
 * @property {'rows'|'columns'} [left] the words at the left
 * @property {number|null} [chosenRow] whose lines stand out from the others
 * @property {{wide: number, narrow: number}} [letters] after which a word is cut, on a wide page and on a phone
 * @property {Meaning<{row: number, column: number}>} meaning
 * @property {Table & {rows: {title: string, labels: string[]}, columns: {title: string, labels: string[]}}} table
 * @property {Partial<SentenceLink>} [sentence]
 * @property {Partial<CellCursor>} [cursor]
 */

/** @typedef {ReturnType<typeof boxFor>} Box the places of all parts */
/** @typedef {ReturnType<typeof inkFor>} Ink */
/** @typedef {{lines: Line[], numbers: ReturnType<typeof numberPlaces>, ceiling: number, box: Box, ink: Ink}} Parts */

const STEPS = 12;
const MOST_LINES = 1200;
const MOST_NUMBERS = 120;
/** The thickest line takes a fifth of a word’s height. */
const THICKNESS = { least: 0.8, ofPitch: 0.2 };
const PITCH = { least: 15, most: 30 };
const HEAD_ROOM = 26;
const GAP = 8;
/** Pixels to the left of the plot, on both sides of it, and above and below it. */
const [EDGE, BESIDE, AROUND] = [8, 20, 48];
/** Pixels from a line at which it is still pointed at. */
const REACH = 7;
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
export function linesChart(spec, frame) {
  const { weights, threshold = 0, chosenRow = null, meaning, table, sentence, cursor } = spec;
  const { palette } = frame;
  const { lines, left } = chooseLines(weights, { threshold, most: MOST_LINES });
  const ceiling = spec.ceiling ?? (extent(weights) || 1);
  const box = boxFor(spec, frame);
  const ink = inkFor(palette, ceiling, box.pitch * THICKNESS.ofPitch);
  const isFront = (/** @type {Line} */ { row }) => chosenRow === null || row === chosenRow;
  const front = lines.filter(isFront);
  const strong = front.filter(({ weight }) => weight >= LEAST_NUMBER);
  const numbers = numberPlaces(strong, box.spanOf, NUMBER, MOST_NUMBERS);
  const parts = { lines, numbers, ceiling, box, ink };
  const kind = 'diagram of lines';
  const words = reader(weights.rows, weights.columns, {
    ...meaning,
    kind,
    hits: () => buildHits(spec, parts),
  });
  const back = lines.filter((line) => !isFront(line));
  const drawing = chart(
    {
      x: pixels([0, box.across]),
      y: pixels([0, box.down]),
      marks: [
        withScale(words, spec.quantity, parts),
        ...strokes(back, (colour) => translucent(colour, FADED), parts),
        ...strokes(front, (colour) => colour, parts),
        ...numberMarks(numbers, palette),
        ...wordMarks(spec, box, palette),
      ],
      size: { widest: box.across + BESIDE, height: box.down },
      table,
      sentence,
      cursor,
    },
    frame,
  );
  return { drawing, drawn: lines, left };
}

/**
 * Give a mark the colour bar of the lines.
 * @param {Mark<any>} mark
 * @param {string} title
 * @param {Parts} parts
 * @returns {Mark<any>}
 */
function withScale(mark, title, { ceiling, ink: { colours } }) {
  /** @type {import('./scales.js').Ramp} */
  const ramp = { title, domain: [0, ceiling], colours, legend: 'short' };
  const scale = { color: [0], cmin: 0, cmax: ceiling, colorscale: plotlyScale(colours) };
  return {
    ...mark,
    ramp,
    room: { left: EDGE },
    draw: ({ bar }) => {
      const marker = { ...scale, showscale: true, colorbar: bar(ramp) };
      return {
        traces: [{ type: 'scatter', mode: 'markers', x: [null], y: [null], marker, ...SILENT }],
      };
    },
  };
}

/**
 * Return the marks of lines, one for each step of weight.
 * @param {Line[]} lines
 * @param {(colour: string) => string} shade
 * @param {Parts} parts
 */
function strokes(lines, shade, { ceiling, box, ink }) {
  return binned(lines, ceiling, STEPS).flatMap((bin, step) => {
    const weight = ((step + 0.5) / STEPS) * ceiling;
    const look = { stroke: shade(ink.colour(weight)), width: ink.width(weight) };
    const from = (/** @type {Line} */ line) => box.spanOf(line).from;
    const to = (/** @type {Line} */ line) => box.spanOf(line).to;
    return bin.length > 0 ? [rule(bin, { from, to, ...look })] : [];
  });
}

/**
 * Return the marks of numbers. A number has a background, so that no line crosses it.
 * @param {Parts['numbers']} numbers
 * @param {Palette} palette
 */
function numberMarks(numbers, { surface }) {
  if (numbers.length === 0) return [];
  const written = numbers.map(({ line, at }) => ({ ...at, text: share(line.weight, 2) }));
  /** @param {-1|1} side @returns {(number: {x: number, y: number, text: string}) => Point} */
  const end = (side) => (number) => ({
    x: number.x + side * ((number.text.length * NUMBER.letter) / 2 + 1),
    y: number.y,
  });
  return [
    rule(written, { from: end(-1), to: end(1), stroke: surface, width: NUMBER.height }),
    text(written, { x: ({ x }) => x, y: ({ y }) => y, text: (of) => of.text, size: NUMBER.size }),
  ];
}

/** Return the marks of both columns of words and of their titles. @param {LinesChart} spec @param {Box} box @param {Palette} palette */
function wordMarks({ table, titles, chosenRow = null }, box, palette) {
  const every = Math.max(1, Math.ceil(PITCH.least / box.pitch));
  /** @param {number} index @param {'row'|'column'} side */
  const isWritten = (index, side) => {
    if (side === 'column' || chosenRow === null || every === 1) return index % every === 0;
    return index === chosenRow || (index % every === 0 && Math.abs(index - chosenRow) >= every);
  };
  return /** @type {const} */ (['row', 'column']).flatMap((side) => {
    const [x, at] = isLeft(side, box)
      ? [box.x[side] - GAP / 2, 'middle left']
      : [box.x[side] + GAP / 2, 'middle right'];
    const labels = table[`${side}s`].labels.map((label, index) => ({ label, index }));
    const words = labels.filter(({ index }) => isWritten(index, side));
    return [
      text(words, {
        x: () => x,
        y: ({ index }) => box.y[side](index),
        text: ({ label }) => shortened(label, box.lettering.letters),
        ink: ({ index }) => (side === 'row' && index === chosenRow ? palette.query : palette.ink),
        size: box.lettering.size,
        at,
      }),
      text([titles[`${side}s`]], {
        x: () => x,
        y: () => HEAD_ROOM / 2,
        text: (title) => title,
        ink: side === 'row' ? palette.query : palette.key,
        size: 13,
        at,
      }),
    ];
  });
}

/**
 * Return the positions of all parts, in pixels of the plot area.
 * @param {Pick<LinesChart, 'table'|'titles'|'left'|'letters'>} chart
 * @param {{width: number, height: number}} frame
 */
function boxFor({ table, titles, left = 'rows', letters }, { width, height }) {
  const [rows, columns] = [table.rows.labels, table.columns.labels];
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
  const span = Math.max(60, Math.min(WIDEST_SPAN, width - BESIDE - widths[0] - widths[1]));
  const count = Math.max(rows.length, columns.length);
  // One screen high, however many words there are; words that have no room are left out.
  const pitch = Math.min(PITCH.most, (height - HEAD_ROOM - AROUND) / count);
  const length = count * pitch;
  const [start, end] = [widths[0], widths[0] + span];
  /** @param {number} index @param {number} of */
  const at = (index, of) => HEAD_ROOM + ((index + 0.5) * length) / of;
  /** @type {Record<'row'|'column', (index: number) => number>} */
  const y = { row: (row) => at(row, rows.length), column: (column) => at(column, columns.length) };
  const x = left === 'rows' ? { row: start, column: end } : { row: end, column: start };
  return {
    lettering,
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
    colours: stretched,
    /** @param {number} weight */
    colour: (weight) => css(stretched, computeLevel(weight, ceiling)),
    /** @param {number} weight */
    width: (weight) =>
      THICKNESS.least + (thickest - THICKNESS.least) * Math.min(1, weight / ceiling),
  };
}

/**
 * Return the words and lines under a pointer, and what is brought out of them.
 * @param {Pick<LinesChart, 'weights'>} chart
 * @param {Parts} parts
 * @returns {Hits}
 */
function buildHits({ weights }, { lines, numbers, ceiling, box, ink }) {
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
      const index = indexAt(y, side === 'row' ? weights.rows : weights.columns, box);
      if (index === null) return null;
      return side === 'row'
        ? { row: index, column: findStrongest(weights, { row: index }), of: side }
        : { row: findStrongest(weights, { column: index }), column: index, of: side };
    },
    highlight: (cell) => highlightOf(cell, weights, { box, ink, numberAt }),
  };
}

/** @param {{row: number, column: number}} of */
function keyOf({ row, column }) {
  return `${row} ${column}`;
}

/** @param {number} y @param {number} count @param {Box} box */
function indexAt(y, count, { down }) {
  const index = Math.floor(((y - HEAD_ROOM) / (down - HEAD_ROOM)) * count);
  return index >= 0 && index < count ? index : null;
}

/**
 * Return the lines of the selected word, each with its number near the far end; for a selected line
 * or cell, the lines of its query.
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

/** @param {'row'|'column'} side @param {Box} box */
function isLeft(side, { left }) {
  return left === `${side}s`;
}
