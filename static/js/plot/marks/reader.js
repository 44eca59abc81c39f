/** Numbers without ink: what is read where the numbers of the table are not those of a mark. */

/**
 * @import { Box } from '../grid.js'
 * @import { Hits, Mark, Meaning, Plan } from './mark.js'
 */

/** @typedef {{row: number, column: number}} Datum */

/**
 * Read numbers that no mark draws.
 * @param {number} rows
 * @param {number} columns
 * @param {Meaning<Datum> & {kind?: string, box?: (datum: Datum) => Box, hits?: (plan: Plan) => Hits|undefined}} channels `box`: where a number is, if not in a cell of the axes; the least of several is meant
 * @returns {Mark<Datum>}
 */
export function reader(rows, columns, { kind, box, hits, ...meaning }) {
  const boxed = hits ?? (box && (() => boxHits(rows, columns, box)));
  return {
    kind: 'reader',
    reach: { x: [], y: [] },
    meaning,
    table: { rows, columns, kind, datum: (row, column) => ({ row, column }) },
    draw: () => ({}),
    ...(boxed && { hits: boxed }),
  };
}

/**
 * Find numbers by their boxes.
 * @param {number} rows
 * @param {number} columns
 * @param {(datum: Datum) => Box} boxOf
 * @returns {Hits}
 */
function boxHits(rows, columns, boxOf) {
  const size = (/** @type {Box} */ { x0, x1, y0, y1 }) => (x1 - x0) * (y1 - y0);
  const cells = Array.from({ length: rows * columns }, (_, at) => {
    const datum = { row: Math.floor(at / columns), column: at % columns };
    return { ...datum, box: boxOf(datum) };
  }).sort((a, b) => size(a.box) - size(b.box));
  return {
    box(row, column) {
      const boxes = cells
        .filter((cell) => (row ?? cell.row) === cell.row && (column ?? cell.column) === cell.column)
        .map((cell) => cell.box);
      if (boxes.length === 0) return null;
      return {
        x0: Math.min(...boxes.map(({ x0 }) => x0)),
        x1: Math.max(...boxes.map(({ x1 }) => x1)),
        y0: Math.min(...boxes.map(({ y0 }) => y0)),
        y1: Math.max(...boxes.map(({ y1 }) => y1)),
      };
    },
    at(x, y) {
      const cell = cells.find(
        ({ box: { x0, x1, y0, y1 } }) => x >= x0 && x <= x1 && y >= y0 && y <= y1,
      );
      return cell ? { row: cell.row, column: cell.column } : null;
    },
  };
}
