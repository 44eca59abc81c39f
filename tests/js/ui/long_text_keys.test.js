/** Which token of a very long text Tab leads to. */

import { equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { all, blank, find, layOut, observers, recorder } from '../browser.js';
import { Chips } from '../../../static/js/ui/sentence.js';
import { TOKENS } from '../sample.js';

const { handlers } = recorder('onChoose', 'onPress', 'onPoint');

function longStrip(count = 1300) {
  blank('<div id="host"></div>');
  layOut(find('#host'), { width: 520 });
  const strip = new Chips(find('#host'), 'Tokens', handlers);
  strip.show(
    Array.from({ length: count }, () => TOKENS[1]),
    'it',
  );
  const [{ call }] = observers.IntersectionObserver.slice(-1);
  return { strip, call, blocks: all('.chip-block') };
}
const reached = () => all('.chip').filter(({ tabIndex }) => tabIndex === 0);

test('where no token is chosen Tab leads to the first, though it was out of sight', () => {
  const { strip, call, blocks } = longStrip();
  call([
    { target: blocks[0], isIntersecting: false },
    { target: blocks[4], isIntersecting: true },
  ]);
  equal(blocks[0].childElementCount, 0);
  strip.choose(null);
  equal(blocks[0].childElementCount, 128);
  equal(reached().length, 1);
  ok(blocks[0].firstElementChild === reached()[0]);
});

test('Tab leads to the chosen token, and to the focused one once none is chosen', () => {
  const { strip, blocks } = longStrip();
  strip.choose(700);
  equal(reached().length, 1);
  ok(blocks[5].contains(reached()[0]));
  reached()[0].focus();
  strip.choose(null);
  equal(reached().length, 1);
  equal(reached()[0], document.activeElement);
});
