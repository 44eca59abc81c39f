/** The slider over the frames of a run. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { blank, find, labelled, recorder, type } from '../browser.js';
import { createScrubber } from '../../../static/js/ui/scrubber.js';

const { handlers, take } = recorder('onFrame');
beforeEach(() => {
  blank();
  take();
});

const slider = () => find('input[type="range"]');

test('the frames of a run are slid through', () => {
  const scrubber = createScrubber('e', handlers.onFrame);
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
  const scrubber = createScrubber('e', handlers.onFrame);
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
