/** The block of heads of a text whose weights are not there. */

import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { all, blank, texts } from '../browser.js';
import { createHeadsBlock } from '../../../static/js/ui/heads_block.js';
import { FRAME, sampleTrace } from '../sample.js';

const CARD = { kind: 'decoder', n_layers: 2, n_heads: 2, positional: 'sinusoidal' };
const STATE = { ...FRAME, attention_which: 'head', attention_what: 'weights' };

test('without weights there is no map', () => {
  blank();
  const block = createHeadsBlock({ onState: () => {}, announce: () => {} });
  document.body.append(block.element);
  const trace = { ...sampleTrace(), card: CARD };
  block.show({ ...trace, tensors: {} }, { ...STATE, key: 1, query: 2 });
  deepEqual(texts('.heads-cell'), []);
  block.show(trace, { ...STATE, key: 1, query: 2 });
  equal(all('.heads-cell').length, 4);
});
