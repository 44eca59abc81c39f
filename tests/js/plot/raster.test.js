import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sequential } from '../../../static/js/plot/colour.js';
import { peak, rasterise } from '../../../static/js/plot/raster.js';

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
  const pixels = rasterise(
    picture(2, [
      [0, 0, 1],
      [1, 0, 0.5],
    ]),
    6,
    COLOURS,
  );
  for (const [x, y] of [
    [0, 0],
    [2, 2],
  ])
    assert.deepEqual(pixel(pixels, 6, x, y), colour(255));
  for (const [x, y] of [
    [0, 3],
    [2, 5],
  ])
    assert.deepEqual(pixel(pixels, 6, x, y), colour(128));
  assert.deepEqual(pixel(pixels, 6, 3, 3), colour(0));
});

test('the masked future stays transparent, and only there', () => {
  const pixels = rasterise(picture(2, []), 6, COLOURS);
  assert.equal(pixel(pixels, 6, 3, 0)[3], 0);
  assert.equal(pixel(pixels, 6, 5, 2)[3], 0);
  assert.equal(pixel(pixels, 6, 3, 3)[3], 255);
  const twoWay = rasterise(picture(2, [], { isCausal: false }), 6, COLOURS);
  assert.equal(pixel(twoWay, 6, 3, 0)[3], 255);
});

test('one bright cell among 256 by 256 never disappears', () => {
  for (const at of [0, 3, 100, 101, 254, 255]) {
    const pixels = rasterise(picture(256, [[255, at, 1]]), 24, COLOURS);
    const row = Array.from({ length: 24 }, (_, x) => pixel(pixels, 24, x, 23).join());
    assert.ok(row.includes(colour(255).join()), `column ${at}`);
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
  assert.equal(peak(both), 0.75);
  const pixels = rasterise({ ...both, isCausal: true, ceiling: 0.75 }, 2, COLOURS);
  assert.deepEqual(pixel(pixels, 2, 0, 1), colour(255));
});
