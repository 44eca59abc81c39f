import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { pythonOf } from '../../../static/js/data/python.js';

const ORIGIN = 'http://127.0.0.1:8000';

/** What Python makes of the script, with the network taken out. */
function posted(script) {
  const spy = [
    'import io, json, urllib.request',
    'asked = []',
    'def reply(request):',
    '    asked.append(request if isinstance(request, str) else [request.full_url, json.loads(request.data), request.get_header("Content-type")])',
    '    return io.StringIO(\'{"tensors": {}, "analyses": {}}\')',
    'urllib.request.urlopen = reply',
    'import sys; exec(sys.stdin.read())',
    'import json; print("---" + json.dumps(asked[0]))',
  ].join('\n');
  return JSON.parse(
    execFileSync('python3', ['-I', '-c', spy], { encoding: 'utf8', input: script })
      .split('---')
      .at(-1),
  );
}

test('Python posts exactly what was asked', () => {
  const body = {
    model: 'tiny',
    text: `it's "$HOME" \\n {x} %s é 猫 \u2028 \u0000 '''`,
    capture: ['decoder.layers.*.self_attention.weights', 'logits'],
    heads: [1, 3],
    isDeep: true,
    nothing: null,
    edits: [
      { kind: 'temperature', value: 0.5 },
      { kind: 'heads_off', heads: [0, 1, 2], layer: 1, where: 'decoder' },
    ],
  };
  assert.deepEqual(
    posted(pythonOf(ORIGIN, [{ path: '/api/v1/trace', body }], { quantity: 'attention weight' })),
    [`${ORIGIN}/api/v1/trace`, body, 'application/json'],
  );
});

test('what needs no body is asked by its address alone', () => {
  const path = '/api/v1/positional?scheme=rotary&length=8&width=4';
  assert.equal(
    posted(pythonOf(ORIGIN, [{ path, body: null }], { quantity: 'rotation' })),
    ORIGIN + path,
  );
});

test('the script says in its first line what it is for, in one line', () => {
  assert.match(
    pythonOf(ORIGIN, [{ path: '/api/v1/trace', body: {} }], {
      quantity: 'attention weight,\nimport os',
    }),
    /^# The arrays behind: attention weight, import os\nimport json\n/,
  );
});

test('no line is longer than an editor shows unless a text is', () => {
  const edits = Array.from({ length: 6 }, (_, layer) => ({
    kind: 'heads_off',
    heads: [0, 1, 2, 3],
    layer,
    where: 'decoder',
  }));
  const script = pythonOf(
    ORIGIN,
    [
      {
        path: '/api/v1/trace',
        body: { model: 'tiny', text: 'it saw', capture: ['a', 'b'], edits },
      },
    ],
    { quantity: 'x' },
  );
  assert.ok(Math.max(...script.split('\n').map((line) => line.length)) <= 100);
});

test('events are read line by line, and each token is told', () => {
  const lines = [
    'event: start',
    'data: {"tokens": []}',
    '',
    'event: token',
    'data: {"text": " was", "probability": 0.5, "alternatives": []}',
    '',
  ];
  const spy = [
    'import json, sys, urllib.request, io',
    `urllib.request.urlopen = lambda request: io.BytesIO(${JSON.stringify(lines.join('\n'))}.encode())`,
    'exec(sys.stdin.read())',
  ].join('\n');
  const script = pythonOf(
    ORIGIN,
    [{ path: '/api/v1/generate', body: { text: 'a', n_tokens: 1 } }],
    { quantity: 'probability' },
  );
  assert.equal(
    execFileSync('python3', ['-I', '-c', spy], { encoding: 'utf8', input: script }),
    ' was 0.5\n',
  );
});
