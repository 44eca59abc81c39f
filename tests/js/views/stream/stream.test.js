import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';

import { streamDepth, writtenDepth } from '../../../../static/js/views/stream/depth.js';
import { stream } from '../../../../static/js/views/stream/stream.js';
import {
  figuresOf,
  fillTrace,
  longTrace,
  pairTrace,
  plain,
  sampleTrace,
  TARGET_TOKENS,
  TOKENS,
} from '../../sample.js';
import { answersOf, lensAnalysis, streamAnalysis } from './sample.js';

const COUNT = TOKENS.length;
const SHOWS = ['lens', 'norms'];

const stateOf = (trace, show, state = {}) => {
  const count = (trace.target_tokens ?? trace.tokens).length;
  const stack = trace.card?.kind === 'encoder' ? 'encoder' : 'decoder';
  return {
    stream_show: show,
    stream_layer: null,
    answers: answersOf(trace, {
      lens: lensAnalysis(count),
      stream: streamAnalysis(count, { stack }),
    }),
    ...state,
  };
};
const shown = (trace, show, state) => figuresOf(stream, trace, stateOf(trace, show, state));

test('requests only the displayed analyses', () => {
  const trace = sampleTrace();
  deepEqual(stream.asks(trace, { stream_show: 'lens' }), {
    lens: { capture: [], analyses: ['logit_lens'] },
  });
  for (const show of SHOWS.slice(1)) {
    deepEqual(stream.asks(trace, { stream_show: show }), {
      stream: { capture: [], analyses: ['residual_stream'] },
    });
  }
});

test('a pending, rejected or missing analysis shows one notice', () => {
  const card = { kind: 'decoder', analyses: ['next_token'] };
  for (const show of SHOWS) {
    const figures = (answer, trace = sampleTrace()) =>
      figuresOf(stream, trace, {
        stream_show: show,
        answers: { [show === 'lens' ? 'lens' : 'stream']: answer },
      });
    const without = figures(undefined, { ...sampleTrace(), card });
    for (const found of [
      figures({ isWaiting: true }),
      figures({ problem: { title: 'No' } }),
      without,
    ])
      ok(found.length === 1 && found[0].notice);
    deepEqual(stream.asks({ ...sampleTrace(), card }, { stream_show: show }), {});
  }
});

test('the likeliest token stands in every cell, its probability in the colour', () => {
  const [{ data, grid }] = shown(sampleTrace(), 'lens');
  const [map, names, heads] = data;
  const column = map.z.slice(1).map(([first]) => Number(first.toFixed(3)));
  deepEqual([...column, map.zmin, map.zmax], [0.3, 0.8, 0, 1]);
  deepEqual(heads.text, ['&lt;s&gt;', 'it', 'saw', '&lt;b&gt;', 'it']);
  deepEqual([names.text[0], names.text[COUNT]], ['&lt;i&gt;&amp;', 'saw']);
  equal(grid.written(1, 0), '“saw” 80.0 %');
  match(plain(grid.describe(1, 1)), /“saw” with probability 80\.0 %; this token came next$/);
  match(plain(grid.describe(0, 2)), /“<i>&” with probability 30\.0 %$/);
  deepEqual(grid.choose(0, 3), { query: 3, stream_layer: 0 });
  deepEqual(grid.choose(1, 3), { query: 3, stream_layer: null });
  deepEqual(grid.chosen, { row: 1, column: COUNT - 1 });
});

test('guesses that came are underlined, and only those', () => {
  const [{ data, help }] = shown(sampleTrace(), 'lens');
  const [, , , underlines] = data;
  deepEqual(
    underlines.x.filter((x) => x !== null).map(Math.round),
    [1, 1],
    '“saw” follows the first “it”, in the last layer',
  );
  match(help, /came next/);
  match(shown(fillTrace(), 'lens')[0].help, /stands here/);
});

test('the chosen cell opens as bars, beside those of the last layer', () => {
  const [map, cell, last, ...others] = shown(sampleTrace(), 'lens', { stream_layer: 0, query: 1 });
  equal(others.length, 0);
  deepEqual(map.grid.chosen, { row: 0, column: 1 });
  equal(plain(cell.title), 'After the first “it”, read after layer 0');
  deepEqual(cell.grid.rowLabels, ['<i>&', 'bytes f0 9f', '</s>']);
  equal(plain(last.title), 'After the first “it”, read after layer 1 (the last)');
  equal(last.data[0].text[0], '80.0 %, came next');
  equal(shown(sampleTrace(), 'lens').length, 2, 'the last layer is not shown twice');
});

test('the lens of an encoder–decoder is that of the decoder, and there is no stack to choose', () => {
  const trace = pairTrace();
  const [{ grid }] = shown(trace, 'lens', { where: 'encoder' });
  equal(grid.columns, TARGET_TOKENS.length);
  deepEqual(grid.sides, { rows: 'target', columns: 'target' });
  deepEqual(stream.places(trace, { stream_show: 'lens' }), []);
  deepEqual(
    stream.places(trace, { stream_show: 'norms' }).map(({ id }) => id),
    ['encoder', 'decoder'],
  );
});

test('the map tells the norm of the stream after each part', () => {
  const [map] = shown(sampleTrace(), 'norms', { query: 2 });
  deepEqual(
    [0, 1, 2, 3, 4].map((step) => map.grid.value(step, 2)),
    [2, 12, 22, 32, 42],
  );
});

const titles = ({ steps }) => steps.map(({ title }) => title);
const rows = ({ matrix: { rows: count, columns, data } }) =>
  Array.from({ length: count }, (_, row) =>
    Array.from(data.slice(row * columns, (row + 1) * columns)),
  );

test('the stream is followed from the embedding through every part of every layer', () => {
  const depth = streamDepth(streamAnalysis(3), 'decoder');
  const parts = ['0, attention', '0, feed-forward', '1, attention', '1, feed-forward'];
  deepEqual(titles(depth), ['embedding', ...parts]);
  const wanted = [0, 10, 20, 30, 40].map((norm) => [norm, norm + 1, norm + 2]);
  deepEqual(rows(depth), wanted);
  const cross = streamDepth(streamAnalysis(2, { hasCross: true }), 'decoder');
  equal(titles(cross)[2], '0, cross-attention');
});

test('written vectors come part by part', () => {
  const found = streamAnalysis(2);
  const written = rows(writtenDepth(found, 'decoder', {})).map(([first]) => first);
  deepEqual(
    written.map((value) => Math.round(value * 100)),
    [0, 10, 20, 30],
  );
});

test('every cell is found at its own position only', () => {
  const [{ grid }] = shown(longTrace(50), 'lens', { width: 700 });
  const { box, at } = grid.geometry;
  const seen = new Set();
  for (let row = 0; row < grid.rows; row += 1) {
    for (let column = 0; column < 50; column += 1) {
      const { x0, x1, y0, y1 } = box(row, column);
      deepEqual(at((x0 + x1) / 2, (y0 + y1) / 2), { row, column });
      deepEqual(at(x0 + 0.01, y1 - 0.01), { row, column });
      seen.add(`${x0} ${y0}`);
    }
  }
  equal(seen.size, grid.rows * 50);
});

test('the map shows tokens, numbers and names in the places that the geometry says', () => {
  const [{ data, layout, grid }] = shown(sampleTrace(), 'lens', { width: 260 });
  const [map, names, heads, underlines] = data;
  const { box } = grid.geometry;
  ok(map.z.length > 3, 'more lines than one');
  for (let at = 0; at < 10; at += 1) {
    const [row, column] = [Math.floor(at / 5), at % 5];
    const { x0, y0 } = box(row, column);
    equal(map.z[y0 + 0.5][x0 + 0.5], grid.value(row, column));
    const written = names.x.findIndex((x, index) => x === x0 + 0.5 && names.y[index] === y0 + 0.5);
    equal(names.text[written], row === 0 ? '&lt;i&gt;&amp;' : 'saw');
  }
  deepEqual(map.z[0], new Array(map.z[0].length).fill(null), 'no number beside the tokens');
  equal(heads.text[0], '&lt;s&gt;');
  const { x0, y1 } = box(1, 1);
  equal(underlines.x.length, 3);
  ok(underlines.x[0] > x0 && underlines.y[0] < y1 && underlines.y[0] > y1 - 0.1);
  deepEqual(layout.yaxis.ticktext.slice(0, 3), ['layer', '0', '1']);
});
