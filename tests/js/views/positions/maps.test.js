import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import {
  byDistance,
  cosineSimilarity,
  similarityOf,
} from '../../../../static/js/views/positions/maps.js';

test('it is symmetric and 1 on the diagonal, and a row of zeros is like nothing', () => {
  const rows = Float64Array.from({ length: 12 }, (_, i) => (i < 9 ? Math.sin(i * 7.3) : 0));
  const { data } = cosineSimilarity({ rows: 4, columns: 3, data: rows });
  for (let a = 0; a < 3; a += 1) {
    ok(Math.abs(data[a * 4 + a] - 1) < 1e-12);
    for (let b = 0; b < 4; b += 1) equal(data[a * 4 + b], data[b * 4 + a]);
  }
  equal(data[15], 0);
});

test('sinusoidal positions are as alike as their distance says, wherever they stand', () => {
  const width = 32;
  const data = new Float64Array(40 * width);
  for (let p = 0; p < 40; p += 1) {
    for (let i = 0; i < width; i += 2) {
      const angle = p / 10000 ** (i / width);
      data[p * width + i] = Math.sin(angle);
      data[p * width + i + 1] = Math.cos(angle);
    }
  }
  const cosines = cosineSimilarity({ rows: 40, columns: width, data }).data;
  for (const distance of [1, 5, 20])
    ok(Math.abs(cosines[distance] - cosines[10 * 40 + 10 + distance]) < 1e-9);
});

test('by distance: mean, least and greatest of all pairs so far apart', () => {
  const cosines = {
    rows: 3,
    columns: 3,
    data: Float64Array.of(1, 0.5, -0.2, 0.5, 1, 0.1, -0.2, 0.1, 1),
  };
  const { mean, least, most } = byDistance(cosines);
  mean.forEach((value, distance) => ok(Math.abs(value - [1, 0.3, -0.2][distance]) < 1e-12));
  deepEqual([...least], [1, 0.1, -0.2]);
  deepEqual([...most], [1, 0.5, -0.2]);
});

test('it is computed once for each matrix', () => {
  const matrix = { rows: 2, columns: 2, data: Float64Array.of(1, 0, 0, 1) };
  equal(similarityOf(matrix), similarityOf(matrix));
  deepEqual(similarityOf({ ...matrix, data: Float64Array.of(1, 0, 1, 0) }).data[1], 1);
  equal(similarityOf(matrix).data[1], 0);
});
