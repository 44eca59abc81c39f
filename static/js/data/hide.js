/**
 * Leaving tokens out of a map: the first one, where heads rest that find nothing to do, or all that
 * stand for no text.
 */

/** @typedef {import('./trace.js').Matrix} Matrix */
/** @typedef {import('./words.js').Unit} Unit */
/** @typedef {'nothing'|'first'|'special'} Hidden */

/**
 * @param {Unit[]} units
 * @param {Hidden} hidden
 * @returns {number[]} those that stay, by their index
 */
export function left(units, hidden) {
  const isHidden = {
    nothing: () => false,
    first: (_, index) => index === 0,
    special: (unit) => unit.is_special,
  }[hidden];
  return units.flatMap((unit, index) => (isHidden(unit, index) ? [] : [index]));
}

/**
 * @param {Matrix} matrix
 * @param {number[]} rows that stay
 * @param {number[]} columns that stay
 * @returns {Matrix}
 */
export function cutTo(matrix, rows, columns) {
  const data = new Float64Array(rows.length * columns.length);
  rows.forEach((row, y) =>
    columns.forEach((column, x) => {
      data[y * columns.length + x] = matrix.data[row * matrix.columns + column];
    }),
  );
  return { rows: rows.length, columns: columns.length, data };
}

/**
 * @param {Matrix} matrix not negative; NaN where nothing is seen
 * @returns {Matrix} every row divided by its sum; a row of zeros stays as it is
 */
export function renormalised({ rows, columns, data }) {
  const scaled = data.slice();
  for (let row = 0; row < rows; row += 1) {
    const cells = scaled.subarray(row * columns, (row + 1) * columns);
    const sum = sumOf(cells);
    if (sum > 0)
      cells.forEach((value, column) => {
        cells[column] = value / sum;
      });
  }
  return { rows, columns, data: scaled };
}

/** @param {ArrayLike<number>} values @returns {number} their sum, NaN counting for nothing */
export function sumOf(values) {
  let sum = 0;
  for (let at = 0; at < values.length; at += 1) if (!Number.isNaN(values[at])) sum += values[at];
  return sum;
}
