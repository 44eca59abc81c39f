import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callOf, originOf } from '../../../static/js/data/call.js';

const asked = { model: 'tiny', text: 'it saw', target: 'il vit' };
const trace = {
  model: 'tiny',
  revision: 'r1',
  text: 'it saw',
  target: 'il vit',
  target_tokens: [],
  asked,
};

test('a drawing’s call asks for its numbers of the page’s texts', () => {
  const call = callOf(trace, { request: { capture: ['a.b'], heads: [1] } });
  assert.deepEqual(call, {
    path: '/api/v1/trace',
    body: { ...asked, capture: ['a.b'], heads: [1] },
  });
});

test('what a drawing asks for goes before what the page asked for, and nothing is null', () => {
  const edits = [{ kind: 'heads_off', heads: [0], layer: 1 }];
  const { body } = callOf(trace, {
    request: { capture: ['logits'], text: 'another', target: null, edits },
  });
  assert.deepEqual(body, { model: 'tiny', text: 'another', capture: ['logits'], edits });
});

test('numbers come as they are, not in the 16 bits that the page saves room with', () => {
  assert.ok(!('dtype' in callOf(trace, { request: { capture: [], dtype: 'u16' } }).body));
});

test('a drawing may come from another call', () => {
  const path = '/api/v1/positional?scheme=rotary&length=8&width=4';
  assert.deepEqual(callOf(trace, { call: { path } }), { path, body: null });
});

test('the origin is the model, its revision, the texts and what was changed', () => {
  assert.deepEqual(originOf(trace, {}), {
    model: 'tiny',
    revision: 'r1',
    text: 'it saw',
    target: 'il vit',
  });
  const edits = [{ kind: 'no_scaling' }];
  assert.deepEqual(originOf(trace, { request: { edits } }).edits, edits);
});

test('of another model the card tells the revision, of another text no target is told', () => {
  const cards = [{ id: 'other', revision: 'r2' }];
  const origin = originOf(
    { ...trace, asked: { model: 'tiny', text: 'it saw' } },
    { request: { model: 'other' } },
    cards,
  );
  assert.deepEqual(origin, { model: 'other', revision: 'r2', text: 'it saw' });
});

test('a translation that the model made itself is told', () => {
  assert.equal(
    originOf({ ...trace, asked: { model: 'tiny', text: 'it saw' } }, {}).target,
    'il vit',
  );
});

test('what came without a text is of no model but the one it names', () => {
  const of = (path) => originOf(trace, { call: { path } }, [{ id: 'learner', revision: 'r3' }]);
  assert.deepEqual(of('/api/v1/positional?scheme=rotary&length=2&width=4'), { text: 'it saw' });
  assert.deepEqual(of('/api/v1/positional?model=learner&length=2'), {
    model: 'learner',
    revision: 'r3',
    text: 'it saw',
  });
});
