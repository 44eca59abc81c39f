import { deepEqual, equal, match } from 'node:assert/strict';
import { test } from 'node:test';
import { findHighlight } from '../../../static/js/plot/grid.js';
import { attention } from '../../../static/js/views/attention/attention.js';
import { experts } from '../../../static/js/views/experts/experts.js';
import { nextToken } from '../../../static/js/views/next_token/next_token.js';
import { figuresOf, FRAME, pairTrace, sampleTrace } from '../sample.js';

const gridOf = (trace, state) => attention.figure(trace, { ...FRAME, ...state }).grid;

test('at rest the sentence is tinted by the chosen token’s row', () => {
  const cross = findHighlight(gridOf(pairTrace(), { query: 1 }), null);
  deepEqual(cross.marks, {});
  equal(cross.tints.source.length, 5);
  equal(cross.tints.target, undefined);
  const own = findHighlight(gridOf(pairTrace(), { where: 'decoder', query: 1 }), null);
  deepEqual([own.tints.target.length, own.tints.source], [3, undefined]);
});

test('a cell marks its query in one sentence and its key in the other', () => {
  const grid = gridOf(pairTrace());
  const shown = findHighlight(grid, { cell: { row: 1, column: 4 }, grid });
  deepEqual(shown.marks, { target: { query: 2 }, source: { key: 4 } }, 'the token written from it');
  equal(shown.readout, grid.describe(1, 4));
  deepEqual([...shown.tints.source], [...grid.ofRow(1).tint]);
});

test('a pointed token of the target shows its row, one of the source its column', () => {
  const grid = gridOf(pairTrace());
  const target = findHighlight(grid, { side: 'target', index: 2 });
  deepEqual(
    [target.marks, target.tints.source.length, target.readout],
    [{ target: { query: 2 } }, 5, grid.ofRow(1).readout],
  );
  const source = findHighlight(grid, { side: 'source', index: 2 });
  deepEqual(
    [source.marks, source.tints.target.length, source.readout],
    [{ source: { key: 2 } }, 3, grid.ofColumn(2).readout],
  );
});

test('a pointed token outside the drawing changes nothing', () => {
  const decoder = gridOf(pairTrace(), { where: 'decoder' });
  deepEqual(findHighlight(decoder, { side: 'source', index: 2 }), findHighlight(decoder, null));
  const [{ grid }] = figuresOf(nextToken, sampleTrace());
  deepEqual(findHighlight(grid, { side: 'source', index: 2 }), findHighlight(grid, null));
  equal(findHighlight(null, { side: 'source', index: 2 }).readout, '');
});

test('a drawing whose rows are not tokens may describe a token itself', () => {
  const [{ grid }] = figuresOf(experts, sampleTrace());
  const { readout, marks, tints } = findHighlight(grid, { side: 'source', index: 2 });
  match(readout, /saw.* goes through expert 0/);
  deepEqual(marks, { source: { query: 2 } });
  equal(tints.source[2], 1);
});
