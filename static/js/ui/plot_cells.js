/** The cells of a drawing that tokens have, and the box around them. */

/**
 * @import { Cell, Grid } from '../plot/grid.js'
 * @import { Pixels } from '../plot/renderer.js'
 */

/**
 * @param {Grid} grid
 * @param {{query: number|null, key: number|null}} wanted null: any
 * @returns {Cell[]} the cells of these tokens
 */
export function cellsOf(grid, wanted) {
  /** @param {number|null} token @param {number|number[]|undefined} of */
  const isOf = (token, of) => token === null || (of !== undefined && [of].flat().includes(token));
  return Array.from({ length: grid.rows * grid.columns }, (_, at) => ({
    row: Math.floor(at / grid.columns),
    column: at % grid.columns,
  })).filter(({ row, column }) => {
    const { query, key } = grid.tokens(row, column);
    return isOf(wanted.query, query) && isOf(wanted.key, key);
  });
}

/** @param {(Pixels|null)[]} boxes @returns {Pixels|null} the box around all of them */
export function unionOf(boxes) {
  const seen = boxes.filter((box) => box !== null);
  if (seen.length === 0) return null;
  const left = Math.min(...seen.map((box) => box.left));
  const top = Math.min(...seen.map((box) => box.top));
  return {
    left,
    top,
    width: Math.max(...seen.map((box) => box.left + box.width)) - left,
    height: Math.max(...seen.map((box) => box.top + box.height)) - top,
  };
}
