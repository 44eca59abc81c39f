/** The room that a chart takes, and maps of square cells. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { chart } from '../../../static/js/plot/chart.js';
import { cell, reader } from '../../../static/js/plot/marks/mark.js';
import { band, pixels } from '../../../static/js/plot/scales.js';
import { near, PALETTE } from '../sample.js';
import { text } from '../../../static/js/plot/marks/decorations.js';

const numbers = (count) => Array.from({ length: count }, (_, at) => String(at));
/** A map with a bar of colours to its right. */
function mapOf(rows, { size, ramp, x, tokens } = {}, frame = {}) {
  const columns = 4;
  const matrix = { rows, columns, data: Float64Array.from({ length: rows * columns }, () => 1) };
  const domain = [-1.25, 1.25];
  return chart(
    {
      x: band(numbers(columns), { title: 'column', side: 'top', ...x }),
      y: band(numbers(rows), { title: 'row', tokens }),
      marks: [cell(matrix, { ramp: { title: 'colour', domain, legend: 'side', ...ramp } })],
      size: { row: [3, 22], ...size },
      table: { quantity: '' },
    },
    { width: 700, height: 400, palette: PALETTE, ...frame },
  );
}
const innerOf = ({ layout: { width, height, margin } }) => ({
  width: width - margin.l - margin.r,
  height: height - margin.t - margin.b,
});

test('a bar of colours is to the right of a map, its title clear of its numbers, both in the margin', () => {
  for (const write of [undefined, (value) => value.toFixed(6)]) {
    const { data, layout } = mapOf(10, { ramp: { write } });
    const { colorbar } = data[0];
    equal(colorbar.orientation, 'v');
    const [title] = layout.annotations;
    const longest = Math.max(...colorbar.ticktext.map((text) => text.length));
    ok(title.xshift >= 20 + 6.5 * longest);
    ok(title.xshift + 14 <= layout.margin.r);
    ok(layout.margin.b >= 8, 'the last number is half below the map');
  }
});

test('on a narrow page the bar is below the map', () => {
  const { data, layout } = mapOf(10, {}, { width: 340 });
  equal(data[0].colorbar.orientation, 'h');
  ok(layout.margin.r < 20 && layout.margin.b >= 40);
});

test('rows share the height of the frame, between their least and their most', () => {
  near(innerOf(mapOf(4)).height, 4 * 22);
  equal(mapOf(30).layout.height, 400);
  near(innerOf(mapOf(300)).height, 300 * 3);
  near(innerOf(mapOf(30, { size: { row: [3, 22], height: 90 } })).height, 90);
  near(innerOf(mapOf(20, {}, { height: 50 })).height, 200);
});

test('a title above a map has room besides its labels', () => {
  const [bare, titled] = ['', 'column'].map((title) => mapOf(3, { x: { title } }).layout.margin.t);
  ok(titled - bare >= 12);
  ok(bare >= 14);
});

test('level labels above square cells take the height of a line, however long they are', () => {
  const square = (isSlanted, labels, width) =>
    mapOf(4, { size: { isSquare: true }, x: { isSlanted, labels } }, { width }).layout;
  const long = ['a label', 'a long label', 'b', 'c'];
  for (const width of [340, 700]) {
    const [level, slanted] = [false, undefined].map((lean) => square(lean, long, width));
    ok(level.margin.t < slanted.margin.t);
    equal(level.margin.t, square(false, numbers(4), width).margin.t);
    equal(level.xaxis.tickangle, 0);
    ok(slanted.xaxis.tickangle < 0);
  }
});

test('coordinates without axes are as long down as across', () => {
  const table = { quantity: '' };
  const marks = [reader(1, 1, { value: () => 1 })];
  for (const width of [300, 900]) {
    const spec = { x: pixels([0, 3]), y: pixels([0, 2]), marks, size: { widest: 600 }, table };
    const inner = innerOf(chart(spec, { width, palette: PALETTE }));
    near(inner.height / 2, inner.width / 3);
    ok(inner.width <= 600);
  }
});

test('a chosen token beyond the rows of a short table is not marked, and the cursor enters at the last', () => {
  const at = (query) => mapOf(3, { tokens: { side: 'source', query } }).grid;
  deepEqual([at(1).chosen, at(1).start], [{ row: 1 }, { row: 1, column: 0 }]);
  deepEqual([at(7).chosen, at(7).start], [{}, { row: 2, column: 0 }]);
});

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
