import { ok } from 'node:assert/strict';
import { test } from 'node:test';
import { placeBeside } from '../../../static/js/ui/dom.js';
import { stopsFor } from '../../../static/js/ui/tour.js';

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
