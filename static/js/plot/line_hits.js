/** The words and lines of a map of lines under a pointer, and what is brought out of them. */

import { share } from '../words/numbers.js';
import { along, LEAST_NUMBER, nearestLine, NUMBER, findStrongest } from './lines.js';

/**
 * @import { Matrix } from '../trace/trace.js'
 * @import { Hits } from './marks/mark.js'
 * @import { Cell, Highlight } from './grid.js'
 * @import { Box, Ink } from './line_map.js'
 * @import { Line, numberPlaces, Point } from './lines.js'
 */

const REACH = 7;

/**
 * @typedef {Object} Parts
 * @property {Line[]} lines
 * @property {ReturnType<typeof numberPlaces>} numbers
 * @property {number} ceiling
 * @property {Box} box
 * @property {Ink} ink
 */

/**
 * @param {{weights: Matrix, rows: string[], columns: string[]}} words
 * @param {Parts} parts
 * @returns {Hits}
 */
export function buildHits({ weights, rows, columns }, { lines, numbers, ceiling, box, ink }) {
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

/** @param {number} y @param {number} count @param {Box} box */
function indexAt(y, count, { down, head }) {
  const index = Math.floor(((y - head) / (down - head)) * count);
  return index >= 0 && index < count ? index : null;
}

/**
 * Select the strongest line of a word; `of` names its side.
 * @param {Matrix} weights
 * @param {'row'|'column'} side
 * @param {number} index
 * @returns {Cell}
 */
function wordCell(weights, side, index) {
  if (side === 'row')
    return { row: index, column: findStrongest(weights, { row: index }), of: 'row' };
  return { row: findStrongest(weights, { column: index }), column: index, of: 'column' };
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
    veil: { x0: box.start, x1: box.end, y0: box.head, y1: box.down },
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
export function isLeft(side, { left }) {
  return left === `${side}s`;
}
