/**
 * Several heads as one map.
 */

/** @typedef {import('./trace.js').Matrix} Matrix */

/**
 * Cell by cell; what one head may not see none of them may. Means of rows that sum to 1 sum to 1;
 * the largest weights of several heads sum to 1 or more.
 * @param {Matrix[]} heads of one shape, at least one
 * @param {'mean'|'max'} way
 * @returns {Matrix}
 */
export function combined(heads, way) {
  const [first, ...others] = heads;
  const data = first.data.slice();
  for (const other of others) (way === 'max' ? raise : add)(data, other.data);
  if (way === 'mean') for (let at = 0; at < data.length; at += 1) data[at] /= heads.length;
  return { ...first, data };
}

function add(data, other) {
  for (let at = 0; at < data.length; at += 1) data[at] += other[at];
}

function raise(data, other) {
  for (let at = 0; at < data.length; at += 1) data[at] = Math.max(data[at], other[at]);
}
