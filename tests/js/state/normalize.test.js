import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readInWords, normalized } from '../../../static/js/state/normalize.js';
import { INITIAL } from '../../../static/js/state/state.js';
import { pairTrace, sampleTrace } from '../sample.js';

const VIEWS = ['attention', 'experts'];

test('what the trace does not hold is not chosen', () => {
  const state = normalized(
    {
      ...INITIAL,
      view: 'lost',
      where: 'cross',
      layer: 99,
      head: 99,
      query: 99,
      source: 99,
      key: 99,
    },
    sampleTrace(),
    VIEWS,
  );
  const { view, where, layer, head, query, source, key } = state;
  assert.deepEqual(
    { view, where, layer, head, query, source, key },
    { view: 'attention', where: '', layer: 1, head: 1, query: null, source: null, key: null },
  );
});

test('where nobody chose a head, one is chosen, and a choice that was made stays', () => {
  const { layer, head } = normalized(INITIAL, sampleTrace(), VIEWS);
  assert.ok(Number.isInteger(layer) && Number.isInteger(head));
  assert.equal(normalized({ ...INITIAL, layer: 0 }, sampleTrace(), VIEWS).layer, 0);
  assert.equal(normalized({ ...INITIAL, head: 1 }, sampleTrace(), VIEWS).head, 1);
});

test('a key is one of the sentence that is attended to', () => {
  const trace = pairTrace();
  const last = {
    encoder: trace.tokens.length - 1,
    cross: trace.tokens.length - 1,
    decoder: trace.target_tokens.length - 1,
  };
  for (const [where, key] of Object.entries(last)) {
    assert.equal(normalized({ ...INITIAL, where, key }, trace, VIEWS).key, key);
    assert.equal(normalized({ ...INITIAL, where, key: key + 1 }, trace, VIEWS).key, null, where);
  }
});

test('how much was read is said in words', () => {
  const trace = {
    tokens: [1, 2],
    target_tokens: null,
    card: { max_tokens: 64 },
    timings: { a_ms: 0.2, b_ms: 0.1 },
  };
  assert.equal(readInWords(trace), '2 tokens of at most 64, read in 1 ms');
  assert.equal(
    readInWords({ ...trace, target_tokens: [1], timings: {} }),
    '2 + 1 token of at most 64 each',
  );
});
