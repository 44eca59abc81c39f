import assert from 'node:assert/strict';
import { test } from 'node:test';
import { experts } from '../../static/js/views/experts.js';
import { figuresOf, longTrace, pairTrace, sampleTrace, TARGET_TOKENS, TOKENS } from './sample.js';

const COUNT = TOKENS.length;

const plain = (text) => text.replace(/[\u2068\u2069]/g, '');

test('one figure for each layer that routes', () => {
  const figures = figuresOf(experts, sampleTrace());
  assert.deepEqual(figures.map(({ title }) => title), ['Layer 1']);
});

test('probabilities stand by expert and token, the chosen ones marked with their weight', () => {
  const [{ data: [map, marks], grid }] = figuresOf(experts, sampleTrace());
  assert.equal(map.z.length, 4);
  assert.ok(map.z[1].every((probability) => Math.abs(probability - 0.3) < 1e-6));
  assert.equal(marks.x.length, COUNT * 2);
  assert.ok(marks.text.includes('.63') && marks.text.includes('.38'));
  assert.ok(grid.chosenWeight(0, 3) > 0 && grid.chosenWeight(1, 3) > 0);
  assert.equal(grid.chosenWeight(2, 3), undefined);
  assert.match(grid.describe(0, 1), /probability 0\.500 .*: chosen, with weight 0\.625/);
  assert.match(grid.describe(3, 1), /not chosen/);
});

test('on a phone the tokens stand below one another, every choice with its weight and every expert with its load', () => {
  const [{ data: [map, marks, bars, numbers], grid, layout }] = figuresOf(experts, sampleTrace(), { width: 358 });
  assert.deepEqual([map.z.length, map.z[0].length], [COUNT, 4]);
  assert.deepEqual([grid.rows, grid.columns, grid.rowTitle], [COUNT, 4, 'token']);
  assert.equal(grid.value(3, 1), map.z[3][1]);
  assert.equal(marks.mode, 'text');
  assert.deepEqual([marks.x[1], marks.y[1], marks.text[1]], [1, 0, '.38']);
  assert.deepEqual(bars.y, [0.5, 0.5, 0, 0]);
  assert.deepEqual(numbers.text, ['50.0 %', '50.0 %', '0 %', '0 %']);
  assert.equal(layout.yaxis.tickvals.length, COUNT);
  const line = layout.shapes.find(({ type }) => type === 'line');
  assert.deepEqual([line.y0, line.y1], [0.25, 0.25]);
});

test('forty tokens keep their numbers on a phone, 256 have dots in a map of bounded height', () => {
  const draw = (count) => figuresOf(experts, longTrace(count), { width: 358 })[0];
  assert.equal(draw(40).data[1].mode, 'text');
  assert.equal(draw(256).data[1].mode, 'markers');
  assert.ok(draw(256).layout.height < 1500);
});

test('says in words where a token goes, and in which layer, as attention does', () => {
  const [{ grid }] = figuresOf(experts, sampleTrace());
  assert.equal(plain(grid.rest.readout), '“it” at 4 goes through expert 0 with weight 0.625 and expert 1 with weight 0.375 (layer 1)');
  for (let row = 0; row < grid.rows; row += 1) assert.ok(grid.describe(row, 2).endsWith('(layer 1)'));
});

test('loads are shares of all choices, beside the line of an even share', () => {
  const [{ data, layout }] = figuresOf(experts, sampleTrace());
  const bars = data.find(({ type }) => type === 'bar');
  assert.deepEqual(bars.x, [0.5, 0.5, 0, 0]);
  const line = layout.shapes.find(({ type }) => type === 'line');
  assert.deepEqual([line.x0, line.x1], [0.25, 0.25]);
});

test('a dense model is called dense, and nothing is drawn for it', () => {
  const [{ notice, data, grid }] = figuresOf(experts, sampleTrace({ isDense: true }));
  assert.match(notice, /dense: no routing/);
  assert.equal(data, undefined);
  assert.equal(grid, undefined);
});

test('of an encoder–decoder with experts either stack can be looked at, with its own tokens', () => {
  const trace = pairTrace();
  assert.deepEqual(experts.places(trace), [], 'a dense one has nothing to choose from');
  for (const [stack, count] of [['encoder', COUNT], ['decoder', TARGET_TOKENS.length]]) {
    for (const [site, array] of Object.entries(sampleTrace().tensors).filter(([site]) => site.includes('.experts.'))) {
      const [, columns] = array.shape;
      trace.tensors[site.replace('decoder', stack)] = { ...array, shape: [count, columns], data: array.data.slice(0, count * columns) };
    }
  }
  assert.deepEqual(experts.places(trace).map(({ id }) => id), ['encoder', 'decoder']);
  const [encoder] = figuresOf(experts, trace, { where: 'encoder' });
  assert.deepEqual([encoder.title, encoder.grid.columns, encoder.grid.sides.rows], ['Encoder, layer 1', COUNT, 'source']);
  const [decoder, ...others] = figuresOf(experts, trace);
  assert.deepEqual([decoder.title, decoder.grid.columns, decoder.grid.sides.rows, others.length], ['Decoder, layer 1', TARGET_TOKENS.length, 'target', 0]);
  assert.deepEqual(decoder.grid.request.capture, ['decoder.layers.1.experts.*']);
});
