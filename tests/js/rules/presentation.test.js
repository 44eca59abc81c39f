/** Presentations: their views and elements, and the part of a map that a saved page holds. */

import { deepEqual, throws, equal } from 'node:assert/strict';
import test from 'node:test';
import {
  moved,
  openingElement,
  openingIn,
  openingOf,
  read,
  patched,
  toggledCover,
  turned,
  written,
  tileElement,
  tileIn,
} from '../../../static/js/rules/presentation.js';

const COVER = { panel: 0, row: 3, column: 1 };
const SLIDES = [
  { name: 'First', link: '#view=why', covers: [] },
  { name: 'Predict', link: '#view=next_token', covers: [COVER, { ...COVER, row: 4 }] },
  { name: 'Last', link: '#view=stream', covers: [] },
];

test('a file gives back the presentation it was written from', () => {
  deepEqual(read(written(SLIDES)), SLIDES);
});

test('a saved page opens on the view, and keeps the views of its own text', () => {
  const slide = (link) => ({ name: '</script>', link, covers: [COVER] });
  const opening = openingOf('#text=a+cat&view=why&layer=1&head=2&query=3&key=0', [
    slide('#text=a+cat&view=head'),
    slide('#text=a+dog&view=head'),
    slide('#text=a+cat&model=other&view=head'),
  ]);
  deepEqual(opening, {
    link: '#view=why&layer=1&head=2&query=3&key=0',
    slides: [slide('#view=head')],
  });
  const written = openingElement(opening);
  deepEqual(written.match(/<\//g)?.length, 1, 'nothing in it ends the element');
  const [, json] = written.match(/>(.*)</);
  deepEqual(openingIn({ getElementById: () => ({ textContent: json }) }), opening);
  deepEqual(openingIn({ getElementById: () => null }), null);
});

test('of a whole address, the part that restores the view is kept', () => {
  const file = JSON.stringify({
    headlight_presentation: 1,
    views: [{ link: 'https://example.org/#view=why' }],
  });
  deepEqual(read(file), [{ name: 'View 1', link: '#view=why', covers: [] }]);
});

for (const [what, file] of [
  ['text', 'no JSON'],
  ['another file', '{"nodes": []}'],
  ['null', 'null'],
  ['a newer file', '{"headlight_presentation": 2, "views": []}'],
  ['an empty one', '{"headlight_presentation": 1, "views": []}'],
  ['a view without a link', '{"headlight_presentation": 1, "views": [{"name": "a"}]}'],
  [
    'a cover that is no cell',
    '{"headlight_presentation": 1, "views": [{"link": "#a", "covers": [{"panel": -1}]}]}',
  ],
]) {
  test(`${what} is refused with a reason`, () => {
    throws(() => read(file), /file|presentation/i);
  });
}

test('views move within the list and never out of it', () => {
  deepEqual(moved(['a', 'b', 'c'], 0, 2), ['b', 'c', 'a']);
  deepEqual(moved(['a', 'b', 'c'], 2, 0), ['c', 'a', 'b']);
  deepEqual(moved(['a', 'b'], 0, -1), ['a', 'b']);
  deepEqual(moved(['a', 'b'], 1, 2), ['a', 'b']);
});

test('a cell is covered, and uncovered when it is chosen again', () => {
  const covered = toggledCover(SLIDES[0], COVER);
  deepEqual(covered.covers, [COVER]);
  deepEqual(toggledCover(covered, COVER).covers, []);
});

test('what is covered is revealed before the next view is shown', () => {
  let place = { at: 0, revealed: 0 };
  const seen = [];
  for (let step = 0; step < 6; step += 1) {
    seen.push([place.at, place.revealed]);
    place = turned(SLIDES, place, 'next');
  }
  deepEqual(seen, [
    [0, 0],
    [1, 0],
    [1, 1],
    [1, 2],
    [2, 0],
    [2, 0],
  ]);
});

test('slides are turned back and to the ends, covered as at first', () => {
  const at = (from, turn) => turned(SLIDES, { at: from, revealed: 1 }, turn);
  deepEqual(at(2, 'back'), { at: 1, revealed: 0 });
  deepEqual(at(0, 'back'), { at: 0, revealed: 0 });
  deepEqual(at(1, 'first'), { at: 0, revealed: 0 });
  deepEqual(at(1, 'last'), { at: 2, revealed: 0 });
});

test('one slide is changed, the others stay', () => {
  const [first, second, last] = patched(SLIDES, 1, { name: 'New' });
  deepEqual([first, last], [SLIDES[0], SLIDES[2]]);
  deepEqual(second, { ...SLIDES[1], name: 'New' });
});

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
