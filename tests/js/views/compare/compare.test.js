import assert from 'node:assert/strict';
import { test } from 'node:test';
import { standardsOf } from '../../../../static/js/state/state.js';
import { compare } from '../../../../static/js/views/compare/compare.js';
import { fillTrace, FRAME, sampleTrace, TOKENS, plain } from '../../sample.js';
import { assertContract, WIDTHS } from '../view_contract.js';

const CARD = {
  id: 'tiny',
  title: 'Tiny',
  kind: 'decoder',
  n_layers: 2,
  n_heads: 2,
  moe: { n_experts: 4, top_k: 2, layers: [1] },
  sites: [],
};
const OTHER = { ...CARD, id: 'other', title: 'Other' };
const VOCABULARY = 10;
const SITE = 'decoder.layers.1.self_attention.weights';

function logits(count, value) {
  return {
    axes: ['query', 'vocab'],
    shape: [count, VOCABULARY],
    scale: 1,
    data: Float32Array.from({ length: count * VOCABULARY }, (_, at) => value(at % VOCABULARY)),
  };
}

/** The sample, with logits of which token 6 is the likeliest. */
function traceA() {
  return { ...sampleTrace(), card: CARD, asked: { model: 'tiny', text: 'it saw <b> it' } };
}

/** The same sentence, where every row of the head looks at the first token, and token 9 is likelier. */
function traceB() {
  const trace = traceA();
  const data = new Float32Array(2 * 5 * 5);
  for (let row = 0; row < 10; row += 1) data[row * 5] = 1;
  return {
    ...trace,
    tensors: {
      ...trace.tensors,
      [SITE]: { ...trace.tensors[SITE], scale: 1, data },
      logits: logits(5, (id) => (id === 9 ? 1 : 0)),
    },
  };
}

const before = () => ({ trace: { tensors: { logits: logits(5, (id) => (id === 6 ? 1 : 0)) } } });

function stateOf(more = {}) {
  return {
    ...FRAME,
    ...standardsOf(compare.fields),
    cards: [CARD, OTHER],
    answers: { before: before(), after: { trace: traceB() } },
    ...more,
  };
}

function figures(more, trace = traceA()) {
  const state = stateOf(more);
  return Object.fromEntries(
    compare
      .panels(trace, state)
      .map((panel) => [panel.id || 'a', compare.figure(trace, { ...state, ...panel.state })]),
  );
}

test('B is asked for with its edit, and A for its logits', () => {
  const card = { ...CARD, sites: [{ name: SITE }, { name: 'logits' }] };
  const asked = (more) => compare.asks({ ...traceA(), card }, stateOf(more));
  assert.deepEqual(asked({}).before, { capture: ['logits'] });
  assert.deepEqual(asked({}).after, {
    capture: ['*.self_attention.weights', 'logits'],
    analyses: ['next_token'],
    edits: [{ kind: 'heads_off', heads: [0] }],
  });
  assert.deepEqual(
    asked({ compare_heads: [1, 7], compare_layer: 1 }).after.edits,
    [{ kind: 'heads_off', heads: [1], layer: 1 }],
    'what the model has not is left out',
  );
  assert.deepEqual(
    asked({ compare_edit: 'experts', compare_layer: 0 }).after.edits,
    [{ kind: 'experts_off', experts: [0] }],
    'layer 0 has no experts',
  );
  assert.equal(asked({ compare_with: 'text', compare_text: ' a dog' }).after.text, ' a dog');
  assert.deepEqual(
    [asked({ compare_with: 'model' }).after.model, asked({ compare_with: 'model' }).after.text],
    ['other', 'it saw <b> it'],
  );
});

test('the signed difference is B − A in every cell, on a scale with zero in its middle', () => {
  const { a, b, difference } = figures();
  const [map] = difference.data;
  assert.equal(map.zmin, -map.zmax);
  for (let row = 0; row < TOKENS.length; row += 1) {
    for (let column = 0; column < TOKENS.length; column += 1) {
      const wanted = b.grid.value(row, column) - a.grid.value(row, column);
      assert.equal(difference.grid.value(row, column), wanted);
      assert.equal(map.z[row][column], Number.isNaN(wanted) ? null : wanted);
    }
  }
  assert.equal(
    plain(difference.grid.describe(2, 0)),
    'From “saw” to “<s>” the weight is 0.100 in A and 1.000 in B: 0.900 (B − A, layer 1, head 0)',
  );
});

test('both sides share one scale of colours', () => {
  for (const range of ['one', 'head']) {
    const { a, b } = figures({ range });
    assert.equal(a.data[0].zmax, b.data[0].zmax);
  }
});

test('bars pair what A and B expect, and say what moved', () => {
  const { next } = figures();
  assert.deepEqual(next.grid.columnLabels, ['A', 'B', 'B − A']);
  const [high, low] = [Math.E / (Math.E + 9), 1 / (Math.E + 9)];
  const row = next.grid.rowLabels.indexOf('·saw');
  const found = [0, 1, 2].map((column) => next.grid.value(row, column));
  for (const [at, wanted] of [high, low, low - high].entries())
    assert.ok(Math.abs(found[at] - wanted) < 1e-6);
  assert.deepEqual(
    next.data.map(({ x }) => x[row]),
    found.slice(0, 2),
  );
  const moved = Object.fromEntries(next.facts)['Moved from token to token'];
  assert.equal(moved, `${(100 * (high - low)).toFixed(1)} % (total variation)`);
  assert.match(
    plain(next.grid.describe(row, 2)),
    /^After “it” at 4, “·saw” has probability 23\.2 % in A and 8\.5 % in B: −14\.7 percentage points$/,
  );
});

test('of each head it is told how much of its attention moved, and the way leads to the one that moved most', () => {
  const { heads, difference } = figures({ layer: 0 });
  assert.equal(heads.grid.value(0, 0), 0);
  assert.ok(heads.grid.value(1, 0) > heads.grid.value(1, 1));
  assert.deepEqual(
    difference.actions.map(({ patch }) => patch),
    [{ layer: 1, head: 0, compare_heads: [0] }],
    'what is switched off stays',
  );
  assert.deepEqual(heads.grid.choose(1, 1), { layer: 1, head: 1, compare_heads: [0] });
  assert.match(difference.help, /No difference/);
});

test('of two sentences only what both read is taken the difference of', () => {
  const trace = traceB();
  const tokens = [
    ...TOKENS.slice(0, 2),
    { id: 8, text: ' ran', start: 2, end: 6, word: 1, is_special: false },
    ...TOKENS.slice(3),
  ];
  const answers = {
    before: before(),
    after: { trace: { ...trace, text: 'it ran <b> it', tokens } },
  };
  const { b, difference, next } = figures({
    compare_with: 'text',
    compare_text: 'it ran <b> it',
    answers,
  });
  assert.deepEqual(difference.grid.rowLabels, ['<s>', 'it', '<b>', 'it']);
  assert.equal(Object.fromEntries(difference.facts)['Shared tokens'], '4 of 5 and 5');
  assert.deepEqual(difference.grid.tokens(2, 0), { query: 3, key: 0 });
  assert.deepEqual(
    [b.grid.tokens(2, 0), b.grid.tokens(3, 1)],
    [
      { query: undefined, key: 0 },
      { query: 3, key: 1 },
    ],
    'a token of B alone is none of the page’s',
  );
  assert.ok(next.grid);
  const other = figures({
    compare_with: 'text',
    compare_text: 'it ran <b> it',
    answers,
    query: 2,
  }).next;
  assert.match(plain(other.notice), /“saw” has no counterpart in B/);
});

test('a second sentence is invited, and one that was refused says why', () => {
  const invited = figures({ compare_with: 'text', answers: {} });
  assert.deepEqual(Object.keys(invited), ['a', 'b']);
  assert.match(invited.b.notice, /Type a second sentence/);
  assert.deepEqual(invited.b.actions[0].patch, { compare_text: traceA().text });
  const problem = { title: 'Too many tokens', detail: 'send a shorter text' };
  const refused = figures({
    compare_with: 'text',
    compare_text: 'x',
    answers: { before: before(), after: { problem } },
  });
  assert.deepEqual(
    [Object.keys(refused), refused.b.notice],
    [['a', 'b'], 'Too many tokens. Send a shorter text'],
  );
});

test('two models that cut a text differently are compared by its words', () => {
  const tokens = [
    TOKENS[0],
    { id: 1, text: 'i', start: 0, end: 1, word: 0, is_special: false },
    { id: 2, text: 't', start: 1, end: 2, word: 0, is_special: false },
    ...TOKENS.slice(2),
  ];
  const data = new Float32Array(2 * 36);
  for (let row = 0; row < 12; row += 1) data[row * 6 + (row % 6)] = 1;
  const after = { ...traceB(), model: 'other', card: OTHER, tokens };
  after.tensors = {
    [SITE]: { axes: [], shape: [2, 6, 6], scale: 1, data },
    logits: logits(6, () => 0),
  };
  after.analyses = {
    next_token: {
      ids: { shape: [6, 1], scale: 1, data: new Int32Array(6).fill(6) },
      probabilities: { shape: [6, 1], scale: 1, data: new Float32Array(6).fill(0.1) },
      texts: Array(6).fill(['x']),
    },
  };
  const { difference, next, ...others } = figures({
    compare_with: 'model',
    answers: { before: before(), after: { trace: after } },
  });
  assert.ok(!('heads' in others), 'heads of two models are not each other’s');
  assert.match(difference.help, /whole words are compared/);
  assert.deepEqual(difference.grid.rowLabels, ['<s>', 'it', 'saw', '<b>', 'it']);
  assert.ok(Math.abs(difference.grid.value(2, 2) - (1 - 0.1)) < 1e-4);
  assert.match(next.facts.map(String).join(), /Vocabularies/);
  assert.match(next.grid.tip(next.grid.rowLabels.indexOf('x'), 0)[1], /^unknown/);
});

test('kinds of attention that are not each other’s are not subtracted', () => {
  const after = { trace: { ...fillTrace(), model: 'fill' } };
  const { difference, next } = figures({
    compare_with: 'model',
    answers: { before: before(), after },
  });
  assert.match(difference.notice, /^Not comparable/);
  assert.match(next.notice, /^Not comparable/);
});

test('every figure keeps the contract', () => {
  for (const width of WIDTHS) assertContract(Object.values(figures({ width })), width);
});
