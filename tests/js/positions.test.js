import assert from 'node:assert/strict';
import { test } from 'node:test';
import { positions } from '../../static/js/views/positions.js';
import { figuresOf, sampleTrace, TOKENS } from './sample.js';

const COUNT = TOKENS.length;

test('the encoding on a scale symmetric about zero', () => {
  const [{ data: [map], grid }] = figuresOf(positions, sampleTrace());
  assert.equal(map.zmin, -map.zmax);
  assert.ok(Math.abs(map.z[1][0] - Math.sin(1)) < 1e-6);
  assert.equal(grid.value(0, 1), 1);
});

test('similarity is computed from what was captured', () => {
  const [, { data: [map], summary }] = figuresOf(positions, sampleTrace());
  map.z.forEach((row, position) => assert.ok(Math.abs(row[position] - 1) < 1e-9));
  assert.match(summary, /Cosine similarity/);
  const expected = (Math.cos(3) + Math.cos(0.03)) / 2;
  assert.ok(Math.abs(map.z[0][3] - expected) < 1e-6);
});

test('colour bar, ticks and words agree on the range of the similarities', () => {
  const [, { data: [map], grid, summary }] = figuresOf(positions, sampleTrace());
  const all = map.z.flat();
  const least = Math.min(...all);
  const [, said, from, to] = grid.note.match(/between (−?[\d.]+) and 1; the colours run from (−?[\d.]+) to ([\d.]+)\.$/);
  const number = (text) => Number(text.replace('−', '-'));
  assert.ok(number(said) <= least && least - number(said) < 0.01);
  assert.deepEqual([number(from), number(to)], [map.zmin, map.zmax]);
  assert.deepEqual([map.colorbar.tickvals[0], map.colorbar.tickvals.at(-1)], [map.zmin, map.zmax]);
  assert.deepEqual([map.colorbar.ticktext[0], map.colorbar.ticktext.at(-1)], [from, to]);
  assert.ok(map.zmin <= least && map.zmax >= Math.max(...all));
  assert.ok(summary.endsWith(grid.note));
});

test('a scale that starts above 0 says where', () => {
  const trace = sampleTrace();
  trace.tensors['decoder.embedding.positional'].data = Float32Array.from({ length: COUNT * 4 }, (_, at) => (at % 4 === 0 ? Math.floor(at / 4) * 0.2 : 1));
  const [, { data: [map], grid }] = figuresOf(positions, trace);
  const least = Math.min(...map.z.flat());
  assert.ok(map.zmin > 0 && map.zmin <= least);
  assert.ok(grid.note.includes(`from ${map.zmin} to 1`), grid.note);
});

test('what the words promise of the similarity holds for every range', () => {
  const meaning = Object.fromEntries(positions.terms)['cosine similarity'];
  assert.doesNotMatch(meaning, /0|−1/);
});

test('only positions of this text are shown', () => {
  const trace = sampleTrace();
  const width = 4;
  trace.tensors['decoder.embedding.positional'] = { axes: ['position', 'd_model'], shape: [64, width], scale: 1, data: new Float32Array(64 * width).fill(1) };
  for (const { grid } of figuresOf(positions, trace)) assert.equal(grid.rows, COUNT);
});

test('a model that adds none says so', () => {
  const trace = sampleTrace();
  delete trace.tensors['decoder.embedding.positional'];
  for (const { notice, data } of figuresOf(positions, trace)) {
    assert.match(notice, /adds no positional encoding/);
    assert.equal(data, undefined);
  }
});
