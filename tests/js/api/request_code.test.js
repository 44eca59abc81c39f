import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { execFileSync } from 'node:child_process';
import { callOf, curlOf, madeOf, originOf, pythonOf } from '../../../static/js/api/request_code.js';

const asked = { model: 'tiny', text: 'it saw', target: 'il vit' };
const trace = { ...asked, revision: 'r1', target_tokens: [], asked };

test('a drawing’s call asks for its numbers of the page’s texts', () => {
  const call = callOf(trace, { request: { capture: ['a.b'], heads: [1] } });
  deepEqual(call, { path: '/api/v1/trace', body: { ...asked, capture: ['a.b'], heads: [1] } });
});

test('a drawing’s request overrides the page’s, and no member is null', () => {
  const edits = [{ kind: 'heads_off', heads: [0], layer: 1 }];
  const { body } = callOf(trace, {
    request: { capture: ['logits'], text: 'another', target: null, edits },
  });
  deepEqual(body, { model: 'tiny', text: 'another', capture: ['logits'], edits });
});

test('the origin is the model, its revision, the texts and what was changed', () => {
  deepEqual(originOf(trace, {}), { ...asked, revision: 'r1' });
  const edits = [{ kind: 'no_scaling' }];
  deepEqual(originOf(trace, { request: { edits } }).edits, edits);
});

test('a caption names the tokens and the change, and what it compares with', () => {
  const edits = [{ kind: 'no_scaling' }];
  const request = {
    capture: [],
    analyses: ['saliency'],
    logit_difference: { position: 1, token: 7, against: 9 },
    edits,
    predictions: { top: 3 },
  };
  const made = madeOf(trace, { request });
  deepEqual(made.slice(0, 2), ['tiny, revision r1', '“it saw” → “il vit”']);
  const words = made.join('. ');
  for (const part of ['token 1', '7', '9', '"no_scaling"', '"top":3'])
    ok(words.includes(part), part);
  ok(madeOf(trace, { request, about: '“a” rather than “b”' }).includes('“a” rather than “b”'));
  const choosing = { capture: ['a.b'], heads: [1], layers: [0], queries: [0], triangle: true };
  deepEqual(madeOf(trace, { request: choosing }), made.slice(0, 2));
});

test('a caption of a comparison names the other pass by what differs', () => {
  const last = (grid) => madeOf(trace, grid, [{ id: 'other', revision: 'r2' }]).at(-1);
  match(last({ request: { text: 'it was' }, before: {} }), /“it saw”/);
  match(last({ request: { model: 'other' }, before: {} }), /tiny, revision r1/);
  const edits = [{ kind: 'no_scaling' }];
  match(last({ request: {}, before: { edits } }), /no_scaling/);
  match(last({ request: { edits }, before: {} }), /same pass without a change/);
});

test('data without a text belongs to the model it names', () => {
  const ofTile = originOf(
    { ...trace, id: 'a1' },
    { call: { path: '/api/v1/traces/a1/tile?head=0' } },
  );
  deepEqual([ofTile.model, ofTile.revision], [trace.model, trace.revision]);
  const of = (path) => originOf(trace, { call: { path } }, [{ id: 'learner', revision: 'r3' }]);
  deepEqual(of('/api/v1/positional?scheme=rotary&length=2&width=4'), { text: 'it saw' });
  deepEqual(of('/api/v1/positional?model=learner&length=2'), {
    model: 'learner',
    revision: 'r3',
    text: 'it saw',
  });
});

test('a shell hands curl exactly what was asked', () => {
  const body = { model: 'tiny', text: `it's "$HOME" \`id\` \\n é`, capture: ['a.b'], heads: [1] };
  const line = curlOf('http://127.0.0.1:8000', { path: '/api/v1/trace', body }).replace(
    /^curl/,
    'printf "%s\\0"',
  );
  const words = execFileSync('/bin/sh', ['-c', line], { encoding: 'utf8' }).split('\0');
  deepEqual(words.slice(0, 4), [
    '--silent',
    'http://127.0.0.1:8000/api/v1/trace',
    '--header',
    'Content-Type: application/json',
  ]);
  deepEqual(words.slice(4, 6), ['--header', 'Accept: application/json']);
  deepEqual(JSON.parse(words[7]), body);
  ok(!curlOf('', { path: '/api/v1/generate', body }).includes('Accept'));
});

const ORIGIN = 'http://127.0.0.1:8000';

/** Run the Python script with an answer in place of the network: what it asked for, and what it printed. */
function run(calls, answer) {
  const spy = [
    'import io, json, sys, urllib.request',
    'asked = []',
    'def reply(request):',
    '    asked.append([request.full_url, request.data and json.loads(request.data), request.get_header("Accept")])',
    `    return io.BytesIO(${JSON.stringify(answer)}.encode())`,
    'urllib.request.urlopen = reply',
    'exec(sys.stdin.read())',
    'print("---" + json.dumps(asked))',
  ].join('\n');
  const input = pythonOf(ORIGIN, calls, { quantity: 'attention\nweight', made: 'as it is' });
  const output = execFileSync('python3', ['-I', '-c', spy], { encoding: 'utf8', input });
  const [printed, asked] = output.split('---');
  return { printed, asked: JSON.parse(asked) };
}

test('Python posts exactly what was asked, of both passes of a comparison', () => {
  const body = {
    model: 'tiny',
    text: `it's "$HOME" \\n {x} %s é 猫 \u2028 \u0000 \ud800 ''' """ "" \\`,
    capture: ['decoder.layers.*.self_attention.weights', 'logits'],
    isDeep: true,
    nothing: null,
    edits: [{ kind: 'heads_off', heads: [0, 1, 2], layer: 1, where: 'decoder' }],
  };
  const call = { path: '/api/v1/trace', body };
  const { asked } = run([call, { ...call, body: { text: 'b' } }], '{}');
  deepEqual(asked, [
    [`${ORIGIN}/api/v1/trace`, body, 'application/json'],
    [`${ORIGIN}/api/v1/trace`, { text: 'b' }, 'application/json'],
  ]);
});

test('a request without a body is a GET', () => {
  const path = '/api/v1/positional?scheme=rotary&length=8&width=4';
  deepEqual(run([{ path, body: null }], '{}').asked[0].slice(0, 2), [ORIGIN + path, null]);
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
  const call = { path: '/api/v1/generate', body: { text: 'a', n_tokens: 1 } };
  const { printed, asked } = run([call], lines.join('\n'));
  equal(printed, "{}\n{'text': ' was', 'probability': 0.5}\n");
  equal(asked[0][2], 'text/event-stream');
});

test('Python shows every array of an answer, wherever it is, and the other members', () => {
  const array = { axes: ['head', 'key'], shape: [2, 2], data: [[[0.25, 0.5]], [[1, null]]] };
  const answer = { edges: [1], analyses: { lens: { texts: ['b'], top: array } } };
  equal(
    run([{ path: '/api/v1/trace', body: {} }], JSON.stringify(answer)).printed,
    [
      'edges [1]',
      "analyses.lens.texts ['b']",
      "analyses.lens.top ['head', 'key'] [2, 2]",
      '     0.25       0.5',
      '        1      None',
      '',
    ].join('\n'),
  );
});
