/** The tables of an experiment. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, blank, find, labelled, press, recorder, texts, type } from '../browser.js';
import { createTables } from '../../../static/js/ui/experiment_tables.js';

const { handlers, take } = recorder('onRows');
beforeEach(() => {
  blank();
  take();
});

const TABLE = {
  name: 't',
  title: 'Table',
  step: 'First',
  rows: ['a', 'b'],
  columns: ['x', 'y'],
  note: 'a note',
  values: [
    [1, -2],
    [0.5, 4],
  ],
  isGiven: true,
  isEdited: false,
};
let tables;
function withTables(...list) {
  tables = createTables(handlers);
  document.body.append(tables.element);
  tables.show(list, 'light');
}
const inputs = () => all('.worked input');
const problemOf = () => find('.field-problem').textContent;

test('tables are grouped by step, and given ones can be edited', () => {
  withTables(
    TABLE,
    {
      ...TABLE,
      name: 'u',
      title: 'Other',
      isGiven: false,
      values: [
        [1, NaN],
        [2, 3],
      ],
    },
    { ...TABLE, name: 'v', title: 'Third', step: 'Second' },
  );
  deepEqual(texts('h3'), ['First', 'Second']);
  deepEqual(
    all('.worked-step').map((step) => all('table', step).length),
    [2, 1],
  );
  equal(inputs().length, 8);
  deepEqual(
    inputs()
      .slice(0, 4)
      .map(({ value }) => Number(value.replace('−', '-'))),
    [1, -2, 0.5, 4],
  );
  deepEqual(
    inputs()
      .slice(0, 4)
      .map(({ tabIndex }) => tabIndex),
    [0, -1, -1, -1],
  );
  deepEqual(all('.worked-table.is-given').length, 2);
  const [region] = all('[role="region"]');
  deepEqual([region.getAttribute('aria-label'), region.tabIndex], ['Other', 0]);
  deepEqual(texts('td > span', region).length, 4);
  equal(texts('td > span', region)[1], 'masked');
  ok(find('caption').textContent.includes('a note'));
  equal(find('.worked-reset'), null);
  const tints = all('td', region)
    .map((cell) => cell.style.getPropertyValue('--tint'))
    .filter(Boolean);
  equal(tints.length, 4);
  ok(tints[0] !== tints[3]);
  tables.show([], 'light');
  ok(tables.element.hidden);
});

test('a cell that is edited is sent with the others', () => {
  withTables({
    ...TABLE,
    values: [
      [1.23456789, -2],
      [0.5, Infinity],
    ],
  });
  const [first, second] = inputs();
  type(second, '−7.5', 'change');
  equal(JSON.stringify(take()), '[["onRows","t",[[1.234568,-7.5],[0.5,0]]]]');
  for (const wrong of ['', 'x', '1000001', '-1000001']) {
    type(first, wrong, 'change');
    equal(first.getAttribute('aria-invalid'), 'true', wrong);
    ok(problemOf() !== '', wrong);
  }
  deepEqual(take(), []);
  type(first, '1000000', 'change');
  equal(first.getAttribute('aria-invalid'), 'false');
  equal(problemOf(), '');
  equal(take().length, 1);
  ok(inputs()[3].readOnly && inputs()[3].value === 'masked' && !first.readOnly);
});

test('a focused cell holds the whole number, and keys lead to its neighbours', () => {
  withTables({
    ...TABLE,
    values: [
      [1.23456789, -2],
      [0.5, 4],
    ],
  });
  const [a, b, c, d] = inputs();
  const short = a.value;
  a.focus();
  equal(a.value, '1.234568');
  deepEqual(
    inputs().map(({ tabIndex }) => tabIndex),
    [0, -1, -1, -1],
  );
  equal(press(a, 'ArrowDown'), false);
  equal(document.activeElement, c);
  equal(a.value, short);
  deepEqual(
    inputs().map(({ tabIndex }) => tabIndex),
    [-1, -1, 0, -1],
  );
  press(c, 'ArrowRight');
  equal(document.activeElement, d);
  press(d, 'ArrowUp');
  equal(document.activeElement, b);
  press(b, 'ArrowLeft');
  equal(document.activeElement, a);
  press(a, 'Enter');
  equal(document.activeElement, c);
  equal(press(c, 'ArrowDown'), true);
  equal(press(c, 'x'), true);
  c.value = '12345';
  c.setSelectionRange(2, 2);
  equal(press(c, 'ArrowRight'), true);
  equal(press(c, 'ArrowLeft'), true);
  c.setSelectionRange(5, 5);
  equal(press(c, 'ArrowLeft'), true);
  equal(press(c, 'ArrowRight'), false);
  d.value = '12';
  d.setSelectionRange(0, 0);
  equal(press(d, 'ArrowRight'), true);
  equal(press(d, 'ArrowLeft'), false);
  equal(document.activeElement, c);
  a.setAttribute('aria-invalid', 'true');
  a.value = 'x';
  a.focus();
  a.blur();
  equal(a.value, 'x');
});

test('new numbers come into the cells, but not over what is wrong and being typed', () => {
  withTables(TABLE);
  const [a] = inputs();
  a.focus();
  tables.show(
    [
      {
        ...TABLE,
        values: [
          [9.87654321, 1],
          [1, 1],
        ],
      },
    ],
    'light',
  );
  equal(inputs()[0], a);
  equal(a.value, '9.876543');
  a.value = 'x';
  a.setAttribute('aria-invalid', 'true');
  tables.show([TABLE], 'light');
  equal(a.value, 'x');
  a.blur();
  tables.show([TABLE], 'light');
  ok(a.value !== 'x' && a.getAttribute('aria-invalid') === 'false');
});

test('an edited table can be reset, and keeps the focus', () => {
  withTables(TABLE);
  inputs()[1].focus();
  tables.show([{ ...TABLE, isEdited: true }], 'light');
  equal(document.activeElement, inputs()[1]);
  labelled('Reset').click();
  deepEqual(take(), [['onRows', 't', null]]);
  ok(find('caption').textContent.includes('a note'));
  tables.show([{ ...TABLE, isEdited: true, isOverride: true }], 'light');
  ok(find('caption').textContent.includes('a note'));
  tables.show([{ ...TABLE, isEdited: true, isOverride: true, note: 'other' }], 'light');
  ok(!find('caption').textContent.includes('other'));
});

test('numbers of a text or formula are below those that differ', () => {
  withTables({
    ...TABLE,
    isGiven: false,
    values: [
      [1, 2],
      [3, 4],
    ],
    other: { words: 'paper', values: [[1.04, 2.06], [3.2]] },
  });
  const notes = texts('td small');
  deepEqual(notes, ['paper 1.04', 'paper 2.06', 'paper 3.20', '']);
  tables.show(
    [
      {
        ...TABLE,
        isGiven: false,
        values: [
          [1, 2],
          [3, 4],
        ],
        other: {
          words: 'paper',
          values: [
            [1, 2],
            [3.5, 4],
          ],
        },
      },
    ],
    'light',
  );
  deepEqual(texts('td small'), ['', '', 'paper 3.5', '']);
});

test('what is wrong with a cell is no longer said when its number is shown again', () => {
  withTables(TABLE);
  const [a] = inputs();
  type(a, 'x', 'change');
  match(problemOf(), /“x”/);
  tables.show([TABLE], 'light');
  equal(a.getAttribute('aria-invalid'), 'false');
  equal(problemOf(), '');
  type(a, ' ', 'change');
  ok(problemOf() !== '' && !problemOf().includes('“'));
});

test('second numbers differ from half of the last digit on, of three at most', () => {
  const notesOf = (values, others) => {
    blank();
    const table = { ...TABLE, rows: ['a'], columns: values.map(String), isGiven: false };
    withTables({ ...table, values: [values], other: { words: 'paper', values: [others] } });
    return texts('td small');
  };
  deepEqual(notesOf([1.5, 2.49, 3, 4.51], [2, 2, 3, 4]), ['paper 2', '', '', 'paper 4']);
  deepEqual(notesOf([0.25, 0.5, -0.25], [0.5, 0.5, 0.25]), ['paper 0.50', '', 'paper 0.25']);
  deepEqual(notesOf([1, 1], [1.0004, 1.0006]), ['', 'paper 1.001']);
  deepEqual(notesOf([1, NaN], [2]), ['paper 2', '']);
});
