import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { attention } from '../../../../static/js/views/attention/attention.js';
import {
  FRAME,
  longTrace,
  pairTrace,
  sampleTrace,
  TARGET_TOKENS,
  TOKENS,
  plain,
} from '../../sample.js';

const COUNT = TOKENS.length;

test('the map holds the head’s weights, row by query, and nothing for the future', () => {
  const { data } = attention.figure(sampleTrace(), FRAME);
  const [map] = data;
  equal(map.z.length, COUNT);
  map.z.forEach((row, query) =>
    row.forEach((weight, key) => {
      if (key > query) equal(weight, null);
      else ok(Math.abs(weight - sampleWeight(query, key)) < 1e-4, `${query}, ${key}`);
    }),
  );
});

function sampleWeight(query, key) {
  if (query === 0) return 1;
  return key === query - 1 ? 0.8 : 0.2 / query;
}

test('describes in words which token attends to which, and how much', () => {
  const { grid } = attention.figure(sampleTrace(), FRAME);
  equal(
    plain(grid.describe(2, 1)),
    '“saw” attends to “it” at 1 with weight 0.8000 (layer 1, head 0)',
  );
  equal(
    plain(grid.describe(4, 4)),
    '“it” at 4 attends to itself with weight 0.0500 (layer 1, head 0)',
  );
  equal(
    plain(grid.describe(1, 3)),
    '“it” at 1 cannot attend to “<b>”, which comes later (layer 1, head 0)',
  );
  equal(
    plain(grid.rest.readout),
    '“it” at 4 attends most to “<b>” with weight 0.800 (layer 1, head 0)',
  );
});

test('the chosen query is the row that tints the sentence', () => {
  const { grid } = attention.figure(sampleTrace(), { ...FRAME, query: 2 });
  equal(grid.chosen.row, 2);
  ok(Math.abs(grid.rest.tint[1] - 0.8) < 1e-4);
  deepEqual(grid.choose(3, 1), { query: 3, key: 1 });
});

test('colours end at 1, or at the head’s own strongest weight', () => {
  const trace = sampleTrace();
  trace.tensors['decoder.layers.1.self_attention.weights'].data.fill(0.25 * 65535);
  equal(attention.figure(trace, FRAME).data[0].zmax, 1);
  const scaled = attention.figure(trace, { ...FRAME, range: 'head' });
  ok(Math.abs(scaled.data[0].zmax - 0.25) < 1e-4);
  equal(scaled.grid.ceiling, scaled.data[0].zmax);
});

test('cross-attention is shown first: target tokens as rows, source tokens as columns', () => {
  const state = { ...FRAME, attention_rows: 'next' };
  const { data, grid, title, layout } = attention.figure(pairTrace(), state);
  const [map] = data;
  equal(title, 'Cross-attention, layer 1, head 0');
  deepEqual([map.z.length, map.z[0].length], [TARGET_TOKENS.length, TOKENS.length]);
  deepEqual([grid.rowLabels[1], grid.columnLabels[2]], ['il', 'saw']);
  deepEqual([layout.yaxis.ticktext[1], layout.xaxis.ticktext[2]], ['il', 'saw']);
  deepEqual(grid.sides, { rows: 'target', columns: 'source' });
  deepEqual(grid.request, { capture: ['decoder.layers.1.cross_attention.weights'], heads: [0] });
  ok(
    map.z.flat().every((weight) => weight !== null),
    'nothing of the source is hidden',
  );
});

test('a word of a translation opens the row that wrote it, or the row that it reads next', () => {
  const rowFor = (query, attention_rows) => {
    const { grid } = attention.figure(pairTrace(), { ...FRAME, query, attention_rows });
    const { row } = grid.chosen;
    const keys = TOKENS.map((_, column) => grid.value(row, column));
    return [grid.rowLabels[row], keys.indexOf(Math.max(...keys)), grid.choose(row, 0).query];
  };
  // Row n of the sample looks at token 2 n of the source; “il” is written from row 0.
  deepEqual(rowFor(1), ['il', 0, 1]);
  deepEqual(rowFor(1, 'next'), ['il', 2, 1]);
  deepEqual(rowFor(2), ['vit', 2, 2]);
  const { grid, actions } = attention.figure(pairTrace(), { ...FRAME, query: 2 });
  ok(!grid.rowLabels.includes('<s>'), 'the first token is given');
  match(grid.rest.readout, /^The row that wrote “.?vit.?” attends most to/);
  equal(actions[0].patch.query, 1, 'the arithmetic is that of the row');
  const given = attention.figure(pairTrace(), { ...FRAME, query: 0 });
  match(given.grid.rest.readout, /given, not written/);
});

test('of a pair, the first row that is kept is open where the chosen token has none', () => {
  const roles = [undefined, 'first', 'first', 'second', 'second'];
  const tokens = TOKENS.map((token, at) => ({ ...token, role: roles[at] }));
  const openedBy = (query, attention_pair) => {
    const trace = { ...sampleTrace(), tokens };
    const { grid } = attention.figure(trace, { ...FRAME, query, attention_pair });
    return [grid.rowLabels[grid.chosen.row], grid.columnLabels, plain(grid.rest.readout)];
  };
  const [row, columns, readout] = openedBy(0, 'second_first');
  deepEqual([row, columns], ['<b>', ['it', 'saw']]);
  match(readout, /^“<b>” attends most to/);
  deepEqual(openedBy(4, 'second_first')[0], 'it');
});

test('the head that looks up the word just written names its rows by it, unless asked otherwise', () => {
  const trace = pairTrace();
  const aligner = { layer: 1, head: 0, shift: 0 };
  const rowsOf = (state, of = aligner) =>
    attention.figure({ ...trace, card: { ...trace.card, aligner: of } }, { ...FRAME, ...state })
      .grid.rows;
  equal(rowsOf({}), 3);
  equal(rowsOf({ head: 1 }), 2);
  equal(rowsOf({ attention_rows: 'written' }), 2);
  equal(rowsOf({}, { ...aligner, shift: 1 }), 2);
});

test('whole words of a translation are the mean of the rows that wrote their tokens', () => {
  const trace = pairTrace();
  const [start, il, vit] = trace.target_tokens;
  const tokens = [start, il, { ...vit, text: 'vit', end: 5 }];
  const pieces = { ...trace, target: 'ilvit', target_tokens: tokens };
  const plain = attention.figure(pieces, FRAME).grid;
  const { grid } = attention.figure(pieces, { ...FRAME, attention_words: true });
  const mean = (plain.value(0, 2) + plain.value(1, 2)) / 2;
  ok(Math.abs(grid.value(0, 2) - mean) < 1e-6);
  match(grid.made, /pieces are merged into words/);
});

test('a chosen place shows its own sentence on both axes', () => {
  const encoder = attention.figure(pairTrace(), { ...FRAME, where: 'encoder', source: 3 });
  deepEqual([encoder.grid.rows, encoder.grid.columns, encoder.grid.chosen.row], [5, 5, 3]);
  deepEqual(encoder.grid.choose(2, 0), { source: 2, key: 0 });
  ok(
    encoder.data[0].z.flat().every((weight) => weight !== null),
    'an encoder sees both ways',
  );
  const decoder = attention.figure(pairTrace(), { ...FRAME, where: 'decoder', query: 1 });
  deepEqual([decoder.grid.rows, decoder.grid.columns, decoder.grid.chosen.row], [3, 3, 1]);
  deepEqual(decoder.data[0].z[0].slice(1), [null, null], 'a decoder does not see what comes later');
});

test('a map whose labels are thinned keeps the title of its colours and says so beside it', () => {
  const trace = longTrace(60);
  const figure = (query) => attention.figure(trace, { ...FRAME, query });
  for (const query of [32, 33]) {
    const { labelled, layout } = figure(query);
    ok(layout.annotations.some(({ text }) => text === 'attention weight'));
    const { tickvals } = layout.yaxis;
    const steps = new Set(tickvals.slice(1).map((tick, before) => tick - tickvals[before]));
    match(labelled, steps.size === 1 ? /^Every (?:2nd|3rd|[4-9]th) label/ : /^Some labels/);
  }
  match(figure(33).labelled, /^Some labels/);
  equal(attention.figure(sampleTrace(), FRAME).labelled, undefined);
});
