/**
 * How alike rows of a matrix are.
 */

/**
 * Cosine of the angle between every two rows: their dot product over the product of their lengths.
 * A row of zeros has no direction; its cosines are 0.
 * @param {import('./trace.js').Matrix} matrix
 * @returns {import('./trace.js').Matrix} rows × rows, between −1 and 1
 */
export function cosineSimilarity({ rows, columns, data }) {
  const lengths = Float64Array.from({ length: rows }, (_, row) =>
    Math.sqrt(dot(data, row, row, columns)),
  );
  const cosines = new Float64Array(rows * rows);
  for (let a = 0; a < rows; a += 1) {
    for (let b = a; b < rows; b += 1) {
      const product = lengths[a] * lengths[b];
      const cosine =
        product === 0 ? 0 : Math.max(-1, Math.min(1, dot(data, a, b, columns) / product));
      cosines[a * rows + b] = cosine;
      cosines[b * rows + a] = cosine;
    }
  }
  return { rows, columns: rows, data: cosines };
}

const known = new WeakMap();

/**
 * The same, worked out once for each matrix: of a long text it takes longer than drawing it.
 * @param {import('./trace.js').Matrix} matrix that nobody changes
 */
export function similarityOf(matrix) {
  if (!known.has(matrix)) known.set(matrix, cosineSimilarity(matrix));
  return known.get(matrix);
}

function dot(data, a, b, columns) {
  let sum = 0;
  for (let i = 0; i < columns; i += 1) sum += data[a * columns + i] * data[b * columns + i];
  return sum;
}

/**
 * What similarity there is at each distance |i − j|: its mean, and from where to where it goes.
 * @param {import('./trace.js').Matrix} cosines square
 * @returns {{mean: Float64Array, least: Float64Array, most: Float64Array}} by distance, from 0 on
 */
export function byDistance({ rows, data }) {
  const mean = new Float64Array(rows);
  const least = new Float64Array(rows).fill(Infinity);
  const most = new Float64Array(rows).fill(-Infinity);
  for (let a = 0; a < rows; a += 1) {
    for (let b = a; b < rows; b += 1) {
      const cosine = data[a * rows + b];
      const distance = b - a;
      mean[distance] += cosine / (rows - distance);
      least[distance] = Math.min(least[distance], cosine);
      most[distance] = Math.max(most[distance], cosine);
    }
  }
  return { mean, least, most };
}
