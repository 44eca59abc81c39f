/**
 * The numbers and colours of what drawings share, as digests in drawings.json: maps of models, lines,
 * scales of colours, ticks and cells. Words do not count. After a change that is meant:
 *
 *     HEADLIGHT_RENEW_DRAWINGS=1 node --test tests/js/plot/drawings.test.js
 */

import { deepEqual } from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import '../browser.js';
import { buildAnatomy } from '../../../static/js/ui/model_map/parts.js';
import { signedBars } from '../../../static/js/plot/bars.js';
import { spread } from '../../../static/js/plot/chart.js';
import { PALETTE } from '../sample.js';
import * as colour from '../../../static/js/plot/colour.js';
import { shortBarWidth } from '../../../static/js/plot/layout.js';
import * as scales from '../../../static/js/plot/scales.js';
import { plotHeight } from '../../../static/js/ui/dom.js';
import * as lineMap from '../../../static/js/plot/lines.js';
import * as modelMap from '../../../static/js/ui/model_map/layout.js';
import * as renderer from '../../../static/js/plot/renderer.js';

const FILE = new URL('drawings.json', import.meta.url);

/** What counts of a value: numbers to four digits, truth values, and words without spaces. */
function essence(value) {
  if (typeof value === 'number')
    return Number.isFinite(value) ? Number(value.toPrecision(4)) : `${value}`;
  if (typeof value === 'string') return /\s/.test(value) ? (value.match(/-?[\d.]+/g) ?? []) : value;
  if (ArrayBuffer.isView(value)) return essence([...value]);
  if (Array.isArray(value)) return value.map(essence);
  if (value instanceof Map) return essence([...value]);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(
      Object.entries(value)
        .filter(([, each]) => typeof each !== 'function' && each !== undefined)
        .map(([name, each]) => [name, essence(each)]),
    );
  return value;
}
const digest = (value) =>
  createHash('sha256')
    .update(JSON.stringify(essence(value)) ?? '')
    .digest('hex')
    .slice(0, 12);

const made = {};
const add = (name, value) => {
  made[name] = digest(value);
};
const card = {
  id: 'tiny',
  kind: 'decoder',
  n_layers: 2,
  n_heads: 2,
  max_tokens: 64,
  positional: 'sinusoidal',
  moe: { n_experts: 4, top_k: 2, layers: [1] },
  sites: [],
  analyses: [],
};
const SHAPES = {
  'decoder with experts': {
    ...card,
    n_layers: 4,
    n_heads: 6,
    moe: { n_experts: 8, top_k: 2, layers: [0, 1, 2, 3] },
  },
  translator: { ...card, kind: 'encoder-decoder', n_layers: 3, n_heads: 6, moe: null },
  deep: { ...card, n_layers: 24, n_heads: 16, moe: null },
  'one layer': { ...card, n_layers: 1, n_heads: 1, moe: null },
};
for (const [name, shape] of Object.entries(SHAPES))
  for (const layer of [0, shape.n_layers - 1]) {
    const anatomy = buildAnatomy(shape);
    const open = { stack: 'decoder', layer };
    for (const [width, height] of [
      [248, 660],
      [320, 400],
    ])
      add(
        `rail of ${name}, ${width} pixels, layer ${layer}`,
        modelMap.railLayout(anatomy, { width, height, open }),
      );
    for (const width of [320, 358, 700]) {
      const layout = modelMap.stripLayout(anatomy, { width, open });
      const ids = layout.parts.map(({ part }) => part.id);
      add(`strip of ${name}, ${width} pixels, layer ${layer}`, [
        layout,
        ids.flatMap((id) =>
          ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight'].map((key) =>
            modelMap.neighbour(layout.parts, id, key),
          ),
        ),
      ]);
    }
  }

const matrix = {
  data: Float64Array.from({ length: 25 }, (_, at) => ((at * 7) % 11) / 10),
  rows: 5,
  columns: 5,
};
const some = lineMap.chooseLines(matrix, { threshold: 0.2, most: 12 });
const { lines = some } = some;
add('lines', [
  some,
  lineMap.chooseLines(matrix),
  lineMap.binned(lines, 1, 4),
  lineMap.findStrongest(matrix, { row: 1 }) ?? null,
  lineMap.findStrongest(matrix, { column: 1 }) ?? null,
]);
for (const theme of ['light', 'dark']) {
  for (const [name, scale] of [
    ['sequential', colour.sequential(theme)],
    ['diverging', colour.diverging(theme)],
  ])
    add(`${name} colours, ${theme}`, [
      scale,
      colour.plotlyScale(scale),
      [0, 60, 120, 128, 180, 255].map((level) => [
        colour.css(scale, level),
        colour.inkOn(scale, level),
      ]),
    ]);
}
add(
  'levels',
  [-1, 0, 0.1, 0.5, 1, 2].flatMap((value) => [
    colour.computeLevel(value, 1),
    colour.computeLevel(value, 0.5),
    colour.computeLevel(value, 0),
  ]),
);
for (const [rows, columns, size] of [
  [5, 5, 5],
  [5, 5, 12],
  [40, 30, 12],
  [3, 9, 7],
])
  for (const isCausal of [true, false]) {
    const picture = {
      data: Float64Array.from({ length: rows * columns }, (_, at) => ((at * 13) % 17) / 17),
      offset: 0,
      rows,
      columns,
      scale: 1,
      isCausal,
    };
    const sheet = { pixels: new Uint32Array(400), width: 20 };
    colour.paintInto(
      sheet,
      { left: 3, top: 2, size },
      { ...picture, ceiling: 0.8 },
      colour.packPixels(colour.sequential('light')),
    );
    add(`a head of ${rows} by ${columns} cells, ${size} pixels, ${isCausal}`, [
      sheet.pixels,
      colour.peak(picture),
    ]);
  }
const bars = [-3, -0.5, 0, 0.25, 2].map((value, at) => ({
  label: `b${at}`,
  value,
  tip: '',
  colour: 'rgb(1,2,3)',
}));
for (const width of [300, 700])
  for (const height of [undefined, 200])
    try {
      add(
        `signed bars, ${width} by ${height}`,
        signedBars(bars, { title: 't', ends: ['a', 'b'] }, { palette: PALETTE, width, height }),
      );
    } catch {
      add(`signed bars, ${width} by ${height}`, null);
    }
add('places that are spread', [
  spread([1, 1, 1, 9], 3, 20),
  spread([18, 19, 19.5], 4, 20),
  spread([0, 50], 2, 60),
]);
add(
  'ticks',
  [
    [0, 9, 100, 20],
    [3, 40, 300, 15],
    [0, 1, 10, 40],
    [0, 0, 10, 1],
  ]
    .map(([first, last, pixels, least]) => [
      scales.ticksFor(first, last, pixels, least),
      scales.ticksFor(first, last, pixels, least, [first + 1]),
    ])
    .concat([1, 7, 0.3, 120].map((end) => scales.roundTicks(end, 5))),
);
add('sizes', [
  [100, 500, 900, 2000].map(plotHeight),
  [300, 479, 480, 900].map((width) => [scales.letteringFor(width), shortBarWidth('a title')]),
  scales.labelWidth(['abc', 'a longer label']),
]);
const area = {
  left: 10,
  top: 20,
  width: 200,
  height: 100,
  window: { columns: [1, 6], rows: [0, 5] },
  axes: { x: [0.5, 5.5], y: [4.5, -0.5] },
};
const plain = { rows: 8, columns: 8, geometry: undefined };
add(
  'cells',
  [-0.1, 0, 0.3, 0.999, 1].flatMap((x) =>
    [-0.1, 0, 0.5, 1].map((y) => [
      renderer.cellAt(x, y, area, plain),
      renderer.cellAt(x, y, area, { rows: 3, columns: 1 }),
      renderer.cellAt(x, y, { ...area, window: { columns: [-2, 3], rows: [-1, 4] } }, plain),
    ]),
  ),
);
add(
  'boxes',
  [undefined, 0, 1, 5, 6].flatMap((row) =>
    [undefined, 0, 1, 5, 6].map((column) => [
      renderer.boxOf(row, column, area, plain),
      renderer.boxOf(row, column, area, { rows: 3, columns: 1 }),
    ]),
  ),
);

test('the drawings are as they were', () => {
  if (process.env.HEADLIGHT_RENEW_DRAWINGS)
    writeFileSync(FILE, `${JSON.stringify(made, null, 1)}\n`);
  deepEqual(made, JSON.parse(readFileSync(FILE, 'utf8')));
});
