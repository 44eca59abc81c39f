import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attention } from '../../static/js/views/attention.js';
import { FRAME, longTrace, sampleTrace, TOKENS } from './sample.js';

const COUNT = TOKENS.length;

const plain = (text) => text.replace(/[\u2068\u2069]/g, '');

test('the map holds the head’s weights, row by query, and nothing for the future', () => {
  const { data: [map] } = attention.figure(sampleTrace(), FRAME);
  assert.equal(map.z.length, COUNT);
  map.z.forEach((row, query) => row.forEach((weight, key) => {
    if (key > query) assert.equal(weight, null);
    else assert.ok(Math.abs(weight - sampleWeight(query, key)) < 1e-4, `${query}, ${key}`);
  }));
});

test('each head shows its own weights', () => {
  const { data: [map] } = attention.figure(sampleTrace(), { ...FRAME, head: 1 });
  for (const row of map.z.slice(1)) assert.ok(Math.abs(row[0] - 0.8) < 1e-4, 'the second head looks at the first token');
});

function sampleWeight(query, key) {
  if (query === 0) return 1;
  return key === query - 1 ? 0.8 : 0.2 / query;
}

test('says in words who attends to whom, and how much', () => {
  const { grid } = attention.figure(sampleTrace(), FRAME);
  assert.equal(plain(grid.describe(2, 1)), '“saw” attends to “it” at 1 with weight 0.800 (layer 1, head 0)');
  assert.equal(plain(grid.describe(4, 4)), '“it” at 4 attends to itself with weight 0.050 (layer 1, head 0)');
  assert.equal(plain(grid.describe(1, 3)), '“it” at 1 cannot attend to “<b>”, which comes later (layer 1, head 0)');
  assert.equal(plain(grid.rest.readout), '“it” at 4 attends most to “<b>” with weight 0.800 (layer 1, head 0)');
});

test('the chosen query is the row that tints the sentence', () => {
  const { grid } = attention.figure(sampleTrace(), { ...FRAME, query: 2 });
  assert.equal(grid.chosen.row, 2);
  assert.ok(Math.abs(grid.rest.tint[1] - 0.8) < 1e-4);
  assert.deepEqual(grid.choose(3, 1), { query: 3 });
});

test('colours end at 1, or at the head’s own strongest weight', () => {
  const trace = sampleTrace();
  trace.tensors['decoder.layers.1.self_attention.weights'].data.fill(0.25 * 65535);
  assert.equal(attention.figure(trace, FRAME).data[0].zmax, 1);
  const scaled = attention.figure(trace, { ...FRAME, range: 'head' });
  assert.ok(Math.abs(scaled.data[0].zmax - 0.25) < 1e-4);
  assert.equal(scaled.grid.ceiling, scaled.data[0].zmax);
});

test('on a phone twenty tokens label every row and every column, and the map takes the width', () => {
  const { layout } = attention.figure(longTrace(20), { ...FRAME, width: 358, height: 724 });
  for (const axis of [layout.xaxis, layout.yaxis]) assert.equal(axis.tickvals.length, 20);
  const side = layout.width - layout.margin.l - layout.margin.r;
  assert.ok(side >= 0.75 * 358, `the map is ${side} of 358 pixels wide`);
  assert.equal(layout.height - layout.margin.t - layout.margin.b, side, 'cells are square');
});

test('longer texts thin out their labels evenly', () => {
  const { layout } = attention.figure(longTrace(100), { ...FRAME, width: 358, height: 724 });
  const steps = new Set(layout.xaxis.tickvals.slice(1).map((tick, at) => tick - layout.xaxis.tickvals[at]));
  assert.equal(steps.size, 1);
  assert.deepEqual(layout.xaxis.tickvals, layout.yaxis.tickvals);
});

test('both axes keep their titles on a phone', () => {
  const { layout } = attention.figure(sampleTrace(), { ...FRAME, width: 358 });
  const said = layout.annotations.map(({ text }) => text);
  assert.ok(said.includes('query: attends ↓') && said.includes('key: attended to →'));
});
