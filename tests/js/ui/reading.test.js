/** A long text while it is read: its size and time in words, and its maps in place of the results. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, find, showTemplate } from '../browser.js';
import { aboutSeconds, createReading } from '../../../static/js/ui/reading.js';

const WHOLE = { text: 'a b c', resolution: 256 };
const MAP = {
  attention: 'decoder.layers.2.self_attention',
  head: 1,
  tokens: [36183, 36183],
  read: 12000,
  bins: [2, 2],
  mean: new Float32Array([1, 0, 1, 1]),
};
const SETTING = { count: 0, isWhole: true };
let reading;
const results = () => find('#results');

beforeEach(() => {
  showTemplate('index.html');
  results().hidden = false;
  reading = createReading(results());
});

test('an estimate is rounded, in seconds and then in minutes', () => {
  deepEqual([0.2, 7.4, 44, 86, 121].map(aboutSeconds), [
    'about 1 s',
    'about 7 s',
    'about 40 s',
    'about 90 s',
    'about 2 min',
  ]);
});

test('the tokens and the time are told once they are known', () => {
  equal(reading.take({ share: 0 }, WHOLE, SETTING).words, 'Reading 5 characters');
  equal(reading.take({ map: MAP }, WHOLE, SETTING), null);
  const { share, words } = reading.take({ share: 0.1, secondsLeft: 118 }, WHOLE, SETTING);
  equal(share, 0.1);
  equal(words, 'Reading 36,183 tokens, about 2 min');
  equal(find('.reading h2').textContent, words);
});

test('the maps so far take the place of the results until the reading ends', () => {
  reading.take({ share: 0 }, WHOLE, SETTING);
  deepEqual([results().hidden, find('.reading').hidden], [true, false]);
  reading.take({ map: MAP }, WHOLE, SETTING);
  equal(all('.reading-head').length, 2);
  match(find('.reading .heads-caption').textContent, /Layer 2, head 1: 12,000 of 36,183/);
  reading.take(
    { map: { ...MAP, attention: 'decoder.layers.3.self_attention', head: 0 } },
    WHOLE,
    SETTING,
  );
  deepEqual([all('.reading-row').length, all('.reading-head').length], [2, 3]);
  ok(reading.end());
  deepEqual([results().hidden, find('.reading').hidden], [false, true]);
  equal(all('.reading-head').length, 0);
  equal(reading.end(), false);
});

test('results that were not there are not shown when a reading is cancelled', () => {
  results().hidden = true;
  reading.take({ share: 0 }, WHOLE, SETTING);
  reading.end();
  ok(results().hidden);
});

test('the numbers of rows are read under their own name, and the map stays', () => {
  const body = {
    text: 'a b c',
    capture: ['decoder.layers.*.self_attention.entropy'],
    queries: [0],
  };
  const { words } = reading.take({ share: 0.3, secondsLeft: 9 }, body, {
    count: 7,
    isWhole: false,
  });
  equal(words, 'Curves of 7 tokens, about 9 s');
  deepEqual([results().hidden, find('.reading').hidden], [false, true]);
});
