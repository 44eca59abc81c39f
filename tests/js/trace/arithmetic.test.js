/** The arithmetic of attention, and of the pairs of an encoding. */

import { deepEqual, doesNotMatch, equal, ok, match } from 'node:assert/strict';
import { test } from 'node:test';
import {
  computeAngles,
  chainSteps,
  checked,
  divergence,
  entropyInBits,
  frequencies,
  softmax,
  softmaxSteps,
  totalVariation,
  turned,
  findCeiling,
  pairsOf,
  findWaves,
  speedFacts,
} from '../../../static/js/trace/arithmetic.js';
import { highestIn } from '../../../static/js/trace/trace.js';
import { counted } from '../../../static/js/words/lists.js';
import { amount, percent, share, signed, small, tick } from '../../../static/js/words/numbers.js';
import { exact } from '../../../static/js/ui/exports.js';
import { rounded } from '../../../static/js/ui/model_card.js';
import { near } from '../sample.js';

test('an amount has the digits that count', () => {
  deepEqual(
    [123.4, -4.567, 0.0018349, 0, 1234].map((value) => amount(value)),
    ['123', '−4.57', '0.00183', '0', '1230'],
  );
  equal(amount(123.45, 4), '123.5');
});

test('an exact 0 is written 0, a tiny number is not', () => {
  for (const digits of [2, 3, 4]) equal(share(0, digits), '0');
  equal(share(0.0001), '<0.001');
  equal(share(0.00004, 4), '<0.0001');
  equal(percent(0), '0 %');
  equal(percent(0.0001), '<0.1 %');
  equal(signed(0, 4), '0');
  equal(signed(0.00001, 4), '<0.0001');
  equal(signed(-0.00001, 4), '>−0.0001');
});

test('no number is written as a 0 with digits', () => {
  for (let value = 0; value < 0.01; value += 1e-5)
    doesNotMatch(
      `${share(value)} ${share(value, 4)} ${percent(value)} ${signed(-value)}`,
      /(^|[ −])0\.0+( |$)/,
    );
});

test('a tick has no more digits than it needs', () => {
  deepEqual([0.6, 0.1 + 0.2, -1, 0.9250001, 0].map(tick), ['0.6', '0.3', '−1', '0.925', '0']);
});

test('percentages, counts and sizes read as words do', () => {
  equal(percent(0.1234), '12.3 %');
  equal(percent(0.1234, 0), '12 %');
  equal(rounded(6_122_880), '6.1 million');
  equal(rounded(950_000), '950 thousand');
  equal(rounded(31), '31');
  equal(rounded(1_803), '1,803');
  equal(counted(1, 'token'), '1 token');
  equal(counted(0, 'token'), '0 tokens');
  equal(counted(1_803, 'token'), '1,803 tokens');
});

test('an exact number has the digits that give it back, and no more', () => {
  equal(exact(Math.fround(0.1)), '0.1');
  equal(exact(Math.fround(4.39e-6)), '0.00000439');
  for (const value of [
    0,
    1,
    -2.5,
    Math.fround(1 / 3),
    Math.fround(Math.PI),
    2 ** -149,
    Math.fround(3e38),
  ]) {
    equal(Math.fround(Number(exact(value))), value);
    ok(exact(value).length <= String(value).length);
  }
  equal(exact(0.1), '0.1', 'a float64 stays as it is');
});

test('a tiny difference is written as a power of ten', () => {
  equal(small(0), '0');
  equal(small(0.25), '0.250');
  equal(small(4.2e-8), '4.2·10⁻⁸');
  equal(small(1.26e-12), '1.3·10⁻¹²');
});

test('the highest value skips hidden cells, and the first of equals wins', () => {
  equal(highestIn([NaN, 0.2, 0.7, 0.7]), 2);
  equal(highestIn([0.7, NaN, 0.2]), 0);
  equal(highestIn([NaN, NaN]), 0);
});

test('softmax sums to 1 and overflows nowhere', () => {
  const found = softmax([1000, 1000 + Math.log(3)]);
  near(found[0], 0.25);
  near(found[1], 0.75);
});

test('a hidden score gets no weight, and the steps of a softmax are those of its formula', () => {
  const { weights, total, greatest } = softmaxSteps(Float64Array.of(2000, 2001, -Infinity));
  equal(greatest, 2001);
  near(total, 1 + Math.exp(-1));
  near(weights[1], 1 / (1 + Math.exp(-1)));
  equal(weights[2], 0);
});

test('entropy is 0 for one certain outcome and log n for even ones, in nats or bits', () => {
  equal(entropyInBits([0, 1, 0]), 0);
  near(entropyInBits([0.25, 0.25, 0.25, 0.25]), 2);
  near(entropyInBits([0.5, 0.25, 0.25]), 1.5);
});

test('the distance is the probability that moved', () => {
  near(totalVariation([0.5, 0.5, 0], [0.2, 0.5, 0.3]), 0.3);
  equal(totalVariation([0.5, 0.5], [0.5, 0.5]), 0);
  equal(totalVariation([1, 0], [0, 1]), 1);
});

test('the divergence counts bits', () => {
  near(divergence([1, 0], [0.25, 0.75]), 2);
  equal(divergence([0.5, 0.5], [0.5, 0.5]), 0);
  equal(divergence([0.5, 0.5], [1, 0]), Infinity);
});

const WIDTH = 8;
const close = (found, expected, within = 1e-12) => {
  equal(found.length, expected.length);
  found.forEach((value, index) => near(value, expected[index], within));
};

/** PE(p) by the paper's formula, in float32 as a model sends it. */
const encodingAt = (position, width = WIDTH) =>
  Float32Array.from({ length: width }, (_, dimension) => {
    const angle = position / 10000 ** ((2 * Math.floor(dimension / 2)) / width);
    return dimension % 2 === 0 ? Math.sin(angle) : Math.cos(angle);
  });
const matrixOf = (rows) => ({
  rows: rows.length,
  columns: rows[0].length,
  data: Float64Array.from(rows.flatMap((row) => [...row])),
});

test('frequencies fall from 1 by the paper’s formula', () => {
  close([...frequencies(8)], [1, 0.1, 0.01, 0.001]);
  close([...frequencies(2)], [1]);
  equal(frequencies(1).length, 0);
  equal(frequencies(5).length, 2);
});

for (const shift of [1, 3, 40, 255]) {
  test(`R(${shift}) carries every PE(p) to PE(p + ${shift}), to 1e-6`, () => {
    for (const position of [0, 1, 17, 200]) {
      close(
        [...turned(encodingAt(position), computeAngles(shift, frequencies(WIDTH)))],
        [...encodingAt(position + shift)],
        1e-6,
      );
    }
  });
}

test('all row pairs at the shift are compared, and one wrong number is found', () => {
  const rows = Array.from({ length: 12 }, (_, position) => encodingAt(position));
  const angles = computeAngles(5, frequencies(WIDTH));
  const right = checked(matrixOf(rows), matrixOf(rows), { shift: 5, angles: () => angles });
  equal(right.count, 7);
  ok(right.greatest < 1e-6);
  rows[9][5] += 0.25;
  const wrong = checked(matrixOf(rows), matrixOf(rows), { shift: 5, angles: () => angles });
  ok(Math.abs(wrong.greatest - 0.25) < 1e-6);
});

test('a step of a calculation is right if its side has the value of the side before', () => {
  const marks = (text, isEnded = true) =>
    chainSteps(text, isEnded).map(({ text: side, isRight }) => [side, isRight]);
  deepEqual(marks('47*23=47*20+47*3=940+141=1081'), [
    ['47*20+47*3', true],
    ['940+141', true],
    ['1081', true],
  ]);
  deepEqual(marks('47*23=940+131=1081'), [
    ['940+131', false],
    ['1081', false],
  ]);
  deepEqual(marks('47*23=940+14', false), []);
  deepEqual(marks('47*23=940+141=10', false), [['940+141', true]]);
  deepEqual(marks('47*23=940+=940'), [
    ['940+', false],
    ['940', false],
  ]);
  deepEqual(marks('The cat = the dog'), []);
  deepEqual(marks('47*23'), []);
});

const ROWS = 9;

/** An encoding whose sines and cosines lie where `pairs` says. */
function encodingBy({ first, second, speeds }) {
  const data = new Float64Array(ROWS * WIDTH);
  for (let row = 0; row < ROWS; row += 1)
    speeds.forEach((speed, pair) => {
      data[row * WIDTH + first[pair]] = Math.sin(speed * row);
      data[row * WIDTH + second[pair]] = Math.cos(speed * row);
    });
  return { rows: ROWS, columns: WIDTH, data };
}

test('sine and cosine are neighbours, or lie half a width apart', () => {
  const { first, second, speeds } = pairsOf(WIDTH);
  deepEqual(
    [first, second],
    [
      [0, 2, 4, 6],
      [1, 3, 5, 7],
    ],
  );
  deepEqual(speeds, [...frequencies(WIDTH)]);
  const halves = pairsOf(WIDTH, true);
  deepEqual(
    [halves.first, halves.second],
    [
      [0, 1, 2, 3],
      [4, 5, 6, 7],
    ],
  );
});

test('the order of the pairs is seen in the encoding', () => {
  for (const isHalved of [false, true]) {
    const pairs = pairsOf(WIDTH, isHalved);
    deepEqual(findWaves(encodingBy(pairs)), pairs);
  }
});

test('an encoding without waves has neighbours as pairs', () => {
  const halves = pairsOf(WIDTH, true);
  for (const dimension of [halves.first[3], halves.second[3]]) {
    const learned = encodingBy(halves);
    learned.data[(ROWS - 1) * WIDTH + dimension] += 0.01;
    deepEqual(findWaves(learned), pairsOf(WIDTH));
  }
});

test('the facts of a rotation name its base, and a scaling only if there is one', () => {
  const rotation = { base: 10_000, speeds: [1, 0.1, 0.01, 0.001], factor: 1, scaling: {} };
  const [[name, speed], ...others] = speedFacts(rotation);
  match(speed, /10,000.*i\/4/);
  deepEqual(others, []);
  const scaled = speedFacts({
    ...rotation,
    factor: 0.5,
    scaling: { rope_type: 'yarn', factor: 4 },
  });
  deepEqual([scaled.length, scaled[0][0]], [3, name]);
  equal(scaled[0][1].includes(speed) && scaled[0][1] !== speed, true);
  match(scaled[1][1], /^yarn\b.*factor 4$/);
  equal(scaled[2][1], '0.5');
  deepEqual(speedFacts({ ...rotation, base: 0 }), []);
  const [, [, length]] = speedFacts({ ...rotation, n_tokens: 4_097 });
  match(length, /4,097 tokens/);
  deepEqual(speedFacts({ ...rotation, n_tokens: 0 }).length, 1);
});

test('the end of the colours leaves a part of the positive values above it', () => {
  const values = Float64Array.of(0, 4, 0, 1, 0, 3, -9, 2, 0);
  deepEqual(
    [0.25, 0.5, 0.6, 1].map((part) => findCeiling(values, part)),
    [1, 2, 3, 4],
  );
  equal(findCeiling(Float64Array.of(0, -1), 0.9), 1, 'without a positive value');
});
