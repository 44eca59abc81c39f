/** Maps of squares, with the numbers in their cells. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { squaresFigure } from '../../../static/js/plot/map.js';
import { PALETTE } from '../sample.js';

const SIZE = { width: 600, height: 500, palette: PALETTE };
const grey = Uint8Array.from({ length: 768 }, (_, at) => Math.floor(at / 3));
const WANTED = {
  matrix: { rows: 2, columns: 3, data: Float64Array.of(1, 2, 3, 4, 5, 6) },
  rows: ['a', 'b'],
  columns: ['x', 'y', '<z>'],
  titles: { rows: 'row', columns: 'column' },
  scale: { bottom: 1, top: 6, colours: grey },
  quantity: 'share',
};
const numbersOf = ({ data }) => data.find(({ mode }) => mode === 'text');

test('each number is written into its own cell, in an ink that is seen on it', () => {
  const { x, y, text, textfont } = numbersOf(
    squaresFigure({ ...WANTED, numbers: (value) => `<${value}` }, SIZE),
  );
  deepEqual(x, [0, 1, 2, 0, 1, 2]);
  deepEqual(y, [0, 0, 0, 1, 1, 1]);
  deepEqual(
    text.map((words) => Number(words.match(/\d$/)[0])),
    [1, 2, 3, 4, 5, 6],
  );
  ok(text.every((words) => !words.includes('<')));
  deepEqual([textfont.color[0], textfont.color.at(-1)], ['#fff', '#000']);
});

test('numbers are left out where they are not wanted, or the cells are too small', () => {
  equal(numbersOf(squaresFigure(WANTED, SIZE)), undefined);
  const count = 60;
  const names = Array.from({ length: count }, (_, at) => `${at}`);
  const data = new Float64Array(count * count).fill(2);
  const many = { ...WANTED, rows: names, columns: names, numbers: String };
  equal(
    numbersOf(squaresFigure({ ...many, matrix: { rows: count, columns: count, data } }, SIZE)),
    undefined,
  );
});
