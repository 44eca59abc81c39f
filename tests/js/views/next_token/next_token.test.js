import { deepEqual, doesNotMatch, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { nextToken } from '../../../../static/js/views/next_token/next_token.js';
import {
  figuresOf,
  fillTrace,
  FRAME,
  pairTrace,
  sampleTrace,
  plain,
  tensor,
} from '../../sample.js';

const STANDARD = { next_token_temperature: 1, next_token_top_k: 0, next_token_top_p: 1 };
const rounded = (value) => Number(value.toFixed(4));

test('the likeliest first, with the one that came marked', () => {
  const { data, title } = nextToken.figure(sampleTrace(), { ...FRAME, query: 1 });
  const [bars] = data;
  deepEqual(
    bars.x.map((p) => Number(p.toFixed(4))),
    [0.5, 0.25, 0.0001],
  );
  match(bars.text[0], /50\.0 %, came next/);
  equal(bars.text[2], '&lt;0.1 %');
  match(title, /it/);
});

test('a reward model predicts no next token', () => {
  const rating = { ...sampleTrace(), card: { kind: 'decoder', analyses: ['reward'] } };
  match(nextToken.figure(rating, FRAME).notice, /does not predict/);
  deepEqual(nextToken.controls(rating, { ...FRAME, ...STANDARD }), []);
});

test('at the end of the text a guess can be added to it', () => {
  const { grid } = nextToken.figure(sampleTrace(), FRAME);
  deepEqual(grid.choose(0, 0), { text: 'it saw <b> it saw', query: null });
  equal(nextToken.figure(sampleTrace(), { ...FRAME, query: 1 }).grid.choose, undefined);
});

test('a bidirectional model predicts the mask', () => {
  const trace = fillTrace();
  const { help } = nextToken.wording(trace);
  doesNotMatch(help, /next/);
  const [{ grid, layout, ...figure }, ...others] = figuresOf(nextToken, trace);
  equal(others.length, 0);
  equal(plain(figure.title), 'At “[MASK]”');
  equal(layout.xaxis.title.text, 'probability of standing here');
  match(plain(grid.rest.readout), /^At “\[MASK\]”, “saw” has probability 50\.0 %, rank 1 \(/);
});

test('the word behind the mask is marked if it is known', () => {
  const [{ data, grid }] = figuresOf(nextToken, fillTrace(), { words: 'saw' });
  const [bars] = data;
  match(bars.text[0], /50\.0 %, was here/);
  match(grid.describe(0, 0), /the word behind the mask/);
});

test('a guess can be put in the place of the mask', () => {
  const [{ grid }] = figuresOf(nextToken, fillTrace(), { words: 'saw' });
  deepEqual(grid.choose(0, 0), { text: 'it saw <b> it', words: '', query: 2 });
  equal(figuresOf(nextToken, fillTrace(), { query: 1 })[0].grid.choose, undefined);
});

test('a translator’s guesses are about its target, and are added to it', () => {
  const {
    title,
    grid,
    data: [bars],
  } = nextToken.figure(pairTrace(), FRAME);
  equal(plain(title), 'After “vit”');
  deepEqual(grid.sides, { rows: 'target', columns: 'target' });
  deepEqual(grid.choose(0, 0), { target: 'il vit saw', query: null });
  deepEqual(grid.choose(2, 0), {}, 'an end mark cannot be written');
  ok(bars.text.every((text) => !text.includes('came next')));
});

test('the bars are of being sampled once a slider is moved, with a line at the model’s own', () => {
  const trace = sampleTrace();
  deepEqual(nextToken.asks(trace, { ...FRAME, ...STANDARD }), {});
  const state = { ...FRAME, ...STANDARD, next_token_temperature: 0.5, next_token_top_p: 0.9 };
  deepEqual(nextToken.asks(trace, state).sampled.predictions, { temperature: 0.5, top_p: 0.9 });
  const sampled = tensor(['query', 'rank'], [5, 3], (at) => [0.8, 0.2, 0][at % 3]);
  const next = { ...trace, analyses: { next_token: { sampled } } };
  for (const answer of [{ trace: next }, { isWaiting: true, previous: next }]) {
    const { data, grid } = nextToken.figure(trace, { ...state, answers: { sampled: answer } });
    deepEqual(data[0].x.slice(0, 3).map(rounded), [0.8, 0.2, 0]);
    equal(data.find(({ mode }) => mode === 'lines').x[0], 0.5);
    equal(rounded(grid.value(0, 0)), 0.8);
    ok(grid.request.predictions);
  }
  deepEqual(nextToken.controls(fillTrace(), state), [], 'no text is sampled from masks');
});
