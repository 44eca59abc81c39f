/** A chapter next to the page: its steps, its questions, the list, and what of a file is kept. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, blank, find, labelled, send, settled, texts } from '../browser.js';
import { drawBy, openFile, openFromAddress, openList } from '../../../static/js/ui/chapter.js';
import '../../../static/js/ui/chapter_worksheet.js';

const step = (title, more = {}) => ({
  title,
  html: `<p>Read <em>${title}</em>.</p>`,
  link: `/#view=${title}`,
  marks: '',
  opens: { view: title },
  picture: '',
  highlights: [],
  question: null,
  then_link: null,
  ...more,
});
const QUESTION = {
  asks: 'Which head?',
  by: 'one',
  answer: { of: 'weight' },
  choices: { b: 'the second' },
  within: null,
  because: 'It copies.',
  covered: true,
};
const CHAPTERS = {
  one: {
    id: 'one',
    title: 'First',
    sources: [{ title: 'a paper', url: 'https://example.org/' }],
    next: 'two',
    steps: [
      step('a', {
        html: '<p>A <a href="https://example.org/">link</a>, <a href="javascript:x()">none</a><script>y()</script><em title="t">so</em></p>',
      }),
      step('b', { question: QUESTION, then_link: '/#view=c' }),
      step('last'),
    ],
  },
  two: { id: 'two', title: 'Second', sources: [], next: null, steps: [step('only')] },
  three: {
    ...{ id: 'three', title: 'Third', sources: [], next: null },
    steps: [step('map', { question: { ...QUESTION, by: 'cell', covered: false, because: '' } })],
  },
};
const CELL = {
  ...{ kind: 'cell', right: [1, 0], label: '“b” attends to “a”', number: 0.75, choices: [] },
  ...{
    rows: ['a', ' b'],
    columns: ['a', ' b'],
    cells: [
      [1, 0],
      [0.75, 0.25],
    ],
  },
};
const OUTCOME = {
  kind: 'choice',
  right: 'b',
  label: 'b',
  number: null,
  choices: [
    { value: 'a', label: 'the first', number: null },
    { value: 'b', label: 'b', number: null },
  ],
};
let outcome = OUTCOME;
const said = [];
const asked = [];
globalThis.fetch = async (url, { body } = {}) => {
  const path = String(url).replace(/.*\/api\/v1\/chapters/, '');
  asked.push([path, body && JSON.parse(body)]);
  const [, id] = /^\/(\w+)$/.exec(path) ?? [];
  const summary = { id: 'one', title: 'First', about: 'About.', n_steps: 3, n_questions: 1 };
  const answer =
    {
      '': { chapters: [summary], unavailable: { 'x.md': 'x.md cannot be read' } },
      '/answer': outcome,
      '/read': { ...CHAPTERS.two, id: 'dropped' },
    }[path] ?? CHAPTERS[id];
  const content = answer ?? { title: 'Not found', detail: 'there is no chapter', status: 404 };
  return new Response(JSON.stringify(content), { status: answer ? 200 : 404 });
};
const tell = (message) => said.push(message);
const named = (label) => find(`[aria-label="${label}"]`);
const panel = () => find('aside.chapter');
async function open(hash) {
  location.hash = hash;
  openFromAddress(tell, hash);
  await settled(5);
}

blank('<main></main>');
openFromAddress(tell, '#view=a');
equal(panel(), null);
beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
  said.length = asked.length = 0;
});

test('a chapter opens at the step of the address, and goes on to the next chapter', async () => {
  await open('#chapter=one&chapter_step=0');
  equal(find('.chapter-step').textContent, 'a');
  equal(said.at(-1), 'Step 1 of 3: a');
  ok(named('Step before').disabled && !find('.chapter-sources'));
  labelled('Next step').click();
  match(location.hash, /view=b.*chapter=one&chapter_step=1/);
  equal(find('.chapter-step').textContent, 'b');
  const choice = named('Step');
  choice.value = '2';
  send(choice, 'change');
  deepEqual(texts('.chapter-sources a'), ['a paper']);
  labelled('Next chapter').click();
  await settled(5);
  equal(find('.chapter-title').textContent, 'Second');
  match(location.hash, /chapter=two&chapter_step=0/);
  ok(labelled('All chapters') && !find('.chapter-sources'));
});

test('of the text of a step plain tags and links to the web are kept', async () => {
  await open('#chapter=one&chapter_step=0');
  const [link, ...others] = all('.chapter-text a');
  deepEqual([link.getAttribute('href'), link.rel], ['https://example.org/', 'noopener noreferrer']);
  equal(others.length, 0);
  equal(find('.chapter-text script'), null);
  deepEqual([...find('.chapter-text em').attributes], []);
  match(find('.chapter-text').textContent, /A link, none.*so/);
});

test('a question covers the drawing until it is answered, and keeps whether it was', async () => {
  await open('#chapter=one&chapter_step=1');
  const root = document.documentElement.classList;
  ok(root.contains('is-asking') && root.contains('is-hiding'));
  deepEqual(asked.at(-1), ['/answer', { opens: { view: 'b' }, answer: { of: 'weight' } }]);
  deepEqual(texts('.chapter-choice'), ['the first', 'the second']);
  const form = find('.chapter-question');
  send(form, 'submit');
  equal(find('.chapter-said').textContent, 'Choose an answer first.');
  ok(labelled('Show it').hidden);
  const answer = (value) => {
    for (const input of all('.chapter-choice input')) input.checked = input.value === value;
    send(form, 'submit');
  };
  answer('a');
  equal(form.dataset.result, 'wrong');
  ok(!root.contains('is-asking') && !find('.chapter-because').hidden);
  answer('b');
  equal(form.dataset.result, 'right');
  equal(said.at(-1), find('.chapter-said').textContent);
  ok(!labelled('Show it').hidden);
  labelled('Show it').click();
  match(location.hash, /view=c.*chapter=one&chapter_step=1/);
  labelled('Back to the step').click();
  match(named('Step').textContent, /2 of 3 · b ✓/);
});

test('a cell is chosen by its row and its column, or shown', async () => {
  outcome = CELL;
  await open('#chapter=three&chapter_step=0');
  outcome = OUTCOME;
  ok(!document.documentElement.classList.contains('is-hiding') && !labelled('Show it'));
  deepEqual(texts('.chapter-answers option'), ['Row…', '0 a', '1 b', 'Column…', '0 a', '1 b']);
  const form = find('.chapter-question');
  named('Row').value = '1';
  send(form, 'submit');
  equal(find('.chapter-said').textContent, 'Choose an answer first.');
  named('Column').value = '1';
  send(form, 'submit');
  equal(form.dataset.result, 'wrong');
  ok(find('.chapter-because').hidden);
  labelled('Show the answer').click();
  equal(form.dataset.result, 'shown');
  match(find('.chapter-said').textContent, /“b” attends to “a”/);
});

test('a chapter is shown large, and left', async () => {
  await open('#chapter=one&chapter_step=0');
  labelled('Present').click();
  equal(sessionStorage.getItem('headlight.chapter.shown'), '1');
  named('Close the chapter').click();
  ok(panel().hidden && !location.hash.includes('chapter'));
  equal(sessionStorage.getItem('headlight.chapter.shown'), null);
});

test('the list says what there is, what cannot be read, and how many answers were right', async () => {
  openList(tell);
  await settled(5);
  deepEqual(texts('.chapter-list button'), ['First']);
  deepEqual(texts('.chapter-fault'), ['x.md cannot be read']);
  equal(texts('.chapter-list .chapter-marks')[0], '3 steps, 1 questions, about 4 minutes');
  find('.chapter-list button').click();
  await settled(5);
  equal(find('.chapter-step').textContent, 'a');
});

test('a dropped file is read by the server, and a larger one is refused', async () => {
  openFile('---\ntitle: T\n---', tell);
  await settled(5);
  deepEqual(asked[0], ['/read', { text: '---\ntitle: T\n---' }]);
  equal(find('.chapter-step').textContent, 'only');
  openFile('a'.repeat(200_001), tell);
  await settled(5);
  match(find('[role="alert"]').textContent, /larger than 200 kB/);
});

test('a chapter that is not there is told, with a way on', async () => {
  await open('#chapter=none&chapter_step=0');
  equal(find('[role="alert"]').textContent, 'There is no chapter.');
  labelled('All chapters').click();
  await settled(5);
  equal(texts('.chapter-list button').length, 1);
});

const drawn = () => ({
  picture: document.createElement('img'),
  rows: ['p', 'q'],
  columns: ['x', 'y'],
});
/** Opens the worksheet of a chapter; what is printed is kept. */
async function openWorksheet(createDrawings) {
  const printed = [];
  window.print = () => printed.push(find('.worksheet'));
  drawBy(async () => ({ createDrawings }));
  await open('#chapter=one&chapter_step=1');
  asked.length = 0;
  for (let times = 0; times < 2; times += 1) labelled('Worksheet').click();
  await settled(20);
  return printed;
}

test('a worksheet has each drawing, its link once and the answers last, and is printed once', async () => {
  const printed = await openWorksheet(() => async () => drawn());
  equal(all('.worksheet-dialog').length, 1);
  equal(printed.length, 0, 'it is shown first');
  const press = labelled('Print');
  for (let times = 0; times < 2; times += 1) press.click();
  equal(printed.length, 1);
  equal(find('.worksheet-dialog'), null);
  equal(printed[0].querySelectorAll('.worksheet-link').length, 1);
  equal(printed[0].lastElementChild.className, 'worksheet-answers');
  equal(asked.filter(([path]) => path === '/answer').length, 1);
  // The question of step b covers its drawing: its cells are printed empty, and it is with the answers.
  equal(printed[0].querySelectorAll('.worksheet-step img').length, 2);
  deepEqual(
    [...printed[0].querySelectorAll('.worksheet-grid :is(th, td)')].map((each) => each.textContent),
    ['', 'x', 'y', 'p', '', '', 'q', '', ''],
  );
  equal(printed[0].querySelectorAll('.worksheet-answers img').length, 1);
  window.dispatchEvent(new window.Event('afterprint'));
  equal(find('.worksheet'), null);
});

test('a worksheet fills in by itself, and waits for what is late unless it is pressed twice', async () => {
  const late = Promise.withResolvers();
  const slowly = () => (each) => (each.title === 'last' ? late.promise : drawn());
  const printed = await openWorksheet(slowly);
  match(find('.worksheet-dialog [role=status]').textContent, /^2 of 3/);
  labelled('Print').click();
  equal(printed.length, 0, 'a step is missing');
  match(find('.worksheet-dialog .is-primary').textContent, /without 1/);
  late.resolve(drawn());
  await settled(20);
  equal(printed.length, 1, 'printed without another press');
  equal(printed[0].querySelectorAll('.worksheet-step img').length, 2);
  window.dispatchEvent(new window.Event('afterprint'));
  const never = await openWorksheet(() => () => new Promise(() => {}));
  for (let times = 0; times < 2; times += 1) find('.worksheet-dialog .is-primary').click();
  equal(never.length, 1);
  equal(never[0].querySelectorAll('img').length, 0);
  window.dispatchEvent(new window.Event('afterprint'));
});
