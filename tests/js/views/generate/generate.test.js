import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { curlOf, callOf } from '../../../../static/js/api/request_code.js';
import { standardsOf } from '../../../../static/js/state/state.js';
import { VIEWS } from '../../../../static/js/views/view_registry.js';
import { followedSteps, whyOver } from '../../../../static/js/ui/generation.js';
import { numbersOf } from '../../../../static/js/ui/exports.js';
import { generate } from '../../../../static/js/views/generate/generate.js';
import { stepOf, stepsOf } from './sample.js';
import { figuresOf, plain, sampleTrace, tensor, TOKENS } from '../../sample.js';

const PATH = [3, 1, 5];
function stateWith(path, more = {}, options = {}) {
  const generation = {
    steps: stepsOf(path, options),
    isReading: false,
    isWriting: false,
    problem: null,
    most: 256,
  };
  return {
    ...standardsOf(VIEWS.find(({ id }) => id === 'generate').fields),
    generate_path: path,
    generation,
    ...more,
  };
}

const figures = (path, more, options) =>
  figuresOf(generate, sampleTrace(), stateWith(path, more, options));

test('before generation the page shows the prediction, and a chosen bar starts the text', () => {
  const [{ grid, data }, ...others] = figures([]);
  equal(others.length, 0);
  const [bars] = data;
  deepEqual(bars.x, [0.5, 0.25, Math.fround(0.0001)]);
  const paths = grid.rowLabels.map((_, row) => grid.choose(row, 0).generate_path);
  deepEqual(paths, [[6], [9], [5]]);
  const sampled = tensor(['query', 'rank'], [5, 3], (at) => [0.8, 0.2, 0][at % 3]);
  const answers = { sampled: { trace: { analyses: { next_token: { sampled } } } } };
  const [cooler] = figures([], { generate_temperature: 0.5, answers });
  match(
    plain(cooler.grid.describe(0, 0)),
    /has probability 80\.0 % of being sampled, the model’s own is 50\.0 %, rank 1$/,
  );
});

test('with modified sampling both probabilities are shown, the model’s own as a line', () => {
  const [{ data, grid, facts, layout }] = figures([3], {}, { temperature: 0.5 });
  const [bars, lines, numbers] = data;
  ok(bars.x[0] > 0.4);
  const owns = lines.x.filter((_, at) => at % 3 === 0);
  deepEqual(owns, [0.4, 0.3, 0.2, 0.06]);
  deepEqual([grid.value(0, 0), grid.value(0, 1)], [bars.x[0], 0.4]);
  deepEqual(grid.columnLabels, ['probability of being sampled', 'the model’s own']);
  match(grid.describe(0, 0), /of being sampled, the model’s own is 40\.0 %, rank 1/);
  ok(facts.some(([term]) => term === 'Model’s own'));
  deepEqual(
    numbers.x,
    bars.x.map((x, row) => Math.max(x, owns[row])),
    'numbers keep clear of the lines',
  );
  ok(layout.xaxis.range[1] > Math.max(...numbers.x));
  deepEqual(grid.geometry.at(0.9, 2.3), { row: 2, column: 0 });
  equal(grid.geometry.at(0.1, 7), null);
});

test('an alternative continues from its place by its id', () => {
  const [{ grid }] = figures(PATH, { generate_step: 1 });
  deepEqual(grid.choose(2, 0), { generate_path: [3, 2], generate_step: null });
  deepEqual(figures(PATH)[0].grid.choose(4, 0), { generate_path: PATH, generate_step: null });
});

test('the row is that of the token before, over all tokens so far', () => {
  const [choices, { grid, data, title }] = figures(PATH, { layer: 1, head: 1 });
  const [bars] = data;
  equal(title, 'Layer 1, head 1');
  equal(grid.columns, TOKENS.length + 2);
  ok(Math.abs(bars.y.reduce((sum, weight) => sum + weight) - 1) < 1e-9);
  match(plain(grid.describe(0, 0)), /^“<b>” at 6 attends to “<s>”, 0\.600/);
  deepEqual(grid.tokens(0, 2), { query: 6, key: 2 });
  equal(choices.grid.rest.tint.length, TOKENS.length);
  equal(choices.grid.query, null, 'it is none of the sentence');
  equal(figures([3])[0].grid.query, TOKENS.length - 1);
});

test('the code asks for this one step, with the path before it forced', () => {
  const [choices, row] = figures(PATH, { generate_step: 1, generate_top_k: 40 });
  const { path, body } = callOf(sampleTrace(), choices.grid);
  equal(path, '/api/v1/generate');
  deepEqual(body, {
    model: 'tiny',
    text: 'it saw <b> it',
    temperature: 0.8,
    top_k: 40,
    top_p: 0.9,
    seed: 0,
    forced: [3, 1],
    skip: 1,
    n_tokens: 2,
    n_alternatives: 4,
  });
  deepEqual(row.grid.call.body.heads, [0]);
  match(curlOf('http://x', callOf(sampleTrace(), choices.grid)), /"forced":\[3,1\]/);
  equal(numbersOf(sampleTrace(), choices.grid, []).text, 'it saw <b> it');
});

test('a finished text gives the reason', () => {
  const trace = { ...sampleTrace(), card: { max_tokens: 8 } };
  equal(whyOver(trace, stepsOf([1, 2]), 256), '');
  match(whyOver(trace, stepsOf([1, 4]), 256), /end token/);
  match(whyOver(trace, stepsOf(PATH), 256), /at most 8 tokens/);
  match(whyOver(trace, stepsOf([1, 2]), 2), /generates at most 2/);
  equal(
    whyOver(trace, [{ ...stepOf(0, 4), is_special: false }], 256),
    '',
    'who writes </s> in letters does not end',
  );
});

test('the finished steps of a calculation are marked right and wrong', () => {
  const characters = [...'2*23=', ...'40+7=46'];
  const steps = stepsOf([...characters, '</s>'].map(() => 0)).map((step, index) => ({
    ...step,
    text: characters[index] ?? '</s>',
    is_special: index === characters.length,
  }));
  const marksAfter = (count) => {
    const state = stateWith([]);
    state.generation.steps = steps.slice(0, count);
    const trace = sampleTrace();
    trace.tokens = trace.tokens.slice(0, 1).map((token) => ({ ...token, is_special: true }));
    const [{ facts }] = figuresOf(generate, trace, state);
    return facts.filter(([name]) => name.startsWith('='));
  };
  deepEqual(marksAfter(9), []);
  deepEqual(marksAfter(10), [['= 40+7', '✗ wrong: 47, not 46']]);
  deepEqual(marksAfter(13), [
    ['= 40+7', '✗ wrong: 47, not 46'],
    ['= 46', '✗ wrong: 46, not 47'],
  ]);
});

test('while more tokens arrive, panels and marks are of those that were followed', () => {
  const steps = stepsOf(PATH);
  const state = { generate_path: [steps[0].id] };
  deepEqual(followedSteps({ steps, isWriting: true }, state), steps.slice(0, 1));
  deepEqual(followedSteps({ steps, isWriting: false }, state), steps);
});

test('the switches of a search are folded away, and say how many are set', () => {
  const searching = (more) =>
    generate
      .controls(sampleTrace(), stateWith([], more))
      .filter(({ isMore }) => isMore)
      .map(({ name, isSet, fold }) => [name, Boolean(isSet), fold]);
  deepEqual(searching({}), [
    ['generate_search', false, 'Search'],
    ['generate_stop', false, 'Search'],
    ['generate_penalty', false, 'Search'],
  ]);
  deepEqual(
    searching({ generate_search: 'beams', generate_penalty: 1.5 }).map(([name, isSet]) => [
      name,
      isSet,
    ]),
    [
      ['generate_search', true],
      ['generate_width', false],
      ['generate_stop', false],
      ['generate_penalty', true],
    ],
  );
  equal(searching({ generate_search: 'best' })[0][1], false, 'no model here rates its texts');
});
