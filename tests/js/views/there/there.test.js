import { deepEqual, doesNotMatch, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { there } from '../../../../static/js/views/there/there.js';
import { why } from '../../../../static/js/views/derivation/why.js';
import { FRAME, near, plain, sampleTrace, tensor } from '../../sample.js';
import { assertContract, WIDTHS } from '../view_contract.js';
import { asked } from '../derivation/sample.js';

const SITE = 'decoder.layers.1.self_attention.weights';
const CARD = { kind: 'decoder', n_layers: 2, n_heads: 2, analyses: ['score_attribution'] };
const trace = { ...sampleTrace(), card: CARD };
const COUNT = trace.tokens.length;
const KEY = COUNT - 2;

const part = (name, kind, layer, head, edge) => ({ name, kind, layer, head, edge });

/** The parts of `layers` layers of two heads and a network each, for one side. */
function partsOf(layers, reader) {
  const later = Array.from({ length: layers }, (_, layer) => [
    part(`${layer}.0`, 'head', layer, 0, `${layer}.0→${reader}`),
    part(`${layer}.1`, 'head', layer, 1, `${layer}.1→${reader}`),
    part(`${layer}.ff`, 'network', layer, null, `${layer}.ff→${reader}`),
  ]);
  const first = part('token', 'token', null, null, `tokens→${reader}`);
  return [
    first,
    part('position', 'position', null, null, null),
    ...later.flat(),
    part('constant', 'constant', null, null, null),
  ];
}

/** An answer whose key side has most from head 0.1, and whose query side has most from the token. */
function answerOf(layers = 1, sign = 1) {
  const [query, key] = [partsOf(layers, '1.0.q'), partsOf(layers, '1.0.k')];
  const n = key.length;
  const [querySide, keySide] = [new Float64Array(n), new Float64Array(n)];
  const data = Array.from({ length: n * n }, (_, at) => {
    const [a, b] = [Math.floor(at / n), at % n];
    const value = sign * (a === 0 && b === 3 ? 4 : Math.abs(Math.sin(at)) / n ** 2);
    querySide[a] += value;
    keySide[b] += value;
    return value;
  });
  const score = querySide.reduce((sum, value) => sum + value, 0);
  return {
    ...{ n_visible: COUNT, notes: [], score, remainder: 0, query_parts: query, key_parts: key },
    query_side: tensor(['query_part'], [n], (a) => querySide[a]),
    key_side: tensor(['key_part'], [n], (b) => keySide[b]),
    table: tensor(['query_part', 'key_part'], [n, n], (at) => data[at]),
  };
}

/** A pass in which the key has this weight. */
const passOf = (weight) => ({
  trace: {
    tensors: {
      [SITE]: tensor(['head', 'query', 'key'], [1, COUNT, COUNT], (at) =>
        at % COUNT === KEY ? weight : 0.01,
      ),
    },
  },
});

const stateOf = (answer, more = {}) => ({
  ...FRAME,
  there_cut: '',
  ...more,
  answers: { parts: { trace: { analyses: { score_attribution: answer } } }, ...more.answers },
});
const drawn = (state) =>
  there.panels(trace, state).map((panel) => there.figure(trace, { ...state, ...panel.state }));
const said = (state) => plain(there.wording(trace, state).answer.join(' '));

test('the strongest key of the row is asked for, then the cut of its strongest part', () => {
  const { parts, ...others } = there.asks(trace, { ...FRAME, there_cut: '', answers: {} });
  deepEqual(parts.score_attribution, {
    ...{ attention: 'decoder.layers.1.self_attention', head: 0, query: COUNT - 1, key: KEY },
  });
  deepEqual(others, {});
  const { first, cut } = there.asks(trace, stateOf(answerOf()));
  deepEqual(first.edits, [{ kind: 'cut', edges: ['0.1→1.0.k'] }]);
  deepEqual([first.capture, first.heads], [[SITE], [0]]);
  deepEqual(cut, first);
});

test('a part is called the reason only if the weight falls by half without it', () => {
  const told = (weight) => said(stateOf(answerOf(), { answers: { first: passOf(weight) } }));
  match(
    told(0.1),
    /looks from the second “it” at “b” because of what layer 0, head 1 wrote at “b”/,
  );
  match(
    told(0.1),
    /89 % of the lead of \+4\.\d+ on the key side, and without it the weight falls 0\.800 → 0\.100/,
  );
  match(told(0.6), /and without it the weight falls 0\.800 → 0\.600/);
  match(told(0.79), /but without it almost nothing changes: 0\.800 → 0\.790/);
  for (const weight of [0.6, 0.79]) doesNotMatch(told(weight), /because/);
  doesNotMatch(said(stateOf(answerOf())), /because|without/);
  match(told(0.1), /On the query side most comes from the second “it” itself \(\+4/);
});

test('a key below the mean is not said to be looked at', () => {
  match(
    said(stateOf(answerOf(1, -1))),
    /does not look from the second “it” at “b”: its score is −4/,
  );
});

test('pressing a part cuts its edge, and the weight stands before and after', () => {
  const [key, query, table] = drawn(stateOf(answerOf()));
  near(table.grid.value(0, 0), 4);
  const row = key.grid.rowLabels.indexOf('network 0');
  deepEqual(key.grid.choose(row, 0), { there_cut: '0.ff→1.0.k' });
  deepEqual(query.grid.choose(0, 0), { there_cut: 'tokens→1.0.q' });
  deepEqual(table.grid.choose(0, row), { there_cut: '0.ff→1.0.k' });
  deepEqual(key.grid.choose(key.grid.rowLabels.indexOf('position'), 0), {});
  const state = stateOf(answerOf(), {
    there_cut: '0.ff→1.0.k',
    answers: { first: passOf(0.1), cut: passOf(0.3) },
  });
  deepEqual(there.asks(trace, state).cut.edits[0].edges, ['0.ff→1.0.k']);
  deepEqual(drawn(state)[0].facts, [
    ['cut', 'network 0'],
    ['weight', '0.800 → 0.300'],
  ]);
  match(
    said(state),
    /Without the network of layer 0 on the key side the weight falls 0\.800 → 0\.300\./,
  );
});

test('an edge of another head is no cut of this one', () => {
  const state = stateOf(answerOf(), { there_cut: '0.ff→0.1.k' });
  deepEqual(there.asks(trace, state).cut.edits[0].edges, ['0.1→1.0.k']);
});

test('three hundred parts fold by layers, and no number is lost', () => {
  const answer = answerOf(100);
  const [key, query, table] = drawn(stateOf(answer));
  const sumOf = ({ rows, columns, value }) => {
    let sum = 0;
    for (let row = 0; row < rows; row += 1)
      for (let column = 0; column < columns; column += 1) sum += value(row, column);
    return sum;
  };
  for (const { grid } of [key, query, table]) {
    ok(grid.rows <= 17, `${grid.rows} rows`);
    near(sumOf(grid), answer.score, 1e-4);
  }
  match(key.grid.rowLabels.at(-1), /^layers 75–99, \d+ more$/);
  const edges = key.grid.choose(key.grid.rows - 1, 0).there_cut.split(' ');
  equal(`${edges.length}`, key.grid.rowLabels.at(-1).split(' ').at(-2));
  for (const width of WIDTHS) assertContract(drawn(stateOf(answer, { width })), width);
});

test('a model without the analysis says so, and a refusal is the notice', () => {
  const bare = { ...trace, card: { ...CARD, analyses: [] } };
  deepEqual(there.asks(bare, stateOf(answerOf())), {});
  match(there.figure(bare, stateOf(answerOf())).notice, /not available for this model/);
  const problem = {
    type: 'urn:headlight:problem:nothing-to-analyse',
    detail: 'score_attribution: the query at 0 sees one key only',
  };
  const { notice } = there.figure(trace, { ...FRAME, answers: { parts: { problem } } });
  equal(notice, 'The query at 0 sees one key only.');
});

test('“Why this cell” leads to the same cell', () => {
  const { trace: derived, answers } = asked();
  const state = { ...FRAME, why_unscaled: false, why_temperature: 1, answers, nth: 1 };
  const open = (card) =>
    why
      .figure({ ...derived, card: { ...derived.card, ...card } }, { ...state, step: 'product' })
      .actions?.find(({ patch }) => patch.view === 'there');
  deepEqual(open(CARD).patch, { view: 'there', query: COUNT - 1, key: KEY });
  equal(open({ analyses: [] }), undefined);
});
