import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { callsOf, pythonOf } from '../../../../static/js/api/request_code.js';
import { circuit } from '../../../../static/js/views/circuit/circuit.js';
import { listNodes, unfoldedNodes } from '../../../../static/js/views/circuit/map.js';
import { cutsIn, cutting } from '../../../../static/js/views/circuit/request.js';
import { FRAME, sampleTrace, tensor } from '../../sample.js';

const node = (name, kind, layer = null, heads = [], path = '') => ({
  name,
  kind,
  stack: 'decoder',
  layer,
  heads,
  path,
});
const writers = [
  node('tokens', 'tokens'),
  node('0.0', 'head', 0, [0], 'a0'),
  node('0.1', 'head', 0, [1], 'a0'),
  node('0.ff', 'feed_forward', 0, [], 'f0'),
];
const readers = [
  node('0.0.q', 'query', 0, [0], 'a0'),
  node('0.0-1.v', 'value', 0, [0, 1], 'a0'),
  node('0.ff', 'feed_forward', 0, [], 'f0'),
  node('logits', 'logits'),
];
const figures = {
  value: 0.9,
  interval: [0.8, 0.95],
  clean: 2,
  corrupted: -3,
  circuit: 1.5,
  clean_right: 1,
  corrupted_right: 0,
  circuit_right: 0.9,
  n_pairs: 1,
};
const edges = [
  { name: '0.0→logits', writer: 1, reader: 3, position: null, score: -2, loss: 0.5 },
  { name: 'tokens→0.0-1.v', writer: 0, reader: 1, position: null, score: -1, loss: 0.2 },
  { name: 'tokens→0.ff', writer: 0, reader: 2, position: null, score: 0.5, loss: -0.1 },
];
const answer = {
  n_edges: 8,
  tokens: ['The', ' dogs', ' ran'],
  target_tokens: null,
  writers,
  readers,
  reasons: [],
  edges,
  chosen: figures,
  held_out: null,
  complement: 0.1,
  curve: [
    { n_edges: 0, n_on_paths: 0, faithfulness: 0, right: 0 },
    { n_edges: 3, n_on_paths: 3, faithfulness: 0.9, right: 1 },
    { n_edges: 8, n_on_paths: 8, faithfulness: 1, right: 1 },
  ],
};

/** A trace whose likeliest next words are these. */
function guessing(words) {
  const trace = sampleTrace();
  const probabilities = [0.5, 0.3];
  const rows = trace.tokens.length;
  return {
    ...trace,
    analyses: {
      ...trace.analyses,
      next_token: {
        texts: trace.tokens.map(() => words),
        ids: tensor(['query', 'rank'], [rows, 2], (at) => at),
        probabilities: tensor(['query', 'rank'], [rows, 2], (at) => probabilities[at % 2]),
      },
    },
  };
}

const here = guessing([' were', ' was']);
const there = guessing([' was', ' were']);

function stateOf(more = {}) {
  const answers = { other: { trace: there }, circuit: { trace: { circuit: answer } } };
  return { ...FRAME, circuit_text: 'another text', circuit_edges: 3, answers, ...more };
}

const drawn = (state, trace = here) =>
  circuit.panels(trace, state).map((panel) => circuit.figure(trace, { ...state, ...panel.state }));

test('the words that the two sentences decide between are asked for', () => {
  const { circuit: asked, other } = circuit.asks(here, stateOf());
  equal(other.text, 'another text');
  deepEqual(asked.circuit.pairs, [
    { clean: here.text, corrupted: 'another text', right: ' were', wrong: ' was' },
  ]);
  equal(asked.circuit.n_edges, 3);
});

test('nothing is asked before there is a second sentence', () => {
  const state = stateOf({ circuit_text: here.text, answers: {} });
  deepEqual(circuit.asks(here, state), { tasks: { tasks: true } });
  ok(circuit.figure(here, state).actions.length > 0);
});

test('a task needs no second sentence', () => {
  const state = stateOf({ circuit_text: '', circuit_task: 'agreement', answers: {} });
  deepEqual(Object.keys(circuit.asks(here, state)), ['tasks', 'circuit']);
  equal(circuit.asks(here, state).circuit.circuit.task, 'agreement');
});

test('choosing an edge cuts it, and choosing it again joins it', () => {
  const [map] = drawn(stateOf());
  deepEqual(map.grid.choose(0, 0), { circuit_cut: '0.0→logits' });
  const cut = stateOf({ circuit_cut: '0.0→logits' });
  deepEqual(drawn(cut)[0].grid.choose(0, 0), { circuit_cut: '' });
  deepEqual(cutsIn({ circuit_cut: 'a b' }), ['a', 'b']);
  deepEqual(cutting({ circuit_cut: 'a b' }, 'a'), { circuit_cut: 'b' });
});

test('a cut asks for the pass without the edge, and its words are said', () => {
  const cut = stateOf({ circuit_cut: '0.0→logits' });
  deepEqual(circuit.asks(here, cut).cut.edits, [
    { kind: 'cut', edges: ['0.0→logits'], text: 'another text' },
  ]);
  const answers = { ...cut.answers, cut: { trace: there } };
  const said = circuit.wording(here, { ...cut, answers }).answer.join(' ');
  match(said, /50.0 % → 30.0 %/);
});

test('the width of a line is its effect and its colour the sign', () => {
  const [{ data }] = drawn(stateOf());
  const lines = data.filter(({ mode }) => mode === 'lines');
  equal(lines.length, edges.length);
  ok(lines[0].line.width > lines[1].line.width && lines[1].line.width > lines[2].line.width);
  equal(lines[0].line.color, lines[1].line.color);
  ok(lines[0].line.color !== lines[2].line.color);
  const [cut] = drawn(stateOf({ circuit_cut: '0.0→logits' }))[0].data;
  equal(cut.line.dash, 'dot');
});

test('tokens are at the bottom, the prediction at the top, and shared keys at their first head', () => {
  const nodes = Object.fromEntries(listNodes(answer).map((each) => [each.id, each]));
  ok(nodes.tokens.y < nodes['0.0'].y && nodes['0.0'].y < nodes['0.ff'].y);
  ok(nodes['0.ff'].y < nodes.logits.y);
  ok(nodes['0.0'].isUsed && !nodes['0.1'].isUsed);
});

test('the table has one row for each edge, and names the call that made it', () => {
  const { grid } = drawn(stateOf())[1];
  deepEqual([grid.value(0, 0), grid.value(2, 0)], [2, -0.5]);
  equal(grid.call.path, `/api/v1/models/${here.model}/circuit`);
});

test('a refusal of the server is the notice', () => {
  const answers = {
    circuit: { problem: { title: 'No graph', detail: 'post' } },
    other: { trace: there },
  };
  const { notice, isWaiting } = circuit.figure(here, stateOf({ answers }));
  match(notice, /No graph/);
  ok(!isWaiting);
});

const byToken = {
  ...answer,
  edges: [
    { name: '0.0→logits@2', writer: 1, reader: 3, position: 2, score: -2, loss: 0.5 },
    { name: 'tokens→0.0-1.v@1', writer: 0, reader: 1, position: 1, score: -1, loss: 0.2 },
    { name: 'tokens→0.ff@2', writer: 0, reader: 2, position: 2, score: 0.5, loss: -0.1 },
  ],
};
const unfolded = () =>
  stateOf({
    circuit_map: 'tokens',
    answers: { other: { trace: there }, circuit: { trace: { circuit: byToken } } },
  });

test('by token a part has a place in the column of each token that it works at', () => {
  const { nodes, links } = unfoldedNodes(byToken);
  const at = Object.fromEntries(nodes.map((each) => [each.id, each]));
  ok(at['0.0@1'].x < at['0.0@2'].x);
  const titles = [0, 1, 2].map((position) => at[`token ${position}`].x);
  ok(at['0.0@1'].x > titles[0] && at['0.0@1'].x < titles[2]);
  ok(at['0.0@2'].x > titles[1]);
  ok(at['tokens@1'].y < at['0.0@1'].y && at['0.0@1'].y < at['logits@2'].y);
  const ends = links.map(({ from, to }) => [nodes[from].id, nodes[to].id]);
  deepEqual(ends, [['0.0@1', '0.0@2']]);
});

test('by token the circuit is asked for with positions, and said with the words', () => {
  const state = unfolded();
  equal(circuit.asks(here, state).circuit.circuit.by_position, true);
  const said = circuit.wording(here, state).answer.join(' ');
  match(
    said,
    /the value of head 0\.0–1 reads the embedding at “dogs” \(cut: .20 % of faithfulness\)/,
  );
});

test('the drawing offers the circuit as files of the API', () => {
  const { files, body } = drawn(stateOf())[0].grid.call;
  deepEqual(
    files.map(({ type }) => type),
    ['text/csv'],
  );
  equal(body.n_edges, 3);
});

test('tasks that a model cannot do are not offered, unless one is chosen', () => {
  const tasks = { trace: { tasks: [{ name: 'carrying', lacks: 'no digits' }] } };
  const offered = (/** @type {object} */ more) => {
    const state = stateOf({ answers: { ...stateOf().answers, tasks }, ...more });
    return circuit.controls(here, state)[0].options.map(({ id }) => id);
  };
  ok(!offered({}).includes('carrying') && offered({}).includes('indirect_objects'));
  ok(offered({ circuit_task: 'carrying' }).includes('carrying'));
});

test('the words that are told apart can be typed', () => {
  const state = stateOf({ circuit_right: 'ran', circuit_wrong: "'s" });
  const [pair] = circuit.asks(here, state).circuit.circuit.pairs;
  deepEqual([pair.right, pair.wrong], [' ran', "'s"]);
});

test('a cut of an edge is one at every token', () => {
  const state = { ...unfolded(), circuit_cut: '0.0→logits' };
  equal(drawn(state)[0].data.filter(({ opacity }) => opacity === 0.6).length, 1);
});

test('a cut in a task is measured with and without, on the same pairs', () => {
  const state = stateOf({ circuit_task: 'agreement', circuit_cut: '0.0→logits' });
  const { rest, whole } = circuit.asks(here, state);
  deepEqual(rest.circuit.edges, ['tokens→0.0-1.v', 'tokens→0.ff']);
  equal(whole.circuit.edges.length, 3);
  const of = (/** @type {number} */ value) => ({
    trace: { circuit: { ...answer, chosen: { ...figures, value, n_pairs: 32 } } },
  });
  const answers = { ...state.answers, rest: of(0.4), whole: of(0.9) };
  const said = circuit.wording(here, { ...state, answers }).answer.join(' ');
  match(said, /On all 32 pairs the circuit keeps 90\.0 %.*without 0\.0→logits it keeps 40\.0 %/);
});

test('a pair of a task opens as two sentences', () => {
  const pairs = [{ clean: 'a b', corrupted: 'a c', right: [' d', ' e'], wrong: ' f' }];
  const answers = { circuit: { trace: { circuit: { ...answer, pairs } } } };
  const controls = circuit.controls(here, stateOf({ circuit_task: 'names', answers }));
  const { patch } = controls.find(({ label }) => label === 'Open a pair as sentences');
  equal(patch.text, 'a b');
  deepEqual([patch.circuit_right, patch.circuit_wrong], ['d', 'f']);
});

test('a caption says what makes the circuit again, and what is cut', () => {
  const { grid } = drawn(stateOf({ circuit_cut: '0.0→logits' }))[0];
  match(
    grid.about,
    /another text.*“·were” against “·was”.*3 of 8 edges.*cut and dotted: 0\.0→logits/,
  );
});

test('the copied code repeats a cut, in a task on all pairs', () => {
  const callsIn = (/** @type {Record<string, string>} */ changes) =>
    callsOf(here, drawn(stateOf(changes))[0].grid);
  equal(callsIn({}).length, 1);
  const [, cut] = callsIn({ circuit_cut: '0.0→logits' });
  equal(cut.path, '/api/v1/trace');
  deepEqual([cut.body?.model, cut.body?.text], [here.model, here.text]);
  deepEqual(cut.body?.edits, [{ kind: 'cut', edges: ['0.0→logits'], text: 'another text' }]);
  const [, rest] = callsIn({ circuit_task: 'agreement', circuit_cut: '0.0→logits' });
  deepEqual(/** @type {any} */ (rest.body).edges, ['tokens→0.0-1.v', 'tokens→0.ff']);
  match(
    pythonOf('http://here', [{ path: '/a', body: null, changed: cut }, cut], { quantity: 'e' }),
    /show\(trace\)\nchanged = read/,
  );
});
