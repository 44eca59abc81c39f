/** The block of heads of a text whose weights are not there. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { all, blank, find, texts } from '../browser.js';
import { createHeadsBlock } from '../../../static/js/ui/heads_block.js';
import { FRAME, sampleTrace } from '../sample.js';

const CARD = { kind: 'decoder', n_layers: 2, n_heads: 2, positional: 'sinusoidal' };
const STATE = { ...FRAME, attention_which: 'head', attention_what: 'weights' };

test('without weights there is neither a map nor a pair to rank heads by', () => {
  blank();
  const block = createHeadsBlock({ onState: () => {}, announce: () => {} });
  document.body.append(block.element);
  const trace = { ...sampleTrace(), card: CARD };
  block.show({ ...trace, tensors: {} }, { ...STATE, key: 1, query: 2 });
  deepEqual(texts('.heads-cell'), []);
  equal(all('.head-pairs li').length, 0);
  equal(all('.head-pairs option').length, 0);
  block.show(trace, { ...STATE, key: 1, query: 2 });
  equal(all('.heads-cell').length, 4);
  equal(all('.head-pairs li').length, 4);
  ok(find('.head-pairs').open);
});
