/** The pairs of an encoding, the speeds of a rotation, and the end of a scale of colours. */

import { deepEqual, equal, match } from 'node:assert/strict';
import { test } from 'node:test';
import {
  findCeiling,
  frequencies,
  pairsOf,
  findWaves,
  speedFacts,
} from '../../../static/js/trace/arithmetic.js';

const [ROWS, WIDTH] = [9, 8];

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
