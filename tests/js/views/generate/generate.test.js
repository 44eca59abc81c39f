import assert from 'node:assert/strict';
import { test } from 'node:test';
import { curlOf, callOf } from '../../../../static/js/data/request_code.js';
import { standardsOf } from '../../../../static/js/state/state.js';
import { isNatural, subjectOf, whyOver } from '../../../../static/js/ui/generation.js';
import { numbersOf } from '../../../../static/js/ui/exports.js';
import { generate } from '../../../../static/js/views/generate/generate.js';
import { stepOf, stepsOf } from './sample.js';
import {
  figuresOf,
  fillTrace,
  FRAME,
  pairTrace,
  sampleTrace,
  TOKENS,
  plain,
} from '../../sample.js';
import { assertContract, WIDTHS } from '../view_contract.js';

const PATH = [3, 1, 5];
const NATURAL = { generate_temperature: 1 };

function stateWith(path, more = {}, options = {}) {
  const generation = {
    steps: stepsOf(path, options),
    isReading: false,
    isWriting: false,
    problem: null,
    most: 256,
  };
  return { ...standardsOf(generate.fields), generate_path: path, generation, ...more };
}

const figures = (path, more, options) =>
  figuresOf(generate, sampleTrace(), stateWith(path, more, options));

test('before anything is written the page shows what the model expects, and begins with what is chosen', () => {
  for (const width of WIDTHS) {
    const [figure, ...others] = figures([], { width });
    assert.equal(others.length, 0);
    assertContract([figure], width);
  }
  const [
    {
      help,
      title,
      grid,
      data: [bars],
    },
  ] = figures([]);
  assert.match(help, /Step .*Run /);
  assert.equal(plain(title), 'After “it” at 4');
  assert.deepEqual(bars.x, [0.5, 0.25, Math.fround(0.0001)]);
  assert.deepEqual(
    grid.rowLabels.map((_, row) => grid.choose(row, 0)),
    [6, 9, 5].map((id) => ({ generate_path: [id], generate_step: null })),
  );
  assert.equal(plain(grid.rest.readout), 'After “it” at 4, “·saw” has probability 50.0 %, rank 1');
});

test('the written token is among what could have come, and is marked', () => {
  const [
    {
      title,
      data: [bars],
      grid,
    },
  ] = figures([3, 1], NATURAL);
  assert.equal(plain(title), 'After “it” at 5');
  assert.deepEqual(bars.text, ['40.0 %', '30.0 % · written', '20.0 %', '6.0 %']);
  assert.equal(grid.columns, 1);
  assert.equal(
    plain(grid.rest.readout),
    'After “it” at 5, “·<b>” has probability 30.0 %, rank 2; it was written',
  );
});

test('where the draw was bent, both probabilities are told and the model’s own is a line', () => {
  const [{ data, grid, facts, layout }] = figures([3], {}, { temperature: 0.5 });
  const [bars, numbers, lines] = data;
  assert.ok(bars.x[0] > 0.4);
  assert.deepEqual(lines.x, [0.4, 0.3, 0.2, 0.06]);
  assert.deepEqual([grid.value(0, 0), grid.value(0, 1)], [bars.x[0], 0.4]);
  assert.deepEqual(grid.columnLabels, ['probability of being drawn', 'by the model itself']);
  assert.match(grid.describe(0, 0), /of being drawn, 40\.0 % by the model itself, rank 1/);
  assert.ok(facts.some(([term]) => term === 'Model’s own'));
  assert.deepEqual(
    numbers.x,
    bars.x.map((x, row) => Math.max(x, lines.x[row])),
    'numbers keep clear of the lines',
  );
  assert.ok(layout.xaxis.range[1] > Math.max(...numbers.x));
  assert.deepEqual(grid.geometry.at(0.9, 2.3), { row: 2, column: 0 });
  assert.equal(grid.geometry.at(0.1, 7), null);
});

test('an alternative goes on from its place by its id, whatever it spells', () => {
  const [{ grid }] = figures(PATH, { generate_step: 1 });
  assert.deepEqual(grid.choose(2, 0), { generate_path: [3, 2], generate_step: null });
  assert.deepEqual(figures(PATH)[0].grid.choose(4, 0), {
    generate_path: PATH,
    generate_step: null,
  });
});

test('the row is that of the token before, over all tokens so far', () => {
  const [
    choices,
    {
      grid,
      data: [bars],
      title,
    },
  ] = figures(PATH, { layer: 1, head: 1 });
  assert.equal(title, 'Layer 1, head 1');
  assert.equal(grid.columns, TOKENS.length + 2);
  assert.ok(Math.abs(bars.y.reduce((sum, weight) => sum + weight) - 1) < 1e-9);
  assert.match(
    plain(grid.describe(0, 0)),
    /^“<b>” at 6 attends to “<s>”, 0\.600 \(layer 1, head 1\)$/,
  );
  assert.deepEqual(grid.tokens(0, 2), { query: 6, key: 2 });
  assert.equal(choices.grid.rest.tint.length, TOKENS.length);
  assert.equal(choices.grid.query, null, 'it is none of the sentence');
  assert.equal(figures([3])[0].grid.query, TOKENS.length - 1);
  assert.match(figures(PATH, { head: 7 })[1].notice, /no such head/);
});

test('the experts are those of each layer, with the weights of the chosen ones', () => {
  const { grid, data } = figures(PATH)[2];
  assert.deepEqual([grid.rows, grid.columns], [1, 4]);
  assert.deepEqual(
    [grid.value(0, 2), grid.chosenWeight(0, 2), grid.chosenWeight(0, 1)],
    [0.6, 0.7, undefined],
  );
  assert.match(
    grid.describe(0, 2),
    /In layer 1 the router gives expert 2 probability 0\.600 .* chosen, with weight 0\.700/,
  );
  assert.deepEqual(data[1].text, ['.70', '.30']);
  assert.match(figures(PATH, {}, { isDense: true })[2].notice, /^tiny is dense: no routing\.$/);
});

test('the code asks for this one step, with the path before it forced', () => {
  const [choices, row] = figures(PATH, { generate_step: 1, generate_top_k: 40 });
  const { path, body } = callOf(sampleTrace(), choices.grid);
  assert.equal(path, '/api/v1/generate');
  assert.deepEqual(body, {
    model: 'tiny',
    text: 'it saw <b> it',
    temperature: 0.8,
    top_k: 40,
    seed: 0,
    forced: [3, 1],
    skip: 1,
    n_tokens: 2,
    n_alternatives: 4,
  });
  assert.deepEqual(row.grid.call.body.heads, [0]);
  assert.match(curlOf('http://x', callOf(sampleTrace(), choices.grid)), /"forced":\[3,1\]/);
  assert.equal(numbersOf(sampleTrace(), choices.grid, []).text, 'it saw <b> it');
});

test('a model that is no decoder names those that are, a press away', () => {
  const cards = [
    { id: 'a', kind: 'decoder' },
    { id: 'b', kind: 'encoder' },
    { id: 'c', kind: 'decoder' },
  ];
  for (const trace of [pairTrace(), fillTrace()]) {
    const state = stateWith([], { cards });
    const [{ notice, actions }, ...others] = figuresOf(generate, trace, state);
    assert.equal(others.length, 0);
    assert.match(notice, /tiny cannot continue/);
    assert.deepEqual(
      actions.map(({ label }) => label),
      ['a', 'c'],
    );
    assert.equal(actions[1].patch.model, 'c');
    assert.deepEqual(generate.controls(trace, { ...FRAME, ...state }), []);
    assert.deepEqual(generate.wording(trace).terms, []);
  }
  assert.match(figuresOf(generate, pairTrace(), stateWith([]))[0].notice, /No model here does/);
});

test('a seed is any whole number that the server takes', () => {
  const { generate_seed: field } = generate.fields;
  assert.deepEqual(['4711', String(Number.MAX_SAFE_INTEGER)].map(field.read), [
    4711,
    Number.MAX_SAFE_INTEGER,
  ]);
  assert.deepEqual(['-1', '1e99', 'luck'].map(field.read), [undefined, undefined, undefined]);
  const seed = generate
    .controls(sampleTrace(), { ...FRAME, ...stateWith([]), generate_seed: 4711 })
    .find(({ label }) => label === 'Seed');
  assert.deepEqual(
    [seed.kind, seed.value, seed.least, seed.most],
    ['integer', 4711, 0, Number.MAX_SAFE_INTEGER],
  );
});

test('what is asked for leaves out what is not set', () => {
  const of = (state) =>
    subjectOf(sampleTrace(), { ...standardsOf(generate.fields), ...state }).sampling;
  assert.deepEqual(of({}), { temperature: 0.8, seed: 0 });
  assert.deepEqual(of({ generate_top_k: 3, generate_top_p: 0.5, generate_seed: 4.7 }), {
    temperature: 0.8,
    top_k: 3,
    top_p: 0.5,
    seed: 4,
  });
  assert.ok(isNatural({ sampling: { temperature: 1, seed: 9 } }));
  assert.ok(!isNatural({ sampling: { temperature: 1, seed: 0, top_k: 3 } }));
});

test('a text that is over says why', () => {
  const trace = { ...sampleTrace(), card: { max_tokens: 8 } };
  assert.equal(whyOver(trace, stepsOf([1, 2]), 256), '');
  assert.match(whyOver(trace, stepsOf([1, 4]), 256), /end token/);
  assert.match(whyOver(trace, stepsOf(PATH), 256), /at most 8 tokens/);
  assert.match(whyOver(trace, stepsOf([1, 2]), 2), /generates at most 2/);
  assert.equal(
    whyOver(trace, [{ ...stepOf(0, 4), is_special: false }], 256),
    '',
    'who writes </s> in letters does not end',
  );
});

test('every figure of a generated token keeps the contract', () => {
  for (const width of WIDTHS) assertContract(figures(PATH, { width }), width);
});
