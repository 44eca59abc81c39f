/** The part of a map that a saved page holds, and the order of the views of a talk. */

import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { moved, tileElement, tileIn } from '../../../static/js/rules/presentation.js';

const page = (textContent) => ({
  getElementById: () => (textContent === null ? null : { textContent }),
});

test('a saved page gives back the part of a map, whatever its bytes', () => {
  const { buffer } = Uint8Array.from({ length: 256 }, (_, at) => at);
  const written = tileElement('/api/v1/tile?x0=3&name=%3C%2Fscript%3E', buffer);
  equal(written.match(/<\//g).length, 1, 'nothing in it ends the element');
  const tile = tileIn(page(written.match(/>(.*)</)[1]));
  deepEqual(tile.query, { x0: '3', name: '</script>' });
  deepEqual([...new Uint8Array(tile.bytes)], [...new Uint8Array(buffer)]);
});

test('a page with the whole map holds no part of it', () => {
  equal(tileIn(page(null)), null);
  equal(tileIn(page('')), null);
});

test('a view that would leave the list on either side stays where it is', () => {
  const list = ['a', 'b', 'c'];
  for (const from of [0, 1, 2])
    for (const to of [-2, -1, 3, 4]) equal(moved(list, from, to), list, `${from} to ${to}`);
  deepEqual(moved(list, 1, 2), ['a', 'c', 'b']);
  deepEqual(moved(list, 1, 1), list);
});
