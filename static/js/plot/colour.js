/**
 * The colour scales. Both are linear in OKLab lightness, so equal steps of value look equal, also
 * in greyscale and with colour blindness. OKLab: https://bottosson.github.io/posts/oklab/
 */

/** @import { HeadPicture, Look, Placed, Row } from '../ui/heads.js' */
/** @typedef {'light'|'dark'} Theme */
/** @typedef {[number, number, number]} Triple */

export const LEVELS = 256;

/** Evenly spaced stops, each [lightness, chroma, hue in degrees], from dark to bright. */
const SEQUENTIAL = {
  light: [
    [0.97, 0.012, 90],
    [0.83, 0.115, 80],
    [0.69, 0.155, 52],
    [0.55, 0.17, 24],
    [0.41, 0.14, 355],
    [0.27, 0.09, 318],
  ],
  dark: [
    [0.235, 0.02, 285],
    [0.378, 0.105, 310],
    [0.521, 0.15, 352],
    [0.664, 0.165, 36],
    [0.807, 0.14, 72],
    [0.95, 0.075, 98],
  ],
};

/** Below zero, zero, above zero. */
const DIVERGING = {
  light: [
    [0.45, 0.13, 250],
    [0.71, 0.085, 245],
    [0.97, 0.004, 90],
    [0.71, 0.125, 52],
    [0.45, 0.125, 38],
  ],
  dark: [
    [0.84, 0.1, 235],
    [0.545, 0.11, 248],
    [0.25, 0.008, 285],
    [0.545, 0.125, 42],
    [0.84, 0.13, 78],
  ],
};

const cache = new Map();

/**
 * @param {Theme} theme
 * @returns {Uint8Array} 256 × red, green, blue: from 0 to the top of the scale
 */
export function sequential(theme) {
  return remembered(`sequential ${theme}`, SEQUENTIAL[theme]);
}

/**
 * @param {Theme} theme
 * @returns {Uint8Array} 256 × red, green, blue: from the most negative to the most positive
 */
export function diverging(theme) {
  return remembered(`diverging ${theme}`, DIVERGING[theme]);
}

/** @param {string} key @param {number[][]} stops */
function remembered(key, stops) {
  if (!cache.has(key)) cache.set(key, table(stops));
  return cache.get(key);
}

/** @param {number[][]} stops */
function table(stops) {
  const points = stops.map(([lightness, chroma, hue]) => labOf(lightness, chroma, hue));
  const bytes = new Uint8Array(LEVELS * 3);
  for (let level = 0; level < LEVELS; level += 1) {
    bytes.set(srgbOf(between(points, level / (LEVELS - 1))).map(toByte), level * 3);
  }
  return bytes;
}

/** @param {number} lightness @param {number} chroma @param {number} hue @returns {Triple} */
function labOf(lightness, chroma, hue) {
  const angle = (hue * Math.PI) / 180;
  return [lightness, chroma * Math.cos(angle), chroma * Math.sin(angle)];
}

/** @param {Triple[]} points @param {number} position @returns {Triple} */
function between(points, position) {
  const place = position * (points.length - 1);
  const left = Math.min(Math.floor(place), points.length - 2);
  const [from, to] = [points[left], points[left + 1]];
  /** @param {number} axis */
  const mixed = (axis) => from[axis] + (to[axis] - from[axis]) * (place - left);
  return [mixed(0), mixed(1), mixed(2)];
}

/** @param {Triple} lab @returns {Triple} gamma-encoded red, green, blue, possibly outside 0 to 1 */
function srgbOf([lightness, a, b]) {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    encoded(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    encoded(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    encoded(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

/** @param {number} light linear @returns {number} by the transfer function of sRGB */
function encoded(light) {
  return light <= 0.0031308 ? 12.92 * light : 1.055 * light ** (1 / 2.4) - 0.055;
}

/** @param {number} channel */
function toByte(channel) {
  return Math.round(Math.max(0, Math.min(1, channel)) * 255);
}

/**
 * Return the level of a value on a scale.
 * @param {number} value
 * @param {number} ceiling the value at the top of the scale
 */
export function computeLevel(value, ceiling) {
  if (ceiling <= 0) return 0;
  return Math.max(0, Math.min(LEVELS - 1, Math.round((value / ceiling) * (LEVELS - 1))));
}

/** @param {Uint8Array} scale @param {number} level @returns {string} `rgb(…)` */
export function css(scale, level) {
  return `rgb(${scale[level * 3]}, ${scale[level * 3 + 1]}, ${scale[level * 3 + 2]})`;
}

/**
 * @param {string} colour `rgb(…)`, as `css` and the palette have it
 * @param {number} opacity 0 to 1
 * @returns {string} `rgba(…)`
 */
export function translucent(colour, opacity) {
  return colour.replace('rgb(', 'rgba(').replace(')', `, ${opacity})`);
}

/**
 * Return black or white, whichever reads better on a level of the scale (WCAG relative luminance).
 * @param {Uint8Array} scale
 * @param {number} level
 * @returns {'#000'|'#fff'}
 */
export function inkOn(scale, level) {
  return luminance(scale.subarray(level * 3, level * 3 + 3)) > 0.179 ? '#000' : '#fff';
}

/** @param {ArrayLike<number>} rgb bytes @returns {number} 0 to 1 */
export function luminance(rgb) {
  const [red, green, blue] = Array.from(rgb, (byte) => {
    const channel = byte / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/**
 * Return the same colours in Plotly's format, so that canvas and plot agree.
 * @param {Uint8Array} scale
 * @returns {[number, string][]}
 */
export function plotlyScale(scale) {
  const steps = 51;
  return Array.from({ length: steps + 1 }, (_, step) => [
    step / steps,
    css(scale, step * ((LEVELS - 1) / steps)),
  ]);
}

/**
 * @typedef {Object} Picture
 * @property {ArrayLike<number>} data weights, row-major, of one head or of many; none is negative
 * @property {number} offset where this head's weights start
 * @property {number} rows
 * @property {number} columns
 * @property {number} scale what an element is multiplied by
 * @property {boolean} isCausal the future is left transparent
 * @property {number} ceiling weight at the top of the colour scale
 * @property {number} [skip] columns at the left that are left out
 * @property {{x: (string|null)[], y: (string|null)[]}} [roles] the colours of the tokens of a conversation, by side
 */

/**
 * A square region of a canvas.
 * @typedef {Object} Sheet
 * @property {Uint32Array} pixels of the whole canvas, row by row
 * @property {number} width of the canvas
 */

/**
 * @param {Uint8Array} colours 256 × red, green, blue
 * @returns {Uint32Array} the same, opaque, one number a pixel
 */
export function packPixels(colours) {
  const bytes = new Uint8Array(LEVELS * 4).fill(255);
  for (let level = 0; level < LEVELS; level += 1)
    bytes.set(colours.subarray(level * 3, level * 3 + 3), level * 4);
  return new Uint32Array(bytes.buffer);
}

/**
 * Paint one head into its square of a canvas.
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

/**
 * Return the cells each pixel covers: from `firsts` to before `ends`.
 * @param {number} cells
 * @param {number} size
 */
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

/**
 * Pool some rows: keep the strongest cell of each column.
 * @param {Float64Array} strongest
 * @param {Picture} picture
 * @param {number} first
 * @param {number} end
 */
function poolRows(strongest, { data, offset, columns, skip = 0 }, first, end) {
  strongest.fill(0);
  for (let row = first; row < end; row += 1) {
    const start = offset + row * columns;
    for (let column = skip; column < columns; column += 1) {
      if (data[start + column] > strongest[column]) strongest[column] = data[start + column];
    }
  }
}

/**
 * Pixels that lie entirely in the masked future are left unchanged.
 * @param {Uint32Array} line
 * @param {Float64Array} strongest
 * @param {{firsts: Int32Array, ends: Int32Array}} of
 * @param {number} seen
 * @param {number} factor
 * @param {Uint32Array} inks
 */
function paintLine(line, strongest, { firsts, ends }, seen, factor, inks) {
  for (let x = 0; x < line.length && firsts[x] < seen; x += 1) {
    let most = 0;
    for (let column = firsts[x]; column < ends[x]; column += 1)
      if (strongest[column] > most) most = strongest[column];
    line[x] = inks[Math.min(LEVELS - 1, Math.round(most * factor))];
  }
}

/**
 * @param {{data: ArrayLike<number>, offset: number, rows: number, columns: number, scale: number, skip?: number}} picture
 * @returns {number} the largest weight of one head, but for those left out
 */
export function peak({ data, offset, rows, columns, scale, skip = 0 }) {
  let most = 0;
  for (let at = offset; at < offset + rows * columns; at += 1)
    if (data[at] > most && (skip === 0 || (at - offset) % columns >= skip)) most = data[at];
  return most * scale;
}

/** Colours of kinds, told apart with colour blindness: Okabe and Ito 2008, https://jfly.uni-koeln.de/color/ */
export const KINDS = ['#0072b2', '#e69f00', '#009e73', '#d55e00', '#cc79a7', '#56b4e9'];

/** The least width of a mark, in pixels. */
const LEAST_MARK = 7;

/**
 * Paint all maps into one picture, and that onto the canvas at once.
 * @param {{canvas: HTMLCanvasElement, frame: HTMLElement, cells: HTMLElement[][], rows: Row[], pictureOf: (head: Row['heads'][number]) => HeadPicture|undefined}} drawn
 * @param {Look} look
 */
export function paintHeads({ canvas, frame, cells, rows, pictureOf }, look) {
  const { size, range, theme, ratio } = look;
  const box = frame.getBoundingClientRect();
  const width = Math.max(1, Math.round(box.width * ratio));
  const height = Math.max(1, Math.round(box.height * ratio));
  const side = Math.round(size * ratio);
  const image = new ImageData(width, height);
  const sheet = { pixels: new Uint32Array(image.data.buffer), width };
  const inks = packPixels(sequential(theme));
  /** @param {number} place @param {number} most */
  const within = (place, most) => Math.max(0, Math.min(Math.round(place * ratio), most - side));
  /** @type {Placed[]} */
  const squares = [];
  rows.forEach(({ heads }, row) =>
    heads.forEach((head, column) => {
      const picture = pictureOf(head);
      if (!picture) return;
      const { left, top } = cells[row][column].getBoundingClientRect();
      const square = {
        left: within(left - box.left, width),
        top: within(top - box.top, height),
        size: side,
      };
      squares.push({ ...square, picture });
      if (side <= Math.min(width, height))
        paintInto(
          sheet,
          square,
          { ...picture, ceiling: range === 'head' || picture.skip ? picture.ceiling : 1 },
          inks,
        );
    }),
  );
  Object.assign(canvas, { width, height });
  Object.assign(canvas.style, { width: `${width / ratio}px`, height: `${height / ratio}px` });
  const context = canvas.getContext('2d');
  context?.putImageData(image, 0, 0);
  if (context && size >= BANDS.room)
    for (const square of squares) markRoles(context, square, BANDS.width * ratio);
  if (context && look.key >= 0) for (const square of squares) mark(context, square, look);
}

/** The least size of a map with bands of roles, and the width of a band, in pixels. */
const BANDS = { room: 24, width: 2 };

/**
 * Draw the roles of a conversation's tokens along the upper and the left edge of a map.
 * @param {CanvasRenderingContext2D} context @param {Placed} square @param {number} wide
 */
export function markRoles(context, { left, top, size, picture }, wide) {
  const { x, y } = picture.roles ?? { x: [], y: [] };
  const [across, down] = [size / x.length, size / y.length];
  /** @param {string|null} colour @param {[number, number, number, number]} box */
  const fill = (colour, ...box) => {
    context.fillStyle = colour ?? 'transparent';
    context.fillRect(...box);
  };
  x.forEach((colour, at) => fill(colour, left + at * across, top, across, wide));
  y.forEach((colour, at) => fill(colour, left, top + at * down, wide, down));
}

/**
 * Draw a frame around one cell, large enough to be seen, light on dark.
 * @param {CanvasRenderingContext2D} context
 * @param {Placed} square
 * @param {Look} look
 */
function mark(context, { left, top, size, picture }, { query, key, beam, ratio }) {
  const [across, down] = [size / picture.columns, size / picture.rows];
  const reach = Math.max(LEAST_MARK * ratio, across + 2 * ratio, down + 2 * ratio);
  const [x, y] = [left + (key + 0.5) * across, top + (query + 0.5) * down];
  for (const [colour, width] of /** @type {const} */ ([
    ['#fff', 3],
    [beam, 1.5],
  ])) {
    context.strokeStyle = colour;
    context.lineWidth = width * ratio;
    context.strokeRect(x - reach / 2, y - reach / 2, reach, reach);
  }
}

/** Those of the roles of a conversation, as `page.css` has them. @type {Record<string, string>} */
export const ROLE_COLOURS = Object.freeze({
  template: '#8a8f98',
  system: '#b8860b',
  first: '#2f7fd0',
  second: '#2e9d62',
  user: '#2f7fd0',
  assistant: '#2e9d62',
  tool: '#9b59b6',
});
