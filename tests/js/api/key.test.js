import assert from 'node:assert/strict';
import { test } from 'node:test';
import { askWhenRefused, fetchModels } from '../../../static/js/api/api.js';
import { keepKey, keyIn, readKey, withKey } from '../../../static/js/api/key.js';

function keeping(t, kept = {}) {
  const store = {
    getItem: (name) => kept[name] ?? null,
    setItem: (name, value) => {
      kept[name] = value;
    },
  };
  globalThis.sessionStorage = store;
  t.after(() => {
    delete globalThis.sessionStorage;
  });
  return kept;
}

test('a key is kept with the tab', (t) => {
  keeping(t);
  assert.equal(readKey(), '');
  assert.equal(keepKey('sesame'), true);
  assert.equal(readKey(), 'sesame');
});

test('a browser that keeps nothing is none to fail in', () => {
  assert.equal(readKey(), '');
  assert.equal(keepKey('sesame'), false);
});

test('a key goes with a call as a bearer token, and without one nothing does', () => {
  assert.deepEqual(withKey({ Accept: 'a/b' }, 'sesame'), {
    Accept: 'a/b',
    Authorization: 'Bearer sesame',
  });
  assert.deepEqual(withKey({ Accept: 'a/b' }, ''), { Accept: 'a/b' });
});

test('what a person pastes is a key only where a header can carry it', () => {
  assert.equal(keyIn('  sesame-1\n'), 'sesame-1');
  for (const typed of ['', '   ', 'two words', 'ключ', 'a\nb', '🗝']) assert.equal(keyIn(typed), '');
});

test('a call shows the key, and a refusal of it is told with whether there was one', async (t) => {
  const kept = keeping(t);
  const shown = [];
  t.mock.method(globalThis, 'fetch', async (_, { headers }) => {
    shown.push(headers.Authorization);
    return new Response('{"title":"Key missing"}', { status: 401 });
  });
  const told = [];
  askWhenRefused((hadKey) => told.push(hadKey));
  await assert.rejects(fetchModels(), { status: 401 });
  kept['headlight.key'] = 'sesame';
  await assert.rejects(fetchModels(), { status: 401 });
  assert.deepEqual(shown, [undefined, 'Bearer sesame']);
  assert.deepEqual(told, [false, true]);
});
