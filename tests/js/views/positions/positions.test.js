import assert from 'node:assert/strict';
import { test } from 'node:test';
import { positions } from '../../../../static/js/views/positions/positions.js';
import {
  figuresOf,
  FRAME,
  pairTrace,
  sampleTrace,
  schemeTrace,
  TARGET_TOKENS,
  TOKENS,
  plain,
} from '../../sample.js';

const COUNT = TOKENS.length;

test('the encoding on a scale symmetric about zero', () => {
  const [{ data, grid }] = figuresOf(positions, sampleTrace());
  const [map] = data;
  assert.equal(map.zmin, -map.zmax);
  assert.ok(Math.abs(map.z[1][0] - Math.sin(1)) < 1e-6);
  assert.equal(grid.value(0, 1), 1);
});

test('similarity is computed from what was captured', () => {
  const [, { data, summary }] = figuresOf(positions, sampleTrace());
  const [map] = data;
  map.z.forEach((row, position) => assert.ok(Math.abs(row[position] - 1) < 1e-9));
  assert.match(summary, /Cosine similarity/);
  const expected = (Math.cos(3) + Math.cos(0.03)) / 2;
  assert.ok(Math.abs(map.z[0][3] - expected) < 1e-6);
});

test('the colours of similarities cover their range, and the colour bar says so', () => {
  const [, { data }] = figuresOf(positions, sampleTrace());
  const [map] = data;
  const all = map.z.flat();
  assert.ok(map.zmin <= Math.min(...all) && map.zmax >= Math.max(...all));
  const { tickvals } = map.colorbar;
  assert.deepEqual([tickvals[0], tickvals.at(-1)], [map.zmin, map.zmax]);
});

test('of an encoder–decoder either stack can be looked at, with its own tokens', () => {
  const trace = pairTrace();
  const places = positions.places(trace).map(({ id }) => id);
  assert.deepEqual(places, ['encoder', 'decoder']);
  assert.deepEqual(positions.places(sampleTrace()), []);
  const stacks = ['', 'cross', 'encoder'].map((where) => positions.place(trace, { where }));
  assert.deepEqual(stacks, ['decoder', 'decoder', 'encoder']);
  const [{ grid }] = figuresOf(positions, trace, { where: 'encoder' });
  assert.deepEqual([grid.rows, grid.sides.rows], [COUNT, 'source']);
  assert.deepEqual(grid.request.capture, ['encoder.embedding.positional']);
  const [decoder] = figuresOf(positions, trace);
  assert.deepEqual([decoder.grid.rows, decoder.grid.sides.rows], [TARGET_TOKENS.length, 'target']);
});

test('rotary: the turned queries of layer 0, and how far each pair was turned', () => {
  const [queries, turns] = figuresOf(positions, schemeTrace('rotary'));
  assert.match(queries.title, /^Turned queries of layer 0, head 0$/);
  assert.ok(Math.abs(queries.data[0].z[1][0] - 2 * Math.cos(1)) < 1e-6);
  assert.deepEqual([turns.grid.columns, turns.grid.columnTitle], [2, 'pair']);
  assert.ok(Math.abs(turns.grid.value(3, 0) - Math.cos(3)) < 1e-6);
  assert.ok(Math.abs(turns.grid.value(3, 1) - Math.cos(0.03)) < 1e-6);
  assert.match(positions.wording(schemeTrace('rotary'), FRAME).help, /rotates each query and key/);
});

test('ALiBi: the bias of the chosen head, and nothing for the future', () => {
  const [figure, ...others] = figuresOf(positions, schemeTrace('alibi'), { head: 1 });
  assert.equal(others.length, 0);
  assert.equal(figure.title, 'Bias of head 1');
  assert.equal(figure.data[0].z[3][1], -0.5);
  assert.equal(figure.data[0].z[1][3], null);
  assert.equal(
    plain(figure.grid.describe(3, 1)),
    '“it” at 1 is 2 away from “<b>”: the score changes by −0.500 (head 1)',
  );
  assert.match(positions.wording(schemeTrace('alibi'), FRAME).help, /slope for each head/);
});
