/** The queue of views, covering their cells, and presenting them. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import {
  all,
  blank,
  find,
  labelled,
  layOut,
  press,
  saved,
  scrolled,
  send,
  settled,
  texts,
} from '../browser.js';
import { CELLS } from '../../../static/js/ui/plot.js';
import { createPresentation, kept } from '../../../static/js/ui/present.js';

const VIEW = `
  <button id="present"></button><main>
  <section class="view" hidden><h2 class="view-title">Hidden</h2></section>
  <section class="view"><h2 class="view-title">Attention</h2><div class="panels">
  <section class="panel" id="panel"><h2>One head</h2><div class="plot" tabindex="0"><b></b></div></section></div></section></main>`;
let presentation, said, plot, box;

beforeEach(async () => {
  if (labelled('Leave')) labelled('Leave').click();
  blank(VIEW);
  localStorage.clear();
  location.hash = '#view=a';
  said = [];
  box = { left: 1, top: 2, width: 3, height: 4 };
  plot = find('.plot');
  CELLS.set(plot, {
    at: () => ({ row: 0, column: 1 }),
    current: () => ({ row: 2, column: 3 }),
    box: () => box,
    describe: ({ row }) => `cell ${row}`,
  });
  presentation = createPresentation((message) => said.push(message));
});
const dialog = () => find('dialog.queue');
const open = () => presentation.open(find('#present'));
const names = () => all('.queue-list input').map(({ value }) => value);
const add = (hash) => {
  location.hash = hash;
  labelled('Add this view').click();
};
const icon = (sign, at) =>
  all('.queue-list li')[at].querySelectorAll('.icon')[['↑', '↓', '▷', '×'].indexOf(sign)];
function three() {
  open();
  add('#view=a');
  add('#view=b');
  add('#view=c');
  all('.queue-list input').forEach((input, at) => {
    input.value = 'ABC'[at];
    send(input, 'change');
  });
}

test('an empty queue can be added to, and is not started', () => {
  open();
  ok(dialog().open && labelled('Start').disabled && labelled('Export').disabled);
  equal(all('.queue-empty').length, 1);
  add('#view=a');
  ok(!labelled('Start').disabled && !labelled('Export').disabled);
  deepEqual(names(), ['Attention: One head']);
  match(find('.queue-said').textContent, /1/);
  open();
  equal(find('.queue-said').textContent, '');
  labelled('Close').click();
  ok(!dialog().open);
  deepEqual(
    kept().map(({ link }) => link),
    ['#view=a'],
  );
});

test('a view of several drawings is named by its title only', () => {
  open();
  find('.panels').insertAdjacentHTML('beforeend', '<section class="panel"><h2>Two</h2></section>');
  add('#view=a');
  for (const title of all('.view-title, .panel h2')) title.remove();
  add('#view=b');
  deepEqual(names(), ['Attention', 'View']);
});

test('views are renamed, moved and removed', () => {
  three();
  deepEqual(names(), ['A', 'B', 'C']);
  deepEqual(
    [icon('↑', 0).disabled, icon('↑', 1).disabled, icon('↓', 1).disabled, icon('↓', 2).disabled],
    [true, false, false, true],
  );
  icon('↓', 0).click();
  deepEqual(names(), ['B', 'A', 'C']);
  equal(document.activeElement, all('.queue-list input')[1]);
  match(find('.queue-said').textContent, /A is view 2 of 3/);
  icon('↑', 2).click();
  deepEqual(names(), ['B', 'C', 'A']);
  icon('×', 1).click();
  deepEqual(names(), ['B', 'A']);
  match(find('.queue-said').textContent, /C/);
  deepEqual(
    kept().map(({ name }) => name),
    ['B', 'A'],
  );
  const [first] = all('.queue-list input');
  first.value = 'New';
  equal(press(first, 'ArrowDown', { altKey: true }), false);
  deepEqual(names(), ['A', 'New']);
  send(first, 'change');
  deepEqual(names(), ['A', 'New']);
  press(all('.queue-list input')[1], 'ArrowUp', { altKey: true });
  deepEqual(names(), ['New', 'A']);
  equal(press(all('.queue-list input')[1], 'ArrowUp'), true);
  equal(press(all('.queue-list input')[1], 'x', { altKey: true }), true);
  press(all('.queue-list input')[1], 'ArrowDown', { altKey: true });
  match(find('.queue-said').textContent, /A is view 2 of 2/);
});

test('a queue is exported and imported', async () => {
  three();
  labelled('Export').click();
  ok(saved.at(-1).name.endsWith('.json'));
  const file = find('input[type="file"]');
  const give = async (content) => {
    Object.defineProperty(file, 'files', {
      value: content === null ? [] : [{ name: 'q.json', text: async () => content }],
      configurable: true,
    });
    send(file, 'change');
    await settled();
  };
  const text = localStorage.getItem('headlight.presentation');
  await give(text);
  deepEqual(names(), ['A', 'B', 'C', 'A', 'B', 'C']);
  match(find('.queue-said').textContent, /3 views of q\.json/);
  await give('nonsense');
  equal(names().length, 6);
  match(find('.queue-said').textContent, /unchanged/);
  await give(null);
  match(find('.queue-said').textContent, /unchanged/);
});

const bar = () => find('.present-bar');
const title = () => find('.present-bar h1').textContent;

test('views are presented one by one', async () => {
  three();
  let full = 0;
  document.documentElement.requestFullscreen = async () => (full += 1);
  labelled('Start').click();
  ok(!dialog().open && full === 1 && document.documentElement.classList.contains('is-presenting'));
  deepEqual([title(), location.hash], ['1 of 3 · A', '#view=a']);
  match(said.at(-1), /1 of 3: A/);
  const [before, after] = all('.present-bar button');
  deepEqual([before.disabled, after.disabled, labelled('Reveal').hidden], [true, false, true]);
  after.click();
  equal(title(), '2 of 3 · B');
  deepEqual(scrolled.at(-1), [0, 0]);
  deepEqual([before.disabled, after.disabled], [false, false]);
  for (const [key, wanted] of [
    ['ArrowRight', 3],
    ['ArrowLeft', 2],
    ['PageDown', 3],
    ['PageUp', 2],
    [' ', 3],
    ['Home', 1],
    ['End', 3],
  ]) {
    equal(press(document.body, key), false);
    equal(title()[0], String(wanted), key);
  }
  ok(after.disabled);
  press(document.body, 'ArrowRight');
  match(said.at(-1), /last/);
  press(document.body, 'Home');
  press(document.body, 'ArrowLeft');
  match(said.at(-1), /first/);
  for (const modifier of ['altKey', 'ctrlKey', 'metaKey'])
    equal(press(document.body, 'End', { [modifier]: true }), true);
  equal(press(document.body, 'x'), true);
  before.click();
  equal(title()[0], '1');
  press(document.body, 'Escape');
  equal(bar(), null);
  ok(!document.documentElement.classList.contains('is-presenting'));
  equal(document.activeElement.id, 'present');
  match(said.at(-1), /ended/);
  equal(press(document.body, 'ArrowRight'), true);
});

test('keys that an element needs are its own', () => {
  three();
  icon('▷', 1).click();
  equal(title()[0], '2');
  equal(press(labelled('Leave'), ' '), true);
  equal(press(labelled('Leave'), 'ArrowRight'), false);
  const box = document.body.appendChild(document.createElement('input'));
  equal(press(box, 'ArrowLeft'), true);
  equal(press(box, 'PageUp'), false);
  equal(title()[0], '2');
  press(box, 'Escape');
  equal(bar(), null);
});

test('up and down scroll, and more below is told', async () => {
  three();
  labelled('Start').click();
  layOut(bar(), { height: 100 });
  press(document.body, 'ArrowDown');
  deepEqual(scrolled.at(-1), [0, 525]);
  press(document.body, 'ArrowUp');
  deepEqual(scrolled.at(-1), [0, -525]);
  const more = find('[aria-label="More of this view below"]');
  layOut(find('#panel'), { height: 704 });
  await settled(180);
  ok(more.hidden);
  layOut(find('#panel'), { height: 705 });
  await settled(180);
  ok(!more.hidden);
  more.click();
  deepEqual(scrolled.at(-1), [0, 525]);
});

test('the presentation ends with the full screen', () => {
  three();
  labelled('Start').click();
  document.fullscreenElement = document.body;
  send(document, 'fullscreenchange');
  ok(bar());
  let exits = 0;
  document.exitFullscreen = () => (exits += 1);
  labelled('Leave').click();
  equal(exits, 1);
  open();
  labelled('Start').click();
  document.fullscreenElement = null;
  send(document, 'fullscreenchange');
  equal(bar(), null);
  equal(exits, 1);
});

const covers = () => all('.cover');
/** Presses a node and lets it go. @returns {boolean} false: the drawing does not get the press */
const tap = (node) => {
  const at = { isPrimary: true, clientX: 1, clientY: 1 };
  const isFree = send(node, 'pointerdown', at);
  send(node, 'pointerup', at);
  return isFree;
};

test('cells are covered with the pointer and the keyboard, and uncovered again', async () => {
  three();
  labelled('Cover…').click();
  ok(!dialog().open && bar());
  equal(tap(plot), false);
  equal(covers().length, 1);
  equal(covers()[0].parentElement, plot);
  deepEqual(
    ['left', 'top', 'width', 'height'].map((name) => covers()[0].style[name]),
    ['1px', '2px', '3px', '4px'],
  );
  match(said.at(-1), /1/);
  equal(press(plot, 'Enter'), false);
  equal(covers().length, 2);
  equal(press(plot, 'ArrowUp'), true);
  equal(press(document.body, 'Enter'), true);
  press(plot, ' ');
  equal(covers().length, 1);
  tap(document.body);
  tap(covers()[0]);
  equal(covers().length, 1);
  covers()[0].click();
  equal(covers().length, 0);
  tap(plot.firstChild);
  deepEqual(kept()[0].covers, [{ panel: 0, row: 0, column: 1 }]);
  labelled('Done').click();
  ok(dialog().open && !bar() && covers().length === 0);
  match(texts('.queue-list button')[0], /1/);
  tap(plot);
  equal(covers().length, 0);
  all('.queue-list li')[1].querySelector('button').click();
  press(document.body, 'Escape');
  ok(dialog().open && !bar());
});

test('a covered cell is revealed by a key before the next view', async () => {
  three();
  labelled('Cover…').click();
  tap(plot);
  press(plot, 'Enter');
  labelled('Done').click();
  labelled('Start').click();
  const page = document.documentElement.classList;
  match(said.at(-1), /2 covered/);
  equal(covers().length, 2);
  ok(page.contains('is-covered') && !page.contains('is-covering') && !labelled('Reveal').hidden);
  press(document.body, 'ArrowRight');
  deepEqual([title()[0], covers().length], ['1', 1]);
  match(said.at(-1), /cell 0/);
  box = null;
  await settled(180);
  equal(covers().length, 0);
  ok(page.contains('is-covering'));
  box = { left: 9, top: 2, width: 3, height: 4 };
  await settled(180);
  equal(covers()[0].style.left, '9px');
  covers()[0].click();
  equal(covers().length, 0);
  ok(!page.contains('is-covered') && labelled('Reveal').hidden);
  press(document.body, 'ArrowRight');
  equal(title()[0], '2');
  press(document.body, 'ArrowLeft');
  deepEqual([title()[0], covers().length], ['1', 2]);
  press(document.body, 'ArrowRight');
  press(document.body, 'Home');
  labelled('Reveal').click();
  equal(covers().length, 1);
  labelled('Leave').click();
  equal(covers().length, 0);
  ok(!page.contains('is-covered') && !page.contains('is-covering'));
});

test('without storage the list lasts until the page is left', () => {
  const { setItem, getItem } = window.Storage.prototype;
  window.Storage.prototype.setItem = window.Storage.prototype.getItem = () => {
    throw new Error('forbidden');
  };
  open();
  add('#view=a');
  equal(names().length, 1);
  deepEqual(kept(), []);
  Object.assign(window.Storage.prototype, { setItem, getItem });
});
