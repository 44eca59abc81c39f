import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextToken } from '../../../../static/js/views/next_token/next_token.js';
import {
  figuresOf,
  fillTrace,
  FRAME,
  pairTrace,
  sampleTrace,
  TOKENS,
  plain,
} from '../../sample.js';

test('the likeliest first, with the one that came marked', () => {
  const { data, title } = nextToken.figure(sampleTrace(), { ...FRAME, query: 1 });
  const [bars] = data;
  assert.deepEqual(
    bars.x.map((p) => Number(p.toFixed(4))),
    [0.5, 0.25, 0.0001],
  );
  assert.match(bars.text[0], /50\.0 % · came next/);
  assert.equal(bars.text[2], '&lt;0.1 %');
  assert.match(title, /it/);
});

test('a nearly certain guess that came has room for its words, on a phone too', () => {
  const trace = sampleTrace();
  trace.analyses.next_token.probabilities.data.set([0.97, 0.01, 0.001], 3);
  const { data, layout } = nextToken.figure(trace, { ...FRAME, width: 358, query: 1 });
  const [bars] = data;
  const pixels = layout.width - layout.margin.l - layout.margin.r;
  const left = pixels * (1 - bars.x[0] / layout.xaxis.range[1]);
  assert.equal(bars.text[0], '97.0 % · came next');
  assert.equal(layout.xaxis.ticktext.at(-1), '100 %', 'no probability is past 100 %');
  assert.ok(left >= bars.text[0].length * 6, `${left} pixels behind the bar`);
});

test('at the end of the text a guess can be added to it', () => {
  const { grid } = nextToken.figure(sampleTrace(), FRAME);
  assert.deepEqual(grid.choose(0, 0), { text: 'it saw <b> it saw', query: null });
  assert.equal(nextToken.figure(sampleTrace(), { ...FRAME, query: 1 }).grid.choose, undefined);
});

test('bytes are called bytes, and neither they nor end marks can be added', () => {
  const trace = sampleTrace();
  trace.analyses.next_token.texts = TOKENS.map(() => ['\\xf0\\x9f', '</s>', 'a']);
  const { grid, layout } = nextToken.figure(trace, FRAME);
  assert.deepEqual([grid.rowLabels[0], layout.yaxis.ticktext[0]], ['bytes f0 9f', 'bytes f0 9f']);
  assert.match(grid.describe(0, 0), /“bytes f0 9f” has probability/);
  assert.deepEqual([grid.choose(0, 0), grid.choose(1, 0)], [{}, {}]);
  assert.equal(grid.choose(2, 0).text, 'it saw <b> ita');
});

test('a model that predicts none says so', () => {
  const trace = sampleTrace();
  trace.analyses = {};
  assert.match(nextToken.figure(trace, FRAME).notice, /does not predict/);
});

test('a model that sees both ways says what may stand at the mask', () => {
  const trace = fillTrace();
  const { help } = nextToken.wording(trace);
  assert.doesNotMatch(help, /next/);
  const [{ grid, layout, ...figure }, ...others] = figuresOf(nextToken, trace);
  assert.equal(others.length, 0);
  assert.equal(plain(figure.title), 'At “[MASK]”');
  assert.equal(layout.xaxis.title.text, 'probability of standing here');
  assert.match(
    plain(grid.rest.readout),
    /^At “\[MASK\]”, “·saw” has probability 50\.0 %, rank 1 \(/,
  );
});

test('at a token that can be seen the guess that stands there is marked, not the next one', () => {
  const trace = fillTrace();
  const [{ data }] = figuresOf(nextToken, trace, { query: 1 });
  const [bars] = data;
  assert.deepEqual(
    bars.text.filter((text) => text.includes('·')),
    ['&lt;0.1 % · stands here'],
    'its id is 5, the third guess',
  );
});

test('the word behind the mask is marked where it is known', () => {
  const [{ data, grid }] = figuresOf(nextToken, fillTrace(), { words: 'saw' });
  const [bars] = data;
  assert.match(bars.text[0], /50\.0 % · was here/);
  assert.match(grid.describe(0, 0), /the word behind the mask/);
});

test('masks that are not chosen follow the chosen token', () => {
  const titles = figuresOf(nextToken, fillTrace(), { query: 4 }).map(({ title }) => plain(title));
  assert.deepEqual(titles, ['At “it”', 'At “[MASK]”']);
});

test('a guess can be put in the place of the mask', () => {
  const [{ grid }] = figuresOf(nextToken, fillTrace(), { words: 'saw' });
  assert.deepEqual(grid.choose(0, 0), { text: 'it saw <b> it', words: '', query: 2 });
  assert.equal(figuresOf(nextToken, fillTrace(), { query: 1 })[0].grid.choose, undefined);
});

test('a translator’s guesses are about its target, and are added to it', () => {
  const {
    title,
    grid,
    data: [bars],
  } = nextToken.figure(pairTrace(), FRAME);
  assert.equal(plain(title), 'After “vit”');
  assert.deepEqual(grid.sides, { rows: 'target', columns: 'target' });
  assert.deepEqual(grid.choose(0, 0), { target: 'il vit saw', query: null });
  assert.deepEqual(grid.choose(2, 0), {}, 'an end mark cannot be written');
  assert.ok(bars.text.every((text) => !text.includes('came next')));
});
