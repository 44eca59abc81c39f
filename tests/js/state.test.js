import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clamp, INITIAL, queryOf, readFragment, writeFragment } from '../../static/js/core/state.js';

const STATES = {
  plain: { text: 'The cat sat.', model: 'stories', view: 'experts', layer: 2, head: 5, query: 3, range: 'head' },
  awkward: { text: 'a&b=c#d %41+ é 中文 👩‍🚀 مرحبا\n<s>\t"', model: 'x/y', view: 'attention', layer: 0, head: 0, query: 0, range: 'one' },
  empty: { text: '', model: '', view: 'positions', layer: null, head: null, query: null, range: 'one' },
};

for (const [name, state] of Object.entries(STATES)) {
  test(`a link restores a state that is ${name}`, () => {
    assert.deepEqual({ ...INITIAL, ...readFragment(writeFragment(state)) }, state);
  });
}

test('an emptied box stays empty, an untouched one does not', () => {
  assert.equal(readFragment(writeFragment({ ...INITIAL, text: '' })).text, '');
  assert.equal('text' in readFragment(writeFragment(INITIAL)), false);
});

test('nonsense in a link is left out', () => {
  assert.deepEqual(readFragment('#layer=-1&head=x&query=1e9&range=all'), {});
  assert.deepEqual(readFragment('#layer=03&query=%ZZ'), { layer: 3 });
  assert.deepEqual(readFragment(''), {});
});

test('half a surrogate pair makes a link, not an exception', () => {
  assert.match(writeFragment({ ...INITIAL, text: 'a\ud800' }), /text=a%EF%BF%BD/);
});

test('indices from another model are brought back into what there is', () => {
  const bounds = { layers: 4, heads: 6, tokens: 5, views: ['attention', 'experts'] };
  const state = clamp({ ...INITIAL, view: 'nothing', layer: 11, head: 11, query: 9 }, bounds);
  assert.deepEqual([state.view, state.layer, state.head, state.query], ['attention', 3, 5, null]);
  assert.equal(clamp({ ...INITIAL, layer: null }, bounds).layer, null);
});

test('the query is the last token until somebody chooses', () => {
  const trace = { tokens: ['a', 'b', 'c'] };
  assert.equal(queryOf({ query: null }, trace), 2);
  assert.equal(queryOf({ query: 0 }, trace), 0);
  assert.equal(queryOf({ query: 7 }, trace), 2);
});
