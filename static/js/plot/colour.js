/**
 * Colour for numbers. Both scales are straight lines in OKLab lightness, so an equal step of value
 * is an equal step to the eye, in grey and to colour-blind eyes too.
 * OKLab: https://bottosson.github.io/posts/oklab/
 */

/** @typedef {'light'|'dark'} Theme */
/** @typedef {[number, number, number]} Triple */

const LEVELS = 256;

/** Stops at equal distances, each [lightness, chroma, hue in degrees]. From unlit to lit. */
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

function remembered(key, stops) {
  if (!cache.has(key)) cache.set(key, table(stops));
  return cache.get(key);
}

function table(stops) {
  const points = stops.map(([lightness, chroma, hue]) => labOf(lightness, chroma, hue));
  const bytes = new Uint8Array(LEVELS * 3);
  for (let level = 0; level < LEVELS; level += 1) {
    bytes.set(srgbOf(between(points, level / (LEVELS - 1))).map(toByte), level * 3);
  }
  return bytes;
}

/** @returns {Triple} */
function labOf(lightness, chroma, hue) {
  const angle = (hue * Math.PI) / 180;
  return [lightness, chroma * Math.cos(angle), chroma * Math.sin(angle)];
}

/** @param {Triple[]} points @returns {Triple} */
function between(points, position) {
  const place = position * (points.length - 1);
  const left = Math.min(Math.floor(place), points.length - 2);
  const [from, to] = [points[left], points[left + 1]];
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

function toByte(channel) {
  return Math.round(Math.max(0, Math.min(1, channel)) * 255);
}

/**
 * The level a value falls on.
 * @param {number} value
 * @param {number} ceiling the value at the top of the scale
 */
export function levelOf(value, ceiling) {
  if (ceiling <= 0) return 0;
  return Math.max(0, Math.min(LEVELS - 1, Math.round((value / ceiling) * (LEVELS - 1))));
}

/**
 * @param {Uint8Array} scale
 * @param {number} level
 * @returns {string} `rgb(…)`
 */
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
 * Black or white, whichever reads better on a level of the scale (WCAG relative luminance).
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
 * The same colours as Plotly wants them, so that canvas and plot agree.
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
