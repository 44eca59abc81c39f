import { deepEqual, doesNotMatch, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { why } from '../../../../static/js/views/derivation/why.js';
import { FRAME, pairTrace, sampleTrace, TOKENS, plain } from '../../sample.js';
import { assertReadable, WIDTHS } from '../view_contract.js';
import { asked, askedOfPair } from './sample.js';

const PLAIN = { why_unscaled: false, why_temperature: 1 };

function figures({ trace, answers }, state = {}) {
  const whole = { ...FRAME, ...PLAIN, answers, ...state };
  return why.panels(trace, whole).map((panel) => why.figure(trace, { ...whole, ...panel.state }));
}

const titles = (found) => found.map(({ title }) => title);
const fact = (figure, start) => figure.facts.find(([term]) => term.startsWith(start))?.[1];

test('it requests one layer and one head, and only sites of the scheme', () => {
  const { plain: ask, ...others } = why.asks(asked('rotary').trace, {
    ...FRAME,
    ...PLAIN,
    head: 1,
  });
  deepEqual([ask.layers, ask.heads, ask.analyses], [[1], [1], ['head_outputs']]);
  ok(ask.capture.every((site) => site.startsWith('decoder.layers.1.self_attention.')));
  ok(ask.capture.some((site) => site.endsWith('rotated_keys')));
  deepEqual(others, {});
});

test('the sums beside all keys lie on the axis, and its colour bar beyond them', () => {
  for (const width of WIDTHS) {
    const { data, layout } = figures(asked(), { width }).at(-1);
    const [map, sums] = [data[0], data.at(-1)];
    ok(sums.x.every((x) => x <= layout.xaxis.range[1]));
    const wide = layout.width - layout.margin.l - layout.margin.r;
    ok(map.colorbar.orientation === 'h' || (map.colorbar.x - 1) * wide >= 64);
    ok(layout.margin.r >= 64);
    match(sums.text[0], /^\s(masked|[−+]?\d+\.\d → \S+)$/u);
  }
});

test('switches ask for one more pass, changed in this attention alone', () => {
  const state = { ...FRAME, why_unscaled: true, why_temperature: 2 };
  deepEqual(why.asks(asked().trace, state).changed.edits, [
    { kind: 'no_scaling', layer: 1, where: 'decoder' },
    { kind: 'temperature', value: 2, layer: 1, where: 'decoder' },
  ]);
  equal(why.asks(pairTrace(), { ...state, where: '' }).changed.edits[0].where, 'cross');
});

test('the steps follow each other, numbered; a turn comes first where positions are rotary', () => {
  const found = titles(figures(asked()));
  deepEqual(found, [
    '1. Query times key',
    '2. The score: scaled and masked',
    '3. The softmax of the row',
    '4. Weight times value',
    '5. The head’s share of the output',
    'All keys of this query',
  ]);
  equal(titles(figures(asked('rotary')))[0], '1. Rotation by position');
  equal(titles(figures(asked('alibi')))[1], '2. The score: scaled, biased and masked');
  equal(titles(figures(askedOfPair('cross'), { where: 'cross' }))[1], '2. The score: scaled');
});

for (const where of ['encoder', 'decoder', 'cross']) {
  test(`the ${where} of an encoder–decoder has its own tokens as queries and keys`, () => {
    const { trace, answers } = askedOfPair(where);
    const state = { where, query: 1, source: 2, key: 1 };
    const found = figures({ trace, answers }, state);
    found.forEach(assertReadable);
    const [queries, keys] = {
      encoder: [trace.tokens, trace.tokens],
      decoder: [trace.target_tokens, trace.target_tokens],
      cross: [trace.target_tokens, trace.tokens],
    }[where];
    const { grid } = found[1];
    equal(grid.columns, keys.length);
    const query = where === 'encoder' ? 2 : 1;
    deepEqual(grid.tokens(0, 0), { query, key: 0 });
    const controls = why.controls(trace, { ...FRAME, ...PLAIN, answers, ...state });
    const menu = controls.find(({ label }) => label === 'Query');
    deepEqual(
      [menu.name, menu.value, menu.options.length],
      [where === 'encoder' ? 'source' : 'query', query, queries.length],
    );
    equal(plain(grid.rest.readout).includes(plain(queries[query].text.trim())), true);
  });
}

test('the sum of the products is the number that is scaled, and the weight that the sentence says', () => {
  const { trace, answers, path } = asked();
  const [product, score, softmax] = figures({ trace, answers }, { query: 4, key: 1 });
  const sum = Array.from({ length: product.grid.columns }, (_, at) =>
    product.grid.value(2, at),
  ).reduce((a, b) => a + b, 0);
  ok(Math.abs(score.grid.value(0, 1) - sum / 2) < 1e-12);
  const { data } = answers.plain.trace.tensors[`${path}.weights`];
  ok(Math.abs(softmax.grid.value(0, 1) - data[4 * TOKENS.length + 1]) < 1e-6);
  ok(
    plain(softmax.grid.rest.readout).startsWith(
      `“it” at 4 attends to “it” at 1 with weight ${data[4 * TOKENS.length + 1].toFixed(3)}`,
    ),
  );
});

test('a weight too far from the model’s is reported', () => {
  const { trace, answers, path } = asked();
  const help = () => why.wording(trace, { ...FRAME, ...PLAIN, query: 4, key: 1, answers }).help;
  doesNotMatch(help(), /more than/);
  answers.plain.trace.tensors[`${path}.weights`].data[4 * TOKENS.length + 1] += 0.01;
  match(help(), /more than the usual rounding/);
});

test('a change is shown beside what was trained, with the entropy of both', () => {
  const found = figures(asked('sinusoidal', { temperature: 3 }), {
    why_temperature: 3,
    query: 4,
    key: 1,
  })[2];
  deepEqual(found.grid.rowLabels, ['weight', 'weight as trained']);
  const entropy = (name) => Number.parseFloat(fact(found, name));
  ok(
    entropy('entropy of the row') > entropy('entropy as trained'),
    'a row at a high temperature is more even',
  );
  match(fact(found, 'weight: difference'), /10⁻|^0$/);
  deepEqual(found.grid.request.edits, [
    { kind: 'temperature', value: 3, layer: 1, where: 'decoder' },
  ]);
});

test('the row is derived before the changed pass arrives; only the output waits', () => {
  const { trace, answers } = asked();
  const state = { why_unscaled: true, query: 4, key: 1 };
  const waiting = figures({ trace, answers: { ...answers, changed: { isWaiting: true } } }, state);
  const arrived = figures(asked('sinusoidal', { isScaled: false }), state);
  equal(fact(waiting[1], 'score'), 'waiting for the model');
  ok(Math.abs(waiting[2].grid.value(0, 1) - arrived[2].grid.value(0, 1)) < 1e-12);
  equal(waiting[4].notice, 'Reading…');
  ok(arrived[4].data);
});

test('all keys of a query stand side by side, and each row sums to the product of its score', () => {
  for (const positional of ['sinusoidal', 'rotary', 'alibi']) {
    const found = figures(asked(positional), { query: 3, key: 1 }).at(-1);
    const { grid } = found;
    const { answers } = asked(positional);
    const { tensors } = answers.plain.trace;
    const [scores] = Object.keys(tensors).filter((site) => site.endsWith('.scores'));
    for (let key = 0; key <= 3; key += 1) {
      let sum = 0;
      for (let at = 0; at < grid.columns; at += 1) sum += grid.value(key, at);
      const bias = positional === 'alibi' ? -Math.abs(3 - key) / 4 : 0;
      ok(
        Math.abs(sum / 2 + bias - tensors[scores].data[3 * grid.rows + key]) < 1e-5,
        `${positional}, key ${key}`,
      );
    }
    match(grid.describe(1, 2), /dimension 2: .* × .* = .*; sum .*, weight/);
    deepEqual(grid.choose(2, 0), { key: 2 });
  }
});

/** The switches that set a weight by hand. */
const weightControls = (state = {}, trace = sampleTrace()) =>
  why
    .controls(trace, { ...FRAME, ...PLAIN, ...state })
    .filter(({ name }) => name?.startsWith('weight'));

test('the weight of the chosen cell can be set by hand where it is derived', () => {
  const [weight, ...others] = weightControls({ query: 3, key: 2 });
  equal(others.length, 0);
  deepEqual(
    [weight.name, weight.value, weight.least, weight.most, weight.isTyped],
    ['weight', 0.8, 0, 1, true],
  );
  match(plain(weight.label), /“saw”.* for .*“<b>”/);
  const [set, fixed] = weightControls({ query: 3, key: 2, weight: 0.1 });
  deepEqual([set.value, fixed.name, fixed.value], [0.1, 'weight_fixed', false]);
  equal(weightControls({ query: 3, key: 1 })[0].value, 0.067);
  equal(weightControls({ query: 3 })[0].value, 0.8, 'the strongest of the row');
  for (const state of [{ query: 2, key: 3 }, { isSaved: true }])
    deepEqual(weightControls({ query: 3, key: 2, ...state }), [], JSON.stringify(state));
  const rating = { ...sampleTrace(), card: { kind: 'decoder', analyses: ['reward'] } };
  deepEqual(weightControls({ query: 3 }, rating), [], 'a reward model predicts no token');
});
