import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import {
  diverging,
  inkOn,
  packPixels,
  computeLevel,
  luminance,
  paintInto,
  peak,
  sequential,
} from '../../../static/js/plot/colour.js';
import { apart, EYES, seen } from './colour_blindness.js';

/** A distance in OKLab that an eye tells when the two lie side by side. */
const JUST_SEEN = 0.02;

const at = (scale, level, eyes = 'all cones') =>
  seen(scale.subarray(level * 3, level * 3 + 3), eyes);
/** One head on a sheet of its own: size × size pixels, red green blue alpha. */
function rasterise(picture, size, colours) {
  const pixels = new Uint32Array(size * size);
  paintInto({ pixels, width: size }, { left: 0, top: 0, size }, picture, packPixels(colours));
  return new Uint8ClampedArray(pixels.buffer);
}
const lightness = (scale, level, eyes) => at(scale, level, eyes)[0];

for (const theme of ['light', 'dark']) {
  test(`the ${theme} scale for weights climbs in even steps of lightness`, () => {
    const scale = sequential(theme);
    const from = lightness(scale, 0);
    const to = lightness(scale, 255);
    ok(Math.abs(to - from) > 0.65, 'the ends are far apart');
    for (let level = 0; level < 256; level += 1) {
      const even = from + (to - from) * (level / 255);
      ok(Math.abs(lightness(scale, level) - even) < 0.02, `level ${level}`);
    }
  });

  test(`the ${theme} scale for signed values is symmetric about zero`, () => {
    const scale = diverging(theme);
    for (let step = 0; step < 128; step += 1) {
      ok(Math.abs(lightness(scale, step) - lightness(scale, 255 - step)) < 0.03, `level ${step}`);
    }
  });

  for (const eyes of EYES) {
    test(`the ${theme} scale for weights only ever climbs, and sixteenths of it can be told apart: ${eyes}`, () => {
      const scale = sequential(theme);
      const upwards = Math.sign(lightness(scale, 255, eyes) - lightness(scale, 0, eyes));
      for (let level = 8; level < 256; level += 1) {
        ok(
          upwards * (lightness(scale, level, eyes) - lightness(scale, level - 8, eyes)) > 0.01,
          `levels ${level - 8} and ${level}`,
        );
      }
      for (let level = 16; level < 256; level += 1) {
        ok(
          apart(at(scale, level, eyes), at(scale, level - 16, eyes)) > JUST_SEEN,
          `levels ${level - 16} and ${level}`,
        );
      }
    });

    test(`the ${theme} scale for signed values fades towards zero, and its sides can be told apart: ${eyes}`, () => {
      const scale = diverging(theme);
      const towardsZero = Math.sign(lightness(scale, 127, eyes) - lightness(scale, 0, eyes));
      for (let level = 8; level < 128; level += 1) {
        for (const [out, near] of [
          [level - 8, level],
          [263 - level, 255 - level],
        ]) {
          ok(
            towardsZero * (lightness(scale, near, eyes) - lightness(scale, out, eyes)) > 0.01,
            `levels ${out} and ${near}`,
          );
        }
      }
      for (let level = 0; level <= 96; level += 1) {
        ok(
          apart(at(scale, level, eyes), at(scale, 255 - level, eyes)) > 3 * JUST_SEEN,
          `levels ${level} and ${255 - level}`,
        );
      }
    });
  }

  test(`every level of the ${theme} scales takes text of contrast 4.5 or more`, () => {
    for (const scale of [sequential(theme), diverging(theme)]) {
      for (let level = 0; level < 256; level += 1) {
        const ground = luminance(scale.subarray(level * 3, level * 3 + 3));
        const ink = inkOn(scale, level) === '#000' ? 0 : 1;
        const contrast = (Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05);
        ok(contrast >= 4.5, `level ${level}: ${contrast.toFixed(2)}`);
      }
    }
  });
}

test('values find their level, and none falls off the scale', () => {
  equal(computeLevel(0, 1), 0);
  equal(computeLevel(1, 1), 255);
  equal(computeLevel(0.25, 0.5), 128);
  equal(computeLevel(2, 1), 255);
  equal(computeLevel(0.5, 0), 0);
});

const COLOURS = sequential('light');
const pixel = (pixels, size, x, y) => [
  ...pixels.subarray((y * size + x) * 4, (y * size + x) * 4 + 4),
];
const colour = (level) => [...COLOURS.subarray(level * 3, level * 3 + 3), 255];

function picture(n, entries, options = {}) {
  const data = new Uint16Array(n * n);
  for (const [row, column, weight] of entries) data[row * n + column] = Math.round(weight * 65535);
  return {
    data,
    offset: 0,
    rows: n,
    columns: n,
    scale: 1 / 65535,
    isCausal: true,
    ceiling: 1,
    ...options,
  };
}

test('few cells are painted as sharp squares', () => {
  const cells = [
    [0, 0, 1],
    [1, 0, 0.5],
  ];
  const pixels = rasterise(picture(2, cells), 6, COLOURS);
  const painted = [
    [0, 0, 255],
    [2, 2, 255],
    [0, 3, 128],
    [2, 5, 128],
    [3, 3, 0],
  ];
  for (const [x, y, level] of painted) deepEqual(pixel(pixels, 6, x, y), colour(level));
});

test('the masked future stays transparent, and only there', () => {
  const pixels = rasterise(picture(2, []), 6, COLOURS);
  equal(pixel(pixels, 6, 3, 0)[3], 0);
  equal(pixel(pixels, 6, 5, 2)[3], 0);
  equal(pixel(pixels, 6, 3, 3)[3], 255);
  const twoWay = rasterise(picture(2, [], { isCausal: false }), 6, COLOURS);
  equal(pixel(twoWay, 6, 3, 0)[3], 255);
});

test('one bright cell among 256 by 256 never disappears', () => {
  for (const at of [0, 3, 100, 101, 254, 255]) {
    const pixels = rasterise(picture(256, [[255, at, 1]]), 24, COLOURS);
    const row = Array.from({ length: 24 }, (_, x) => pixel(pixels, 24, x, 23).join());
    ok(row.includes(colour(255).join()), `column ${at}`);
  }
});

test('a head is read at its own place in the array', () => {
  const both = {
    data: Float32Array.of(0, 0, 0, 0, 0.25, 0, 0.75, 0.5),
    offset: 4,
    rows: 2,
    columns: 2,
    scale: 1,
  };
  equal(peak(both), 0.75);
  const pixels = rasterise({ ...both, isCausal: true, ceiling: 0.75 }, 2, COLOURS);
  deepEqual(pixel(pixels, 2, 0, 1), colour(255));
});
