import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  anglesOf,
  blocksOf,
  checked,
  divergence,
  entropyOf,
  extent,
  frequencies,
  highestIn,
  largestIn,
  softmax,
  softmaxSteps,
  totalVariation,
  transposed,
  turned,
} from '../../../static/js/data/math.js';

const matrix = (columns, ...numbers) => ({
  rows: numbers.length / columns,
  columns,
  data: Float64Array.from(numbers),
});

test('rows become columns, and twice is once too often', () => {
  const one = matrix(3, 1, 2, 3, 4, 5, 6);
  assert.deepEqual(transposed(one), matrix(2, 1, 4, 2, 5, 3, 6));
  assert.deepEqual(transposed(transposed(one)), one);
});

test('the extent of a matrix is its largest absolute value, and nothing counts for nothing', () => {
  assert.equal(extent(matrix(2, -3, NaN, 1, 2)), 3);
  assert.equal(extent(matrix(2, NaN, NaN, NaN, NaN)), 0);
});

test('the highest is found behind what is hidden, and of equals it is the first', () => {
  assert.equal(highestIn([NaN, 0.2, 0.7, 0.7]), 2);
  assert.equal(highestIn([0.7, NaN, 0.2]), 0);
  assert.equal(highestIn([NaN, NaN]), 0);
});

test('the largest change is found on either side of zero', () => {
  assert.deepEqual(largestIn(matrix(2, NaN, 0.1, 0.2, -0.4)), { row: 1, column: 1 });
});

const near = (found, wanted) =>
  assert.ok(Math.abs(found - wanted) < 1e-12, `${found} is not ${wanted}`);

test('softmax sums to 1 and overflows nowhere', () => {
  const found = softmax([1000, 1000 + Math.log(3)]);
  near(found[0], 0.25);
  near(found[1], 0.75);
});

test('a hidden score gets no weight, and the steps of a softmax are those of its formula', () => {
  const { weights, total, greatest } = softmaxSteps(Float64Array.of(2000, 2001, -Infinity));
  assert.equal(greatest, 2001);
  near(total, 1 + Math.exp(-1));
  near(weights[1], 1 / (1 + Math.exp(-1)));
  assert.equal(weights[2], 0);
});

test('entropy is 0 where one takes all and log n where all take the same, in nats or bits', () => {
  assert.equal(entropyOf([0, 1, 0]), 0);
  near(entropyOf([0.25, 0.25, 0.25, 0.25]), Math.log(4));
  near(entropyOf([0.5, 0.25, 0.25]), 1.5 * Math.LN2);
  near(entropyOf([0.25, 0.25, 0.25, 0.25], Math.log2), 2);
});

test('the distance is the probability that moved', () => {
  near(totalVariation([0.5, 0.5, 0], [0.2, 0.5, 0.3]), 0.3);
  assert.equal(totalVariation([0.5, 0.5], [0.5, 0.5]), 0);
  assert.equal(totalVariation([1, 0], [0, 1]), 1);
});

test('the divergence counts bits', () => {
  near(divergence([1, 0], [0.25, 0.75]), 2);
  assert.equal(divergence([0.5, 0.5], [0.5, 0.5]), 0);
  assert.equal(divergence([0.5, 0.5], [1, 0]), Infinity);
});

const WIDTH = 8;
const close = (found, expected, within = 1e-12) => {
  assert.equal(found.length, expected.length);
  found.forEach((value, index) =>
    assert.ok(
      Math.abs(value - expected[index]) < within,
      `${index}: ${value} is not ${expected[index]}`,
    ),
  );
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
  assert.equal(frequencies(1).length, 0);
  assert.equal(frequencies(5).length, 2);
});

test('a quarter turn by hand: (sin 0, cos 0) becomes (sin 90°, cos 90°)', () => {
  close([...turned(Float64Array.of(0, 1), Float64Array.of(Math.PI / 2))], [1, 0]);
  close([...turned(Float64Array.of(3, 4), Float64Array.of(Math.PI))], [-3, -4]);
  close([...turned(Float64Array.of(1, 2, 5), Float64Array.of(Math.PI / 2))], [2, -1, 5]);
});

test('a block by hand: 60°', () => {
  close(
    [...blocksOf(Float64Array.of(Math.PI / 3)).data],
    [0.5, Math.sqrt(3) / 2, -Math.sqrt(3) / 2, 0.5],
  );
});

for (const shift of [1, 3, 40, 255]) {
  test(`R(${shift}) carries every PE(p) to PE(p + ${shift}), to 1e-6`, () => {
    for (const position of [0, 1, 17, 200]) {
      close(
        [...turned(encodingAt(position), anglesOf(shift, WIDTH))],
        [...encodingAt(position + shift)],
        1e-6,
      );
    }
  });
}

test('turning on and back is nothing, and no turn changes a length', () => {
  const vector = Float64Array.of(0.3, -2, 5, 0.01);
  const there = turned(vector, anglesOf(7, 4));
  close([...turned(there, anglesOf(-7, 4))], [...vector]);
  assert.ok(Math.abs(Math.hypot(there[0], there[1]) - Math.hypot(0.3, 2)) < 1e-12);
});

test('a query is turned the other way round, as rotary positions have it', () => {
  const angle = 2;
  const [even, odd] = turned(Float64Array.of(3, 1), anglesOf(-angle, 2));
  close(
    [even, odd],
    [3 * Math.cos(angle) - Math.sin(angle), 3 * Math.sin(angle) + Math.cos(angle)],
  );
});

test('all rows that have another so far on are compared, and one wrong number is found with its pair', () => {
  const rows = Array.from({ length: 12 }, (_, position) => encodingAt(position));
  const angles = anglesOf(5, WIDTH);
  const right = checked(matrixOf(rows), matrixOf(rows), { shift: 5, angles: () => angles });
  assert.equal(right.count, 7);
  assert.ok(right.greatest < 1e-6);
  rows[9][5] += 0.25;
  const wrong = checked(matrixOf(rows), matrixOf(rows), { shift: 5, angles: () => angles });
  assert.ok(Math.abs(wrong.greatest - 0.25) < 1e-6);
  assert.deepEqual(
    [...wrong.byPair].map((value) => value > 0.1),
    [false, false, true, false],
  );
});

test('where no row has another so far on, nothing is compared', () => {
  const encoding = matrixOf([encodingAt(0), encodingAt(1)]);
  assert.deepEqual(
    checked(encoding, encoding, { shift: 2, angles: () => anglesOf(2, WIDTH) }).count,
    0,
  );
});
