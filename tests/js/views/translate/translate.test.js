import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { swapsIn } from '../../../../static/js/views/translate/findings.js';
import { translate } from '../../../../static/js/views/translate/translate.js';
import { FRAME, pairTrace, plain } from '../../sample.js';

const WEIGHTS = [0.9, 0.1, 0, 0, 0, 0.25, 0.75, 0];

function matrix(data) {
  return { axes: ['target_word', 'source_word'], shape: [2, 4], scale: 1, data };
}

/** The pair of the sample, aligned: “il” with “it”, “vit” with “<b>”. */
function aligned(aligner = { layer: 1, head: 0, shift: 0 }) {
  const trace = pairTrace();
  const alignment = {
    weights: matrix(Float32Array.from(WEIGHTS)),
    links: matrix(Int32Array.from([1, 0, 0, 0, 0, 0, 1, 0])),
    aligner,
  };
  return { ...trace, analyses: { alignment } };
}

const state = (more = {}) => ({
  ...FRAME,
  translate_threshold: 0.05,
  answers: { alignment: { trace: aligned() } },
  ...more,
});
const figures = (more) =>
  translate
    .panels(pairTrace(), state(more))
    .map((panel) => translate.figure(pairTrace(), { ...state(more), ...panel.state }));

test('the lines and the map show the weights of words on words', () => {
  const [lines, map] = figures();
  for (const { grid } of [lines, map]) {
    deepEqual(
      [grid.rowLabels, grid.columnLabels],
      [
        ['il', 'vit'],
        ['it', 'saw', '<b>', 'it'],
      ],
    );
    WEIGHTS.forEach((weight, at) =>
      ok(Math.abs(grid.value(Math.floor(at / 4), at % 4) - weight) < 1e-6),
    );
  }
  const drawn = map.data[0].z.flat().map((weight) => Number(weight.toFixed(3)));
  deepEqual(drawn, WEIGHTS);
});

test('links are outlined in the map and said in words', () => {
  const [, { layout, grid }] = figures();
  const outlined = new Set(layout.shapes.map(({ x0, y0 }) => `${y0 + 0.5} ${x0 + 0.5}`));
  deepEqual([...outlined], ['0 0', '1 2']);
  equal(
    plain(grid.describe(0, 0)),
    '“il” attends to “it” at 1 with weight 0.900; the two are linked',
  );
  equal(plain(grid.describe(0, 1)), '“il” attends to “saw” with weight 0.100');
  equal(
    plain(grid.rest.readout),
    '2 of 2 words of the translation are linked, to 2 of 4 words of the sentence',
  );
});

test('the finding names the words that change places and those that become several', () => {
  const saying = (links) => {
    const trace = aligned();
    trace.analyses.alignment.links = matrix(Int32Array.from(links));
    trace.analyses.alignment.weights = matrix(Float32Array.from(links));
    return translate
      .wording(pairTrace(), state({ answers: { alignment: { trace } } }))
      .answer.map(plain);
  };
  match(
    saying([0, 0, 1, 0, 0, 1, 0, 0])[0],
    /^“il” and “vit” change places: .* “saw” comes before “<b>”\.$/,
  );
  deepEqual(saying([0, 1, 0, 0, 0, 1, 0, 0]), ['“saw” becomes “il” and “vit”.']);
  match(saying([1, 0, 0, 0, 0, 0, 1, 0])[0], /2 of 2 words/);
  const weak = aligned(); // its links have weights of less than a half
  weak.analyses.alignment.weights = matrix(Float32Array.from([0, 0, 0.4, 0, 0, 0.4, 0, 0]));
  weak.analyses.alignment.links = matrix(Int32Array.from([0, 0, 1, 0, 0, 1, 0, 0]));
  const told = translate.wording(pairTrace(), state({ answers: { alignment: { trace: weak } } }));
  match(told.answer[0], /2 of 2 words/);
});

test('the parts of a contraction change no places', () => {
  const [did, not] = [
    { text: 'didn', start: 3, end: 7 },
    { text: '’t', start: 7, end: 9 },
  ].map((token) => ({ ...token, is_special: false }));
  const [row, next] = [
    { row: 0, column: 1 },
    { row: 1, column: 0 },
  ];
  deepEqual(swapsIn({ rows: [did, did], columns: [did, not], links: [row, next] }), []);
  equal(swapsIn({ rows: [did, did], columns: [did, did], links: [row, next] }).length, 1);
});

test('a chosen word leads to the row that wrote it and to the row that it reads next', () => {
  const trace = pairTrace();
  const array = trace.tensors['decoder.layers.0.cross_attention.weights'];
  const [, queries, keys] = array.shape;
  // Head 1 of layer 0 looks from row 1 at token 3, to which the next word is linked.
  array.data[(queries + 1) * keys + 3] = 1 / array.scale;
  const { actions } = translate.figure(trace, { ...state({ query: 1 }), part: 'lines' });
  const [written, next] = actions.map(({ patch }) => patch);
  deepEqual([written.attention_rows, written.query, written.where], ['written', 1, 'cross']);
  deepEqual([next.attention_rows, next.query, next.layer, next.head], ['next', 1, 0, 1]);
  ok(figures({})[0].actions.every(({ patch }) => !patch.attention_rows));
});

test('a word marks and tints the pieces of both sentences', () => {
  const [{ grid }] = figures();
  deepEqual(grid.tokens(1, 2), { query: 2, key: 3 });
  deepEqual(
    [grid.rowOf(0), grid.rowOf(2), grid.columnOf(4)],
    [-1, 1, 3],
    'a special token is no word',
  );
  const { tint } = grid.ofRow(0);
  ok(Number.isNaN(tint[0]) && Math.abs(tint[1] - 0.9) < 1e-6);
  equal(grid.ofColumn(2).tint.length, 3);
});

test('a chosen word keeps its lines until it is chosen again', () => {
  const [{ grid }] = figures();
  equal(grid.chosen, undefined);
  deepEqual(grid.choose(1, 2), { query: 2, source: 3 });
  const [chosen] = figures({ query: 2 });
  deepEqual(chosen.grid.chosen, { row: 1 });
  deepEqual(chosen.grid.choose(1, 2), { query: null, source: null });
  ok(chosen.data.some(({ line }) => /, ?0\.25\)$/.test(line?.color)));
});

test('weak lines are left out below the threshold, never from the numbers', () => {
  const lines = (threshold) => figures({ translate_threshold: threshold })[0];
  const drawn = ({ data }) =>
    data
      .filter(({ mode, line }) => mode === 'lines' && line.width !== 14)
      .reduce((sum, { x }) => sum + x.length / 3, 0);
  deepEqual([drawn(lines(0.05)), drawn(lines(0.3))], [4, 2]);
  ok(Math.abs(lines(0.3).grid.value(0, 1) - 0.1) < 1e-6);
});

test('the alignment is requested, and with one’s own translation the model’s too', () => {
  deepEqual(translate.asks(pairTrace(), state()), { alignment: { analyses: ['alignment'] } });
  deepEqual(translate.asks(pairTrace(), state({ target: 'il vit' })).made, { target: null });
});

test('one’s own translation stands beside the model’s, which can be taken back', () => {
  const answers = {
    alignment: { trace: aligned() },
    made: { trace: { target: 'il <i>a</i> vu' } },
  };
  const [{ facts, actions }] = figures({ target: 'il vit', answers });
  deepEqual(facts.slice(0, 2), [
    ['Translated by', 'you'],
    ['The model’s own', 'il <i>a</i> vu'],
  ]);
  equal(actions[0].patch.target, null);
  equal(figures()[0].actions[0].patch.target, 'il vit', 'the model’s may be changed');
});
