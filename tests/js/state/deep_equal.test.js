import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deepEqual } from '../../../static/js/state/deep_equal.js';

const drawing = () => ({
  z: [
    [1, null, NaN],
    [0.5, 2, 3],
  ],
  axis: { title: { text: 'a' }, range: [0, 1] },
  bytes: Uint8Array.of(1, 2),
  is: true,
});

test('what is made alike is the same', () => {
  assert.ok(deepEqual(drawing(), drawing()));
  assert.ok(deepEqual([undefined], [undefined]));
});

test('any difference is one, however deep', () => {
  const changes = [
    (d) => {
      d.z[1][2] = 4;
    },
    (d) => {
      d.z[0][1] = 0;
    },
    (d) => {
      d.z[0].push(1);
    },
    (d) => {
      d.axis.title.text = 'b';
    },
    (d) => {
      d.axis.range = { 0: 0, 1: 1 };
    },
    (d) => {
      d.bytes[1] = 3;
    },
    (d) => {
      d.bytes = [1, 2];
    },
    (d) => {
      delete d.is;
    },
    (d) => {
      d.more = undefined;
    },
    (d) => {
      delete d.is;
      d.other = true;
    },
    (d) => {
      d.axis = null;
    },
  ];
  for (const change of changes) {
    const changed = drawing();
    change(changed);
    assert.ok(!deepEqual(drawing(), changed), change.toString());
    assert.ok(!deepEqual(changed, drawing()), change.toString());
  }
});

test('what only looks alike is not the same', () => {
  for (const [a, b] of [
    [0, '0'],
    [null, {}],
    [[], {}],
    [undefined, null],
    [1, [1]],
  ])
    assert.ok(!deepEqual(a, b));
});
