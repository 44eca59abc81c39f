/** The fields of an experiment. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, blank, find, labelled, recorder, send, texts, type } from '../../browser.js';
import { createForm } from '../../../../static/js/ui/experiment/form.js';

const parameter = (name, kind, standard, more = {}) => ({
  name,
  label: name.toUpperCase(),
  help: `help of ${name}`,
  kind,
  standard,
  least: 0,
  most: 10,
  multiple: 1,
  options: [],
  longest: 10,
  count: [1, 3],
  isOptional: false,
  ...more,
});
const PARAMETERS = [
  parameter('n', 'integer', 4),
  parameter('f', 'flag', true),
  parameter('c', 'choice', 'a', { options: ['a', 'b_c'] }),
  parameter('many', 'choice', '1', { options: ['1', '2', '3', '4', '5'] }),
  parameter('o', 'flag', null, { isOptional: true }),
  parameter('t', 'text', 'abc'),
  parameter('l', 'list', [1, 2]),
  parameter('free', 'number', 0.5, { least: -Infinity, most: Infinity }),
  parameter('secret', 'integer', 1),
];
const VALUES = Object.fromEntries(PARAMETERS.map(({ name, standard }) => [name, standard]));
const VIEW = { id: 'e', main: ['n', 'f', 'c', 'many', 'o', 't', 'l'], hidden: ['secret'] };
const { calls, handlers, take } = recorder('onValue', 'onBeside', 'onRun', 'onReset');
let form;
function make(view = {}) {
  blank();
  form = createForm({ ...VIEW, ...view }, PARAMETERS, handlers);
  document.body.append(form.element);
  form.update(VALUES, '');
  take();
}
beforeEach(() => make());
const byId = (name) => find(`#e-${name}`);
const field = (name) => form.fields.get(name).element;
const problem = (name) => find('.field-problem', field(name)).textContent;

test('each parameter has a field with its help, and a hidden one has none', () => {
  deepEqual(
    [...form.fields.keys()],
    PARAMETERS.map(({ name }) => name).filter((name) => name !== 'secret'),
  );
  ok(find('.knobs').contains(field('n')) && find('details').contains(field('free')));
  equal(find('.field-help', field('n')).textContent, 'help of n');
  ok(!find('details').hidden);
  make({ main: [...VIEW.main, 'free'] });
  ok(find('details').hidden);
  form.reveal('free');
  make();
  form.reveal('free');
  form.reveal('none');
  ok(find('details').open);
});

test('a number is typed or slid, and both hold it', () => {
  const slider = find('input[type="range"]', field('n'));
  equal(byId('n').value, '4');
  ok(Number(slider.max) > Number(slider.min));
  type(byId('n'), '7');
  deepEqual(take(), [['onValue', 'n', 7, true]]);
  const at = slider.value;
  type(byId('n'), '99');
  equal(calls.length, 0);
  match(problem('n'), /99/);
  equal(byId('n').getAttribute('aria-invalid'), 'true');
  equal(slider.getAttribute('aria-invalid'), null);
  form.update({ ...VALUES, n: 8 }, '');
  ok(slider.value !== at && slider.getAttribute('aria-valuetext') === '8');
  equal(byId('n').value, '8');
  type(slider, slider.min);
  deepEqual(take(), [['onValue', 'n', 0, true]]);
  equal(byId('n').value, '0');
  equal(problem('n'), '');
  equal(byId('n').getAttribute('aria-invalid'), 'false');
  ok(slider.title.includes('0') && slider.title.includes('10'));
  byId('n').focus();
  byId('n').value = '8.0';
  form.update({ ...VALUES, n: 8 }, '');
  equal(byId('n').value, '8.0');
  form.update({ ...VALUES, n: 3 }, '');
  equal(byId('n').value, '3');
  slider.focus();
  slider.value = slider.max;
  form.update({ ...VALUES, n: 3 }, '');
  equal(slider.value, slider.max);
});

test('a number without limits has no slider', () => {
  equal(find('input[type="range"]', field('free')), null);
  type(byId('free'), '−2.5');
  deepEqual(take(), [['onValue', 'free', -2.5, true]]);
  form.update({ ...VALUES, free: 3 }, '');
  equal(byId('free').value, '3');
});

test('flags and choices are boxes, radios or menus', () => {
  equal(byId('f').checked, true);
  byId('f').click();
  const [a, b] = all('input', field('c'));
  deepEqual([a.checked, b.checked], [true, false]);
  ok(field('c').textContent.includes('b c'));
  b.click();
  equal(byId('many').tagName, 'SELECT');
  type(byId('many'), '3', 'change');
  const three = all('input', field('o'));
  deepEqual(
    three.map(({ checked }) => checked),
    [true, false, false],
  );
  three[1].click();
  deepEqual(take(), [
    ['onValue', 'f', false, false],
    ['onValue', 'c', 'b_c', false],
    ['onValue', 'many', '3', false],
    ['onValue', 'o', true, false],
  ]);
  form.update({ ...VALUES, f: false, c: 'b_c', many: '5', o: false }, '');
  deepEqual(
    [byId('f').checked, b.checked, byId('many').value, three[2].checked],
    [false, true, '5', true],
  );
  make({ titles: { c: { a: 'the first one', b_c: 'the second one' } } });
  equal(byId('c').tagName, 'SELECT');
  ok(byId('c').className === 'is-long' && byId('many').className === '');
  deepEqual(texts('option', byId('c')), ['the first one', 'the second one']);
  make({ titles: { c: { a: '123456789012', b_c: '123456789012' } } });
  equal(all('input[type="radio"]', field('c')).length, 2);
});

test('texts and lists are read as they are typed', () => {
  type(byId('t'), 'xyz');
  type(byId('l'), '3, 4');
  deepEqual(take(), [
    ['onValue', 't', 'xyz', true],
    ['onValue', 'l', [3, 4], true],
  ]);
  equal(byId('t').tagName, 'TEXTAREA');
  type(byId('t'), 'a'.repeat(11));
  type(byId('l'), '1 2 3 4');
  equal(calls.length, 0);
  ok(problem('t') !== '' && problem('l') !== '');
  form.update({ ...VALUES, t: 'new', l: [5] }, '');
  deepEqual([byId('t').value, byId('l').value], ['new', '5']);
  byId('t').focus();
  form.update({ ...VALUES, t: 'other' }, '');
  equal(byId('t').value, 'new');
});

test('a long run has a button, a short one runs by itself', () => {
  equal(labelled('Run'), undefined);
  ok(find('form').lastElementChild.contains(labelled('Reset')));
  send(find('form'), 'submit');
  make({ preview: { steps: 0 } });
  const before = find('.run-box');
  ok(before.contains(labelled('Run')) && before.contains(labelled('Reset')));
  labelled('Run').click();
  labelled('Reset').click();
  deepEqual(
    take().map(([name]) => name),
    ['onRun', 'onReset'],
  );
  equal(send(find('form'), 'submit'), false);
  deepEqual(take(), [['onRun']]);
  form.show(VALUES, { isRunning: true, words: 'step 3' });
  ok(labelled('Stop'));
  equal(find('.run-status').textContent, 'step 3');
  form.show(VALUES, { isRunning: false, words: '' });
  ok(labelled('Run'));
  equal(find('.run-status').textContent, '');
});

test('what is not as it was can be reset, and is marked if it is folded', () => {
  const isSet = () => find('summary').classList.contains('is-set');
  form.show(VALUES, { isRunning: false, words: '' });
  ok(labelled('Reset').hidden && !isSet());
  form.show({ ...VALUES, n: 5 }, { isRunning: false, words: '' });
  ok(!labelled('Reset').hidden && !isSet());
  form.show({ ...VALUES, free: 5 }, { isRunning: false, words: '' });
  ok(!labelled('Reset').hidden && isSet());
});

test('a second run is chosen to compare with', () => {
  equal(byId('beside'), null);
  make({ besides: [{ id: 'x', title: 'X' }] });
  deepEqual(texts('option', byId('beside')).slice(1), ['X']);
  type(byId('beside'), 'x', 'change');
  deepEqual(take(), [['onBeside', 'x']]);
  form.update(VALUES, 'x');
  equal(byId('beside').value, 'x');
  form.update(VALUES, '');
  equal(byId('beside').value, '');
});

test('the status of a run is said again only if it is another', () => {
  make({ preview: { steps: 0 } });
  const host = find('.run-status');
  const observer = new MutationObserver(() => {});
  observer.observe(host, { childList: true, characterData: true, subtree: true });
  const changes = (words) => {
    form.show(VALUES, { isRunning: true, words });
    return observer.takeRecords().length > 0;
  };
  deepEqual(['step 1', 'step 1', 'step 2', '', ''].map(changes), [true, false, true, true, false]);
  equal(host.getAttribute('role'), 'status');
  observer.disconnect();
});
