import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';

import { callOf } from '../../../../static/js/api/request_code.js';
import { long } from '../../../../static/js/views/long/long.js';
import {
  divideIntoBins,
  binWidth,
  moved,
  regionAfter,
  readRegion,
  resolutionInWords,
  traceOfMaps,
  wholeOf,
  writeRegion,
  zoomed,
} from '../../../../static/js/views/long/region.js';
import { lossStrip, buildStrips } from '../../../../static/js/views/long/map.js';
import { ROLE_COLOURS } from '../../../../static/js/plot/colour.js';
import { overviewAsk } from '../../../../static/js/api/answers.js';
import { FRAME, sampleTrace } from '../../sample.js';

const sized = (count) => ({ queries: count, keys: count });

const SITE = 'decoder.layers.1.self_attention';

/** A map whose cells count up, of a text of some tokens. */
function overviewOf(count) {
  const trace = sampleTrace();
  const tokens = Array.from({ length: count }, (_, at) => trace.tokens[1 + (at % 4)]);
  const bins = Math.ceil(count / binWidth(count));
  const map = (scale) => ({
    axes: ['head', 'query_bin', 'key_bin'],
    shape: [2, bins, bins],
    data: Float32Array.from({ length: 2 * bins * bins }, (_, at) => at),
    scale: scale / (2 * bins * bins),
  });
  const tensors = { [`${SITE}.mean_map`]: map(0.5), [`${SITE}.max_map`]: map(1) };
  return { ...trace, id: 'f'.repeat(32), tokens, tensors, resolution: 256 };
}

const stateOf = (changes) => ({ ...FRAME, long_region: [], long_pool: 'mean', ...changes });

test('both axes of the map have bands of the roles of a conversation, by bins', () => {
  const trace = overviewOf(1000);
  const role = (/** @type {number} */ at) => (at < 500 ? 'user' : 'assistant');
  const chat = {
    ...trace,
    tokens: trace.tokens.map((token, at) => ({ ...token, role: role(at) })),
  };
  const coloursOf = (of) =>
    (long.figure(of, stateOf({ layer: 1, head: 0 })).layout?.shapes ?? []).map(
      ({ fillcolor }) => fillcolor,
    );
  const { user, assistant } = ROLE_COLOURS;
  deepEqual(coloursOf(chat), [user, assistant, user, assistant]);
  deepEqual(coloursOf(trace), []);
});

test('a region in a link comes back, and one outside the text is the whole', () => {
  deepEqual(readRegion([8, 16, 0, 8], sized(20)), { queries: [8, 16], keys: [0, 8] });
  for (const written of [[], [8, 8, 0, 8], [8, 21, 0, 8], [1, 2, 3]])
    deepEqual(readRegion(written, sized(20)), wholeOf(sized(20)));
  deepEqual(writeRegion({ queries: [8, 16], keys: [0, 8] }, sized(20)), [8, 16, 0, 8]);
  deepEqual(writeRegion(wholeOf(sized(20)), sized(20)), []);
});

test('zooming keeps its place in sight, and its sides in the text', () => {
  deepEqual(zoomed(wholeOf(sized(1000)), 0.5, sized(1000)), {
    queries: [250, 750],
    keys: [250, 750],
  });
  deepEqual(zoomed(wholeOf(sized(1000)), 0.5, sized(1000), { query: 1000, key: 0 }), {
    queries: [500, 1000],
    keys: [0, 500],
  });
  deepEqual(zoomed({ queries: [500, 1000], keys: [0, 500] }, 2, sized(1000)), wholeOf(sized(1000)));
  deepEqual(zoomed(wholeOf(sized(9)), 0.5, sized(9)), { queries: [1, 9], keys: [1, 9] });
  deepEqual(zoomed(wholeOf(sized(3)), 0.5, sized(3)), wholeOf(sized(3)));
});

test('moving stops at the ends of the text', () => {
  const region = { queries: [0, 100], keys: [880, 980] };
  deepEqual(moved(region, { down: 1 }, sized(1000)), { queries: [25, 125], keys: [880, 980] });
  deepEqual(moved(region, { down: -1, right: 1 }, sized(1000)), {
    queries: [0, 100],
    keys: [900, 1000],
  });
  deepEqual(
    regionAfter('Shift+ArrowDown', region, sized(1000)),
    moved(region, { down: 1 }, sized(1000)),
  );
  deepEqual(regionAfter('0', region, sized(1000)), wholeOf(sized(1000)));
  equal(regionAfter('x', region, sized(1000)), null);
});

test('bins follow the server’s rule, and say what they are', () => {
  equal(binWidth(256), 1);
  equal(binWidth(257), 2);
  deepEqual(divideIntoBins([100, 612]).slice(-2), [
    [608, 610],
    [610, 612],
  ]);
  deepEqual(divideIntoBins([100, 613]).slice(-1), [[610, 613]]);
  equal(resolutionInWords({ down: 64, across: 64 }, 'mean'), 'mean of 64 × 64 tokens');
  equal(resolutionInWords({ down: 64, across: 64 }, 'max'), 'maximum of 64 × 64 tokens');
  equal(resolutionInWords({ down: 1, across: 1 }, 'max'), 'exact');
});

test('the whole map is drawn from the trace of a long text; the future is empty', () => {
  const trace = overviewOf(700);
  const { grid, title } = long.figure(trace, stateOf({}));
  match(title, /mean of 3 × 3 tokens/);
  ok(Number.isNaN(grid.value(0, 1)) && grid.value(1, 1) > 0);
  const other = long.figure(trace, stateOf({ long_pool: 'max' })).grid;
  equal(other.value(5, 2), 2 * grid.value(5, 2));
});

test('a region asks for its tile, and waits for it', () => {
  const trace = overviewOf(700);
  const state = stateOf({ long_region: [600, 616, 0, 8] });
  deepEqual(Object.keys(long.asks(trace, stateOf({}))), ['rows']);
  const { tile } = long.asks(trace, state);
  deepEqual([tile.tile.attention, tile.tile.queries, tile.tile.keys], [SITE, '600:616', '0:8']);
  ok(long.figure(trace, state).isWaiting);
  const mean_map = { axes: [], shape: [16, 8], data: new Float32Array(128).fill(0.25), scale: 1 };
  const answers = { tile: { trace: { tensors: { mean_map } } } };
  const figure = long.figure(trace, { ...state, answers, long_pool: 'max' });
  match(figure.title, /exact/);
  equal(
    callOf(trace, figure.grid).path,
    `/api/v1/traces/${'f'.repeat(32)}/tile?attention=${SITE}&head=0&queries=600%3A616&keys=0%3A8&resolution=256`,
  );
  deepEqual(figure.grid.move('0', null), { long_region: [] });
});

test('a part of a text ends its colours at its own weights, and names the strongest truly', () => {
  const trace = overviewOf(700);
  const data = new Float32Array(128).fill(2 ** -12);
  data[37] = 2 ** -6;
  const mean_map = { axes: [], shape: [16, 8], data, scale: 1 };
  const answers = { tile: { trace: { tensors: { mean_map } } } };
  const state = stateOf({ long_region: [600, 616, 0, 8], long_cell: [601, 3], answers });
  const { data: drawn, facts, grid, summary } = long.figure(trace, state);
  equal(drawn[0].zmax, 2 ** -6);
  const told = Object.fromEntries(facts);
  match(told.Strongest, /at 604 → .* at 5, 0\.015625/);
  match(told.Marked, /at 601 → .* at 3, 0\.000244/);
  deepEqual(grid.start, { row: 1, column: 3 });
  equal(summary.split('; ').length, 4); // the region and three cells
});

test('the numbers of the rows are asked for once if one answer holds those of all layers', () => {
  const trace = overviewOf(700);
  const asked = (n_layers, n_heads) =>
    long.asks({ ...trace, card: { ...trace.card, n_layers, n_heads } }, stateOf({})).rows;
  deepEqual(asked(4, 6).capture[0], 'decoder.layers.*.self_attention.entropy');
  equal(asked(4, 6).layers, undefined);
  deepEqual(asked(64, 64).capture[0], `${SITE}.entropy`);
  deepEqual(asked(64, 64).layers, [1]);
});

test('the maps of all heads are as fine as one answer holds', () => {
  const bins = (n_layers, n_heads) =>
    overviewAsk({ kind: 'decoder', n_layers, n_heads }).resolution;
  deepEqual([bins(4, 6), bins(12, 12), bins(24, 16), bins(32, 32)], [256, 128, 96, 48]);
  const overview = overviewOf(700);
  const { tensors } = traceOfMaps(overview, stateOf({ long_pool: 'max' }));
  deepEqual(Object.keys(tensors), [`${SITE}.weights`]);
  equal(tensors[`${SITE}.weights`], overview.tensors[`${SITE}.max_map`]);
});

test('the numbers of the rows are means of their bins, in their own units', () => {
  const named = (shape, data) => ({ axes: [], shape, data, scale: 1 });
  const tensors = {
    [`${SITE}.entropy`]: named(
      [2, 4],
      [0, 0, 0, 0, 1, 3, 5, 7].map((x) => x * Math.LN2),
    ),
  };
  const bins = [
    [0, 2],
    [2, 4],
  ];
  const [entropy, first] = buildStrips(tensors, SITE, 1, bins);
  deepEqual([...entropy.values].map(Math.round), [2, 6]);
  ok(Number.isNaN(first.values[0]));
  const { values } = lossStrip(named([3], [1, 2 ** -4, 2 ** -3]), bins);
  deepEqual([...values].map(Math.round), [2, 3]);
  equal(buildStrips({}, 'decoder.layers.0.cross_attention', 0, bins).length, 2);
});

test('a line in sight marks the trained length through the curves, the loss among them', () => {
  const trace = overviewOf(700);
  trace.card = { ...trace.card, kind: 'decoder', trained_tokens: 300 };
  const { layout, facts } = long.figure(trace, stateOf({}));
  const lines = layout.shapes.filter(({ type }) => type === 'line');
  deepEqual(
    lines.map(({ xref }) => xref),
    ['paper', undefined],
  );
  ok(facts.some(([term]) => term === 'Dashed line'));
  const mean_map = { axes: [], shape: [16, 8], data: new Float32Array(128).fill(0.25), scale: 1 };
  const answers = { tile: { trace: { tensors: { mean_map } } } };
  const later = long.figure(trace, stateOf({ long_region: [600, 616, 400, 408], answers }));
  deepEqual(later.layout.shapes, []);
  ok(later.facts.every(([term]) => term !== 'Dashed line'));
  deepEqual(long.asks(trace, stateOf({})).rows.predictions, { top: 1, following: true });
});
