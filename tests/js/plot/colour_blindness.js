/**
 * Simulates dichromacy (one missing cone type) by the matrices of full deficiency of Machado, Oliveira and Fernandes 2009, table 1, over linear RGB:
 * https://doi.org/10.1109/TVCG.2009.113
 */

const MATRICES = {
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

export const EYES = ['all cones', ...Object.keys(MATRICES)];

/**
 * @param {ArrayLike<number>} bytes red, green, blue
 * @param {string} eyes
 * @returns {[number, number, number]} what is seen, in OKLab: https://bottosson.github.io/posts/oklab/
 */
export function seen(bytes, eyes) {
  const linear = Array.from(bytes, (byte) => {
    const c = byte / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  const times = (matrix, vector) =>
    matrix.map((row) => row.reduce((sum, weight, index) => sum + weight * vector[index], 0));
  const visible =
    eyes in MATRICES
      ? times(MATRICES[eyes], linear).map((c) => Math.min(1, Math.max(0, c)))
      : linear;
  const cones = times(
    [
      [0.4122214708, 0.5363325363, 0.0514459929],
      [0.2119034982, 0.6806995451, 0.1073969566],
      [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    visible,
  ).map(Math.cbrt);
  return times(
    [
      [0.2104542553, 0.793617785, -0.0040720468],
      [1.9779984951, -2.428592205, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.808675766],
    ],
    cones,
  );
}

/** How far apart two colours are in OKLab, where 0.02 can just be told side by side. */
export function apart(a, b) {
  return Math.hypot(...a.map((value, index) => value - b[index]));
}
