/** The switches of a view. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { beforeEach, mock, test } from 'node:test';
import { all, blank, find, labelled, press, send, texts, type } from '../browser.js';
import {
  choice,
  createControls,
  headControls,
  numbered,
  tokenOptions,
} from '../../../static/js/ui/controls.js';
import { plain, TOKENS } from '../sample.js';

mock.timers.enable({ apis: ['setTimeout'] });

let set, controls, host;
beforeEach(() => {
  blank();
  set = [];
  controls = createControls('v', (...given) => set.push(given));
  host = controls.element;
  document.body.append(host, controls.help);
});
const options = (...ids) => ids.map((id) => ({ id, title: `t${id}` }));

test('a control is told as plain data', () => {
  deepEqual(choice('a', 'A', 1, [], { help: 'h' }), {
    kind: 'choice',
    name: 'a',
    label: 'A',
    value: 1,
    options: [],
    help: 'h',
  });
  deepEqual(numbered([0, 2], 'layer'), [
    { id: 0, title: '0', help: 'layer 0' },
    { id: 2, title: '2', help: 'layer 2' },
  ]);
  deepEqual(numbered([1]), [{ id: 1, title: '1' }]);
  const tokens = tokenOptions(TOKENS);
  deepEqual(
    tokens.map(({ id }) => id),
    [0, 1, 2, 3, 4],
  );
  ok(plain(tokens[2].title).includes('saw'));
  const [layer, head] = headControls(
    [{ layer: 3, site: 's' }],
    { tensors: { s: { shape: [2] } } },
    { layer: 3, head: 1 },
  );
  deepEqual([layer.value, layer.options.map(({ id }) => id)], [3, [3]]);
  deepEqual([head.value, head.options.map(({ id }) => id)], [1, [0, 1]]);
});

test('nothing to set takes no room', () => {
  controls.show([]);
  ok(host.hidden);
  controls.show([choice('a', 'A', 1, options(1, 2))]);
  ok(!host.hidden);
});

test('few options are radios, one is text, many are a menu', () => {
  controls.show([
    choice('a', 'A', 2, options(1, 2)),
    choice('b', 'B', 1, options(1)),
    choice('c', 'C', 6, options(1, 2, 3, 4, 5, 6)),
    choice('d', 'D', 5, options(1, 2, 3, 4, 5)),
  ]);
  const [radios, single, menu, five] = all('.control');
  deepEqual(
    all('input', radios).map(({ value, checked }) => [value, checked]),
    [
      ['1', false],
      ['2', true],
    ],
  );
  deepEqual([single.tagName, single.textContent], ['P', 'Bt1']);
  const select = find('select', menu);
  deepEqual(
    [select.value, select.options.length, find('label', menu).htmlFor],
    ['6', 6, select.id],
  );
  equal(all('input', five).length, 5);
  all('input', radios)[0].click();
  type(select, '3', 'change');
  deepEqual(set, [[{ a: 1 }], [{ c: 3 }]]);
});

test('a control that stays keeps its element, and one that is gone leaves', () => {
  const first = choice('a', 'A', 1, options(1, 2));
  controls.show([first, { kind: 'flag', name: 'f', label: 'F', value: true }]);
  const [radios, flag] = all('.control');
  find('input', flag).focus();
  controls.show([{ kind: 'flag', name: 'f', label: 'F', value: false }]);
  deepEqual(all('.control'), [flag]);
  equal(document.activeElement, find('input', flag));
  equal(find('input', flag).checked, false);
  controls.show([first, { kind: 'flag', name: 'f', label: 'F', value: false }]);
  equal(all('.control')[1], flag);
  equal(document.activeElement, find('input', flag));
  ok(all('.control')[0] !== radios);
  controls.show([
    { ...first, value: 2 },
    { kind: 'flag', name: 'f', label: 'F', value: false },
  ]);
  deepEqual(
    all('.control input').map(({ checked }) => checked),
    [false, true, false],
  );
});

const typed = (value, more) => ({
  ...{ kind: 'number', name: 'w', label: 'W', least: 0, most: 1, step: 0.001, isTyped: true },
  ...{ value, ...more },
});

test('a number that is slid can be typed as well', () => {
  controls.show([typed(0.25)]);
  const [slider, box] = all('input');
  deepEqual([slider.type, box.type, box.value, slider.value], ['range', 'number', '0.25', '0.25']);
  ok(box.getAttribute('aria-label').includes('W'));
  equal(find('label').htmlFor, slider.id, 'the label is of the slider');
  type(slider, '0.5');
  deepEqual(set, [[{ w: 0.5 }, true]]);
  type(box, '0.125', 'change');
  deepEqual(set.at(-1), [{ w: 0.125 }]);
  controls.show([typed(0.125)]);
  deepEqual([box.value, slider.value], ['0.125', '0.125']);
  for (const wrong of ['', '1.5', '-0.1', '0.00005', 'abc']) {
    type(box, wrong, 'change');
    equal(box.value, '0.125', `“${wrong}” gives way to the last number`);
  }
  equal(set.length, 2);
  type(box, '0', 'change');
  deepEqual(set.at(-1), [{ w: 0 }]);
});

test('a number that is only slid is told next to its slider', () => {
  controls.show([typed(0.25, { isTyped: false, shown: 'a quarter' })]);
  deepEqual([all('input').length, find('output').textContent], [1, 'a quarter']);
});

test('what is seldom wanted is behind “Display”, which counts what is set', () => {
  const flag = (name, more) => ({ kind: 'flag', name, label: name, ...more });
  controls.show([
    flag('a'),
    flag('b', { isMore: true, isSet: true }),
    flag('c', { isMore: true }),
    flag('d', { isSet: true }),
  ]);
  const details = find('details');
  equal(all('.control', details).length, 2);
  equal(all('.controls-row .control').length, 2);
  ok(!details.open);
  equal(find('summary').textContent, 'Display: 1 set');
  controls.show([flag('b', { isMore: true }), flag('a')]);
  ok(!/\d/.test(find('summary').textContent));
  controls.show([flag('a')]);
  equal(find('details'), null);
  deepEqual([...host.children], [find('.controls-row')]);
  controls.show([flag('a', { isMore: true })]);
  equal(all('details .control').length, 1);
});

test('a flag is set by its box', () => {
  controls.show([{ kind: 'flag', name: 'f', label: 'F', value: undefined, help: 'h' }]);
  const box = find('input');
  equal(box.checked, false);
  equal(find('label').htmlFor, box.id);
  equal(find('.control').title, 'h');
  box.click();
  deepEqual(set, [[{ f: true }]]);
});

test('a slid number is set as it moves', () => {
  const number = (value, more) => ({
    kind: 'number',
    name: 'n',
    label: 'N',
    least: 0,
    most: 10,
    step: 0.5,
    value,
    ...more,
  });
  controls.show([number(2)]);
  const slider = find('input');
  deepEqual([slider.min, slider.max, slider.step, slider.value], ['0', '10', '0.5', '2']);
  deepEqual([find('output').textContent, slider.getAttribute('aria-valuetext')], ['2', '2']);
  type(slider, '3.5');
  deepEqual(set, [[{ n: 3.5 }, true]]);
  controls.show([number(4, { shown: 'four' })]);
  deepEqual(
    [slider.value, find('output').textContent, slider.getAttribute('aria-valuetext')],
    ['4', 'four', 'four'],
  );
  slider.focus();
  controls.show([number(5)]);
  equal(slider.value, '5');
});

const integer = (value) => ({ kind: 'integer', name: 'n', label: 'N', least: 0, most: 9, value });

test('a typed number waits for a pause, and is sent once', () => {
  controls.show([integer(2)]);
  const box = find('input');
  equal(box.value, '2');
  type(box, '3');
  mock.timers.tick(200);
  type(box, '4');
  mock.timers.tick(200);
  deepEqual(set, []);
  controls.show([integer(2)]);
  equal(box.value, '4');
  mock.timers.tick(100);
  deepEqual(set, [[{ n: 4 }, true]]);
  controls.show([integer(4)]);
  send(box, 'change');
  type(box, '4');
  mock.timers.tick(300);
  equal(set.length, 1);
  type(box, '5');
  send(box, 'change');
  mock.timers.tick(300);
  equal(set.length, 2);
});

test('what is no number, or out of range, gives way to the last one', () => {
  controls.show([integer(2)]);
  const box = find('input');
  for (const wrong of ['', '77', '1.5', '-1']) {
    type(box, wrong);
    mock.timers.tick(300);
    send(box, 'change');
    equal(box.value, '2', wrong);
  }
  deepEqual(set, []);
  box.focus();
  type(box, '');
  mock.timers.tick(300);
  controls.show([integer(3)]);
  equal(box.value, '');
  box.blur();
  controls.show([integer(3)]);
  equal(box.value, '3');
  box.value = '03';
  controls.show([integer(3)]);
  equal(box.value, '03');
  controls.show([integer(5)]);
  equal(box.value, '5');
});

test('several of a set are chosen together, in their order', () => {
  const counts = (value) => ({
    kind: 'counts',
    name: 'c',
    label: 'C',
    options: [
      { id: 1, title: 'one', help: 'first' },
      { id: 2, title: 'two' },
      { id: 3, title: 'three' },
    ],
    value,
  });
  controls.show([counts([3])]);
  const buttons = all('.segmented button', host);
  deepEqual(
    buttons.map((node) => node.getAttribute('aria-pressed')),
    ['false', 'false', 'true'],
  );
  deepEqual(
    buttons.map((node) => node.getAttribute('aria-label')),
    ['first', 'C two', 'C three'],
  );
  buttons[0].click();
  buttons[2].click();
  deepEqual(set, [[{ c: [1, 3] }], [{ c: [] }]]);
  controls.show([counts([1, 2])]);
  buttons[1].click();
  deepEqual(set.at(-1), [{ c: [1] }]);
});

const text = (value) => ({ kind: 'text', name: 't', label: 'T', placeholder: 'p', value });

test('a typed text waits for a pause or Enter', () => {
  controls.show([text('a')]);
  const box = find('input');
  deepEqual([box.value, box.placeholder], ['a', 'p']);
  type(box, 'b');
  mock.timers.tick(200);
  type(box, 'bc');
  mock.timers.tick(200);
  deepEqual(set, []);
  mock.timers.tick(100);
  deepEqual(set, [[{ t: 'bc' }, true]]);
  box.value = 'bcd';
  send(box, 'input', { isComposing: true });
  mock.timers.tick(400);
  equal(set.length, 1);
  equal(press(box, 'x'), true);
  equal(press(box, 'Enter', { isComposing: true }), true);
  type(box, 'e');
  equal(press(box, 'Enter'), false);
  mock.timers.tick(400);
  deepEqual(set.slice(1), [[{ t: 'e' }, false]]);
  box.focus();
  controls.show([text('other')]);
  equal(box.value, 'e');
  box.blur();
  controls.show([text(null)]);
  equal(box.value, '');
  controls.show([text('z')]);
  equal(box.value, 'z');
});

test('a button sets its patch, unless it is off', () => {
  const action = (more) => ({ kind: 'button', label: 'Do', help: 'h', ...more });
  controls.show([action({ patch: { a: 1 } })]);
  const node = labelled('Do');
  equal(node.title, 'h');
  node.click();
  controls.show([action({ patch: { a: 2 } })]);
  node.click();
  controls.show([action({ disabled: true })]);
  ok(node.disabled);
  controls.show([action()]);
  ok(!node.disabled);
  node.click();
  deepEqual(set, [[{ a: 1 }], [{ a: 2 }], [{}]]);
});

test('the help explains what has something to say', () => {
  controls.show([
    choice('a', 'A', 1, [
      { id: 1, title: 'one', help: 'the first' },
      { id: 2, title: 'two', help: 'layer 2' },
      { id: 3, title: 'x' },
    ]),
    { kind: 'flag', name: 'f', label: 'F', help: 'does it' },
    { kind: 'flag', name: 'g', label: 'G' },
  ]);
  deepEqual(
    [texts('h3'), texts('dt'), texts('dd')],
    [['A'], ['one', 'F'], ['The first', 'Does it']],
  );
});

test('an entry is read as it is typed, or slid; what means nothing is said to be ignored', () => {
  const slide = { least: 0, most: 10, step: 1, at: (value) => value, value: (at) => at };
  const read = (typed) => ({ value: Number(typed), problem: Number(typed) > 10 ? 'too much' : '' });
  const entry = {
    kind: 'entry',
    name: 'n',
    label: 'N',
    read,
    slide,
    words: (value) => `${value}!`,
  };
  controls.show([{ ...entry, value: 4 }]);
  const box = find('#v-n');
  const slider = find('input[type="range"]');
  const problem = () => find('.control-problem').textContent;
  deepEqual([box.value, slider.value, slider.getAttribute('aria-valuetext')], ['4', '4', '4!']);
  type(box, '7');
  deepEqual(set.pop(), [{ n: 7 }, true]);
  equal(slider.value, '7');
  type(box, '99');
  equal(set.length, 0);
  ok(problem().includes('99') && problem().includes('too much'));
  equal(box.getAttribute('aria-invalid'), 'true');
  controls.show([{ ...entry, value: 7 }]);
  equal(box.value, '99', 'the value is the same: what was typed stays');
  controls.show([{ ...entry, value: 8 }]);
  deepEqual([box.value, problem(), box.getAttribute('aria-invalid')], ['8', '', 'false']);
  type(slider, '0');
  deepEqual(set.pop(), [{ n: 0 }, true]);
  equal(box.value, '0');
  controls.show([{ ...entry, value: 0, problem: 'from elsewhere' }]);
  equal(problem(), 'from elsewhere');
  controls.show([{ kind: 'entry', name: 't', label: 'T', value: 'a', isLong: true }]);
  type(find('textarea'), 'b');
  deepEqual(set.pop(), [{ t: 'b' }, true]);
});

test('a button that has a name keeps its element and the focus when its label changes', () => {
  const run = (label) => ({ kind: 'button', name: 'run', label, patch: { act: label } });
  controls.show([run('Run')]);
  const node = labelled('Run');
  node.focus();
  controls.show([run('Stop')]);
  equal(labelled('Stop'), node);
  equal(document.activeElement, node);
  node.click();
  deepEqual(set.pop(), [{ act: 'Stop' }]);
});
