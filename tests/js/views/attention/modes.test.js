import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { choosingHead } from '../../../../static/js/state/attention_switches.js';
import { diverging, plotlyScale, sequential } from '../../../../static/js/plot/colour.js';
import { findHighlight } from '../../../../static/js/plot/grid.js';
import { attention } from '../../../../static/js/views/attention/attention.js';
import { readSetting } from '../../../../static/js/views/attention/chosen_weights.js';
import { array, FRAME, pairTrace, sampleTrace, TOKENS, plain } from '../../sample.js';

const COUNT = TOKENS.length;
const SITE = 'decoder.layers.1.self_attention';
const close = (actual, expected) =>
  ok(Math.abs(actual - expected) < 1e-4, `${actual} is not ${expected}`);

/** Numbers by row and column of each head, as an answer holds them; the future is what the API sends. */
function square(value, { heads = 2, hidden = 0 } = {}) {
  const data = Float32Array.from({ length: heads * COUNT * COUNT }, (_, at) => {
    const [head, row, column] = [
      Math.floor(at / COUNT / COUNT),
      Math.floor(at / COUNT) % COUNT,
      at % COUNT,
    ];
    return column > row ? hidden : value(row, column, head);
  });
  return array(['head', 'query', 'key'], [heads, COUNT, COUNT], data);
}

const SCORES = square((row, column, head) => (head === 0 ? row - 2 * column : 8), {
  hidden: -Infinity,
});
const NORMS = square((row, column, head) => (head + 1) * (column + 1));
const ROLLED = square((row) => 1 / (row + 1));

const ANSWERS = {
  scores: { tensors: { [`${SITE}.scores`]: SCORES }, analyses: {} },
  value_weighted: { tensors: {}, analyses: { value_weighted: { [SITE]: NORMS } } },
  rollout: { tensors: {}, analyses: { rollout: { decoder: ROLLED } } },
};

await attention.prepare?.(sampleTrace(), { ...FRAME, attention_as: 'lines' });

function shown(state = {}, trace = sampleTrace()) {
  const wished = state.attention_which === 'rollout' ? 'rollout' : state.attention_what;
  const answers = ANSWERS[wished] ? { attention: { trace: ANSWERS[wished] } } : {};
  return attention.figure(trace, { ...FRAME, answers, ...state });
}

/** The second and third token are one word. */
function wordTrace() {
  const trace = sampleTrace();
  const tokens = trace.tokens.map((token, index) =>
    index === 2 ? { ...token, text: 'saw', start: 2, word: 0 } : token,
  );
  return { ...trace, text: 'itsaw <b> it', tokens };
}

const rowsOf = ({ grid }) =>
  Array.from({ length: grid.rows }, (_, row) =>
    Array.from({ length: grid.columns }, (_, column) => grid.value(row, column)),
  );
const sum = (row) => row.filter((value) => !Number.isNaN(value)).reduce((a, b) => a + b, 0);

test('scores are requested only when displayed, for one layer', () => {
  deepEqual(attention.asks(sampleTrace(), FRAME), {});
  deepEqual(attention.asks(sampleTrace(), { ...FRAME, attention_what: 'scores' }), {
    attention: { capture: [`${SITE}.scores`] },
  });
  deepEqual(attention.asks(sampleTrace(), { ...FRAME, attention_what: 'value_weighted' }), {
    attention: { analyses: ['value_weighted'], layers: [1] },
  });
  deepEqual(attention.asks(sampleTrace(), { ...FRAME, attention_which: 'rollout' }), {
    attention: { analyses: ['rollout'] },
  });
  deepEqual(attention.asks(pairTrace(), { ...FRAME, attention_what: 'scores' }), {
    attention: { capture: ['decoder.layers.1.cross_attention.scores'] },
  });
});

test('scores are signed, and their colours have zero in the middle', () => {
  const { data, grid, title } = shown({ attention_what: 'scores' });
  const [map] = data;
  equal(title, 'Layer 1, head 0: scores before the softmax');
  deepEqual([map.zmin, map.zmax], [-8, 8], 'as for every head of the layer');
  deepEqual(map.colorscale, plotlyScale(diverging('light')));
  deepEqual(map.z[2], [2, 0, -2, null, null]);
  equal(plain(grid.describe(2, 2)), '“saw” gives itself a score of −2.0000 (layer 1, head 0)');
  match(grid.describe(1, 3), /cannot attend/);
  deepEqual(
    [shown({ attention_what: 'scores', range: 'head' }).data[0].zmin, grid.isSigned],
    [-4, true],
  );
  const strip = findHighlight(grid, { side: 'source', index: 2 });
  deepEqual(
    [[...strip.tints.source], strip.ceiling, strip.isSigned],
    [[10, 8, 6, NaN, NaN], 16, true],
  );
});

test('log weights are coloured by decimal powers, down to a floor; the numbers stay weights', () => {
  const trace = sampleTrace();
  const weights = trace.tensors[`${SITE}.weights`];
  weights.data[2 * COUNT] = 1; // 1/65535, under the floor
  const { data, grid } = shown({ attention_what: 'log' }, trace);
  const [map] = data;
  deepEqual([map.zmin, map.zmax, map.z[2][0]], [-4, 0, -4]);
  close(map.z[2][1], Math.log10(0.8));
  deepEqual(map.colorbar.ticktext, ['≤0.0001', '0.001', '0.01', '0.1', '1']);
  deepEqual(map.colorbar.tickvals, [-4, -3, -2, -1, 0]);
  equal(grid.format(grid.value(2, 1)), '0.8000');
  close(grid.ofRow(2).tint[1], 4 + Math.log10(0.8));
  equal(grid.ceiling, 4);
});

test('value-weighted cells are lengths, on a scale that is the same for every head', () => {
  const { data, grid, help } = shown({ attention_what: 'value_weighted', head: 0 });
  const [map] = data;
  deepEqual([map.zmin, map.zmax, map.z[4][4]], [0, 10, 5]);
  equal(shown({ attention_what: 'value_weighted', head: 1, range: 'head' }).data[0].zmax, 10);
  deepEqual(map.colorscale, plotlyScale(sequential('light')));
  match(help, /Rows do not sum to 1/);
  deepEqual(grid.request, { capture: [], analyses: ['value_weighted'], layers: [1], heads: [0] });
});

test('the mean of heads sums to 1 in every row, the largest to more', () => {
  for (const state of [
    { attention_which: 'mean' },
    { attention_which: 'heads', attention_heads: [0, 1] },
  ]) {
    const figure = shown(state);
    rowsOf(figure).forEach((row) => close(sum(row), 1));
    close(figure.grid.value(2, 1), (0.8 + 0.1) / 2);
  }
  const largest = shown({ attention_which: 'max' });
  close(largest.grid.value(2, 0), 0.8);
  close(sum(rowsOf(largest)[2]), 1.7);
  match(largest.help, /1 or more/);
});

const PAIR = { ...pairTrace(), card: { ...pairTrace().card, analyses: [] } };

test('rollout covers all layers, and does not exist for cross-attention', () => {
  const rollout = { attention_which: 'rollout' };
  const { title, grid } = shown(rollout);
  equal(title, 'Rollout up to layer 1');
  close(grid.value(3, 2), 0.25);
  const cross = attention.figure(pairTrace(), { ...FRAME, ...rollout });
  equal(cross.title, 'Cross-attention, layer 1, head 0');
  const { options } = controlNamed('attention_which', rollout, PAIR);
  ok(!options.some(({ id }) => id === 'rollout'));
});

test('merged into words, columns are summed and rows averaged, and rows still sum to 1', () => {
  const figure = shown({ attention_words: true }, wordTrace());
  deepEqual(figure.grid.rowLabels, ['<s>', 'itsaw', '<b>', 'it']);
  close(figure.grid.value(1, 0), (0.8 + 0.1) / 2);
  close(figure.grid.value(2, 1), 0.8667);
  rowsOf(figure).forEach((row) => close(sum(row), 1));
  ok(Number.isNaN(figure.grid.value(1, 2)), 'what comes later stays hidden');
  match(figure.help, /rows still sum to 1/);
});

test('the first token is left out as query and key, and the rest is unchanged', () => {
  const figure = shown({ attention_hide: 'first', head: 1 });
  deepEqual([figure.grid.rows, figure.grid.columns], [COUNT - 1, COUNT - 1]);
  close(sum(rowsOf(figure)[3]), 0.2);
  match(plain(figure.help), /“<s>”, is hidden; rows are not renormalised/);
  deepEqual([...figure.grid.ofRow(0).tint].map(Number.isNaN), [true, false, true, true, true]);
  match(figure.grid.describe(3, 0), /first token hidden\)$/);
});

test('the first token is left out by itself where most of a large model’s head rests on it', () => {
  const card = { kind: 'decoder', n_layers: 30, n_heads: 9, analyses: [] };
  const of = (state, change = {}) =>
    shown({ head: 1, ...state }, { ...sampleTrace(), card, ...change });
  const figure = of({});
  deepEqual([figure.grid.rows, figure.grid.columns], [COUNT - 1, COUNT - 1]);
  match(figure.title, /without the first token$/);
  match(plain(figure.help), /“<s>”, is left out: \d+ % of the weight/);
  const back = figure.actions.find(({ label }) => label === 'Show the first token').patch;
  for (const state of [back, { key: 0 }, { head: 0 }, { attention_which: 'rollout' }])
    equal(of(state).grid.columns, COUNT, JSON.stringify(state));
  equal(of({}, { card: { ...card, n_layers: 4 } }).grid.columns, COUNT);
});

test('a chosen cell is marked, and its arithmetic can be opened', () => {
  const { grid, actions } = shown({ query: 3, key: 2 });
  deepEqual(grid.picked, { row: 3, column: 2 });
  deepEqual(grid.start, { row: 3, column: 2 });
  match(
    plain(shown({ query: 3, key: 1 }).grid.rest.readout),
    /^“<b>” attends to “it” at 1 with weight 0.0667/,
  );
  match(plain(shown({ query: 1, key: 3 }).grid.rest.readout), /^“it” at 1 attends most to/);
  deepEqual(actions[0], {
    label: 'Why 0.800?',
    patch: { view: 'why', query: 3, key: 2, layer: 1, head: 0 },
  });
  const hidden = shown({ query: 3, key: 2, attention_hide: 'first' });
  deepEqual(hidden.actions[0].patch, actions[0].patch, 'tokens are meant, not rows');
});

test('lines join the words, those of the chosen query stand out, and hidden pairs have none', () => {
  const { data, grid } = shown({ attention_as: 'lines', query: 2 });
  ok(data.some(({ mode }) => mode === 'lines') && data.every(({ type }) => type === 'scatter'));
  const text = data.filter(({ mode }) => mode === 'text').flatMap((trace) => trace.text);
  ok(text.includes('0.80'), 'the number stands on the line');
  equal(grid.kind, 'diagram of lines');
  ok(grid.geometry.box(2, undefined));
  for (const what of ['log', 'scores'])
    equal(shown({ attention_as: 'lines', attention_what: what }).data[0].type, 'heatmap');
});

function controlNamed(name, state = {}, trace = sampleTrace()) {
  return attention.controls(trace, { ...FRAME, ...state }).find((control) => control.name === name);
}

test('incompatible switches are not offered', () => {
  const names = (state) =>
    attention
      .controls(sampleTrace(), { ...FRAME, ...state })
      .map(({ name }) => name.replace('attention_', ''))
      .join(' ');
  equal(names({}), 'what which as hide words range');
  equal(names({ attention_what: 'scores' }), 'what which hide range');
  const several = { attention_which: 'heads', attention_hide: 'first' };
  equal(names(several), 'what which heads as hide words range');
  const { options } = controlNamed('attention_what', { attention_which: 'rollout' });
  equal(options.map(({ id }) => id).join(), 'weights,log');
  deepEqual(controlNamed('attention_heads', { ...several, head: 1 }).value, [1], 'the open head');
});

test('a weight that is set is drawn, and the others of its row make room for it', () => {
  const state = { query: 3, key: 2 };
  const rowOf = (more) => rowsOf(shown({ ...state, ...more }))[3].filter(Number.isFinite);
  const [before, after, fixed] = [{}, { weight: 0.1 }, { weight: 0.1, weight_fixed: true }].map(
    (more) => rowOf(more),
  );
  close(after[2], 0.1);
  close(sum(after), 1);
  ok(after[0] > before[0] && after[1] > before[1]);
  deepEqual([fixed[0], fixed[1]], [before[0], before[1]]);
  close(sum(fixed), 0.3);
  deepEqual(rowsOf(shown({ ...state, weight: 0.1 }))[2], rowsOf(shown(state))[2], 'only its row');
});

test('the map’s colours are a switch of models whose predictions have parts', () => {
  const traceOf = (analyses) => ({ ...sampleTrace(), card: { kind: 'decoder', analyses } });
  const control = controlNamed('map', { map: 'writes' }, traceOf(['logit_attribution']));
  deepEqual(
    [control.value, control.isMore, control.options.map(({ id }) => id)],
    ['writes', true, ['effect', 'writes']],
  );
  equal(controlNamed('map', {}, traceOf(['next_token'])), undefined);
});

test('all switches of the display are folded', () => {
  const { controls } = attention;
  ok(controls(sampleTrace(), FRAME).every(({ isMore }) => isMore));
});

const choosingIn = (state, chosen) => {
  const setting = readSetting(sampleTrace(), { ...FRAME, ...state });
  return choosingHead(setting.switches, { ...FRAME, ...state }, chosen);
};

test('a chosen head is shown, or joins or leaves the shown set', () => {
  deepEqual(choosingIn({}, { layer: 0, head: 1 }), { layer: 0, head: 1 });
  deepEqual(choosingIn({ attention_which: 'mean' }, { layer: 0, head: 1 }), { layer: 0, head: 1 });
  const several = { attention_which: 'heads', attention_heads: [1] };
  deepEqual(choosingIn(several, { layer: 1, head: 0 }), { attention_heads: [0, 1] });
  deepEqual(choosingIn({ ...several, attention_heads: [0, 1] }, { layer: 1, head: 0 }), {
    attention_heads: [1],
  });
  deepEqual(choosingIn(several, { layer: 1, head: 1 }), { layer: 1, head: 1 }, 'one always stays');
  deepEqual(choosingIn(several, { layer: 0, head: 0 }), {
    layer: 0,
    head: 0,
    attention_heads: [0],
  });
});

/** The sample as a pair: the second token is the first text, the last two are the second. */
function pairOfTexts() {
  const trace = sampleTrace();
  const roles = ['template', 'first', 'first', 'second', 'second'];
  const tokens = trace.tokens.map((token, index) => ({ ...token, role: roles[index] }));
  return { ...trace, tokens };
}

test('of a pair, the rows of one text and the columns of one are shown', () => {
  const trace = pairOfTexts();
  const whole = rowsOf(shown({}, trace));
  const { grid, help } = shown({ attention_pair: 'second_first' }, trace);
  deepEqual(
    rowsOf({ grid }),
    whole.slice(3).map((row) => row.slice(1, 3)),
  );
  match(help, /rows of the second text and the columns of the first/);
  const controls = attention.controls(trace, FRAME);
  equal(controls.find(({ name }) => name === 'attention_pair').options.length, 5);
});

test('of a text, no part of a pair is shown or offered', () => {
  const [part, all] = ['second_first', 'all'].map((attention_pair) =>
    rowsOf(shown({ attention_pair })),
  );
  deepEqual(part, all);
  ok(attention.controls(sampleTrace(), FRAME).every(({ name }) => name !== 'attention_pair'));
});
