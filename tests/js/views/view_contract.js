/**
 * The invariants of every figure of every view; a view that requests more than the page's trace checks
 * its own figures by these, with the answers that it gets.
 */

import { equal, ok } from 'node:assert/strict';

/** @param {Figure} figure one that is drawn */
export function assertReadable(figure) {
  ok(figure.title && figure.summary);
  for (const [term, value] of figure.facts ?? [])
    ok(term && String(value).length > 0, `${figure.title}: ${term}`);
  const { grid } = figure;
  equal(grid.rowLabels.length, grid.rows);
  equal(grid.columnLabels.length, grid.columns);
  for (let row = 0; row < grid.rows; row += 1) {
    for (let column = 0; column < grid.columns; column += 1) {
      ok(grid.describe(row, column).length > 10);
      const [what, much] = grid.tip(row, column);
      ok(what && much);
      ok(Number.isNaN(grid.value(row, column)) || grid.format(grid.value(row, column)).length > 0);
    }
  }
  ok(grid.start.row < grid.rows && grid.start.column < grid.columns);
}

/** Tokens of the sample hold tags; Plotly would read them. */
function assertNoMarkup(figures) {
  const text = JSON.stringify(figures.map(({ data, layout }) => [data, layout]));
  ok(
    !text.includes('<b>') && !text.includes('<s>') && !text.includes('<i>'),
    text.match(/.{20}<[bsi]>.{20}/)?.[0],
  );
  ok(!text.includes('hovertemplate'));
}

/** Axes count cells, so that equal tokens stay apart. */
function assertAxesCount({ layout }) {
  for (const axis of [layout.xaxis, layout.yaxis].filter(Boolean)) {
    if (axis.tickmode === 'array') ok(axis.tickvals.every(Number.isInteger));
  }
}

export function assertFits({ title, layout }, width) {
  ok(layout.width <= width, `${title}: ${layout.width} in ${width}`);
  const ticks = layout.xaxis?.tickvals;
  ok(
    ticks === undefined || ticks.length <= width / 12,
    `${title}: ${ticks?.length} ticks in ${width}`,
  );
}

/**
 * All of it, for figures that are drawn.
 * @param {Figure[]} figures
 * @param {number} width they were given
 */
export function assertContract(figures, width) {
  ok(figures.length > 0);
  assertNoMarkup(figures);
  for (const figure of figures) {
    assertReadable(figure);
    assertAxesCount(figure);
    assertFits(figure, width);
  }
}

/** A phone, a tablet and a desktop. */
export const WIDTHS = [358, 820, 1360];
