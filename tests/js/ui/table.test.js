/** The numbers of a drawing as a table of pages. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, blank, find, labelled, texts } from '../browser.js';
import { createPages } from '../../../static/js/ui/table.js';

const GRID = {
  rows: 3,
  columns: 2,
  rowTitle: 'query',
  columnTitle: 'key',
  rowLabels: ['a', 'b', 'c'],
  columnLabels: ['x', 'y'],
  quantity: 'weight of it',
  value: (row, column) => (row === 1 && column === 1 ? NaN : row + column / 10),
  format: (value) => `f${value}`,
};
let host, pages;
beforeEach(() => {
  blank('<div id="host"></div>');
  host = find('#host');
  pages = createPages(host);
});
const body = () =>
  all('tbody tr').map((line) => [...line.children].map(({ textContent }) => textContent));

test('rows and columns are headed, and empty cells are named', () => {
  pages.show(GRID);
  deepEqual(texts('thead th'), ['query \\ key', 'x', 'y']);
  deepEqual(body(), [
    ['a', 'f0', 'f0.1'],
    ['b', 'f1', ''],
    ['c', 'f2', 'f2.1'],
  ]);
  equal(all('[aria-label="empty"]').length, 1);
  equal(find('caption').textContent, 'Weight of it');
  deepEqual(
    all('th').map((node) => node.scope),
    ['col', 'col', 'col', 'row', 'row', 'row'],
  );
  equal(all('.is-chosen').length, 0);
  equal(find('button'), null);
  pages.show({ ...GRID, columnTitle: '' });
  equal(find('th').textContent, 'query');
});

test('the chosen row and column are marked', () => {
  pages.show({ ...GRID, chosen: { row: 2, column: 1 } });
  deepEqual(texts('th.is-chosen'), ['y']);
  deepEqual(
    all('tr.is-chosen').map((line) => line.rowIndex),
    [3],
  );
});

test('numbers of rows come before those of cells', () => {
  const ofRows = [
    { label: 'sum', value: (row) => (row === 0 ? NaN : row), format: (value) => `s${value}` },
  ];
  pages.show({ ...GRID, ofRows });
  deepEqual(texts('thead th'), ['query \\ key', 'sum', 'x', 'y']);
  deepEqual(
    body().map(([, sum]) => sum),
    ['', 's1', 's2'],
  );
});

test('a heading sorts by its numbers, and the rows that are selected are listed as buttons', () => {
  const chosen = [];
  pages = createPages(host, (cell) => chosen.push(cell.row));
  const values = [2, NaN, 7];
  const ofRows = [{ label: 'sum', value: (row) => values[row], format: String }];
  const open = { ...GRID, ofRows, isOpen: true };
  pages.show(open);
  deepEqual(texts('tbody th'), ['a', 'b', 'c']);
  labelled('sum').click();
  deepEqual(texts('tbody th'), ['c', 'a', 'b']);
  equal(labelled('sum').closest('th').getAttribute('aria-sort'), 'descending');
  labelled('sum').click();
  deepEqual(texts('tbody th'), ['b', 'a', 'c']);
  pages.show({ ...open, only: [2, 0] });
  deepEqual(texts('tbody th'), ['a', 'c']);
  labelled('c').click();
  deepEqual(chosen, [2]);
});

test('a cell may be written otherwise', () => {
  pages.show({ ...GRID, written: (row, column) => `${row}:${column}` });
  equal(body()[0][1], '0:0');
});

test('chosen experts are marked with their weight', () => {
  pages.show({ ...GRID, chosenWeight: (row) => (row === 0 ? 0.5 : undefined) });
  equal(body()[0][1], 'f0 ✓ f0.5');
  equal(body()[2][1], 'f2');
  equal(all('.is-marked').length, 2);
  ok(find('caption').textContent.includes('✓'));
});

test('a large table has pages', () => {
  const rows = 5000;
  const large = {
    ...GRID,
    rows,
    rowLabels: Array.from({ length: rows }, (_, row) => `r${row}`),
    value: (row) => row,
  };
  pages.show(large);
  equal(all('tbody tr').length, 2048);
  ok(labelled('Previous rows').disabled && !labelled('Next rows').disabled);
  ok(find('.table-pages').textContent.includes('1 of 3'));
  labelled('Next rows').click();
  deepEqual(body()[0].slice(0, 2), ['r2048', 'f2048']);
  ok(!labelled('Previous rows').disabled && !labelled('Next rows').disabled);
  labelled('Next rows').click();
  equal(all('tbody tr').length, rows - 4096);
  ok(labelled('Next rows').disabled);
  labelled('Previous rows').click();
  equal(body()[0][0], 'r2048');
  labelled('Next rows').click();
  pages.show(GRID);
  equal(body()[0][0], 'a');
  pages.show({
    ...GRID,
    columns: 5000,
    columnLabels: Array(5000).fill('k'),
    value: () => 1,
    rows: 1,
  });
  equal(all('tbody tr').length, 1);
});
