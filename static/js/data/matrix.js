/**
 * Plain matrices of numbers: turned over, measured, searched.
 */

/** @typedef {import('./trace.js').Matrix} Matrix */

/**
 * @param {Matrix} matrix
 * @returns {Matrix} rows as columns
 */
export function transposed({ rows, columns, data }) {
  const turned = new Float64Array(data.length);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1)
      turned[column * rows + row] = data[row * columns + column];
  }
  return { rows: columns, columns: rows, data: turned };
}

/**
 * @param {{data: Float64Array}} matrix
 * @returns {number} the largest of its absolute values; 0 where it has none
 */
export function extent({ data }) {
  let most = 0;
  for (const value of data) if (Math.abs(value) > most) most = Math.abs(value);
  return most;
}

/**
 * @param {ArrayLike<number>} values NaN: none
 * @returns {number} index of the highest, the first of several; 0 where there is none
 */
export function highestIn(values) {
  let best = 0;
  for (let at = 1; at < values.length; at += 1)
    if (values[at] > values[best] || (Number.isNaN(values[best]) && !Number.isNaN(values[at])))
      best = at;
  return best;
}

/**
 * @param {Matrix} matrix
 * @returns {import('../plot/grid.js').Cell} where its absolute value is largest
 */
export function largestIn({ columns, data }) {
  const best = highestIn(data.map(Math.abs));
  return { row: Math.floor(best / columns), column: best % columns };
}
