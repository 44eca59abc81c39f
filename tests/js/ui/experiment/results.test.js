/** The pictures, frames, tables and errors of a run. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import {
  all,
  blank,
  drawn,
  find,
  labelled,
  press,
  recorder,
  saved,
  send,
  settled,
  texts,
  type,
} from '../../browser.js';
import { Problem } from '../../../../static/js/api/calls.js';
import {
  createPictures,
  createProblem,
  createScrubber,
} from '../../../../static/js/ui/experiment/results.js';
import { createTables } from '../../../../static/js/ui/experiment/tables.js';

const { handlers, take } = recorder(
  'onChoose',
  'onRedraw',
  'announce',
  'onFrame',
  'onRetry',
  'onRows',
);
const LAYOUT = {
  width: 100,
  height: 50,
  margin: { l: 0, r: 0, t: 0, b: 0 },
  xaxis: { range: [-0.5, 1.5] },
  yaxis: { range: [0.5, -0.5] },
};
const GRID = {
  rows: 1,
  columns: 2,
  rowTitle: 'r',
  columnTitle: 'c',
  rowLabels: ['a'],
  columnLabels: ['x', 'y'],
  quantity: 'q',
  value: () => 1,
  format: String,
  describe: () => 'a cell',
  tip: () => ['a', 'b'],
  tokens: () => ({}),
  choose: (row, column) => ({ picked: `${row}.${column}` }),
};
beforeEach(() => {
  blank();
  take();
});

const sizes = [];
const picture = (id, more = {}) => ({
  id,
  draw: (size) => {
    sizes.push(size);
    return { title: `Picture ${id}`, data: [{}], layout: LAYOUT, grid: GRID };
  },
  ...more,
});

test('pictures are drawn in turn, and kept while they stay', async () => {
  const pictures = createPictures({ id: 'e', see: 'what to see' }, handlers);
  document.body.append(pictures.element);
  const show = (list, isGoingOn = false) => pictures.show(list, 'a text', { n: 1 }, isGoingOn);
  await show([picture('a'), picture('b', { isWide: true })]);
  await settled(5);
  deepEqual(texts('.panel h2'), ['Picture a', 'Picture b']);
  deepEqual(
    all('.panel').map((panel) => panel.classList.contains('is-wide')),
    [false, true],
  );
  deepEqual([sizes[0].width, sizes[0].palette.theme], [220, 'light']);
  const [a, b] = all('.panel');
  await show([picture('c'), picture('a')]);
  await settled(5);
  equal(all('.panel')[1], a);
  ok(!b.isConnected && all('.panel').length === 2);
  deepEqual(texts('.panel h2'), ['Picture c', 'Picture a']);
  sizes.length = 0;
  const atOnce = show([picture('c'), picture('a')], true);
  equal(sizes.length, 2);
  await atOnce;
  sizes.length = 0;
  const inTurn = show([picture('c'), picture('a')], false);
  equal(sizes.length, 1);
  await inTurn;
  sizes.length = 0;
  const others = show([picture('c'), picture('d')], true);
  equal(sizes.length, 1);
  await others;
  ok(drawn.some(([name]) => name === 'purge'));
});

test('a picture that fails says so, and cells are chosen and told', async () => {
  const { warn } = console;
  console.warn = () => {};
  const pictures = createPictures({ id: 'e', see: '' }, handlers);
  document.body.append(pictures.element);
  const broken = picture('b', {
    draw: () => {
      throw new Error('no numbers');
    },
  });
  await pictures.show([picture('a'), broken], 't', {}, false);
  await settled(5);
  console.warn = warn;
  const [fine, failed] = all('.panel-notice');
  ok(fine.hidden);
  match(failed.textContent, /no numbers/);
  const plot = find('.plot');
  press(plot, 'ArrowRight');
  deepEqual(take(), [['announce', 'a cell']]);
  press(plot, 'Enter');
  deepEqual(take(), [['onChoose', { picked: '0.1' }]]);
  press(plot, 'Escape');
  send(plot, 'pointermove', { clientX: 10, clientY: 10, pointerType: 'mouse' });
  deepEqual(take(), []);
});

const slider = () => find('input[type="range"]');

test('the frames of a run are slid through', () => {
  const scrubber = createScrubber('e', handlers);
  document.body.append(scrubber.element);
  scrubber.show([3], 0, 9);
  ok(scrubber.element.hidden);
  scrubber.show([1, 4, 9], 1, 9);
  ok(!scrubber.element.hidden);
  deepEqual([slider().max, slider().value], ['2', '1']);
  equal(find('output').textContent, slider().getAttribute('aria-valuetext'));
  match(find('output').textContent, /4 .*9/);
  type(slider(), '0');
  type(slider(), '2');
  deepEqual(take(), [
    ['onFrame', 0, false],
    ['onFrame', null, false],
  ]);
});

test('the frames of a run are played, from the first if the last is shown', (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] });
  const scrubber = createScrubber('e', handlers);
  document.body.append(scrubber.element);
  scrubber.show([1, 4, 9], 2, 9);
  labelled('Play').click();
  deepEqual(take(), [['onFrame', 0, true]]);
  scrubber.show([1, 4, 9], 0, 9);
  ok(labelled('Pause'));
  context.mock.timers.tick(140);
  context.mock.timers.tick(140);
  deepEqual(take(), [
    ['onFrame', 1, true],
    ['onFrame', null, false],
  ]);
  context.mock.timers.tick(999);
  deepEqual(take(), []);
  scrubber.show([1, 4, 9], 1, 9);
  labelled('Play').click();
  deepEqual(take(), [['onFrame', 1, true]]);
  scrubber.show([1, 4, 9], 1, 9);
  labelled('Pause').click();
  deepEqual(take(), [['onFrame', 1, false]]);
  context.mock.timers.tick(999);
  labelled('Pause').click();
  take();
  type(slider(), '0');
  take();
  context.mock.timers.tick(999);
  deepEqual(take(), []);
  scrubber.show([1, 4, 9], 0, 9);
  labelled('Play').click();
  scrubber.stop();
  take();
  context.mock.timers.tick(999);
  deepEqual(take(), []);
});

test('an error is at its field, or a notice with a button', () => {
  const failed = [];
  const fields = new Map([['n', { fail: (message) => failed.push(message) }]]);
  const problem = createProblem(fields, handlers.onRetry);
  const host = problem.element;
  document.body.append(host);
  const of = (members, errors = []) =>
    Object.assign(new Problem({ title: 'Title', detail: 'the detail', status: 422, ...members }), {
      errors,
    });
  problem.show({ problem: null });
  ok(host.hidden);
  problem.show({ problem: of({}, [{ field: 'n.0', message: 'too large' }]), isBroken: false });
  ok(host.hidden);
  deepEqual(failed, ['too large']);
  problem.show({
    problem: of({}, [
      { field: 'n', message: 'a' },
      { field: 'm', message: 'no such' },
    ]),
    isBroken: false,
  });
  ok(!host.hidden && host.textContent.includes('o such') && !host.textContent.includes('detail'));
  equal(find('button', host), null);
  problem.show({ problem: of({}), isBroken: false });
  ok(!host.hidden && host.textContent.includes('he detail'));
  problem.show({ problem: of({ status: 500 }), isBroken: false });
  labelled('Try again', host).click();
  equal(take()[0][0], 'onRetry');
  problem.show({ problem: of({}), isBroken: true });
  ok(labelled('Try again', host) && host.textContent.includes('broke off'));
  problem.show({ problem: of({ detail: '' }), isBroken: true });
  equal(all('p', host).length, 3);
  problem.show({ problem: null });
  ok(host.hidden && host.childElementCount === 0);
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
  deepEqual(take(), [
    [
      'onRows',
      't',
      [
        [1.234568, -7.5],
        [0.5, 0],
      ],
    ],
  ]);
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

test('what a picture saves names the experiment and its parameters', async () => {
  const pictures = createPictures({ id: 'e', see: '' }, handlers);
  document.body.append(pictures.element);
  await pictures.show([picture('a')], 'Experiment: n 1', { n: 1 }, false);
  const entry = all('[role="menuitem"]').find(
    (node) => find('.menu-name', node)?.textContent === 'JSON',
  );
  const count = saved.length;
  entry.click();
  while (saved.length === count || !saved.at(-1).name) await settled(10);
  match(saved.at(-1).name, /\.json$/);
  const text = await new Promise((resolve) => {
    const reader = new window.FileReader();
    reader.addEventListener('load', () => resolve(reader.result));
    reader.readAsText(saved.at(-1).blob);
  });
  const { experiment, parameters, text: words, values } = JSON.parse(text);
  deepEqual([experiment, parameters, words], ['e', { n: 1 }, 'Experiment: n 1']);
  deepEqual(values, [[1, 1]]);
});
