import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { crc32, inflateSync } from 'node:zlib';
import { drawn } from '../browser.js';
import {
  allHeads,
  captioned,
  evenText,
  headLines,
  markShapes,
  paperPicture,
  pixelsAcross,
  withResolution,
  wrapped,
} from '../../../static/js/plot/picture.js';
import { chart } from '../../../static/js/plot/chart.js';
import { cell } from '../../../static/js/plot/marks/mark.js';
import { band } from '../../../static/js/plot/scales.js';
import { FRAME } from '../sample.js';

const MAPS = [
  { layer: 0, head: 0, data: [1, 0, 0.5, 0.5] },
  { layer: 0, head: 1, data: [0.9, 0, 0.25, 0.75] },
  { layer: 1, head: 0, data: [0.8, 0, 0, 0.4] },
].map((map) => ({ ...map, rows: 2, columns: 2, data: Float64Array.from(map.data) }));
const LAYOUT = { width: 300, height: 200, margin: { l: 10, r: 5, t: 20, b: 30 } };

test('the text of a drawing comes out at the points that were chosen', () => {
  for (const [mm, points] of [
    [85, 8],
    [180, 10],
  ]) {
    const pointsPerPixel = (mm / 25.4) * (72 / pixelsAcross({ mm, points }));
    ok(Math.abs(13 * pointsPerPixel - points) < 0.02);
  }
});

test('on paper a drawing has its size in millimetres, its marks, and text of one size', async () => {
  const shapes = [{ type: 'line' }];
  const grid = { rows: 4, columns: 4, chosen: {}, picked: { row: 1, column: 2 } };
  const figure = { data: [], layout: { ...LAYOUT, shapes, font: { size: 9 } }, grid };
  const palette = { ...FRAME.palette, ink: '#000' };
  const plain = await paperPicture(
    globalThis.Plotly,
    figure,
    '',
    { mm: 85, format: 'svg' },
    palette,
  );
  const [, { layout }, options] = drawn.at(-1);
  deepEqual([plain.width, plain.height], [85, 56.667]);
  ok(decodeURIComponent(plain.url).includes('<svg width="85mm" height="56.667mm"'));
  deepEqual([options.format, options.scale, layout.font.size], ['svg', 1, 13]);
  deepEqual(
    layout.shapes.map(({ type }) => type),
    ['line', 'rect'],
  );
  const told = await paperPicture(
    globalThis.Plotly,
    figure,
    'a b',
    { mm: 85, format: 'png' },
    palette,
  );
  ok(told.height > plain.height);
  const [, , { width, scale }] = drawn.at(-1);
  equal(Math.floor(width * scale), Math.round((85 / 25.4) * 300));
});

test('a caption is below the drawing, which keeps its size, and never becomes markup', () => {
  equal(captioned(LAYOUT, '', 'red'), LAYOUT);
  const { height, margin, title, width } = captioned(LAYOUT, `<b> ${'long '.repeat(30)}`, 'red');
  equal(width, 300);
  equal(height - margin.b, LAYOUT.height - LAYOUT.margin.b);
  ok(title.text.startsWith('&lt;b&gt; long'));
  ok(title.text.split('<br>').every((line) => line.length < 60));
});

test('a caption is broken between words, and a long word within', () => {
  deepEqual(wrapped('one two three', 66), ['one two', 'three']);
  ok(wrapped('a'.repeat(100), 100).every((line) => line.length <= 15));
  equal(wrapped('a'.repeat(100), 100).join(''), 'a'.repeat(100));
});

test('all heads are one drawing with one scale, a causal head without its future', () => {
  const of = (maps) => allHeads(maps, 400, FRAME.palette);
  const { data, layout } = of(MAPS);
  const [{ z, zmax }] = data;
  equal(zmax, 1);
  deepEqual(z, [
    [1, 0, null, 0.9, 0, null],
    [0.5, 0.5, null, 0.25, 0.75, null],
    [null, null, null, null, null, null],
    [0.8, 0, null, null, null, null],
    [0, 0.4, null, null, null, null],
    [null, null, null, null, null, null],
  ]);
  const named = ({ ticktext }) => ticktext.map((name) => name.trim()).filter(Boolean);
  deepEqual(named(layout.xaxis), ['head 0', 'head 1']);
  deepEqual(named(layout.yaxis), ['layer 0', 'layer 1']);
  const [causal] = of([{ ...MAPS[0], isCausal: true }]).data;
  deepEqual(causal.z.slice(0, 2), [
    [1, null, null],
    [0.5, 0.5, null],
  ]);
});

test('the table of all heads has a line for each weight', () => {
  const lines = headLines(MAPS, { rows: ['a', 'b'], columns: ['a', 'b'] });
  equal(lines.length, 1 + 12);
  deepEqual(lines[3], ['0', '0', '1', 'b', '0', 'a', '0.5']);
});

test('every text of a layout has one size', () => {
  const layout = { font: { size: 10 }, xaxis: { tickfont: { size: 9, color: 'red' } }, width: 5 };
  deepEqual(evenText(layout), {
    font: { size: 13 },
    xaxis: { tickfont: { size: 13, color: 'red' } },
    width: 5,
  });
});

test('a PNG says how large it is on paper', async () => {
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  );
  const blob = withResolution(new Blob([png], { type: 'image/png' }));
  const found = await new Promise((resolve) => {
    const reader = new globalThis.FileReader();
    reader.addEventListener('load', () => resolve(Buffer.from(reader.result)));
    reader.readAsArrayBuffer(blob);
  });
  equal(found.length, png.length + 21);
  equal(blob.type, 'image/png');
  equal(found.toString('latin1', 37, 41), 'pHYs');
  equal(found.readUInt32BE(41), 11811);
  equal(found.readUInt32BE(50), crc32(found.subarray(37, 50)));
  ok(inflateSync(found.subarray(found.indexOf('IDAT') + 4, found.indexOf('IEND') - 8)).length > 0);
});

test('the marked row and cell are drawn on paper', () => {
  const palette = { ink: '#000', query: '#00f' };
  const grid = { rows: 4, columns: 4, chosen: { row: 2 }, picked: { row: 2, column: 1 } };
  deepEqual(
    markShapes(grid, palette).map(({ x0, x1, y0, y1 }) => [x0, x1, y0, y1]),
    [
      [-0.5, 3.5, 1.5, 2.5],
      [0.5, 1.5, 1.5, 2.5],
    ],
  );
  deepEqual(markShapes({ rows: 4, columns: 4, chosen: {}, picked: null }, palette), []);
  deepEqual(markShapes({ ...grid, geometry: {} }, palette), []);
});

test('on paper no label is shortened, and none leaves the drawing', () => {
  const labels = ['a', 'grandmother', 'internationalization'];
  const matrix = { rows: 3, columns: 3, data: new Float64Array(9) };
  const [x, y] = [band(labels, { side: 'top', isSlanted: true }), band(labels)];
  const marks = [cell(matrix, { ramp: { title: '', domain: [0, 1] } })];
  const spec = { x, y, marks, table: { quantity: '' } };
  const draw = (frame) => chart(spec, { palette: FRAME.palette, width: 331, ...frame }).layout;
  const page = draw({});
  const paper = draw({ pageWidth: 331 });
  const ticks = ({ xaxis }) => xaxis.ticktext.map((text) => text.trim());
  ok(ticks(page).some((text) => text.includes('…')));
  deepEqual(ticks(paper), labels);
  ok(paper.margin.t >= labels[2].length * 6.6);
  ok(paper.margin.l >= labels[2].length * 6.6);
});
