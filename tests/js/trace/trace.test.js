import { deepEqual, equal, ok, throws } from 'node:assert/strict';
import { test } from 'node:test';
import {
  matrixAt,
  parseSafetensors,
  rowOf,
  traceFromSafetensors,
} from '../../../static/js/trace/trace.js';
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
  equal(trace.text, TEXT);
  equal(trace.tokens[3].text, ' <b>');
  deepEqual(trace.tensors['decoder.layers.0.self_attention.weights'].axes, [
    'head',
    'query',
    'key',
  ]);
  deepEqual(trace.analyses.next_token.texts, [['a']]);
  deepEqual(trace.analyses.next_token.ids.shape, [5, 3]);
  ok(!Object.keys(trace.tensors).some((name) => name.startsWith('analyses')));
});

test('tokens that spell one character in bytes come with the character', () => {
  const tokens = [
    TOKENS[0],
    { ...TOKENS[1], text: '\\xc3', start: 0, end: 1 },
    { ...TOKENS[1], text: '\\xa9', start: 0, end: 1 },
  ];
  const trace = traceFromSafetensors(safetensorsFile({}, { tokens, text: 'é' }));
  deepEqual(
    trace.tokens.map(({ part }) => part),
    [null, { whole: 'é', from: 1, to: 1, of: 2 }, { whole: 'é', from: 2, to: 2, of: 2 }],
  );
});

test('16-bit weights come back as weights: rows sum to 1', () => {
  const named = arrays();
  const trace = traceFromSafetensors(safetensorsFile(named, metadata(named)));
  for (const layer of [0, 1]) {
    const weights = matrixAt(trace.tensors[`decoder.layers.${layer}.self_attention.weights`], 1);
    for (let query = 0; query < weights.rows; query += 1) {
      const sum = rowOf(weights, query).reduce((total, weight) => total + weight, 0);
      ok(Math.abs(sum - 1) < 1e-4, `row ${query} sums to ${sum}`);
    }
  }
});

const NUMBERS = {
  a: [null, [2, 2], Float32Array.of(1, -2, 0.5, 4)],
  b: [null, [3], Uint16Array.of(0, 7, 65535)],
  c: [null, [], Int32Array.of(-9)],
};

test('every array comes back with its dtype, shape and values', () => {
  const { arrays, metadata } = parseSafetensors(safetensorsFile(NUMBERS, { text: 'hé' }));
  deepEqual([...arrays.a.data], [1, -2, 0.5, 4]);
  deepEqual(arrays.a.shape, [2, 2]);
  deepEqual([...arrays.b.data], [0, 7, 65535]);
  equal(arrays.b.dtype, 'U16');
  deepEqual([...arrays.c.data], [-9]);
  equal(JSON.parse(metadata.text), 'hé');
});

test('arrays that start at any byte are read right', () => {
  for (let padding = 0; padding < 8; padding += 1) {
    const { arrays } = parseSafetensors(safetensorsFile(NUMBERS, {}, padding));
    deepEqual([...arrays.a.data], [1, -2, 0.5, 4], `padding ${padding}`);
    deepEqual([...arrays.b.data], [0, 7, 65535], `padding ${padding}`);
  }
});

test('a file cut short is refused, saying what is missing', () => {
  const file = safetensorsFile(NUMBERS);
  throws(() => parseSafetensors(file.slice(0, 5)), /at least 8 bytes, this one 5/);
  throws(() => parseSafetensors(file.slice(0, 20)), /header claims/);
  throws(() => parseSafetensors(file.slice(0, file.byteLength - 1)), /c needs 4 bytes/);
});

test('a dtype that cannot be read is named', () => {
  const bytes = new Uint8Array(safetensorsFile({ a: NUMBERS.a }));
  const text = new TextDecoder('latin1').decode(bytes).replace('"F32"', '"F16"');
  const changed = Uint8Array.from(text, (character) => character.charCodeAt(0));
  throws(() => parseSafetensors(changed.buffer), /a has dtype F16; readable are F64/);
});

test('offsets that contradict the shape are refused', () => {
  const bytes = new Uint8Array(safetensorsFile({ b: NUMBERS.b }));
  const text = new TextDecoder('latin1').decode(bytes).replace('"shape":[3]', '"shape":[9]');
  throws(
    () => parseSafetensors(Uint8Array.from(text, (c) => c.charCodeAt(0)).buffer),
    /b needs 18 bytes for shape \[9\]/,
  );
});
