/** Maps of square cells. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';

import { chart } from '../../../static/js/plot/chart.js';
import { cell } from '../../../static/js/plot/marks/mark.js';
import { text } from '../../../static/js/plot/marks/decorations.js';
import { band } from '../../../static/js/plot/scales.js';
import { near, PALETTE } from '../sample.js';

/** A map in a frame, and the pixels of a cell. */
function drawn({ rows, columns }, size, frame, next = []) {
  const data = new Float64Array(rows * columns).fill(1);
  const labels = (count) => Array.from({ length: count }, (_, at) => `${at}`);
  const { layout, ...others } = chart(
    {
      x: band(labels(columns)),
      y: band(labels(rows)),
      marks: [
        cell({ rows, columns, data }, { ramp: { title: 'weight', domain: [0, 1] } }),
        ...next,
      ],
      size: { isSquare: true, ...size },
      table: { quantity: 'weight' },
    },
    { width: 800, height: 500, palette: PALETTE, ...frame },
  );
  const { width, height, margin } = layout;
  const [across, down] = [
    (width - margin.l - margin.r) / columns,
    (height - margin.t - margin.b) / rows,
  ];
  ok(Math.abs(across - down) < 1e-6, 'cells are square');
  return { layout, pixels: across, ...others };
}

test('cells are no larger than is wanted, except in the smallest maps', () => {
  const few = { rows: 5, columns: 5 };
  ok(drawn(few, {}).pixels > 40);
  equal(drawn(few, { row: 40 }).pixels, 40);
  equal(drawn({ rows: 2, columns: 2 }, { row: 40 }).pixels, 80);
});

test('many rows make a map taller than its frame, as far as the width has room', () => {
  const many = { rows: 100, columns: 10 };
  ok(drawn(many, {}).pixels < 6);
  equal(drawn(many, { row: [12, 30] }).pixels, 12);
  const narrow = drawn({ rows: 100, columns: 60 }, { row: [12, 30] }, { width: 400 });
  ok(narrow.pixels < 12 && narrow.layout.width <= 400);
});

test('room for texts is kept between the map and its bar of colours', () => {
  const few = { rows: 5, columns: 5 };
  const next = (room) => [text(['sum'], { x: () => 4.5, y: () => 0, text: String, room })];
  const [plain, spaced] = [0, 90].map((room) => drawn(few, { row: 40 }, {}, next(room)));
  equal(spaced.layout.width - plain.layout.width, 90);
  const gaps = [plain, spaced].map(({ data, pixels }) => (data[0].colorbar.x - 1) * 5 * pixels);
  near(gaps[1] - gaps[0], 90);
  const title = ({ layout }) => layout.annotations.find(({ text: words }) => words === 'weight');
  equal(title(spaced).xshift - title(plain).xshift, 90);
  const narrow = drawn(few, {}, { width: 358 }, next(90));
  ok(narrow.layout.margin.r >= 90 && narrow.layout.width <= 358);
});

test('a short bar below a map has fewer numbers', () => {
  const ticks = (columns) => {
    const [{ colorbar }] = drawn({ rows: 9, columns }, { row: 20 }, { width: 358 }).data;
    return colorbar.tickvals;
  };
  deepEqual(ticks(4), [0, 0.5, 1]);
  deepEqual(ticks(9), [0, 0.25, 0.5, 0.75, 1]);
});
