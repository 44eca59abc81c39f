import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { geometryOf, lensMap, settingFor } from '../../../../static/js/views/stream/lens.js';
import { FRAME, TOKENS } from '../../sample.js';

test('every cell is found at its own position only', () => {
  const setting = settingFor(50, 3, 700);
  const { box, at } = geometryOf(setting);
  const seen = new Set();
  for (let row = 0; row < 3; row += 1) {
    for (let column = 0; column < 50; column += 1) {
      const { x0, x1, y0, y1 } = box(row, column);
      deepEqual(at((x0 + x1) / 2, (y0 + y1) / 2), { row, column });
      deepEqual(at(x0 + 0.01, y1 - 0.01), { row, column });
      seen.add(`${x0} ${y0}`);
    }
  }
  equal(seen.size, 150);
});

test('the map shows tokens, numbers and names in the places that the geometry says', () => {
  const probabilities = {
    rows: 2,
    columns: 5,
    data: Float64Array.from({ length: 10 }, (_, at) => at / 10),
  };
  const lens = {
    tokens: TOKENS,
    probabilities,
    nameAt: (layer, position) => `${layer}<${position}`,
    isRight: (layer, position) => layer === 1 && position === 3,
  };
  const state = { ...FRAME, width: 260 };
  const { data, layout } = lensMap(lens, state);
  const [map, heads, names, underlines] = data;
  const { box } = geometryOf(settingFor(5, 2, 260));
  ok(map.z.length > 3, 'more lines than one');
  for (let at = 0; at < 10; at += 1) {
    const { x0, y0 } = box(Math.floor(at / 5), at % 5);
    equal(map.z[y0 + 0.5][x0 + 0.5], at / 10);
    const written = names.x.findIndex((x, index) => x === x0 + 0.5 && names.y[index] === y0 + 0.5);
    equal(names.text[written], `${Math.floor(at / 5)}&lt;${at % 5}`);
  }
  deepEqual(map.z[0], new Array(map.z[0].length).fill(null), 'no number beside the tokens');
  equal(heads.text[0], '&lt;s&gt;');
  const { x0, y1 } = box(1, 3);
  equal(underlines.x.length, 3);
  ok(underlines.x[0] > x0 && underlines.y[0] < y1 && underlines.y[0] > y1 - 0.1);
  deepEqual(layout.yaxis.ticktext.slice(0, 3), ['layer', '0', '1']);
});
