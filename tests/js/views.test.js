import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VIEWS } from '../../static/js/views/registry.js';
import { figuresOf, FRAME, longTrace, sampleTrace } from './sample.js';

for (const view of VIEWS) {
  test(`${view.id}: has id, title, help, needs and figure`, () => {
    assert.match(view.id, /^[a-z_]+$/);
    assert.ok(view.title.length > 0);
    assert.match(view.help, /\.$/);
    assert.ok(Array.isArray(view.needs) && view.needs.length > 0);
    assert.equal(typeof view.figure, 'function');
    for (const [word, meaning] of view.terms) assert.ok(word && meaning);
  });

  test(`${view.id}: the same trace and state give the same figure, and neither is changed`, () => {
    const trace = sampleTrace();
    const before = JSON.stringify([trace, FRAME]);
    const strip = (figures) => JSON.stringify(figures);
    assert.equal(strip(figuresOf(view, trace)), strip(figuresOf(view, trace)));
    assert.equal(JSON.stringify([trace, FRAME]), before);
  });

  test(`${view.id}: every figure says what it is, and every cell can be read`, () => {
    for (const figure of figuresOf(view, sampleTrace())) {
      assert.ok(figure.title && figure.summary);
      const { grid } = figure;
      assert.equal(grid.rowLabels.length, grid.rows);
      assert.equal(grid.columnLabels.length, grid.columns);
      for (let row = 0; row < grid.rows; row += 1) {
        for (let column = 0; column < grid.columns; column += 1) {
          assert.ok(grid.describe(row, column).length > 10);
          const [what, much] = grid.tip(row, column);
          assert.ok(what && much);
          assert.ok(Number.isNaN(grid.value(row, column)) || grid.format(grid.value(row, column)).length > 0);
        }
      }
      assert.ok(grid.start.row < grid.rows && grid.start.column < grid.columns);
    }
  });

  test(`${view.id}: no token reaches Plotly as markup`, () => {
    const text = JSON.stringify(figuresOf(view, sampleTrace()).map(({ data, layout }) => [data, layout]));
    assert.ok(!text.includes('<b>') && !text.includes('<s>') && !text.includes('<i>'), text.match(/.{20}<[bsi]>.{20}/)?.[0]);
    assert.ok(!text.includes('hovertemplate'));
  });

  test(`${view.id}: axes count cells, so that equal tokens stay apart`, () => {
    for (const { layout } of figuresOf(view, sampleTrace())) {
      for (const axis of [layout.xaxis, layout.yaxis]) {
        if (axis.tickmode === 'array') assert.ok(axis.tickvals.every(Number.isInteger));
      }
    }
  });

  test(`${view.id}: fits the width it is given, at 256 tokens too`, () => {
    const long = longTrace(256);
    for (const width of [358, 820, 1360]) {
      for (const figure of figuresOf(view, long, { width, layer: 1 })) {
        assert.ok(figure.layout.width <= width, `${figure.title}: ${figure.layout.width} in ${width}`);
        assert.ok(figure.layout.xaxis.tickvals === undefined || figure.layout.xaxis.tickvals.length <= width / 12);
      }
    }
  });
}
