/** Chapters on the page: places in the address, verdicts, progress, and the file of a presentation. */

import { deepEqual, equal, match } from 'node:assert/strict';
import { test } from 'node:test';

import {
  answerAt,
  answered,
  asChapter,
  canBeDrawn,
  choicesOf,
  isBare,
  isChapter,
  keepPlace,
  numberIn,
  placeIn,
  progressIn,
  revealed,
  verdictOn,
  withPlace,
  withProgress,
} from '../../../static/js/rules/chapter.js';

const QUESTION = { asks: '?', by: 'one', answer: {}, choices: {}, within: null, because: '' };
const EMPTY = { choices: [], rows: [], columns: [], cells: [] };
const TOKEN = {
  ...EMPTY,
  kind: 'choice',
  right: 1,
  label: '“b”',
  number: 0.7,
  choices: [
    { value: 0, label: '“a”', number: 0.3 },
    { value: 1, label: '“b”', number: 0.7 },
  ],
};
const NUMBER = { ...EMPTY, kind: 'number', right: 0.5, label: '0.5', number: 0.5 };
const CELL = {
  ...EMPTY,
  kind: 'cell',
  right: [1, 0],
  label: '“b” attends to “a”',
  number: 0.9,
  rows: ['a', ' b'],
  columns: ['a', ' b'],
  cells: [
    [1, 0],
    [0.9, 0.1],
  ],
};

test('the place of a chapter is read from the address, and a link keeps what it opens', () => {
  deepEqual(placeIn('#text=a&chapter=x&chapter_step=3'), { id: 'x', step: 3 });
  deepEqual(placeIn('#chapter=x&chapter_step=-1'), { id: 'x', step: null });
  equal(placeIn('#text=a'), null);
  equal(withPlace('/#text=a+b', 'x', 2), '/#text=a+b&chapter=x&chapter_step=2');
  equal(
    withPlace('/experiments#experiment=y', 'x', 0),
    '/experiments#experiment=y&chapter=x&chapter_step=0',
  );
});

test('an address that names only a chapter is bare', () => {
  equal(isBare('#chapter=x'), true);
  equal(isBare('#chapter=x&text=a'), false);
});

test('what is written next keeps the place, and nothing else', () => {
  const to = new URLSearchParams({ experiment: 'y' });
  keepPlace(new URLSearchParams('chapter=x&chapter_step=1&width=4'), to);
  equal(String(to), 'experiment=y&chapter=x&chapter_step=1');
});

test('a file is a chapter if it has front matter with a title', () => {
  equal(isChapter('---\ntitle: A\n---\n\n## B\n'), true);
  equal(isChapter('Once upon a time\n---\ntitle: A\n---\n'), false);
  equal(isChapter('---\nname: A\n---\n'), false);
  equal(isChapter('--- title: a dash'), false);
});

test('a chosen token is right, or the difference is told', () => {
  deepEqual(verdictOn(TOKEN, QUESTION, '1'), { isRight: true, sentence: 'Right: “b”, 0.7.' });
  const wrong = verdictOn(TOKEN, QUESTION, 0);
  equal(wrong.isRight, false);
  match(wrong.sentence, /“a”, 0\.3.*“b”, 0\.7/);
});

test('choices have the words of the question', () => {
  const label = 'less: from 0.8 to 0.7';
  const outcome = { ...EMPTY, kind: 'choice', right: 'less', label, number: null };
  outcome.choices = ['more', 'less'].map((value) => ({ value, label: value, number: null }));
  const question = { ...QUESTION, choices: { less: 'It falls' } };
  deepEqual(
    choicesOf(outcome, question).map((each) => each.label),
    ['more', 'It falls'],
  );
  equal(revealed(outcome, question), 'The answer is “It falls”, from 0.8 to 0.7.');
  match(verdictOn(outcome, question, 'more').sentence, /^You chose “more”; it is “It falls”, from/);
  const same = { ...outcome, right: 'same', label: 'same: from 8.76 to 8.76' };
  match(revealed(same, question), /“same.*8\.76 both times\.$/);
  equal(verdictOn(outcome, question, 'less').isRight, true);
});

test('a number is right within a tenth, or within what the question says', () => {
  equal(verdictOn(NUMBER, QUESTION, 0.54).isRight, true);
  equal(verdictOn(NUMBER, QUESTION, 0.56).isRight, false);
  equal(verdictOn(NUMBER, { ...QUESTION, within: 0.01 }, 0.54).isRight, false);
  match(verdictOn(NUMBER, QUESTION, 0.2).sentence, /0\.3 too low/);
  match(verdictOn(NUMBER, QUESTION, 0.9).sentence, /0\.4 too high/);
  equal(verdictOn({ ...NUMBER, right: 0 }, { ...QUESTION, within: 0.001 }, 0).isRight, true);
  equal(verdictOn(NUMBER, QUESTION, 'x').isRight, false);
});

test('a number is read as people write it', () => {
  const read = ['0.6', '0,6', '60 %', ' −2', '.5', '1e-3', '-4,5%', '', 'a', '1.2.3', '%'];
  deepEqual(read.map(numberIn), [
    0.6,
    0.6,
    0.6,
    -2,
    0.5,
    0.001,
    -0.045,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test('a cell is a row and a column', () => {
  equal(verdictOn(CELL, QUESTION, [1, 0]).isRight, true);
  match(verdictOn(CELL, QUESTION, [1, 1]).sentence, /“b” and “b”, 0\.1; it is “b” attends to “a”/);
  match(verdictOn(CELL, QUESTION, [7, 7]).sentence, /no cell/);
  equal(verdictOn(CELL, QUESTION, null).isRight, false);
});

test('progress is kept by chapter, and what was kept wrongly is none', () => {
  const none = { step: 0, right: [], wrong: [] };
  deepEqual(progressIn('{', 'x'), none);
  deepEqual(progressIn(null, 'x'), none);
  deepEqual(progressIn('{"x": {"step": "2"}}', 'x'), none);
  const kept = withProgress(withProgress(null, 'x', { ...none, step: 2 }), 'y', none);
  equal(progressIn(kept, 'x').step, 2);
  deepEqual(progressIn(withProgress('[', 'x', none), 'x'), none);
});

test('a step that was right once stays right', () => {
  const first = answered({ step: 0, right: [], wrong: [] }, 3, false);
  deepEqual([first.right, first.wrong], [[], [3]]);
  const second = answered(first, 3, true);
  deepEqual([second.right, second.wrong], [[3], []]);
  deepEqual(answered(second, 3, false).wrong, []);
});

test('a presentation is written as a chapter, with texts and questions', () => {
  const slides = [
    { name: 'A\nview', link: '#text=a"b', covers: [], text: 'Look.', question: 'strongest_key' },
    { name: 'Another', link: '#text=c', covers: [] },
  ];
  const file = asChapter('My "talk"', slides);
  equal(isChapter(file), true);
  match(file, /^title: "My \\"talk\\""$/m);
  match(file, /^## A view$/m);
  match(file, /^opens: "#text=a\\"b"$/m);
  match(file, /^ {2}answer: \{of: strongest_key\}$/m);
  match(file, /^Look\.$/m);
  equal(file.match(/^question:/gm)?.length, 1);
});

test('a cell of the drawing answers by its tokens, and a bar by its label', () => {
  const asked = (/** @type {string} */ of, by = 'one') => ({ ...QUESTION, by, answer: { of } });
  const cell = { query: [1], key: [0, 1], labels: ['b', 'a'] };
  deepEqual(answerAt(CELL, asked('strongest_cell'), cell), [1, 0]);
  equal(answerAt(CELL, asked('strongest_cell'), { query: 1, labels: ['b', ''] }), undefined);
  equal(answerAt(TOKEN, asked('strongest_key'), { ...cell, key: 1 }), 1);
  equal(answerAt(TOKEN, asked('strongest_key'), { ...cell, key: 7 }), undefined);
  const bars = { ...TOKEN, choices: [{ value: ' cat', label: '“cat”', number: 0.3 }] };
  equal(answerAt(bars, asked('next_token'), { labels: ['␣cat', ''] }), ' cat');
  equal(answerAt(bars, asked('next_token'), { labels: ['dog', ''] }), undefined);
  equal(answerAt(TOKEN, asked('strongest_head'), cell), undefined);
  equal(answerAt(NUMBER, asked('weight', 'number'), cell), undefined);
  equal(canBeDrawn(asked('strongest_cell', 'cell')), true);
  equal(canBeDrawn(asked('strongest_key', 'token')), true);
  equal(canBeDrawn(asked('strongest_head')), false);
  equal(canBeDrawn({ ...asked('next_token', 'bar'), covered: true }), false);
});
