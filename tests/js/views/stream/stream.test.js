import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stream } from '../../../../static/js/views/stream/stream.js';
import {
  figuresOf,
  fillTrace,
  longTrace,
  pairTrace,
  sampleTrace,
  TARGET_TOKENS,
  TOKENS,
  plain,
} from '../../sample.js';
import { answersOf, lensAnalysis, streamAnalysis } from './sample.js';
import { assertContract, assertFits, WIDTHS } from '../view_contract.js';

const COUNT = TOKENS.length;
const SHOWS = ['lens', 'norms', 'writes', 'layer_norm'];

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

test('asks for what is shown and nothing else', () => {
  const trace = sampleTrace();
  assert.deepEqual(stream.asks(trace, { stream_show: 'lens' }), {
    lens: { capture: [], analyses: ['logit_lens'] },
  });
  for (const show of SHOWS.slice(1)) {
    assert.deepEqual(stream.asks(trace, { stream_show: show }), {
      stream: { capture: [], analyses: ['residual_stream'] },
    });
  }
});

test('while an answer is on its way, and when it is refused, one panel says so', () => {
  for (const show of SHOWS) {
    const name = show === 'lens' ? 'lens' : 'stream';
    const waiting = figuresOf(stream, sampleTrace(), {
      stream_show: show,
      answers: { [name]: { isWaiting: true } },
    });
    assert.deepEqual(
      waiting.map(({ notice }) => notice),
      ['Reading…'],
    );
    const problem = { title: 'Too many cells', detail: 'Send a shorter text.' };
    const [{ notice }] = figuresOf(stream, sampleTrace(), {
      stream_show: show,
      answers: { [name]: { problem } },
    });
    assert.equal(notice, 'Too many cells. Send a shorter text.');
  }
});

for (const show of SHOWS) {
  test(`${show}: keeps the contract, at 256 tokens too`, () => {
    for (const width of WIDTHS) {
      for (const trace of [sampleTrace(), fillTrace(), pairTrace()])
        assertContract(shown(trace, show, { stream_layer: 0, width }), width);
      for (const figure of shown(longTrace(256), show, { width })) assertFits(figure, width);
    }
  });
}

test('the likeliest token stands in every cell, its probability in the colour', () => {
  const [{ data, grid }] = shown(sampleTrace(), 'lens');
  const [map, heads, names] = data;
  assert.deepEqual(
    map.z.slice(1).map(([first]) => Number(first.toFixed(3))),
    [0.3, 0.8],
  );
  assert.deepEqual([map.zmin, map.zmax], [0, 1]);
  assert.deepEqual(heads.text, ['&lt;s&gt;', 'it', 'saw', '&lt;b&gt;', 'it']);
  assert.deepEqual([names.text[0], names.text[1]], ['&lt;i&gt;&amp;', 'saw']);
  assert.equal(grid.written(1, 0), '“·saw” 80.0 %');
  assert.equal(
    plain(grid.describe(1, 1)),
    'After “it” at 1, layer 1 (the last) predicts “·saw” with probability 80.0 %; this token came next',
  );
  assert.equal(
    plain(grid.describe(0, 2)),
    'After “saw”, layer 0 predicts “<i>&” with probability 30.0 %',
  );
});

test('guesses that came are underlined, and only those', () => {
  const [{ data, help }] = shown(sampleTrace(), 'lens');
  const [, , , underlines] = data;
  assert.deepEqual(
    underlines.x.filter((x) => x !== null).map(Math.round),
    [1, 1],
    '“saw” follows the first “it”, in the last layer',
  );
  assert.match(help, /came next/);
  assert.match(shown(fillTrace(), 'lens')[0].help, /stands here/);
});

test('the chosen cell opens as bars, beside those of the last layer', () => {
  const [map, cell, last, ...others] = shown(sampleTrace(), 'lens', { stream_layer: 0, query: 1 });
  assert.equal(others.length, 0);
  assert.deepEqual(map.grid.chosen, { row: 0, column: 1 });
  assert.equal(plain(cell.title), 'After “it”, by layer 0');
  assert.deepEqual(cell.grid.rowLabels, ['<i>&', 'bytes f0 9f', '</s>']);
  assert.equal(plain(last.title), 'After “it”, by layer 1, the last: what the model predicts');
  assert.equal(last.data[0].text[0], '80.0 % · came next');
  assert.equal(shown(sampleTrace(), 'lens').length, 2, 'the last layer is not shown twice');
});

test('the lens of an encoder–decoder is that of the decoder, and there is no stack to choose', () => {
  const trace = pairTrace();
  const [{ grid }] = shown(trace, 'lens', { where: 'encoder' });
  assert.equal(grid.columns, TARGET_TOKENS.length);
  assert.deepEqual(grid.sides, { rows: 'target', columns: 'target' });
  assert.deepEqual(stream.places(trace, { stream_show: 'lens' }), []);
  assert.deepEqual(
    stream.places(trace, { stream_show: 'norms' }).map(({ id }) => id),
    ['encoder', 'decoder'],
  );
});

test('norms of either stack, with the tokens that it reads', () => {
  const trace = pairTrace();
  const found = {
    ...streamAnalysis(COUNT, { stack: 'encoder' }),
    ...streamAnalysis(TARGET_TOKENS.length, { hasCross: true }),
  };
  const of = (where) =>
    figuresOf(stream, trace, {
      stream_show: 'norms',
      where,
      answers: answersOf(trace, { stream: found }),
    })[0].grid;
  assert.deepEqual(
    [of('encoder').columns, of('encoder').rows, of('encoder').sides.rows],
    [COUNT, 5, 'source'],
  );
  assert.deepEqual(
    [of('decoder').columns, of('decoder').rows, of('decoder').sides.rows],
    [TARGET_TOKENS.length, 7, 'target'],
  );
  assert.deepEqual(of('encoder').choose(0, 2), { source: 2 });
  assert.deepEqual(of('decoder').choose(0, 2), { query: 2 });
});

test('the map and the line tell the same numbers, and the line adds the mean', () => {
  const [map, line] = shown(sampleTrace(), 'norms', { query: 2 });
  assert.equal(map.grid.value(3, 2), 32);
  assert.deepEqual(line.data[0].y, [2, 12, 22, 32, 42]);
  assert.deepEqual(line.data[1].y, [2, 12, 22, 32, 42], 'the mean of 0 to 4 is 2');
  assert.equal(
    plain(map.grid.describe(1, 2)),
    'After the attention of layer 0 the stream has norm 12 at “saw”',
  );
  assert.equal(
    plain(line.grid.describe(1, 1)),
    'After the attention of layer 0 the stream has norm 12 at the mean token',
  );
  assert.deepEqual(line.grid.geometry.at(1.2, 11), { row: 0, column: 1 });
  const { x0, x1, y0, y1 } = line.grid.geometry.box(0, 3);
  assert.ok(x0 < 3 && x1 > 3 && y0 < 32 && y1 > 32);
  assert.equal(line.grid.geometry.at(-1, 0), null);
});

test('cosines are on a scale that is the same on both sides of 0, and say along or against', () => {
  const [norms, cosines] = shown(sampleTrace(), 'writes');
  assert.deepEqual([cosines.data[0].zmin, cosines.data[0].zmax], [-1, 1]);
  assert.equal(norms.data[0].zmin, 0);
  assert.equal(
    plain(cosines.grid.describe(0, 1)),
    'The attention of layer 0 writes against the stream at “it” at 1: cosine −0.500',
  );
  assert.match(
    plain(cosines.grid.describe(1, 1)),
    /^The feed-forward network of layer 0 writes along the stream at “it” at 1: cosine 0\.250$/,
  );
});

test('on a phone positions stand below one another', () => {
  const [
    {
      grid,
      data: [map],
    },
  ] = shown(sampleTrace(), 'norms', { width: 358 });
  assert.deepEqual([grid.rows, grid.columns], [COUNT, 5]);
  assert.equal(map.z.length, COUNT);
  assert.equal(grid.value(2, 3), 32);
  assert.equal(map.z[2][3], 32);
  assert.deepEqual(grid.choose(2, 3), { query: 2 });
});

test('layer norms show mean and deviation, an RMSNorm its root mean square', () => {
  const trace = sampleTrace();
  const titles = (options) =>
    figuresOf(stream, trace, {
      stream_show: 'layer_norm',
      answers: answersOf(trace, { stream: streamAnalysis(COUNT, options) }),
    }).map(({ title }) => title.replace(/ that each .*/, ''));
  assert.deepEqual(titles({}), ['Mean', 'Deviation', 'Mean', 'Deviation']);
  assert.deepEqual(titles({ isRms: true }), ['Root mean square', 'Root mean square']);
});
