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

test('colour bar, ticks and words agree on the range of the similarities', () => {
  const [, { data, grid, summary }] = figuresOf(positions, sampleTrace());
  const [map] = data;
  const all = map.z.flat();
  const least = Math.min(...all);
  const [, said, from, to] = grid.note.match(
    /from (−?[\d.]+) to 1; the colours run from (−?[\d.]+) to ([\d.]+)\.$/,
  );
  const number = (text) => Number(text.replace('−', '-'));
  assert.ok(number(said) <= least && least - number(said) < 0.01);
  assert.deepEqual([number(from), number(to)], [map.zmin, map.zmax]);
  assert.deepEqual([map.colorbar.tickvals[0], map.colorbar.tickvals.at(-1)], [map.zmin, map.zmax]);
  assert.deepEqual([map.colorbar.ticktext[0], map.colorbar.ticktext.at(-1)], [from, to]);
  assert.ok(map.zmin <= least && map.zmax >= Math.max(...all));
  assert.ok(summary.endsWith(grid.note));
});

test('of an encoder–decoder either stack can be looked at, with its own tokens', () => {
  const trace = pairTrace();
  assert.deepEqual(
    positions.places(trace).map(({ id }) => id),
    ['encoder', 'decoder'],
  );
  assert.deepEqual(
    ['', 'cross', 'encoder'].map((where) => positions.place(trace, { where })),
    ['decoder', 'decoder', 'encoder'],
  );
  const [encoder] = figuresOf(positions, trace, { where: 'encoder' });
  assert.deepEqual(
    [encoder.grid.rows, encoder.grid.sides.rows, encoder.grid.request.capture],
    [COUNT, 'source', ['encoder.embedding.positional']],
  );
  const [decoder] = figuresOf(positions, trace);
  assert.deepEqual([decoder.grid.rows, decoder.grid.sides.rows], [TARGET_TOKENS.length, 'target']);
  assert.deepEqual(positions.places(sampleTrace()), []);
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
