/** The page's look at a trace. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { FRAME, headLabels, sampleTrace } from '../sample.js';
import { hasNews, insight, lookAt, pageAsks, withPrevious } from '../../../static/js/ui/looking.js';

const plain = sampleTrace();
const labels = headLabels({
  'decoder.layers.0.self_attention': [
    { label: 'previous', scores: { previous: 0.8 } },
    { label: 'mixed' },
  ],
  'decoder.layers.1.self_attention': [{ label: 'mixed' }, { label: 'mixed' }],
});
const TRACE = { ...plain, analyses: { ...plain.analyses, head_labels: labels } };
const STATE = { ...FRAME, layer: 0, head: 0, view: 'attention' };

test('what follows a text is told from its end on; of other predictions a telling row opens', () => {
  const { state, place, position } = lookAt(TRACE, STATE, 'head');
  deepEqual([Boolean(place), state.query, position], [true, null, 4]);
  const filler = { ...TRACE, card: { ...TRACE.card, kind: 'encoder' } };
  ok(lookAt(filler, STATE, 'head').state.query !== null);
  deepEqual(lookAt(TRACE, { ...STATE, query: 1 }, 'head').state.query, 1);
  deepEqual(lookAt(TRACE, STATE, 'model'), { state: STATE, place: null, position: 4 });
});

test('the prediction of the chosen position is asked for', () => {
  const look = lookAt(TRACE, { ...STATE, query: 2 }, 'head');
  equal(look.position, 2);
  const card = { ...TRACE.card, analyses: ['reasons'] };
  const { next_why: why } = pageAsks({ ...TRACE, card }, look);
  deepEqual(why.logit_difference, { position: 2 });
  const silent = { ...TRACE, analyses: {} };
  equal(lookAt(silent, STATE, 'head').position, -1);
});

test('a sentence on the row of a head is added to the finding, of weights alone', () => {
  const look = lookAt(TRACE, { ...STATE, query: 2 }, 'head');
  const { said } = insight(TRACE, STATE, look);
  const other = insight(TRACE, { ...STATE, attention_what: 'scores' }, look);
  ok(said.length > other.said.length && said.startsWith(other.said));
  deepEqual(insight(TRACE, { ...STATE, head: null }, look), other);
  equal(other.label, '');
});

test('the label of a head is told with its row', () => {
  const head_labels = { 'decoder.layers.0.self_attention': [{ previous: 0.8 }, {}] };
  const trace = { ...TRACE, card: { ...TRACE.card, head_labels } };
  const look = lookAt(trace, { ...STATE, query: 2 }, 'head');
  match(insight(trace, STATE, look).label, /80 % .*token before; at this token, too/);
});

test('until an answer is here, the one before is shown', () => {
  const [old, older] = [{ text: 'old' }, { text: 'older' }];
  const waiting = { trace: null, isWaiting: true };
  const before = { a: { trace: old }, b: { trace: null, previous: older }, c: { trace: null } };
  const { a, b, c } = withPrevious({ a: waiting, b: waiting, c: waiting }, before);
  deepEqual([a.previous, b.previous, c.previous], [old, older, undefined]);
  const here = { a: { trace: older } };
  deepEqual(withPrevious(here, before), here);
  ok(hasNews(here, before) && !hasNews({ a: { trace: old } }, before));
  ok(!hasNews({ a: waiting }, before));
});
