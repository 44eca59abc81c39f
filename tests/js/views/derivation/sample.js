/**
 * Answers as the Why view gets them: one head's queries, keys and values, drawn by a fixed rule, and what
 * a model in float32 makes of them, written down here a second time in plain loops.
 */

import { array, pairTrace, sampleTrace, schemeTrace, TARGET_TOKENS, TOKENS } from '../../sample.js';

const WIDTH = 4;
const MODEL = 6;
const f = Math.fround;

const drawn = (rows, columns, seed) =>
  Float32Array.from({ length: rows * columns }, (_, at) => 2 * Math.sin(seed + at * (1.3 + seed)));

function turnedRows(data, rows) {
  const turned = Float32Array.from(data);
  for (let row = 0; row < rows; row += 1) {
    for (const [pair, base] of [
      [0, 1],
      [2, 100],
    ]) {
      const [a, b] = [data[row * WIDTH + pair], data[row * WIDTH + pair + 1]];
      turned[row * WIDTH + pair] = a * Math.cos(row / base) - b * Math.sin(row / base);
      turned[row * WIDTH + pair + 1] = a * Math.sin(row / base) + b * Math.cos(row / base);
    }
  }
  return turned;
}

/**
 * @param {string} path of an attention
 * @param {{queries: number, keys: number, positional?: string, isScaled?: boolean, temperature?: number}} asked
 */
export function headTrace(
  path,
  { queries, keys, positional = 'sinusoidal', isScaled = true, temperature = 1 },
) {
  const isSelf = path.endsWith('self_attention');
  const [q, k, v] = [drawn(queries, WIDTH, 1), drawn(keys, WIDTH, 2), drawn(keys, WIDTH, 3)];
  const isRotary = positional === 'rotary' && isSelf;
  const [asking, asked] = isRotary ? [turnedRows(q, queries), turnedRows(k, keys)] : [q, k];
  const bias = Float32Array.from(
    { length: queries * keys },
    (_, at) => -Math.abs(Math.floor(at / keys) - (at % keys)) / 4,
  );
  const hasBias = positional === 'alibi' && isSelf;
  const scores = new Float32Array(queries * keys);
  const weights = new Float32Array(queries * keys);
  const context = new Float32Array(queries * WIDTH);
  for (let row = 0; row < queries; row += 1) {
    for (let key = 0; key < keys; key += 1) {
      let product = 0;
      for (let at = 0; at < WIDTH; at += 1)
        product = f(product + f(asking[row * WIDTH + at] * asked[key * WIDTH + at]));
      const score =
        f((isScaled ? product / 2 : product) + (hasBias ? bias[row * keys + key] : 0)) /
        temperature;
      scores[row * keys + key] =
        path.startsWith('decoder') && isSelf && key > row ? -Infinity : score;
    }
    const own = scores.subarray(row * keys, (row + 1) * keys);
    const total = own.reduce((sum, score) => sum + Math.exp(score), 0);
    own.forEach((score, key) => {
      weights[row * keys + key] = Math.exp(score) / total;
    });
    for (let at = 0; at < WIDTH; at += 1) {
      for (let key = 0; key < keys; key += 1)
        context[row * WIDTH + at] += weights[row * keys + key] * v[key * WIDTH + at];
    }
  }
  const vectors = (rows, data, axis) => array(['head', axis, 'd_head'], [1, rows, WIDTH], data);
  const maps = (data) => array(['head', 'query', 'key'], [1, queries, keys], data);
  const whole = drawn(queries, MODEL, 5);
  return {
    id: 'head',
    model: 'tiny',
    precision: 'float32',
    tensors: {
      [`${path}.queries`]: vectors(queries, q, 'query'),
      [`${path}.keys`]: vectors(keys, k, 'key'),
      ...(isRotary && {
        [`${path}.rotated_queries`]: vectors(queries, asking, 'query'),
        [`${path}.rotated_keys`]: vectors(keys, asked, 'key'),
      }),
      ...(hasBias && { [`${path}.bias`]: maps(bias) }),
      [`${path}.scores`]: maps(scores),
      [`${path}.weights`]: maps(weights),
      [`${path}.values`]: vectors(keys, v, 'key'),
      [`${path}.context`]: vectors(queries, context, 'query'),
      [`${path}.output`]: array(['query', 'd_model'], [queries, MODEL], whole),
    },
    analyses: {
      head_outputs: {
        [path]: array(
          ['head', 'query', 'd_model'],
          [1, queries, MODEL],
          whole.map((number) => number / 4),
        ),
      },
    },
  };
}

/** The page's trace of a scheme, and the answers of its layer 1. */
export function asked(positional = 'sinusoidal', softmax = {}) {
  const path = 'decoder.layers.1.self_attention';
  const base =
    positional === 'sinusoidal'
      ? { ...sampleTrace(), card: { kind: 'decoder', positional } }
      : schemeTrace(positional);
  const sizes = { queries: TOKENS.length, keys: TOKENS.length, positional };
  const isChanged = Object.keys(softmax).length > 0;
  return {
    path,
    trace: base,
    answers: {
      plain: { trace: headTrace(path, sizes) },
      ...(isChanged && { changed: { trace: headTrace(path, { ...sizes, ...softmax }) } }),
    },
  };
}

/** An encoder–decoder's trace, and the answers of a place of its layer 1. */
export function askedOfPair(where) {
  const [path, queries, keys] = {
    encoder: ['encoder.layers.1.self_attention', TOKENS, TOKENS],
    decoder: ['decoder.layers.1.self_attention', TARGET_TOKENS, TARGET_TOKENS],
    cross: ['decoder.layers.1.cross_attention', TARGET_TOKENS, TOKENS],
  }[where];
  return {
    path,
    trace: pairTrace(),
    answers: { plain: { trace: headTrace(path, { queries: queries.length, keys: keys.length }) } },
  };
}
