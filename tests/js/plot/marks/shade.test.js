import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';

import { chart } from '../../../../static/js/plot/chart.js';
import { shade } from '../../../../static/js/plot/marks/shade.js';
import { band } from '../../../../static/js/plot/scales.js';
import { PALETTE } from '../../sample.js';

/** The last of two columns, shaded over a row of 100 pixels. */
function drawn(width, text) {
  const mark = shade([0], {
    from: () => ({ x: 0.5, y: -0.5 }),
    to: () => ({ x: 1.5, y: 0.5 }),
    text: () => text,
  });
  const spec = {
    x: band(['a', 'b']),
    y: band(['']),
    marks: [mark],
    size: { row: 100, cell: width },
  };
  const { layout } = chart({ ...spec, table: { quantity: 'q' } }, { width: 900, palette: PALETTE });
  return layout;
}

test('an area lies behind the marks, from corner to corner', () => {
  const [{ x0, x1, y0, y1, layer }] = drawn(50, '').shapes;
  deepEqual([x0, x1, y0, y1, layer], [0.5, 1.5, -0.5, 0.5, 'below']);
  equal(drawn(50, '').annotations.length, 0);
});

test('its words lie in a line, word below word or upright, as there is room', () => {
  const words = (width) => drawn(width, 'then <later>').annotations[0];
  deepEqual([words(120).textangle, words(120).text.includes('<br>')], [0, false]);
  deepEqual([words(66).textangle, words(66).text.includes('<br>')], [0, true]);
  deepEqual([words(20).textangle, words(20).text.includes('<br>')], [-90, false]);
  for (const width of [120, 66, 20]) ok(!words(width).text.includes('<later>'));
  equal(words(8), undefined);
  equal(drawn(20, 'longer than the height of the row').annotations[0], undefined);
});
