/** The thread of a prediction: its arcs, its sentences, and the walk through its steps. */

import { deepEqual, doesNotMatch, equal, match } from 'node:assert/strict';
import { test } from 'node:test';
import { arcsOfThread, stepInWords, threadIn, walked } from '../../../../static/js/rules/thread.js';
import { word } from '../../../../static/js/views/word/word.js';
import { FRAME, pairTrace, plain, sampleTrace } from '../../sample.js';

const CARD = { kind: 'decoder', n_layers: 2, n_heads: 2, analyses: ['attention_thread'] };
const SELF = 'decoder.layers.1.self_attention';
const bare = { others: [], opposite: null, adds: null, weight: null, edge: 'e', before: 0.8 };
const head = (cell) => ({ ...bare, kind: 'head', attention: SELF, head: 0, weight: 0.5, ...cell });
const steps = (after = 0.1) => [
  head({
    ...{ name: '1.0', side: 'logits', share: 0.4, adds: [1, -2], query: 4, key: 2 },
    ...{ before: 3, after: 1, others: [{ name: '1.1', share: 0.3 }] },
  }),
  head({
    ...{ name: '0.1', side: 'key', share: 0.77, after, query: 2, key: 1 },
    ...{ attention: 'decoder.layers.0.self_attention', head: 1 },
  }),
  {
    ...{ ...bare, name: 'token', kind: 'token', side: 'key', share: 0.5, after },
    ...{ attention: null, head: null, query: null, key: null },
  },
];
const stateOf = (of = steps(), more = {}) => {
  const thread = { position: 4, token: { text: ' saw' }, against: { text: ' fox' }, steps: of };
  const answers = { parts: { trace: { analyses: { attention_thread: thread } } } };
  return { ...FRAME, view: 'word', word_show: 'thread', word_step: null, answers, ...more };
};
const trace = { ...sampleTrace(), card: CARD };
const said = (state, at, of = trace) => {
  const { finding, more } = stepInWords(of, threadIn(state), at);
  return plain(`${finding} ${more}`);
};

test('the first arc begins at the predicted word, the next at the word that was read', () => {
  const ends = (arcs) => arcs.map(({ from, to, isPast }) => [from.index, to.index, isPast]);
  const at = (word_step) => arcsOfThread(trace, threadIn(stateOf(steps(), { word_step })));
  deepEqual(ends(at(0)), [[5, 2, false]]);
  deepEqual(ends(at(2)), [
    [5, 2, true],
    [2, 1, true],
  ]);
  const filling = { ...trace, card: { ...CARD, kind: 'encoder' } };
  equal(arcsOfThread(filling, threadIn(stateOf()))[0].from.index, 4);
});

test('an arc of cross-attention leads to the source', () => {
  const step = head({ name: 'cross.1.0', side: 'logits', share: 1, query: 1, key: 2, after: 0 });
  const cross = { ...step, attention: 'decoder.layers.1.cross_attention' };
  const [{ from, to }] = arcsOfThread(pairTrace(), threadIn(stateOf([cross])));
  deepEqual(
    [from, to].map(({ side, index }) => `${side} ${index}`),
    ['target 2', 'source 2'],
  );
});

test('a part is called the reason only if half of the weight is lost without it', () => {
  match(
    said(stateOf(), 1),
    /because of what layer 0, head 1 wrote at .*: 77 % of the lead, on the key/,
  );
  match(said(stateOf(), 1), /Without it the weight falls: 0\.800 → 0\.100/);
  match(said(stateOf(), 2), /because of .*“it” itself: 50 %/);
  const little = stateOf(steps(0.79));
  for (const at of [1, 2]) doesNotMatch(said(little, at), /because/);
  match(said(little, 1), /almost nothing changes: 0\.800 → 0\.790; other parts stand in/);
});

test('the first step says its share, both words, and what is lost without it', () => {
  match(
    said(stateOf(), 0),
    /head 0 makes 40 % .*\+?1\.00 to “saw”, −2\.00 to “fox”; above all it speaks against “fox”\. Without it the difference falls: \+?3\.00 → \+?1\.00\. Nearly as much: head 1\.1 \(30 %\)/,
  );
});

test('the arrows walk to the ends and no further', () => {
  deepEqual(walked(stateOf(), 1), { word_step: 1 });
  equal(walked(stateOf(), -1), null);
  equal(walked(stateOf(steps(), { word_step: 2 }), 1), null);
  deepEqual(word.walk(trace, stateOf(steps(), { word_step: 9 }), -1), { word_step: 1 });
  equal(walked(stateOf(steps(), { word_show: 'parts' }), 1), null);
});

test('each step is a row, which is chosen, told and walked to', () => {
  const { grid, summary } = word.figure(trace, stateOf());
  deepEqual([grid.rows, grid.columns, grid.value(1, 0)], [3, 1, 0.77]);
  deepEqual(grid.choose(2, 0), { word_step: 2 });
  deepEqual(grid.move('ArrowRight', null), { word_step: 1 });
  equal(grid.move('ArrowDown', null), null);
  match(plain(summary), /Step 1: .* Step 3: /);
  deepEqual(word.asks(trace, stateOf()).parts.analyses, ['attention_thread']);
});
