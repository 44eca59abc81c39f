import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { word } from '../../../../static/js/views/word/word.js';
import { FRAME, pairTrace, plain, sampleTrace, tensor } from '../../sample.js';

const PARTS = [0.5, -0.25, 1, -2, 0, 3, 0.75, 0];
const NAMES = [
  'embedding.tokens',
  'embedding.positional',
  'layers.0.self_attention',
  'layers.0.feed_forward',
  'layers.1.self_attention',
  'layers.1.feed_forward',
  'bias',
  'remainder',
];
const HEADS = [3, -2, 0.5, -0.5];

/** An attribution of the sample: two layers of two heads, four experts in the second. */
function found({ names = NAMES, hasCross = false, omitted = {} } = {}) {
  const keys = HEADS.flatMap((value) => [0, value, 0, 0, 0]);
  return {
    position: 1,
    token: { id: 6, text: ' saw' },
    against: { id: 9, text: '<i>&' },
    part_names: names,
    omitted,
    logits: tensor(['token'], [2], (at) => [5, 2][at]),
    parts: tensor(['part'], [8], (at) => PARTS[at]),
    'self_attention.heads': tensor(['layer', 'head'], [2, 2], (at) => HEADS[at]),
    'self_attention.keys': tensor(['layer', 'head', 'key'], [2, 2, 5], (at) => keys[at]),
    ...(hasCross && {
      'cross_attention.heads': tensor(['layer', 'head'], [2, 2], 0.1),
      'cross_attention.keys': tensor(['layer', 'head', 'key'], [2, 2, 3], 0.05),
    }),
    experts: tensor(['layer', 'expert'], [2, 4], (at) => [0, 0, 0, 0, 2, 0, 1, 0][at]),
  };
}

const withCard = (trace, card = {}) => ({
  ...trace,
  card: {
    kind: 'decoder',
    norm_place: 'pre',
    analyses: ['logit_attribution'],
    moe: { n_experts: 4, top_k: 2, layers: [1] },
    ...card,
  },
});

function stateOf(trace, { attribution = found(), ...state } = {}) {
  const answers = { parts: { trace: { ...trace, analyses: { logit_attribution: attribution } } } };
  return { ...FRAME, query: 1, answers, ...state };
}

/** The sample, in which tokens 1 and 2 are one word. */
function pieces() {
  const trace = withCard(sampleTrace());
  const tokens = trace.tokens.map((token, index) => {
    if (index === 1) return { ...token, text: 'it', start: 0, end: 2, word: 0 };
    return index === 2 ? { ...token, text: 'saw', start: 2, end: 5, word: 0 } : token;
  });
  return { ...trace, text: 'itsaw <b> it', tokens };
}

function figuresOf(trace, state) {
  return word.panels(trace, state).map((panel) => word.figure(trace, { ...state, ...panel.state }));
}

test('the parts are in the order of the model, the experts called so', () => {
  const trace = withCard(sampleTrace());
  const [{ grid, data }] = figuresOf(trace, stateOf(trace));
  deepEqual(grid.rowLabels, [
    'token embedding',
    'position',
    'layer 0, attention',
    'layer 0, feed-forward',
    'layer 1, attention',
    'layer 1, experts',
    'bias of the last norm',
    'remainder',
  ]);
  deepEqual(data[0].x, PARTS);
  equal(data[0].text[3], '−2.00');
  match(grid.describe(3, 0), /feed-forward network of layer 0: 2\.00 logits for “<i>&” against/);
});

test('on a phone every label is whole, and on a low screen the bars move together', () => {
  const trace = withCard(sampleTrace());
  const [narrow] = figuresOf(trace, stateOf(trace, { width: 358 }));
  ok(narrow.layout.yaxis.ticktext.every((text) => !text.includes('…')));
  const [low] = figuresOf(trace, stateOf(trace, { height: 230 }));
  equal(low.layout.height, 230);
});

test('heads are ranked by size and open when chosen', () => {
  const trace = withCard(sampleTrace());
  const [, heads] = figuresOf(trace, stateOf(trace));
  deepEqual(heads.grid.rowLabels.slice(0, 2), ['layer 0, head 0', 'layer 0, head 1']);
  deepEqual(heads.grid.choose(1, 0), { view: 'attention', layer: 0, head: 1 });
});

test('the words and what attention does not carry sum to the difference', () => {
  const trace = withCard(sampleTrace());
  const [, , tokens] = figuresOf(trace, stateOf(trace));
  deepEqual(tokens.grid.rowLabels.slice(0, 2), ['<s>', 'it at 1']);
  equal(tokens.grid.rowLabels.at(-1), 'not by attention');
  equal(
    tokens.data[0].x.reduce((sum, value) => sum + value, 0),
    3,
  );
  deepEqual(tokens.grid.tokens(1, 0), { query: 1, key: 1 });
});

test('a translator’s source tokens come through cross-attention', () => {
  const trace = withCard(pairTrace(), { kind: 'encoder-decoder' });
  const attribution = found({ hasCross: true });
  const figures = figuresOf(trace, stateOf(trace, { attribution }));
  const tokens = figures.find(({ title }) => title === 'By word');
  const places = tokens.grid.rowLabels.map((_, row) => tokens.grid.tokens(row, 0));
  ok(places.some(({ key }) => key === undefined));
});

test('the answer names the most for and the most against, by sign, and the source tokens', () => {
  const trace = withCard(sampleTrace());
  const [headline, parts, less, sources, ...more] = word
    .wording(trace, stateOf(trace))
    .answer.map(plain);
  match(
    headline,
    /“saw” \(\d.* %\) is 3\.00 logits ahead of “<i>&” \(.* %\): the bars sum to \+3\.00\./,
  );
  equal(
    parts,
    'Layer 1’s experts do most for “saw” (+3.00); of single heads, head 0 of layer 0 (+3.00).',
  );
  match(
    less,
    /^Layer 0’s feed-forward network does most for “<i>&” \(\+2\.00\); .*head 1 of layer 0/,
  );
  equal(sources, 'The word that counted most is “it” at 1 (+1.00 for “saw”).');
  deepEqual(more, []);
});

test('the strongest head of the strongest attention is told within it', () => {
  const trace = withCard(sampleTrace());
  const attribution = found();
  attribution.parts.data = Float32Array.from(PARTS, (value, at) => (at === 2 ? 4 : value));
  const [, parts] = word.wording(trace, stateOf(trace, { attribution })).answer.map(plain);
  equal(parts, 'Layer 0’s attention does most for “saw” (+4.00), above all head 0 (+3.00).');
});

test('the pieces of a word are one word, in the chart and in the sentence', () => {
  const trace = pieces();
  const attribution = found();
  const state = stateOf(trace, { attribution });
  const tokens = figuresOf(trace, state).find(({ title }) => title === 'By word');
  const sums = attribution['self_attention.keys'];
  const row = tokens.grid.rowLabels.indexOf('itsaw');
  deepEqual(tokens.grid.tokens(row, 0).key, [1, 2]);
  const expected = [0, 1, 2, 3].reduce(
    (sum, head) => sum + sums.data[head * 5 + 1] + sums.data[head * 5 + 2],
    0,
  );
  ok(Math.abs(tokens.data[0].x[row] - expected) < 1e-6);
  ok(!word.wording(trace, state).answer.map(plain).join().includes('·'));
});

test('a remainder with a reason is told, without one it is not', () => {
  const trace = withCard(sampleTrace());
  const reason = '1.2 logits are of no part';
  const attribution = found({ omitted: { remainder: reason } });
  const { answer } = word.wording(trace, stateOf(trace, { attribution }));
  ok(answer.map(plain).some((sentence) => sentence.includes(reason)));
  ok(!word.wording(trace, stateOf(trace)).answer.map(plain).join().includes(reason));
});

test('the request names the position, and the tokens if they are chosen', () => {
  const trace = withCard(sampleTrace());
  const request = (state) => word.asks(trace, { ...FRAME, ...state }).parts.logit_difference;
  deepEqual(request({ query: 2 }), { position: 2 });
  deepEqual(request({ query: 2, token: 6, against: 5 }), { position: 2, token: 6, against: 5 });
  deepEqual(request({ query: 2, token: 6, against: 6 }), { position: 2, token: 6 });
});

test('the choices are the guesses, and a token of a link that is not among them', () => {
  const trace = withCard(sampleTrace());
  const menus = (state) => word.controls(trace, stateOf(trace, state));
  const [, , why, than] = menus({ token: null });
  deepEqual(
    why.options.map(({ id }) => id),
    [null, 6, 9, 5],
  );
  ok(than.options.every(({ id }) => id !== 6));
  ok(menus({ token: 77 })[2].options.some(({ id }) => id === 77));
});

test('a model without the analysis is told the reason', () => {
  const trace = withCard(sampleTrace(), { analyses: [], omitted: { linear_exit: 'it curves' } });
  deepEqual(word.asks(trace, FRAME), {});
  match(word.figure(trace, FRAME).notice, /no.* sum of what its parts write: it curves/i);
});

test('until the answer is there, the chart waits', () => {
  const trace = withCard(sampleTrace());
  const { isWaiting } = word.figure(trace, { ...FRAME, answers: { parts: { isWaiting: true } } });
  ok(isWaiting);
});

function answered(trace, analysis, of, state = {}) {
  const pair = { position: 1, token: { id: 6, text: ' saw' }, against: { id: 9, text: '<i>&' } };
  const answers = { parts: { trace: { ...trace, analyses: { [analysis]: { ...pair, ...of } } } } };
  return { ...FRAME, query: 1, answers, ...state };
}

const every = (trace) => ({ ...trace, card: { ...trace.card, analyses: ['saliency'] } });

test('saliency shows both kinds for each token', () => {
  const trace = every(withCard(sampleTrace()));
  const each = (value) => tensor(['position'], [5], value);
  const found = { 'decoder.gradient_times_input': each(1), 'decoder.erasure': each(-2) };
  const figures = figuresOf(trace, answered(trace, 'saliency', found, { word_show: 'saliency' }));
  deepEqual(
    figures.map(({ data }) => data[0].x[0]),
    [1, -2],
  );
});

test('a caption names the tokens that are compared, and the place', () => {
  const trace = withCard(sampleTrace());
  for (const { grid } of figuresOf(trace, stateOf(trace))) {
    match(grid.about, /“saw” rather than “<i>&”, after token 1, /);
    equal(grid.request.logit_difference.position, 1);
  }
});
