import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { standardsOf } from '../../../../static/js/state/state.js';
import { VIEWS } from '../../../../static/js/views/view_registry.js';
import { compare } from '../../../../static/js/views/compare/compare.js';
import { nameOfB } from '../../../../static/js/views/compare/sides.js';
import { array, fillTrace, FRAME, plain, sampleTrace, tensor, TOKENS } from '../../sample.js';

const CARD = {
  id: 'tiny',
  title: 'Tiny',
  kind: 'decoder',
  n_layers: 2,
  n_heads: 2,
  moe: { n_experts: 4, top_k: 2, layers: [1] },
};
const OTHER = { ...CARD, id: 'other', title: 'Other' };
const VOCABULARY = 10;
const SITE = 'decoder.layers.1.self_attention.weights';

function logits(count, value) {
  return tensor(['query', 'vocab'], [count, VOCABULARY], (at) => value(at % VOCABULARY));
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

/** The full cards of two models of which one began with the weights of the other. */
const RELATED = {
  ours: { trace: { card: CARD } },
  theirs: { trace: { card: { ...OTHER, began_from: CARD.id } } },
};

const before = () => ({ trace: { tensors: { logits: logits(5, (id) => (id === 6 ? 1 : 0)) } } });

function stateOf(more = {}) {
  return {
    ...FRAME,
    ...standardsOf(VIEWS.find(({ id }) => id === 'compare').fields),
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

test('B is requested with its edit, and A for its logits', () => {
  const asked = (more) => compare.asks({ ...traceA(), card: CARD }, stateOf(more));
  const edits = (more) => asked(more).after.edits;
  deepEqual(asked({}).before, { capture: ['logits'] });
  deepEqual(asked({}).after.analyses, ['next_token']);
  deepEqual(asked({}).after.capture, ['logits', '*.self_attention.weights']);
  const off = { kind: 'heads_off', heads: [0], layer: 1 };
  deepEqual(edits({}), [off], 'of the shown layer');
  deepEqual(edits({ layer: 0, head: 1 }), [{ ...off, heads: [1], layer: 0 }], 'the shown head');
  deepEqual(edits({ compare_layer: 'all' }), [{ kind: 'heads_off', heads: [0] }]);
  const unknown = { compare_heads: [1, 7], compare_layer: 1 };
  deepEqual(edits(unknown), [{ kind: 'heads_off', heads: [1], layer: 1 }]);
  const dense = { compare_edit: 'experts', compare_layer: 0 };
  deepEqual(edits(dense), [{ kind: 'experts_off', experts: [0] }]);
  equal(asked({ compare_with: 'text', compare_text: ' a dog' }).after.text, ' a dog');
  const { model, text } = asked({ compare_with: 'model' }).after;
  deepEqual([model, text], ['other', 'it saw <b> it']);
});

test('B is the same model with fewer bits, of the parts that it has', () => {
  const wished = (more, card = CARD) => {
    const trace = { ...traceA(), card: { ...card, analyses: ['quantization_sensitivity'] } };
    const state = stateOf({ compare_edit: 'quantize', ...more });
    return [compare.asks(trace, state).after.edits[0], nameOfB(trace, state)];
  };
  deepEqual(wished({}), [{ kind: 'quantize', bits: 4 }, 'the same model at 4 bits']);
  const parts = (more, card) => wished(more, card)[0].parts;
  deepEqual(parts({ compare_layer: 1 }), ['*.layers.1']);
  deepEqual(parts({ compare_part: 'attention' }), ['*.layers.*.*_attention']);
  const dense = { ...CARD, moe: null };
  deepEqual(parts({ compare_part: 'feed_forward' }, dense), ['*.layers.*.feed_forward']);
  const mixed = { ...CARD, moe: { n_experts: 4, top_k: 2, layers: [1] } };
  const both = ['*.layers.*.feed_forward', '*.layers.*.experts'];
  deepEqual(parts({ compare_part: 'feed_forward' }, mixed), both);
  deepEqual(parts({ compare_part: 'feed_forward', compare_layer: 1 }, mixed), [
    '*.layers.1.experts',
  ]);
  const embedding = { compare_part: 'embedding', compare_layer: 1, compare_bits: 2 };
  deepEqual(wished(embedding), [
    { kind: 'quantize', bits: 2, parts: ['*.embedding'] },
    'the embedding at 2 bits',
  ]);
  const foreign = compare.asks(
    { ...traceA(), card: { ...CARD, analyses: ['next_token'] } },
    stateOf({ compare_edit: 'quantize' }),
  );
  equal(foreign.after.edits[0].kind, 'heads_off', 'weights that cannot be quantized in a pass');
});

test('the signed difference is B − A in every cell, on a scale with zero in its middle', () => {
  const { a, b, difference } = figures();
  const [map] = difference.data;
  equal(map.zmin, -map.zmax);
  for (let row = 0; row < TOKENS.length; row += 1) {
    for (let column = 0; column < TOKENS.length; column += 1) {
      const wanted = b.grid.value(row, column) - a.grid.value(row, column);
      equal(difference.grid.value(row, column), wanted);
      equal(map.z[row][column], Number.isNaN(wanted) ? null : wanted);
    }
  }
  equal(
    plain(difference.grid.describe(2, 0)),
    'From “saw” to “<s>” the weight is 0.100 in A and 1.000 in B: 0.900 (B − A, layer 1, head 0)',
  );
});

test('both sides share one scale of colours', () => {
  for (const range of ['one', 'head']) {
    const { a, b } = figures({ range });
    equal(a.data[0].zmax, b.data[0].zmax);
  }
});

test('bars pair the predictions of A and B with their difference', () => {
  const { next } = figures();
  deepEqual(next.grid.columnLabels, ['A', 'B', 'B − A']);
  const [high, low] = [Math.E / (Math.E + 9), 1 / (Math.E + 9)];
  const row = next.grid.rowLabels.indexOf('·saw');
  const found = [0, 1, 2].map((column) => next.grid.value(row, column));
  for (const [at, wanted] of [high, low, low - high].entries())
    ok(Math.abs(found[at] - wanted) < 1e-6);
  const drawn = next.data.map(({ x }) => x[row]);
  deepEqual(drawn, found.slice(0, 2));
  const moved = Object.fromEntries(next.facts)['Probability that moved'];
  equal(moved, `${(100 * (high - low)).toFixed(1)} % (total variation)`);
});

test('each head shows how much of its attention moved, and an action opens the one that moved most', () => {
  const { heads, difference } = figures({ layer: 0 });
  equal(heads.grid.value(0, 0), 0);
  ok(heads.grid.value(1, 0) > heads.grid.value(1, 1));
  deepEqual(
    difference.actions.map(({ patch }) => patch),
    [{ layer: 1, head: 0, compare_heads: [0], compare_layer: 0 }],
    'what is switched off stays',
  );
  deepEqual(heads.grid.choose(1, 1), { layer: 1, head: 1, compare_heads: [0], compare_layer: 0 });
  match(difference.help, /No difference/);
});

test('where no map changes, only the prediction is shown, and before the pass of a last layer too', () => {
  const parts = (more, answers) => {
    const state = stateOf({ ...more, ...(answers && { answers }) });
    return compare.panels(traceA(), state).map(({ state: { part } }) => part);
  };
  const same = {
    trace: { ...traceA(), tensors: { ...traceA().tensors, logits: traceB().tensors.logits } },
  };
  deepEqual(parts({ layer: 0 }, { before: before(), after: same }), ['next']);
  match(
    compare.wording(traceA(), stateOf({ layer: 1, answers: { before: before(), after: same } }))
      .answer[1],
    /No attention map changed: after the last layer/,
  );
  ok(parts({ layer: 0 }).includes('difference'), 'one changed');
  const waiting = { before: {}, after: { isWaiting: true } };
  deepEqual(parts({ layer: 1 }, waiting), ['next']);
  deepEqual(parts({ layer: 0 }, waiting)[0], 'a');
  deepEqual(parts({ layer: 1, compare_layer: 'all' }, waiting)[0], 'a');
});

test('a pass without the division says what it shows, and leads to the experiment', () => {
  const unscaled = { compare_edit: 'no_scaling' };
  const { answer } = compare.wording(traceA(), stateOf(unscaled));
  ok(answer.some((sentence) => /learned its temperature/.test(sentence)));
  const { next } = figures(unscaled);
  ok(next.actions.some(({ href }) => href?.startsWith('/experiments')));
  ok(!figures({}).next.actions);
});

const word = (id, text, start) => ({
  id,
  text,
  start,
  end: start + text.length,
  word: 1,
  is_special: false,
});

test('a replaced word is compared with the one in its place, and named by both', () => {
  const tokens = TOKENS.map((token, index) => (index === 2 ? word(8, ' ran', 2) : token));
  const compare_text = 'it ran <b> it';
  const after = { trace: { ...traceB(), text: compare_text, tokens } };
  const state = { compare_with: 'text', compare_text, answers: { before: before(), after } };
  const { b, difference, next } = figures(state);
  deepEqual(difference.grid.rowLabels, ['<s>', 'it', 'saw/ran', '<b>', 'it']);
  equal(Object.fromEntries(difference.facts)['Replaced words and pieces'], '1');
  deepEqual(difference.grid.tokens(2, 0), { query: 2, key: 0 });
  deepEqual(b.grid.tokens(2, 0), { query: 2, key: 0 });
  ok(next.grid);
  const chosen = figures({ ...state, query: 2 });
  deepEqual(
    [chosen.a, chosen.b, chosen.difference].map(({ grid }) => grid.chosen?.row),
    [2, 2, 2],
    'the chosen query is outlined in all three',
  );
});

test('a word is compared whole with one of more pieces, and one without a counterpart left out', () => {
  const tokens = [TOKENS[0], TOKENS[1], word(8, ' r', 2), word(9, 'an', 4), TOKENS[3]];
  const compare_text = 'it ran <b>';
  const weights = tensor(['head', 'query', 'key'], [2, 5, 5], () => 0.25);
  const trace = traceB();
  const tensors = { ...trace.tensors, [SITE]: weights, logits: logits(5, () => 0) };
  const after = { trace: { ...trace, tensors, text: compare_text, tokens } };
  const state = { compare_with: 'text', compare_text, answers: { before: before(), after } };
  const { difference } = figures(state);
  deepEqual(difference.grid.rowLabels, ['<s>', 'it', 'saw/ran', '<b>']);
  match(
    plain(difference.grid.describe(2, 0)),
    /^From “saw\/ran” to “<s>” the weight is .* and 0\.250 in B/,
  );
  equal(Object.fromEntries(difference.facts)['Compared words and pieces'], '4 of 5 and 4');
  match(plain(figures({ ...state, query: 4 }).next.notice), /“it” at 4 has no counterpart in B/);
});

test('a second sentence is requested, and a rejected one shows its problem', () => {
  const invited = figures({ compare_with: 'text', answers: {} });
  deepEqual(Object.keys(invited), ['a', 'b']);
  deepEqual(invited.b.actions[0].patch, { compare_text: traceA().text });
  const problem = { title: 'Too many tokens', detail: 'send a shorter text' };
  const answers = { before: before(), after: { problem } };
  const refused = figures({ compare_with: 'text', compare_text: 'x', answers });
  deepEqual(Object.keys(refused), ['a', 'b']);
  match(refused.b.notice, /^Too many tokens/);
});

test('two models that cut a text differently are compared by its words', () => {
  const piece = (text, start) => ({
    id: 1,
    text,
    start,
    end: start + 1,
    word: 0,
    is_special: false,
  });
  const tokens = [TOKENS[0], piece('i', 0), piece('t', 1), ...TOKENS.slice(2)];
  const data = new Float32Array(2 * 36);
  for (let row = 0; row < 12; row += 1) data[row * 6 + (row % 6)] = 1;
  const next_token = {
    ids: array([], [6, 1], new Int32Array(6).fill(6)),
    probabilities: array([], [6, 1], new Float32Array(6).fill(0.1)),
    texts: Array(6).fill(['x']),
  };
  const tensors = { [SITE]: array([], [2, 6, 6], data), logits: logits(6, () => 0) };
  const other = { model: 'other', card: OTHER, tokens, tensors, analyses: { next_token } };
  const answers = { ...RELATED, before: before(), after: { trace: { ...traceB(), ...other } } };
  const { difference, next, ...others } = figures({ compare_with: 'model', answers });
  ok(!('heads' in others), 'heads of two models are not each other’s');
  deepEqual(difference.grid.rowLabels, ['<s>', 'it', 'saw', '<b>', 'it']);
  ok(Math.abs(difference.grid.value(2, 2) - (1 - 0.1)) < 1e-4);
  const unlisted = next.grid.rowLabels.indexOf('x');
  match(next.grid.tip(unlisted, 0)[1], /^not among its 20 likeliest/);
  match(
    plain(next.grid.describe(unlisted, 0)),
    /, “x” is not among A’s 20 likeliest tokens; B gives it 10.0 %$/,
  );
});

test('different kinds of attention are not subtracted', () => {
  const after = { trace: { ...fillTrace(), model: 'fill' } };
  const { difference, next } = figures({
    compare_with: 'model',
    answers: { ...RELATED, before: before(), after },
  });
  match(difference.notice, /^Not comparable/);
  match(next.notice, /^Not comparable/);
});

test('a model that began with the weights of the other has the same heads', () => {
  const said = (ours, theirs) => {
    const answers = { before: before(), after: { trace: traceB() } };
    answers.ours = { trace: { card: { ...CARD, ...ours } } };
    answers.theirs = { trace: { card: { ...OTHER, ...theirs } } };
    const state = { compare_with: 'model', compare_model: 'other', answers };
    return compare.wording(traceA(), stateOf(state)).answer.join(' ');
  };
  match(
    said({ began_from: OTHER.id }, {}),
    /A began with the weights of B, so B − A is the change/,
  );
  match(said({}, { began_from: CARD.id }), /B began with the weights of A, so B − A is the change/);
  match(said({ began_from: 'third' }, { began_from: null }), /do not correspond/);
  match(said({ id: 'forming' }, { id: 'forming@752' }), /states of one training, so B − A is/);
});

test('a reward model rates the text of two models, token by token', () => {
  const rater = { ...OTHER, id: 'rater', vocab_size: 300, analyses: ['reward'] };
  const card = { ...CARD, vocab_size: 300 };
  const trace = { ...traceA(), card };
  const state = stateOf({
    compare_with: 'model',
    cards: [card, { ...OTHER, vocab_size: 300 }, rater],
    compare_model: 'rater',
  });
  deepEqual(compare.asks(trace, state).rated, {
    model: 'rater',
    text: trace.text,
    capture: [],
    analyses: ['reward'],
  });
  ok(!('rated' in compare.asks(trace, { ...state, compare_model: 'other' })), 'of other models');
  const cards = [card, { ...rater, vocab_size: 301 }];
  ok(!('rated' in compare.asks(trace, { ...state, cards })), 'it reads other tokens');
  const numbers = (...data) => array(['query'], [5], Float32Array.from(data));
  const reward = { rewards: numbers(1, 3, 2, 2, 4), contributions: numbers(1, 2, -1, 0, 2) };
  const rated = { trace: { ...traceA(), model: 'rater', analyses: { reward } } };
  const answers = { before: before(), after: { trace: traceB() }, rated };
  const shown = { ...state, answers };
  const ids = compare.panels(trace, shown).map(({ id }) => id);
  ok(ids.includes('reward') && !ids.includes('next'), 'it predicts no token');
  equal(compare.wording(trace, shown).answer.length, 1);
  const figure = compare.figure(trace, { ...shown, part: 'reward' });
  deepEqual(figure.facts[0], ['Reward of the text', '4.000']);
  match(figure.grid.describe(0, 2), /changes the reward by −1\.?0*, to 2/);
  const waiting = compare.figure(trace, {
    ...shown,
    answers: { ...answers, rated: {} },
    part: 'reward',
  });
  ok(waiting.isWaiting);
});

test('the view leads with the change of the prediction and of the heads', () => {
  const { answer } = compare.wording(traceA(), stateOf({ compare_with: 'edit' }));
  match(plain(answer[0]), /has probability .* in A and .* in B/);
  match(answer[1], /still attends as before, but writes nothing/);
  match(answer[2], /changed most is that of layer 1, head \d: [\d.]+ % of it moved/);
  const other = compare.wording(
    traceA(),
    stateOf({ compare_with: 'model', compare_model: 'other' }),
  );
  match(other.answer[1], /do not correspond/);
});
