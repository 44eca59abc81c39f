/**
 * A weight matrix as pixels: nearest cell where there is room, the strongest where there is not,
 * so that one bright cell among 256 × 256 never disappears.
 */

/**
 * @typedef {Object} Picture
 * @property {ArrayLike<number>} data weights, row-major, of one head or of many; none is negative
 * @property {number} offset where this head's weights start
 * @property {number} rows
 * @property {number} columns
 * @property {number} scale what an element is multiplied by
 * @property {boolean} isCausal the future is left transparent
 * @property {number} ceiling weight at the top of the colour scale
 */

/**
 * Where pixels go: a square somewhere on a canvas.
 * @typedef {Object} Sheet
 * @property {Uint32Array} pixels of the whole canvas, row by row
 * @property {number} width of the canvas
 */

const LEVELS = 256;

/**
 * @param {Uint8Array} colours 256 × red, green, blue
 * @returns {Uint32Array} the same, opaque, one number a pixel
 */
export function inksOf(colours) {
  const bytes = new Uint8Array(LEVELS * 4).fill(255);
  for (let level = 0; level < LEVELS; level += 1)
    bytes.set(colours.subarray(level * 3, level * 3 + 3), level * 4);
  return new Uint32Array(bytes.buffer);
}

/**
 * @param {Picture} picture
 * @param {number} size pixels across and down
 * @param {Uint8Array} colours 256 × red, green, blue
 * @returns {Uint8ClampedArray} size × size pixels, red green blue alpha
 */
export function rasterise(picture, size, colours) {
  const pixels = new Uint32Array(size * size);
  paintInto({ pixels, width: size }, { left: 0, top: 0, size }, picture, inksOf(colours));
  return new Uint8ClampedArray(pixels.buffer);
}

/**
 * Paints one head into its square of a canvas.
 * @param {Sheet} sheet
 * @param {{left: number, top: number, size: number}} square in pixels, within the sheet
 * @param {Picture} picture
 * @param {Uint32Array} inks of 256 levels
 */
export function paintInto({ pixels, width }, { left, top, size }, picture, inks) {
  const rows = spans(picture.rows, size);
  const columns = spans(picture.columns, size);
  const strongest = new Float64Array(picture.columns);
  const factor = picture.ceiling > 0 ? (picture.scale / picture.ceiling) * (LEVELS - 1) : 0;
  for (let y = 0; y < size; y += 1) {
    const start = (top + y) * width + left;
    const isAsAbove =
      y > 0 && rows.firsts[y] === rows.firsts[y - 1] && rows.ends[y] === rows.ends[y - 1];
    if (isAsAbove) {
      pixels.copyWithin(start, start - width, start - width + size);
      continue;
    }
    poolRows(strongest, picture, rows.firsts[y], rows.ends[y]);
    paintLine(
      pixels.subarray(start, start + size),
      strongest,
      columns,
      picture.isCausal ? rows.ends[y] : picture.columns,
      factor,
      inks,
    );
  }
}

/** The cells each pixel covers: from `firsts` to before `ends`. */
function spans(cells, size) {
  const firsts = new Int32Array(size);
  const ends = new Int32Array(size);
  for (let pixel = 0; pixel < size; pixel += 1) {
    firsts[pixel] = Math.floor((pixel * cells) / size);
    ends[pixel] = Math.min(
      cells,
      cells > size ? Math.ceil(((pixel + 1) * cells) / size) : firsts[pixel] + 1,
    );
  }
  return { firsts, ends };
}

/** Of each column the strongest cell among some rows. */
function poolRows(strongest, { data, offset, columns }, first, end) {
  strongest.fill(0);
  for (let row = first; row < end; row += 1) {
    const start = offset + row * columns;
    for (let column = 0; column < columns; column += 1) {
      if (data[start + column] > strongest[column]) strongest[column] = data[start + column];
    }
  }
}

/** Pixels of which every cell lies in the masked future stay as they are. */
function paintLine(line, strongest, { firsts, ends }, seen, factor, inks) {
  for (let x = 0; x < line.length && firsts[x] < seen; x += 1) {
    let most = 0;
    for (let column = firsts[x]; column < ends[x]; column += 1)
      if (strongest[column] > most) most = strongest[column];
    line[x] = inks[Math.min(LEVELS - 1, Math.round(most * factor))];
  }
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
