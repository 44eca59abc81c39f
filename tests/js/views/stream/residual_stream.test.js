import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import {
  normDepth,
  streamDepth,
  writtenDepth,
} from '../../../../static/js/views/stream/residual_stream.js';
import { streamAnalysis } from './sample.js';

const titles = ({ steps }) => steps.map(({ title }) => title);
const rows = ({ matrix: { rows: count, columns, data } }) =>
  Array.from({ length: count }, (_, row) =>
    Array.from(data.slice(row * columns, (row + 1) * columns)),
  );

test('the stream is followed from the embedding through every part of every layer', () => {
  const depth = streamDepth(streamAnalysis(3), 'decoder');
  const parts = ['0 · attention', '0 · feed-forward', '1 · attention', '1 · feed-forward'];
  deepEqual(titles(depth), ['embedding', ...parts]);
  const wanted = [0, 10, 20, 30, 40].map((norm) => [norm, norm + 1, norm + 2]);
  deepEqual(rows(depth), wanted);
  const cross = streamDepth(streamAnalysis(2, { hasCross: true }), 'decoder');
  equal(titles(cross)[2], '0 · cross-attention');
});

test('written vectors come part by part', () => {
  const found = streamAnalysis(2);
  deepEqual(rows(writtenDepth(found, 'decoder', {}, 'cosine')), [
    [-0.5, -0.5],
    [0.25, 0.25],
    [-1, -1],
    [0.5, 0.5],
  ]);
  const written = rows(writtenDepth(found, 'decoder', {}, 'written_norm')).map(([first]) => first);
  deepEqual(
    written.map((value) => Math.round(value * 100)),
    [0, 10, 20, 30],
  );
});

test('a last norm follows in pre-norm models only', () => {
  const before = normDepth(streamAnalysis(2), 'decoder', { norm_place: 'pre' }, 'deviation');
  equal(titles(before).at(-1), 'last norm');
  deepEqual(rows(before).at(-1), [0, 1]);
  equal(before.steps[0].name, 'the norm before the attention of layer 0');
  const after = normDepth(
    streamAnalysis(2, { isPost: true }),
    'decoder',
    { norm_place: 'post' },
    'deviation',
  );
  equal(titles(after).length, 4);
  equal(after.steps[0].name, 'the norm after the attention of layer 0');
});
