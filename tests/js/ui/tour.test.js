import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { blank, find, labelled, layOut, press, scrolled, send, settled } from '../browser.js';
import { placeBeside } from '../../../static/js/ui/dom.js';
import { createTour, stopsFor } from '../../../static/js/ui/tour.js';

const SCREEN = { width: 1000, height: 800 };
const CARD = { width: 300, height: 200 };

function covers(card, { left, top }, target) {
  return (
    left < target.left + target.width &&
    left + card.width > target.left &&
    top < target.top + target.height &&
    top + card.height > target.top
  );
}

test('a card stands beside its target and does not cover it', () => {
  const targets = [
    { left: 20, top: 100, width: 400, height: 300 },
    { left: 20, top: 20, width: 960, height: 150 },
    { left: 20, top: 600, width: 960, height: 180 },
  ];
  for (const target of targets)
    ok(!covers(CARD, placeBeside(target, CARD, SCREEN), target), JSON.stringify(target));
});

test('a card never leaves the screen', () => {
  for (const target of [
    { left: -50, top: -400, width: 1200, height: 1900 },
    { left: 400, top: 780, width: 10, height: 900 },
    { left: 990, top: -10, width: 5, height: 5 },
  ]) {
    const { left, top } = placeBeside(target, CARD, SCREEN);
    ok(
      left >= 0 &&
        top >= 0 &&
        left + CARD.width <= SCREEN.width &&
        top + CARD.height <= SCREEN.height,
    );
  }
});

test('stops of views that the page does not have are left out', () => {
  ok(stopsFor(['attention']).every(({ view }) => !view || view === 'attention'));
});

const STOPS = [
  { id: 'a', target: '#a', title: 'First', text: 'of a' },
  { id: 'gone', target: '#gone', title: 'Gone', text: 'of nothing' },
  { id: 'b', view: 'v', target: '#b', beside: '#c', title: 'Second', text: 'of b' },
  { id: 'c', target: '#c', title: 'Third', text: 'of c' },
];
const size = { width: 300, height: 100 };
let opened;

function begin(onView = async (id) => void opened.push(id)) {
  blank(
    '<button id="starter"></button><p id="a"></p><div id="sentence"></div><p id="b"></p><p id="c"></p>',
  );
  opened = [];
  for (const [id, top] of Object.entries({ a: 100, b: 300, c: 600 })) {
    layOut(find(`#${id}`), { left: 50, top, width: 100, height: 40 });
    find(`#${id}`).getClientRects = () => [1];
  }
  layOut(find('#sentence'), { height: 60 });
  layOut(document.documentElement, { width: 1200, height: 800 });
  const tour = createTour(find('#starter'), STOPS, { onView });
  layOut(find('.tour'), size);
  return tour;
}
const title = () => find('#tour-title').textContent;

test('the tour walks from stop to stop, past what is not there, and back', async () => {
  const tour = begin();
  ok(find('.tour').hidden && find('.tour-ring').hidden);
  tour.open();
  await settled();
  deepEqual(
    [title(), find('#tour-text').textContent, find('.tour-progress').textContent],
    ['First', 'of a', '1 of 4'],
  );
  ok(!find('.tour').hidden && !find('.tour-ring').hidden && labelled('Back').hidden);
  equal(document.activeElement.id, 'tour-title');
  labelled('Next').click();
  await settled();
  deepEqual([title(), opened, find('.tour-progress').textContent], ['Second', ['v'], '3 of 4']);
  ok(!labelled('Back').hidden);
  press(find('.tour'), 'ArrowRight');
  await settled();
  equal(title(), 'Third');
  ok(labelled('Done'));
  press(find('.tour'), 'ArrowLeft');
  await settled();
  labelled('Back').click();
  await settled();
  equal(title(), 'First');
  labelled('Back').click();
  await settled();
  equal(title(), 'First');
  ok(!find('.tour').hidden);
});

test('the tour ends after its last stop, by its button, by Escape and where it began', async () => {
  const tour = begin();
  const isOpen = () => !find('.tour').hidden || !find('.tour-ring').hidden;
  const start = async () => {
    tour.open();
    await settled();
    ok(isOpen());
  };
  await start();
  press(find('.tour'), 'ArrowRight');
  await settled();
  press(find('.tour'), 'ArrowRight');
  await settled();
  labelled('Done').click();
  await settled();
  ok(!isOpen());
  equal(document.activeElement.id, 'starter');
  for (const end of [
    () => labelled('Leave').click(),
    () => press(document.body, 'Escape'),
    () => tour.open(),
  ]) {
    await start();
    press(document.body, 'x');
    ok(isOpen());
    end();
    ok(!isOpen(), String(end));
    equal(title(), 'First');
  }
  find('#a').focus();
  press(document.body, 'Escape');
  ok(document.activeElement.id !== 'a');
});

test('the card stands beside the part, and the ring around it', async () => {
  const tour = begin();
  tour.open();
  await settled();
  equal(find('.tour').style.transform, 'translate(162px, 100px)');
  const ring = () => ['transform', 'width', 'height'].map((name) => find('.tour-ring').style[name]);
  deepEqual(ring(), ['translate(44px, 94px)', '112px', '52px']);
  layOut(find('#a'), { left: 60, top: 80, width: 100, height: 40 });
  for (const type of ['scroll', 'resize']) {
    layOut(find('#a'), { left: 60, top: type === 'scroll' ? 80 : 90, width: 100, height: 40 });
    send(window, type);
    equal(ring()[0], `translate(54px, ${type === 'scroll' ? 74 : 84}px)`);
  }
  press(find('.tour'), 'ArrowRight');
  await settled();
  equal(find('.tour').style.transform, 'translate(162px, 600px)');
  deepEqual(ring()[0], 'translate(44px, 294px)');
  press(document.body, 'Escape');
  layOut(find('#b'), { left: 0, top: 0, width: 1, height: 1 });
  send(window, 'scroll');
  deepEqual(ring()[0], 'translate(44px, 294px)');
});

test('the page scrolls so that the part is in the middle, below the sentence', async () => {
  const tour = begin();
  scrolled.length = 0;
  tour.open();
  await settled();
  deepEqual(scrolled.pop(), [0, 100 - 380]);
  press(find('.tour'), 'ArrowRight');
  await settled();
  deepEqual(scrolled.pop(), [0, 300 - 60 - 350]);
  layOut(find('#c'), { left: 50, top: 600, width: 100, height: 900 });
  press(find('.tour'), 'ArrowRight');
  await settled();
  deepEqual(scrolled.pop(), [0, 600 - 60 - 24]);
});

test('a tour that was left while a view opened stays ended', async () => {
  let open;
  const tour = begin(
    () =>
      new Promise((resolve) => {
        open = resolve;
      }),
  );
  tour.open();
  await settled();
  press(find('.tour'), 'ArrowRight');
  await settled();
  press(document.body, 'Escape');
  open();
  await settled();
  ok(find('.tour').hidden);
});
