import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { crc32, inflateSync } from 'node:zlib';

import {
  allHeads,
  captioned,
  captionOf,
  textSizeOf,
  evenText,
  framed,
  headLines,
  markShapes,
  pixelsAcross,
  withResolution,
  wrapped,
} from '../../../static/js/plot/publication.js';
import { chart } from '../../../static/js/plot/chart.js';
import { cell } from '../../../static/js/plot/marks/mark.js';
import { band } from '../../../static/js/plot/scales.js';
import { FRAME } from '../sample.js';

const MAPS = [
  { layer: 0, head: 0, rows: 2, columns: 2, data: [1, 0, 0.5, 0.5] },
  { layer: 0, head: 1, rows: 2, columns: 2, data: [1, 0, 0.25, 0.75] },
  { layer: 1, head: 0, rows: 2, columns: 2, data: [0.8, 0, 0, 0.4] },
];

test('the text of a drawing comes out at the points that were chosen, narrow or wide', () => {
  for (const [mm, points] of [
    [85, 8],
    [180, 10],
  ]) {
    const across = pixelsAcross({ mm, points });
    const pointsPerPixel = (mm / 25.4) * (72 / across);
    ok(Math.abs(textSizeOf(across) * pointsPerPixel - points) < 0.02);
  }
});

test('a figure has its width in millimetres, and room for its caption', () => {
  const drawn = { svg: '<g/>', width: 300, height: 200 };
  const plain = framed(drawn, [], { mm: 85, font: 'sans' });
  ok(plain.svg.includes('width="85mm"'));
  equal(plain.mm.height.toFixed(3), ((200 * 85) / 300).toFixed(3));
  const told = framed(drawn, ['A <b> & "c"'], { mm: 85, font: 'sans' });
  ok(told.mm.height > plain.mm.height);
  ok(told.svg.includes('A &lt;b&gt; &amp; &quot;c&quot;</text>'));
});

test('a caption is broken between words, and a long word within', () => {
  deepEqual(wrapped('one two three', 66), ['one two', 'three']);
  ok(wrapped('a'.repeat(100), 100).every((line) => line.length <= 15));
  equal(wrapped('a'.repeat(100), 100).join(''), 'a'.repeat(100));
});

test('all heads are on one figure with one scale', () => {
  const { svg, height } = allHeads(MAPS, { width: 400, font: 'sans' });
  equal(svg.match(/<g /g)?.length, 3);
  for (const words of ['layer 0', 'layer 1', 'head 0', 'attention weight'])
    ok(svg.includes(`>${words}</text>`));
  const fills = (part) =>
    [...svg.split('<g ')[part].matchAll(/path fill="([^"]+)"/g)].map((m) => m[1]);
  equal(fills(1)[0], fills(2)[0], 'a weight of 1 has the same colour in each head');
  ok(!fills(3).includes(fills(1)[0]), 'and no lower one has it');
  ok(height > 0);
});

test('the future of a causal head is left white', () => {
  const area = (isCausal) => {
    const { svg } = allHeads([{ ...MAPS[0], isCausal }], { width: 400, font: 'sans' });
    return [...svg.matchAll(/h(\d+)v1h-/g)].reduce((sum, [, cells]) => sum + Number(cells), 0);
  };
  deepEqual([area(false), area(true)], [4, 3]);
});

test('the table of all heads has a line for each weight', () => {
  const lines = headLines(MAPS, { rows: ['a', 'b'], columns: ['a', 'b'] });
  equal(lines.length, 1 + 12);
  deepEqual(lines[3], ['0', '0', '1', 'b', '0', 'a', '0.5']);
});

test('every text of a layout has one size', () => {
  const layout = { font: { size: 10 }, xaxis: { tickfont: { size: 9, color: 'red' } }, width: 5 };
  deepEqual(evenText(layout), {
    font: { size: 12 },
    xaxis: { tickfont: { size: 12, color: 'red' } },
    width: 5,
  });
});

test('a PNG says how large it is on paper', () => {
  const png = Uint8Array.from(
    Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'base64',
    ),
  );
  const found = Buffer.from(withResolution(png, 300));
  equal(found.length, png.length + 21);
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
});

const trace = {
  model: 'tiny',
  revision: 'r',
  text: 'it\nsaw <b>',
  target_tokens: null,
  asked: { model: 'tiny', text: 'it\nsaw <b>' },
};
const PALETTE = { ink: 'rgb(0, 0, 0)', muted: 'rgb(90, 90, 90)' };
const LAYOUT = { margin: { l: 10, r: 5, t: 20, b: 30 }, xaxis: { range: [0, 1] } };

test('a caption is the title, the model and the text on one line', () => {
  deepEqual(captionOf(trace, { title: 'Layer 0', grid: { request: {} } }, []), [
    'Layer 0',
    'tiny, revision r · “it↵saw <b>”',
  ]);
});

test('no text becomes markup, and a long one is cut to the picture', () => {
  const { title } = captioned(
    LAYOUT,
    ['<i>', `<b>${'long '.repeat(80)}`],
    { width: 500, height: 400 },
    PALETTE,
  );
  ok(title.text.startsWith('<b>&lt;i&gt;</b><br>'));
  ok(title.text.includes('&lt;b&gt;long'));
  ok(title.text.endsWith('…</span>'));
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
  const letter = textSizeOf(331) * 0.55;
  ok(paper.margin.t >= labels[2].length * letter);
  ok(paper.margin.l >= labels[2].length * letter);
});
