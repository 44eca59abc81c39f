import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  columnOf,
  encodingFromSafetensors,
  matrixAt,
  rowOf,
  traceFromSafetensors,
} from '../../../static/js/data/trace.js';
import { arrays, safetensorsFile, TEXT, TOKENS } from '../sample.js';

function metadata(named) {
  return {
    id: 'abc',
    model: 'tiny',
    revision: 'r',
    text: TEXT,
    tokens: TOKENS,
    target_tokens: null,
    heads: null,
    timings: { forward_ms: 2 },
    analyses: { next_token: { texts: [['a']] } },
    axes: Object.fromEntries(Object.entries(named).map(([name, [axes]]) => [name, axes])),
    scale: Object.fromEntries(
      Object.entries(named).flatMap(([name, [, , data]]) =>
        data instanceof Uint16Array ? [[name, 1 / 65535]] : [],
      ),
    ),
  };
}

test('a trace holds its tokens, its axes and its analyses', () => {
  const named = arrays();
  const trace = traceFromSafetensors(safetensorsFile(named, metadata(named)));
  assert.equal(trace.text, TEXT);
  assert.equal(trace.tokens[3].text, ' <b>');
  assert.deepEqual(trace.tensors['decoder.layers.0.self_attention.weights'].axes, [
    'head',
    'query',
    'key',
  ]);
  assert.deepEqual(trace.analyses.next_token.texts, [['a']]);
  assert.deepEqual(trace.analyses.next_token.ids.shape, [5, 3]);
  assert.ok(!Object.keys(trace.tensors).some((name) => name.startsWith('analyses')));
});

test('tokens that spell one character in bytes come with the character', () => {
  const tokens = [
    TOKENS[0],
    { ...TOKENS[1], text: '\\xc3', start: 0, end: 1 },
    { ...TOKENS[1], text: '\\xa9', start: 0, end: 1 },
  ];
  const trace = traceFromSafetensors(safetensorsFile({}, { tokens, text: 'é' }));
  assert.deepEqual(
    trace.tokens.map(({ part }) => part),
    [null, { whole: 'é', from: 1, to: 1, of: 2 }, { whole: 'é', from: 2, to: 2, of: 2 }],
  );
});

test('a target’s tokens come with their characters too', () => {
  const target = [
    { ...TOKENS[1], text: '\\xc3', start: 0, end: 1 },
    { ...TOKENS[1], text: '\\xa9', start: 0, end: 1 },
  ];
  const trace = traceFromSafetensors(
    safetensorsFile({}, { tokens: TOKENS, text: TEXT, target: 'é', target_tokens: target }),
  );
  assert.deepEqual(
    trace.target_tokens.map(({ part }) => part.whole),
    ['é', 'é'],
  );
  assert.equal(
    traceFromSafetensors(
      safetensorsFile({}, { tokens: TOKENS, text: TEXT, target: null, target_tokens: null }),
    ).target_tokens,
    null,
  );
});

test('a column is read down the rows', () => {
  assert.deepEqual(
    [...columnOf({ rows: 2, columns: 3, data: Float64Array.of(1, 2, 3, 4, 5, 6) }, 1)],
    [2, 5],
  );
});

test('16-bit weights come back as weights: rows sum to 1', () => {
  const named = arrays();
  const trace = traceFromSafetensors(safetensorsFile(named, metadata(named)));
  for (const layer of [0, 1]) {
    const weights = matrixAt(trace.tensors[`decoder.layers.${layer}.self_attention.weights`], 1);
    for (let query = 0; query < weights.rows; query += 1) {
      const sum = rowOf(weights, query).reduce((total, weight) => total + weight, 0);
      assert.ok(Math.abs(sum - 1) < 1e-4, `row ${query} sums to ${sum}`);
    }
  }
});

test('leading indices choose the matrix', () => {
  const array = {
    shape: [2, 3, 2, 2],
    scale: 0.5,
    data: Float32Array.from({ length: 24 }, (_, i) => i),
  };
  assert.deepEqual([...matrixAt(array, 1, 2).data], [10, 10.5, 11, 11.5]);
  assert.deepEqual([...rowOf(matrixAt(array, 0, 1), 1)], [3, 3.5]);
});

test('an encoding of positions comes without tokens', () => {
  const named = { slopes: [['head'], [2], Float32Array.of(0.5, 0.25)] };
  const encoding = encodingFromSafetensors(
    safetensorsFile(named, { scheme: 'alibi', model: null, heads: 2, axes: { slopes: ['head'] } }),
  );
  assert.deepEqual([encoding.scheme, encoding.model, encoding.heads], ['alibi', null, 2]);
  assert.deepEqual(encoding.tensors.slopes.axes, ['head']);
  assert.deepEqual([...encoding.tensors.slopes.data], [0.5, 0.25]);
});
