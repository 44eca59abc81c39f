/**
 * A weight matrix as pixels: nearest cell where there is room, the strongest where there is not,
 * so that one bright cell among 256 × 256 never disappears.
 */

import { levelOf } from './colour.js';

/**
 * @typedef {Object} Picture
 * @property {ArrayLike<number>} data weights, row-major, of one head or of many
 * @property {number} offset where this head's weights start
 * @property {number} rows
 * @property {number} columns
 * @property {number} scale what an element is multiplied by
 * @property {boolean} isCausal the future is left transparent
 * @property {number} ceiling weight at the top of the colour scale
 */

/**
 * @param {Picture} picture
 * @param {number} size pixels across and down
 * @param {Uint8Array} colours 256 × red, green, blue
 * @returns {Uint8ClampedArray} size × size pixels, red green blue alpha
 */
export function rasterise(picture, size, colours) {
  const pixels = new Uint8ClampedArray(size * size * 4);
  const rows = spans(picture.rows, size);
  const columns = spans(picture.columns, size);
  for (let y = 0; y < size; y += 1) {
    for (let x = 0; x < size; x += 1) {
      const weight = strongest(picture, rows[y], columns[x]);
      if (weight < 0) continue;
      const level = levelOf(weight * picture.scale, picture.ceiling) * 3;
      const at = (y * size + x) * 4;
      pixels[at] = colours[level];
      pixels[at + 1] = colours[level + 1];
      pixels[at + 2] = colours[level + 2];
      pixels[at + 3] = 255;
    }
  }
  return pixels;
}

/** The cells each pixel covers, as [first, past the last]. */
function spans(cells, size) {
  return Array.from({ length: size }, (_, pixel) => {
    const first = Math.floor((pixel * cells) / size);
    const end = cells > size ? Math.ceil(((pixel + 1) * cells) / size) : first + 1;
    return [first, Math.min(end, cells)];
  });
}

/** −1 where every cell lies in the masked future. */
function strongest({ data, offset, columns, isCausal }, [top, bottom], [left, right]) {
  let most = -1;
  for (let row = top; row < bottom; row += 1) {
    const end = isCausal ? Math.min(right, row + 1) : right;
    for (let column = left; column < end; column += 1) {
      const value = data[offset + row * columns + column];
      if (value > most) most = value;
    }
  }
  return most;
}

/**
 * @param {{data: ArrayLike<number>, offset: number, rows: number, columns: number, scale: number}} picture
 * @returns {number} the largest weight of one head
 */
export function peak({ data, offset, rows, columns, scale }) {
  let most = 0;
  for (let at = offset; at < offset + rows * columns; at += 1) if (data[at] > most) most = data[at];
  return most * scale;
}
