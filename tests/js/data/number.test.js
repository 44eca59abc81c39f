import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  amount,
  counted,
  decimal,
  exact,
  percent,
  rounded,
  share,
  shortShare,
  signed,
  small,
  tick,
} from '../../../static/js/data/number.js';

test('a share keeps its digits', () => {
  assert.equal(share(0.3121), '0.312');
  assert.equal(share(1, 2), '1.00');
});

test('an amount has the digits that count', () => {
  assert.deepEqual(
    [123.4, -4.567, 0.0018349, 0, 1234].map((value) => amount(value)),
    ['123', '−4.57', '0.00183', '0', '1230'],
  );
  assert.equal(amount(123.45, 4), '123.5');
});

test('a number keeps its decimals, and one too small for them its size', () => {
  assert.deepEqual(
    [1.3554, -0.001, 0, -0.0000241, 0.00099, -Infinity].map((value) => decimal(value)),
    ['1.355', '−0.001', '0', '−2.4·10⁻⁵', '9.9·10⁻⁴', '−∞'],
  );
  assert.equal(decimal(0.00031, 4), '0.0003');
});

test('an exact 0 is 0, and what is nearly nothing is not called nothing', () => {
  for (const digits of [2, 3, 4]) assert.equal(share(0, digits), '0');
  assert.equal(share(0.0001), '<0.001');
  assert.equal(share(0.00004, 4), '<0.0001');
  assert.equal(percent(0), '0 %');
  assert.equal(percent(0.0001), '<0.1 %');
  assert.equal(signed(0, 4), '0');
  assert.equal(signed(0.00001, 4), '<0.0001');
  assert.equal(signed(-0.00001, 4), '>−0.0001');
});

test('what is not all is not called all, so that a row never looks like more than 1', () => {
  assert.equal(share(0.99999, 4), '>0.9999');
  assert.equal(percent(0.9999), '>99.9 %');
  assert.equal(percent(1), '100.0 %');
  assert.equal(signed(0.99999, 4), '1.0000', 'a signed number is no share of anything');
});

test('no number is written as a 0 with digits', () => {
  for (let value = 0; value < 0.01; value += 1e-5)
    assert.doesNotMatch(
      `${share(value)} ${share(value, 4)} ${percent(value)} ${signed(-value)}`,
      /(^|[ −])0\.0+( |$)/,
    );
});

test('where there is little room the 0 before the point is left out', () => {
  assert.deepEqual([0.625, 0.001, 0.9999, 0, 1].map(shortShare), [
    '.63',
    '<.01',
    '>.99',
    '0',
    '1.00',
  ]);
});

test('signs are true minus signs', () => {
  assert.equal(signed(-0.5, 2), '−0.50');
  assert.equal(signed(0.5, 2), '0.50');
});

test('a tick has no more digits than it needs', () => {
  assert.deepEqual([0.6, 0.1 + 0.2, -1, 0.9250001, 0].map(tick), [
    '0.6',
    '0.3',
    '−1',
    '0.925',
    '0',
  ]);
});

test('percentages, counts and sizes read as words do', () => {
  assert.equal(percent(0.1234), '12.3 %');
  assert.equal(percent(0.1234, 0), '12 %');
  assert.equal(rounded(6_122_880), '6.1 million');
  assert.equal(rounded(950_000), '950 thousand');
  assert.equal(rounded(31), '31');
  assert.equal(counted(1, 'token'), '1 token');
  assert.equal(counted(0, 'token'), '0 tokens');
});

test('an exact number has the digits that give it back, and no more', () => {
  assert.equal(exact(Math.fround(0.1)), '0.1');
  assert.equal(exact(Math.fround(4.39e-6)), '0.00000439');
  for (const value of [
    0,
    1,
    -2.5,
    Math.fround(1 / 3),
    Math.fround(Math.PI),
    2 ** -149,
    Math.fround(3e38),
  ]) {
    assert.equal(Math.fround(Number(exact(value))), value);
    assert.ok(exact(value).length <= String(value).length);
  }
  assert.equal(exact(0.1), '0.1', 'a float64 stays as it is');
});

test('a tiny difference is told by its power of ten', () => {
  assert.equal(small(0), '0');
  assert.equal(small(0.25), '0.250');
  assert.equal(small(4.2e-8), '4.2·10⁻⁸');
  assert.equal(small(1.26e-12), '1.3·10⁻¹²');
});
