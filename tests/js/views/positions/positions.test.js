import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';

import { cosineSimilarity } from '../../../../static/js/views/positions/maps.js';
import { positions } from '../../../../static/js/views/positions/positions.js';
import {
  figuresOf,
  FRAME,
  pairTrace,
  plain,
  sampleTrace,
  schemeTrace,
  TARGET_TOKENS,
  TOKENS,
} from '../../sample.js';

const COUNT = TOKENS.length;

test('the encoding on a scale symmetric about zero', () => {
  const [{ data, grid }] = figuresOf(positions, sampleTrace());
  const [map] = data;
  equal(map.zmin, -map.zmax);
  ok(Math.abs(map.z[1][0] - Math.sin(1)) < 1e-6);
  equal(grid.value(0, 1), 1);
});

test('similarity is computed from what was captured', () => {
  const [, { data, summary }] = figuresOf(positions, sampleTrace());
  const [map] = data;
  map.z.forEach((row, position) => ok(Math.abs(row[position] - 1) < 1e-9));
  match(summary, /Cosine similarity/);
  const expected = (Math.cos(3) + Math.cos(0.03)) / 2;
  ok(Math.abs(map.z[0][3] - expected) < 1e-6);
});

test('either stack of an encoder–decoder can be shown, with its own tokens', () => {
  const trace = pairTrace();
  const places = positions.places(trace).map(({ id }) => id);
  deepEqual(places, ['encoder', 'decoder']);
  deepEqual(positions.places(sampleTrace()), []);
  const stacks = ['', 'cross', 'encoder'].map((where) => positions.place(trace, { where }));
  deepEqual(stacks, ['decoder', 'decoder', 'encoder']);
  const [{ grid }] = figuresOf(positions, trace, { where: 'encoder' });
  deepEqual([grid.rows, grid.sides.rows], [COUNT, 'source']);
  deepEqual(grid.request.capture, ['encoder.embedding.positional']);
  const [decoder] = figuresOf(positions, trace);
  deepEqual([decoder.grid.rows, decoder.grid.sides.rows], [TARGET_TOKENS.length, 'target']);
});

test('rotary: how far each pair of a query of layer 0 was turned', () => {
  const [turns] = figuresOf(positions, schemeTrace('rotary'));
  deepEqual([turns.grid.columns, turns.grid.columnTitle], [2, 'pair']);
  ok(Math.abs(turns.grid.value(3, 0) - Math.cos(3)) < 1e-6);
  ok(Math.abs(turns.grid.value(3, 1) - Math.cos(0.03)) < 1e-6);
  match(positions.wording(schemeTrace('rotary'), FRAME).help, /rotates each query and key/);
});

test('ALiBi: the bias of the chosen head, and nothing for the future', () => {
  const [figure, ...others] = figuresOf(positions, schemeTrace('alibi'), { head: 1 });
  equal(others.length, 0);
  equal(figure.title, 'Bias of head 1');
  equal(figure.data[0].z[3][1], -0.5);
  equal(figure.data[0].z[1][3], null);
  equal(
    plain(figure.grid.describe(3, 1)),
    '“it” at 1 is 2 away from “<b>”: the score changes by −0.500 (head 1)',
  );
  match(positions.wording(schemeTrace('alibi'), FRAME).help, /slope for each head/);
});

test('it is symmetric and 1 on the diagonal, and a row of zeros is like nothing', () => {
  const rows = Float64Array.from({ length: 12 }, (_, i) => (i < 9 ? Math.sin(i * 7.3) : 0));
  const { data } = cosineSimilarity({ rows: 4, columns: 3, data: rows });
  for (let a = 0; a < 3; a += 1) {
    ok(Math.abs(data[a * 4 + a] - 1) < 1e-12);
    for (let b = 0; b < 4; b += 1) equal(data[a * 4 + b], data[b * 4 + a]);
  }
  equal(data[15], 0);
  const byHand = cosineSimilarity({ rows: 2, columns: 2, data: Float64Array.of(1, 0, 3, 4) });
  ok(Math.abs(byHand.data[1] - 0.6) < 1e-12);
});
