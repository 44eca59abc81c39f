import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { head } from '../../../../static/js/views/head/head.js';
import { array, FRAME, sampleTrace } from '../../sample.js';

const PROFILE = {
  labels: ['previous'],
  scores: {
    previous: { score: 0.9, control: 0.12 },
    sink: { score: 0.05, control: 0.2 },
    broad: { score: 0.1, control: 0 },
  },
  entropy: 0.5,
  distance: 1.25,
  cost: 0.0123,
  strongest: [
    { sentence: 1, query: 3, key: 2, weight: 0.97, query_span: [8, 11], key_span: [4, 7] },
  ],
};
const HEADS = {
  text: ['held_out.txt'],
  sentences: 1000,
  bits_per_byte: 1.4,
  attentions: { 'decoder.layers.0.self_attention': [PROFILE] },
  examples: [
    { text: 'Not this.', target: '' },
    { text: 'The cat sat.', target: '' },
  ],
};

const stateOf = (heads, changes = {}) => ({
  ...FRAME,
  layer: 0,
  head: 0,
  answers: { card: { trace: { card: { heads } } } },
  ...changes,
});

/** A trace whose analysis calls every head of layer 0 a sink in this text. */
function labelled() {
  const trace = sampleTrace();
  const path = 'decoder.layers.0.self_attention';
  const [nHeads] = trace.tensors[`${path}.weights`].shape;
  const head_labels = {
    labels: ['sink', 'mixed'],
    [`${path}.label`]: { data: new Int32Array(nHeads) },
    [`${path}.label_scores`]: { shape: [nHeads, 1], data: new Float32Array(nHeads).fill(0.75) },
    [`${path}.label_queries`]: { data: Int32Array.of(4) },
  };
  return { ...trace, analyses: { ...trace.analyses, head_labels } };
}

test('a head shows its scores, the highest first, beside their controls', () => {
  const figure = head.figure(labelled(), stateOf(HEADS));
  const [bars, controls] = figure.data;
  deepEqual(bars.x, [0.9, 0.1, 0.05]);
  deepEqual(controls.x, [0.12, 0.12, null, 0.2, 0.2, null], 'a line each, but for a score without');
  match(figure.help, /previous token.*1,000 sentences of held_out\.txt/i);
  const facts = Object.fromEntries(figure.facts);
  match(facts['Switched off in 1,000 sentences'], /→ .* bits per byte \(slightly worse\)/);
  match(facts['In this text'], /sink 0\.75/);
});

test('where most rows do something else, the head is not called by its label', () => {
  const trace = labelled();
  const site = 'decoder.layers.0.self_attention.weights';
  const weights = trace.tensors[site];
  const [, rows, columns] = weights.shape;
  const data = new Float32Array(weights.data.length);
  for (let row = 0; row < data.length / columns; row += 1) data[row * columns + (row % rows)] = 1;
  const other = { ...trace, tensors: { ...trace.tensors, [site]: { ...weights, data, scale: 1 } } };
  const { help } = head.figure(other, stateOf(HEADS));
  equal(/labelled/.test(help), false);
  match(help, /1,000 sentences.* In this text the head does something else\.$/);
});

test('a strongest sentence opens the attention of this head at its token', () => {
  const [{ label, patch }] = head.figure(sampleTrace(), stateOf(HEADS)).actions;
  match(label, /“sat” looks at “cat”/);
  const { text, view, layer, head: number, query } = patch;
  deepEqual([text, view, layer, number, query], ['The cat sat.', 'attention', 0, 0, 3]);
});

test('a head without a profile says so, and that none was measured', () => {
  match(head.figure(sampleTrace(), stateOf(null)).notice, /no profile.*not measured/);
  ok(head.figure(sampleTrace(), { ...stateOf(null), answers: {} }).notice);
  equal(head.asks(sampleTrace(), FRAME).card.card, sampleTrace().model);
});

// --- circuits ------------------------------------------------------------------------------------

/** Circuits in which token `n` writes and seeks the ids 10 n and 10 n + 1. */
function circuitsOf(trace) {
  const n = trace.tokens.length;
  const ids = Int32Array.from({ length: 2 * n }, (_, at) => 10 * (at >> 1) + (at % 2));
  const values = Float32Array.from(ids, (id) => 100 - id);
  const path = 'decoder.layers.0.self_attention';
  const found = { token_texts: Object.fromEntries([...ids].map((id) => [id, ` t${id}`])) };
  for (const [name, unit, axis] of [
    ['written', 'logits', 'key'],
    ['sought', 'scores', 'query'],
  ]) {
    found[`${path}.${name}_ids`] = array(['head', axis, 'rank'], [1, n, 2], ids);
    found[`${path}.${name}_${unit}`] = array(['head', axis, 'rank'], [1, n, 2], values);
  }
  found[`${path}.copying`] = array(['head'], [1], Float32Array.of(-0.5));
  return { ...found, omitted: {} };
}

const withCircuits = (changes = {}) => {
  const trace = sampleTrace();
  const answers = { circuits: { trace: { analyses: { head_circuits: circuitsOf(trace) } } } };
  return [trace, { ...FRAME, layer: 0, head: 0, answers, ...changes }];
};

test('a head shows what it writes for the chosen source, and what the chosen query seeks', () => {
  const [trace, state] = withCircuits({ query: 3, key: 2 });
  const writes = head.figure(trace, { ...state, chart: 'writes' });
  deepEqual(writes.data[0].x, [80, 79]);
  match(
    writes.grid.describe(0, 0),
    /Attending to .*saw.*adds \+80\.00 to the logit of “␣?·? ?t20”/,
  );
  deepEqual(writes.facts, [['Copying', '−0.50 of 1']]);
  const seeks = head.figure(trace, { ...state, chart: 'seeks' });
  deepEqual(seeks.data[0].x, [70, 69]);
  match(seeks.grid.describe(1, 0), /<b>.*t31.* score of 69/);
});

test('a source that nobody chose is the one that the row attends to most', () => {
  const [trace, state] = withCircuits({ query: 3 });
  const { data, shape } = trace.tensors['decoder.layers.0.self_attention.weights'];
  const row = Array.from(data.slice(3 * shape[2], 4 * shape[2]));
  const [{ value }] = head.controls(trace, state);
  equal(value, row.indexOf(Math.max(...row)));
});

test('a model without circuits says why, and is not asked for them', () => {
  const trace = sampleTrace();
  const card = { ...trace.card, analyses: [], norm_place: 'post' };
  const figure = head.figure({ ...trace, card }, { ...stateOf(HEADS), chart: 'writes' });
  match(figure.notice, /normalises what its parts write/);
  deepEqual(Object.keys(head.asks({ ...trace, card }, FRAME)), ['card']);
});

test('a head tells the earlier heads that feed it, the strongest first', () => {
  const feeder = (name, share) => ({ name, share, control: 0 });
  const fed = { queries: [feeder('0.4', 0.07)], keys: [feeder('0.1', 0.61)], values: [] };
  const path = 'decoder.layers.0.self_attention';
  const facts = (feeders) =>
    Object.fromEntries(head.figure(labelled(), stateOf({ ...HEADS, feeders })).facts);
  equal(facts({ [path]: [fed] })['Fed by'], '0.1 (keys, 61 %); 0.4 (queries, 7 %)');
  equal(facts(null)['Fed by'], undefined);
});
