/** The chips of a sentence, what they are marked with, and how they are walked through. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import {
  all,
  blank,
  find,
  layOut,
  observers,
  press,
  recorder,
  send,
  showTemplate,
  texts,
} from '../browser.js';
import { Chips, createSentence } from '../../../static/js/ui/sentence.js';
import { pairTrace, PALETTE, sampleTrace, TOKENS } from '../sample.js';

const { calls, handlers, take } = recorder('onChoose', 'onPress', 'onPoint');
const chips = (host = document) => all('.chip', host);
const flags = (name) => chips().map((node) => node.classList.contains(name));
let host, strip;

beforeEach(() => {
  blank('<div id="host"></div>');
  host = find('#host');
  strip = new Chips(host, 'Tokens', handlers);
  take();
});

test('each token is a chip with its number and kind', () => {
  strip.show(TOKENS, 'it saw');
  equal(host.getAttribute('role'), 'listbox');
  equal(host.getAttribute('aria-label'), 'Tokens');
  equal(host.dir, 'ltr');
  deepEqual(flags('is-special'), [true, false, false, false, false]);
  ok(chips().every((node, index) => node.getAttribute('aria-label').includes(`${index}: `)));
  ok(chips()[0].title.startsWith('Special token 0, id 0'));
  ok(chips()[3].title.startsWith('Token 3, id 7'));
  ok(chips()[2].getAttribute('aria-label').endsWith('saw'));
  ok(chips()[0].getAttribute('aria-label').startsWith('special'));
  equal(find('b', host), null);
  ok(all('.blank', host).length > 0);
  strip.show(TOKENS, 'שלום');
  equal(host.dir, 'rtl');
});

test('a blank token is spelled, and the bytes of a character share an outline', () => {
  const part = (from) => ({ whole: '我', from, to: from, of: 3 });
  const bytes = [1, 2, 3].map((from) => ({
    ...TOKENS[1],
    id: from,
    text: `\\xe${from}`,
    part: part(from),
  }));
  strip.show([{ ...TOKENS[1], text: ' ' }, ...bytes, TOKENS[1]], '我');
  equal(chips().length, 5);
  equal(all('.character').length, 1);
  equal(all('.character .chip').length, 3);
  equal(host.children.length, 3);
  ok(find('.character').getAttribute('aria-label').includes('我'));
  deepEqual(flags('is-bytes'), [false, true, true, true, false]);
  ok(!chips()[1].textContent.includes('x'));
  ok(chips()[1].title.includes('我') && chips()[1].getAttribute('aria-label').includes('我'));
  ok(/: .+/.test(chips()[0].getAttribute('aria-label')));
  strip.show(bytes.slice(1), '');
  equal(host.children.length, 1);
  equal(all('.chip', host).length, 2);
});

test('the chosen token is selected and reached by Tab', () => {
  strip.show(TOKENS, 'it');
  strip.choose(2);
  deepEqual(
    chips().map((node) => node.getAttribute('aria-selected')),
    ['false', 'false', 'true', 'false', 'false'],
  );
  deepEqual(
    chips().map(({ tabIndex }) => tabIndex),
    [-1, -1, 0, -1, -1],
  );
  strip.choose(null);
  deepEqual(
    chips().map((node) => node.getAttribute('aria-selected')),
    Array(5).fill('false'),
  );
  deepEqual(
    chips().map(({ tabIndex }) => tabIndex),
    [0, -1, -1, -1, -1],
  );
  chips()[3].focus();
  strip.choose(null);
  equal(chips()[3].tabIndex, 0);
});

test('the pointer and the focus point at a token', () => {
  strip.show(TOKENS, 'it');
  send(chips()[1].firstChild, 'pointerover', { pointerType: 'mouse' });
  send(chips()[2], 'pointerover', { pointerType: 'touch' });
  send(host, 'pointerover', { pointerType: 'mouse' });
  send(host, 'pointerleave', { pointerType: 'touch' });
  deepEqual(take(), [['onPoint', 1]]);
  send(host, 'pointerleave', { pointerType: 'mouse' });
  send(chips()[4], 'focusin');
  send(host, 'focusin');
  send(chips()[4], 'focusout');
  deepEqual(take(), [
    ['onPoint', null],
    ['onPoint', 4],
    ['onPoint', null],
  ]);
  send(chips()[3].firstChild, 'click');
  send(host, 'click');
  deepEqual(take(), [['onPress', 3]]);
});

test('keys walk from token to token, and Enter presses', () => {
  strip.show(TOKENS, 'it');
  const key = (at, name) => {
    take();
    const isFree = press(chips()[at], name);
    return [
      isFree,
      calls
        .filter(([each]) => each !== 'onPoint')
        .map(([each, to]) => [each, to])
        .flat(),
    ];
  };
  deepEqual(key(1, 'ArrowRight'), [false, ['onChoose', 2]]);
  equal(document.activeElement, chips()[2]);
  deepEqual(key(1, 'ArrowLeft'), [false, ['onChoose', 0]]);
  deepEqual(key(0, 'ArrowLeft'), [false, ['onChoose', 0]]);
  deepEqual(key(4, 'ArrowRight'), [false, ['onChoose', 4]]);
  deepEqual(key(1, 'ArrowDown'), [false, ['onChoose', 2]]);
  deepEqual(key(1, 'ArrowUp'), [false, ['onChoose', 0]]);
  deepEqual(key(2, 'Home'), [false, ['onChoose', 0]]);
  deepEqual(key(2, 'End'), [false, ['onChoose', 4]]);
  deepEqual(key(2, 'Enter'), [false, ['onPress', 2]]);
  deepEqual(key(2, ' '), [false, ['onPress', 2]]);
  deepEqual(key(2, 'x'), [true, []]);
  equal(press(host, 'End'), true);
  strip.show(TOKENS, 'שלום');
  deepEqual(key(2, 'ArrowRight'), [false, ['onChoose', 1]]);
  deepEqual(key(2, 'ArrowLeft'), [false, ['onChoose', 3]]);
});

test('marks and tints are of the tokens that are named', () => {
  strip.show(TOKENS, 'it');
  strip.mark({ query: 2, key: [0, 1] });
  deepEqual(flags('is-query'), [false, false, true, false, false]);
  deepEqual(flags('is-key'), [true, true, false, false, false]);
  ok(host.classList.contains('is-pointed'));
  strip.mark({ key: 4 });
  ok(host.classList.contains('is-pointed'));
  strip.mark();
  ok(!host.classList.contains('is-pointed'));
  deepEqual(flags('is-key'), Array(5).fill(false));
  const scale = Uint8Array.from({ length: 768 }, (_, at) => Math.floor(at / 3));
  strip.tint(Float64Array.of(0, 1, NaN, 0.5), scale);
  const tint = (at) => chips()[at].style.getPropertyValue('--tint');
  deepEqual(
    chips().map((node) => node.hasAttribute('data-tinted')),
    [true, true, false, true, false],
  );
  ok(tint(1).includes('255') && tint(0).includes('0') && tint(2) === '' && tint(4) === '');
  ok(chips()[1].style.getPropertyValue('--tint-ink') !== '');
  strip.tint(Float64Array.of(0.5), scale, 0.5);
  ok(tint(0).includes('255'));
  equal(tint(1), '');
  equal(chips()[1].style.getPropertyValue('--tint-ink'), '');
  strip.tint(Float64Array.of(0.5));
  equal(tint(0), '');
  strip.tint(null);
  ok(!chips()[0].hasAttribute('data-tinted'));
});

test('a sentence that arrives keeps the focus at its place', () => {
  strip.show(TOKENS, 'it');
  chips()[3].focus();
  strip.show(TOKENS, 'it');
  equal(document.activeElement, chips()[3]);
  equal(chips()[3].tabIndex, 0);
  host.scrollTop = 40;
  strip.show(TOKENS, 'it');
  equal(host.scrollTop, 40);
  strip.show(TOKENS.slice(0, 2), 'it');
  equal(host.scrollTop, 0);
  equal(document.activeElement, chips()[1]);
  strip.show([], '');
  equal(chips().length, 0);
  strip.show(TOKENS, 'it');
  equal(document.activeElement, document.body);
});

/** Twenty rows of one chip each, 10 pixels high, in a host that shows five. */
function tall() {
  strip.show(
    Array.from({ length: 20 }, () => TOKENS[1]),
    'it',
  );
  layOut(host, { height: 50 });
  Object.defineProperty(host, 'scrollHeight', { value: 200, configurable: true });
  chips().forEach((node, row) => layOut(node, { top: 10 * row, height: 10 }));
}

test('a long sentence is scrolled to what is marked, and no further', () => {
  tall();
  strip.mark({ query: 10 });
  equal(host.scrollTop, 65);
  strip.mark({ query: 8 });
  equal(host.scrollTop, 65);
  strip.mark({ query: 3 });
  equal(host.scrollTop, 25);
  strip.mark({ query: 3, key: 6 });
  equal(host.scrollTop, 25);
  strip.mark({ query: 8, key: 5 });
  equal(host.scrollTop, 45);
  strip.mark({ query: 15, key: 0 });
  equal(host.scrollTop, 115);
  strip.mark();
  equal(host.scrollTop, 115);
  strip.choose(0);
  equal(host.scrollTop, -5);
  Object.defineProperty(host, 'scrollHeight', { value: 50, configurable: true });
  strip.choose(19);
  equal(host.scrollTop, -5);
});

function showLong(count = 1300) {
  layOut(host, { width: 520 });
  strip.show(Array(count).fill(TOKENS[1]), 'it');
}

test('a very long text is on the page in blocks, as they come into sight', () => {
  showLong();
  equal(all('.chip-block').length, 11);
  equal(chips().length, 128);
  const [first, second] = all('.chip-block');
  const last = all('.chip-block').at(-1);
  deepEqual(
    [first.style.minHeight, second.style.minHeight, last.style.minHeight],
    ['', `${13 * 31}px`, `${2 * 31}px`],
  );
  strip.mark({ query: 130 });
  equal(second.childElementCount, 128);
  equal(flags('is-query').indexOf(true), 130);
  strip.choose(1299);
  equal(last.childElementCount, 20);
  equal(last.lastElementChild.getAttribute('aria-selected'), 'true');
  const [{ call }] = observers.IntersectionObserver.slice(-1);
  layOut(second, { height: 77 });
  call([
    { target: second, isIntersecting: false },
    { target: document.body, isIntersecting: true },
  ]);
  deepEqual([second.childElementCount, second.style.minHeight], [0, '77px']);
  call([{ target: second, isIntersecting: false }]);
  strip.tint(new Float64Array(1300).fill(1), new Uint8Array(768));
  call([{ target: second, isIntersecting: true }]);
  ok(chips()[130].classList.contains('is-query') && chips()[130].hasAttribute('data-tinted'));
  ok(chips()[129].getAttribute('aria-label').includes('129'));
  chips()[0].focus();
  call([{ target: first, isIntersecting: false }]);
  equal(first.childElementCount, 128);
  showLong(1024);
  equal(all('.chip-block').length, 0);
  equal(chips().length, 1024);
});

test('of a very long text Tab leads to the chosen token, the focused one or the first', () => {
  const reached = () => chips().filter(({ tabIndex }) => tabIndex === 0);
  showLong();
  const blocks = all('.chip-block');
  const [{ call }] = observers.IntersectionObserver.slice(-1);
  call([
    { target: blocks[0], isIntersecting: false },
    { target: blocks[4], isIntersecting: true },
  ]);
  equal(blocks[0].childElementCount, 0);
  strip.choose(null);
  equal(blocks[0].childElementCount, 128);
  deepEqual(reached(), [blocks[0].firstElementChild]);
  strip.choose(700);
  equal(reached().length, 1);
  ok(blocks[5].contains(reached()[0]));
  reached()[0].focus();
  strip.choose(null);
  deepEqual(reached(), [document.activeElement]);
});

let sentence;
function withSentence() {
  showTemplate('index.html');
  sentence = createSentence(find('#sentence'), handlers);
  take();
}

test('a sentence shows the tokens of its sides', () => {
  withSentence();
  sentence.show(sampleTrace());
  equal(chips(find('#chips')).length, 5);
  ok(find('#target-row').hidden && !find('#sentence').classList.contains('is-pair'));
  equal(find('#mask-hint').textContent, '');
  sentence.show(pairTrace());
  equal(chips(find('#target-chips')).length, 3);
  ok(!find('#target-row').hidden && find('#sentence').classList.contains('is-pair'));
  sentence.choose('target', 1);
  deepEqual(
    all('[aria-selected="true"]').map((node) => node.parentElement.id),
    ['target-chips'],
  );
  sentence.choose('source', 1);
  deepEqual(
    all('[aria-selected="true"]').map((node) => node.parentElement.id),
    ['chips'],
  );
  send(chips(find('#target-chips'))[1], 'click');
  press(chips(find('#chips'))[1], 'End');
  deepEqual(
    calls.filter(([name]) => name !== 'onPoint'),
    [
      ['onPress', 'target', 1],
      ['onChoose', 'source', 4],
    ],
  );
  sentence.show({ ...sampleTrace(), card: { has_mask: true } });
  equal(chips(find('#target-chips')).length, 0);
  ok(find('#mask-hint').textContent !== '');
});

const GRID = {
  ofRow: (row) => ({ readout: `row ${row}`, tint: Float64Array.of(0, 0, 0.25, 0, 0) }),
  describe: (row, column) => `cell ${row} ${column}`,
  tokens: (query, key) => ({ query, key }),
  rest: { readout: 'at rest', tint: Float64Array.of(0.5, 0, 0, 0, 0) },
  ceiling: 1,
};

test('what is pointed at is told before what is found', () => {
  withSentence();
  const readout = () => find('#readout').textContent;
  const isTold = () => find('#sentence').classList.contains('is-told');
  sentence.show(sampleTrace());
  sentence.mark(GRID, null, PALETTE);
  equal(readout(), 'at rest');
  ok(!isTold());
  sentence.explain('90 % of it');
  sentence.mark(GRID, null, PALETTE);
  ok(isTold(), 'the finding above says what the drawing shows');
  ok(!find('#sentence').classList.contains('is-pointing'));
  sentence.mark(GRID, { cell: { row: 1, column: 2 }, grid: GRID }, PALETTE);
  equal(readout(), 'cell 1 2');
  ok(!isTold() && find('#sentence').classList.contains('is-pointing'));
  deepEqual([flags('is-query').indexOf(true), flags('is-key').indexOf(true)], [1, 2]);
  send(chips()[3], 'pointerover', { pointerType: 'mouse' });
  equal(calls.at(-1)[0], 'onPoint');
  sentence.mark(GRID, null, PALETTE);
  equal(readout(), 'row 3');
  ok(!isTold());
  const tinted = chips()[2].style.getPropertyValue('--tint');
  sentence.mark({ ...GRID, isSigned: true }, null, PALETTE);
  ok(chips()[2].style.getPropertyValue('--tint') !== tinted);
  sentence.mark({ ...GRID, ceiling: 0.25 }, null, PALETTE);
  ok(chips()[2].style.getPropertyValue('--tint') !== tinted);
  send(find('#chips'), 'pointerleave', { pointerType: 'mouse' });
  sentence.mark(GRID, null, PALETTE);
  equal(readout(), 'at rest');
  send(chips()[3], 'pointerover', { pointerType: 'mouse' });
  sentence.show(sampleTrace());
  sentence.mark(GRID, null, PALETTE);
  equal(readout(), 'at rest');
  deepEqual(texts('.is-query'), []);
});

test('the tokens of a part of a text are brought into sight, and all others are paler', () => {
  strip.show(TOKENS, 'it saw');
  layOut(chips()[3], { left: 0, top: 90, width: 20, height: 20 });
  strip.follow([
    [3, 5],
    [0, 1],
  ]);
  deepEqual(flags('is-outside'), [false, true, true, false, false]);
  equal(host.scrollTop, 85);
  host.scrollTop = 10;
  strip.follow([
    [3, 5],
    [0, 1],
  ]);
  equal(host.scrollTop, 10, 'the same part leaves the strip where it was scrolled to');
  strip.follow([]);
  ok(!flags('is-outside').includes(true));
});
