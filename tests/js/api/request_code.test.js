import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { execFileSync } from 'node:child_process';
import {
  callOf,
  curlOf,
  differenceMade,
  expectedMade,
  mapSteps,
  madeOf,
  originOf,
  pythonOf,
} from '../../../static/js/api/request_code.js';

const asked = { model: 'tiny', text: 'it saw', target: 'il vit' };
const trace = {
  model: 'tiny',
  revision: 'r1',
  text: 'it saw',
  target: 'il vit',
  target_tokens: [],
  asked,
};

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
  deepEqual(originOf(trace, {}), {
    model: 'tiny',
    revision: 'r1',
    text: 'it saw',
    target: 'il vit',
  });
  const edits = [{ kind: 'no_scaling' }];
  deepEqual(originOf(trace, { request: { edits } }).edits, edits);
});

test('a caption names the second sentence, the tokens and the change, and what it compares with', () => {
  const edits = [{ kind: 'no_scaling' }];
  const request = {
    capture: [],
    analyses: ['patching'],
    patching: { text: 'it was', parts: ['residual'] },
    logit_difference: { position: 1, token: 7, against: 9 },
    edits,
    predictions: { top: 3 },
  };
  const made = madeOf(trace, { request });
  deepEqual(made.slice(0, 2), ['tiny, revision r1', '“it saw” → “il vit”']);
  const words = made.join('. ');
  for (const part of ['“it was”', 'token 1', '7', '9', '"no_scaling"', '"top":3'])
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

/** The output of the Python script, with the network replaced. */
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
  deepEqual(
    posted(pythonOf(ORIGIN, [{ path: '/api/v1/trace', body }], { quantity: 'attention weight' })),
    [`${ORIGIN}/api/v1/trace`, body, 'application/json'],
  );
});

test('a request without a body is a GET', () => {
  const path = '/api/v1/positional?scheme=rotary&length=8&width=4';
  equal(posted(pythonOf(ORIGIN, [{ path, body: null }], { quantity: 'rotation' })), ORIGIN + path);
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
  equal(
    execFileSync('python3', ['-I', '-c', spy], { encoding: 'utf8', input: script }),
    "{}\n{'text': ' was', 'probability': 0.5}\n",
  );
});

test('Python shows every array of an answer, wherever it is, and an answer without arrays whole', () => {
  const array = { axes: ['row', 'key'], shape: [1, 2], data: [[0.25, 0.5]] };
  const shown = (path, answer) => {
    const spy = `import io, sys, urllib.request
urllib.request.urlopen = lambda request: io.StringIO(${JSON.stringify(JSON.stringify(answer))})
exec(sys.stdin.read())`;
    const input = pythonOf(ORIGIN, [{ path, body: {} }], { quantity: 'weight' });
    return execFileSync('python3', ['-I', '-c', spy], { encoding: 'utf8', input });
  };
  const answer = { tokens: ['a'], analyses: { lens: { texts: ['b'], top: array } } };
  equal(
    shown('/api/v1/trace', answer),
    "analyses.lens.top ['row', 'key'] [1, 2]\n     0.25       0.5\n",
  );
  deepEqual(JSON.parse(shown('/api/v1/models/tiny/circuit', { edges: [1] })), { edges: [1] });
});

const ALL = { keys: ['w'], layer: null };
const unit = (first, last = first) => ({ first, last });

function shownBy(steps, answers) {
  const input = [...answers, ...steps, 'import json; print(json.dumps(shown))'].join('\n');
  return JSON.parse(execFileSync('python3', ['-I', '-'], { encoding: 'utf8', input }));
}

test('columns of a word are summed, its rows averaged, and renormalised rows sum to 1', () => {
  const answers = [
    'trace = {"w": {"data": [[[1, None, None], [0.5, 0.5, None], [0.25, 0.25, 0.5]]]}}',
  ];
  const steps = (units, isRenormalised) =>
    mapSteps({ ...ALL, rows: units, columns: units, isMax: false, isRenormalised });
  deepEqual(shownBy(steps([unit(1, 2)], false), answers), [[0.625]]);
  const sums = shownBy(steps([unit(1), unit(2)], true), answers).map(([a, b]) =>
    Math.round(3 * (a + b)),
  );
  deepEqual(sums, [3, 3]);
});

test('several heads are their mean, or cell by cell the largest', () => {
  const answers = ['trace = {"w": {"data": [[[0.0, 1.0]], [[0.5, 0.5]]]}}'];
  const of = { ...ALL, rows: [unit(0)], columns: [unit(0), unit(1)], isRenormalised: false };
  deepEqual(shownBy(mapSteps({ ...of, isMax: false }), answers), [[0.25, 0.75]]);
  deepEqual(shownBy(mapSteps({ ...of, isMax: true }), answers), [[0.5, 1]]);
  deepEqual(shownBy(mapSteps({ ...of, layer: 1, isMax: true }), answers), [[0.5, 0.5]]);
});

test('a difference is B less A, of the tokens that both have', () => {
  const side = (rows) => ({ site: 'w', rows, columns: [unit(0)] });
  const answers = [
    'before = {"tensors": {"w": {"data": [[[0.25], [9]]]}}}',
    'trace = {"tensors": {"w": {"data": [[[9], [1.0]]]}}}',
  ];
  deepEqual(shownBy(differenceMade(side([unit(0)]), side([unit(1)])).steps, answers), [[0.75]]);
});

/** The numbers that `expectedMade` shows at the first place of both answers, missing numbers as null. */
function expectedOf(setting, before, after) {
  const { steps } = expectedMade(0, 0, setting);
  const answer = ({ ids, texts, probabilities, logits }) => ({
    tensors: { logits: { data: [logits] } },
    analyses: {
      next_token: {
        ids: { data: [ids] },
        texts: [texts],
        probabilities: { data: [probabilities] },
      },
    },
  });
  return shownBy(
    [...steps, 'shown = [[None if cell != cell else cell for cell in row] for row in shown]'],
    [`before = ${JSON.stringify(answer(before))}`, `trace = ${JSON.stringify(answer(after))}`],
  ).map(([text, ...chances]) => [
    text,
    ...chances.map((chance) => chance && Math.round(100 * chance) / 100),
  ]);
}

test('expected tokens of one vocabulary have the softmax of both sides, and the change', () => {
  const [even, odd] = [Math.log(1), Math.log(3)];
  const before = { ids: [0, 1], texts: ['a', 'b'], probabilities: [], logits: [odd, even, -99] };
  const after = { ids: [1, 0], texts: ['b', 'a'], probabilities: [], logits: [even, even, -99] };
  const setting = { isOneVocabulary: true, ofEach: 1, most: 9 };
  deepEqual(expectedOf(setting, before, after), [
    ['a', 0.75, 0.5, -0.25],
    ['b', 0.25, 0.5, 0.25],
  ]);
  deepEqual(expectedOf({ ...setting, most: 1 }, before, after).length, 1);
});

test('of two vocabularies tokens are told apart by their text, and may be missing in one', () => {
  const before = { ids: [7, 8], texts: ['a', 'b'], probabilities: [0.6, 0.3], logits: [] };
  const after = { ids: [8, 7], texts: ['b', 'c'], probabilities: [0.5, 0.4], logits: [] };
  deepEqual(expectedOf({ isOneVocabulary: false, ofEach: 2, most: 9 }, before, after), [
    ['a', 0.6, null, null],
    ['b', 0.3, 0.5, 0.2],
    ['c', null, 0.4, null],
  ]);
});

test('a long body is broken into lines, a short one is not', () => {
  const of = (body) =>
    pythonOf(ORIGIN, [{ path: '/api/v1/trace', body }], { quantity: 'attention weight' });
  const heads = Array.from({ length: 60 }, (_, at) => at);
  const body = { model: 'tiny', text: 'it saw', edits: [{ kind: 'heads_off', heads }] };
  deepEqual(posted(of(body))[1], body);
  equal(of(body).match(/^ +\d+,$/gm).length, heads.length);
  const short = { model: 'tiny', text: 'it', heads: [1, 2] };
  equal(of(short).includes(JSON.stringify(short.heads).replace(',', ', ')), true);
});
