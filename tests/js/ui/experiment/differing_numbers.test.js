/** The second numbers of a table, which are below those they differ from. */

import { deepEqual } from 'node:assert/strict';
import { test } from 'node:test';
import { blank, texts } from '../../browser.js';
import { createTables } from '../../../../static/js/ui/experiment/tables.js';

/** The notes below the numbers of one row. */
function notesOf(values, others) {
  blank();
  const tables = createTables({ onRows: () => {} });
  document.body.append(tables.element);
  const table = {
    name: 't',
    title: 'Table',
    step: 'First',
    rows: ['a'],
    columns: values.map((_, at) => `c${at}`),
    note: '',
    values: [values],
    other: { words: 'paper', values: [others] },
  };
  tables.show([table], 'light');
  return texts('td small');
}

test('numbers differ from half of the last digit on that is printed', () => {
  deepEqual(notesOf([1.5, 2.49, 3, 4.51], [2, 2, 3, 4]), ['paper 2', '', '', 'paper 4']);
  deepEqual(notesOf([0.25, 0.5, -0.25], [0.5, 0.5, 0.25]), ['paper 0.50', '', 'paper 0.25']);
});

test('no more than three digits are compared or written', () => {
  deepEqual(notesOf([1, 1], [1.0004, 1.0006]), ['', 'paper 1.001']);
});

test('a number that has no second one, or is hidden, has no note', () => {
  deepEqual(notesOf([1, NaN], [2]), ['paper 2', '']);
  deepEqual(notesOf([NaN], [2]), ['']);
});
