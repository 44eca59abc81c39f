import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSafetensors } from '../../../static/js/data/safetensors.js';
import { safetensorsFile } from '../sample.js';

const NUMBERS = {
  a: [null, [2, 2], Float32Array.of(1, -2, 0.5, 4)],
  b: [null, [3], Uint16Array.of(0, 7, 65535)],
  c: [null, [], Int32Array.of(-9)],
};

test('every array comes back with its dtype, shape and values', () => {
  const { arrays, metadata } = parseSafetensors(safetensorsFile(NUMBERS, { text: 'hé' }));
  assert.deepEqual([...arrays.a.data], [1, -2, 0.5, 4]);
  assert.deepEqual(arrays.a.shape, [2, 2]);
  assert.deepEqual([...arrays.b.data], [0, 7, 65535]);
  assert.equal(arrays.b.dtype, 'U16');
  assert.deepEqual([...arrays.c.data], [-9]);
  assert.equal(JSON.parse(metadata.text), 'hé');
});

test('arrays that start at any byte are read right', () => {
  for (let padding = 0; padding < 8; padding += 1) {
    const { arrays } = parseSafetensors(safetensorsFile(NUMBERS, {}, padding));
    assert.deepEqual([...arrays.a.data], [1, -2, 0.5, 4], `padding ${padding}`);
    assert.deepEqual([...arrays.b.data], [0, 7, 65535], `padding ${padding}`);
  }
});

test('aligned arrays share the memory of the answer', () => {
  for (let padding = 0; padding < 4; padding += 1) {
    const file = safetensorsFile(NUMBERS, {}, padding);
    const { arrays } = parseSafetensors(file);
    if (arrays.a.data.buffer === file) return;
  }
  assert.fail('no padding of four made an array share memory');
});

test('a file cut short is refused, saying what is missing', () => {
  const file = safetensorsFile(NUMBERS);
  assert.throws(() => parseSafetensors(file.slice(0, 5)), /at least 8 bytes, this one 5/);
  assert.throws(() => parseSafetensors(file.slice(0, 20)), /header claims/);
  assert.throws(() => parseSafetensors(file.slice(0, file.byteLength - 1)), /c needs 4 bytes/);
});

test('a dtype that cannot be read is named', () => {
  const bytes = new Uint8Array(safetensorsFile({ a: NUMBERS.a }));
  const text = new TextDecoder('latin1').decode(bytes).replace('"F32"', '"F16"');
  const changed = Uint8Array.from(text, (character) => character.charCodeAt(0));
  assert.throws(() => parseSafetensors(changed.buffer), /a has dtype F16; readable are F64/);
});

test('offsets that contradict the shape are refused', () => {
  const bytes = new Uint8Array(safetensorsFile({ b: NUMBERS.b }));
  const text = new TextDecoder('latin1').decode(bytes).replace('"shape":[3]', '"shape":[9]');
  assert.throws(
    () => parseSafetensors(Uint8Array.from(text, (c) => c.charCodeAt(0)).buffer),
    /b needs 18 bytes for shape \[9\]/,
  );
});
