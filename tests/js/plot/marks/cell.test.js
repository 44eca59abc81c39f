/** The numbers in the cells of a map. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';

import { chart } from '../../../../static/js/plot/chart.js';
import { cell } from '../../../../static/js/plot/marks/mark.js';
import { band } from '../../../../static/js/plot/scales.js';
import { PALETTE } from '../../sample.js';

const GREY = Uint8Array.from({ length: 768 }, (_, at) => Math.floor(at / 3));

/** The texts of a map of square cells with the numbers from 1. */
function textsOf(rows, columns, text, size = {}) {
  const names = (count) => Array.from({ length: count }, (_, at) => `${at}`);
  const data = Float64Array.from({ length: rows * columns }, (_, at) => at + 1);
  const ramp = { title: 'share', domain: [1, rows * columns], colours: GREY };
  const { data: traces } = chart(
    {
      x: band(names(columns)),
      y: band(names(rows)),
      marks: [cell({ rows, columns, data }, { ramp, ...(text && { text }) })],
      size: { isSquare: true, ...size },
      table: { quantity: 'share' },
    },
    { width: 600, height: 500, palette: PALETTE },
  );
  return traces.find(({ mode }) => mode === 'text');
}

test('each number is written into its own cell, in an ink that is seen on it', () => {
  const { x, y, text, textfont } = textsOf(2, 3, ({ value }) => `<${value}`);
  deepEqual(x, [0, 1, 2, 0, 1, 2]);
  deepEqual(y, [0, 0, 0, 1, 1, 1]);
  deepEqual(
    text.map((words) => Number(words.match(/\d$/)[0])),
    [1, 2, 3, 4, 5, 6],
  );
  ok(text.every((words) => !words.includes('<')));
  deepEqual([textfont.color[0], textfont.color.at(-1)], ['#fff', '#000']);
});

test('numbers are left out where they are not wanted, or one of them has no room', () => {
  equal(textsOf(2, 3), undefined);
  const text = ({ value }) => (value === 6 ? '−0.3' : '1');
  equal(textsOf(8, 8, text, { row: 33 }).text.length, 64);
  equal(textsOf(8, 8, text, { row: 30 }), undefined);
});
