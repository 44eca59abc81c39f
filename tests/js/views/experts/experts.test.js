import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';

import { experts } from '../../../../static/js/views/experts/experts.js';
import {
  pathOverlap,
  readRouting,
  listStages,
} from '../../../../static/js/views/experts/routing.js';
import {
  figuresOf,
  FRAME,
  near,
  pairTrace,
  plain,
  sampleTrace,
  TARGET_TOKENS,
  tensor,
  TOKENS,
} from '../../sample.js';
import { CARD, CHOSEN, routedTrace } from './sample.js';

const COUNT = TOKENS.length;
const ANSWERS = { card: { trace: { card: CARD } } };

const route = (trace, state) => figuresOf(experts, trace, { experts_show: 'route', ...state });
const specialities = (trace, state) =>
  figuresOf(experts, trace, {
    experts_show: 'specialities',
    answers: { card: { trace: { card: trace.card } } },
    ...state,
  });

test('probabilities stand by expert and token, the chosen ones marked with their weight', () => {
  const [{ data, grid }] = figuresOf(experts, sampleTrace());
  const [map, marks] = data;
  equal(map.z.length, 4);
  ok(map.z[1].every((probability) => Math.abs(probability - 0.3) < 1e-6));
  equal(marks.x.length, COUNT * 2);
  ok(marks.text.includes('.63') && marks.text.includes('.38'));
  ok(grid.chosenWeight(0, 3) > 0 && grid.chosenWeight(1, 3) > 0);
  equal(grid.chosenWeight(2, 3), undefined);
  match(grid.describe(0, 1), /probability 0\.500 .*: chosen, with weight 0\.625/);
  match(grid.describe(3, 1), /not chosen/);
});

test('the labels of 64 experts do not run into each other, and loads have room or are left out', () => {
  const trace = routedTrace();
  const name = 'decoder.layers.0.experts.router_probs';
  const tensors = {
    ...trace.tensors,
    [name]: tensor(['query', 'expert'], [COUNT, 64], () => 1 / 64, Float64Array),
  };
  const drawn = (width) => figuresOf(experts, { ...trace, tensors }, { layer: 0, width })[0];
  const loads = ({ data }) => data.filter(({ text }) => text?.some((word) => word.endsWith('%')));
  const narrow = drawn(340);
  const { tickvals, domain } = narrow.layout.xaxis;
  const { l, r } = narrow.layout.margin;
  const cell = ((340 - l - r) * (domain[1] - domain[0])) / 64;
  ok((tickvals[1] - tickvals[0]) * cell >= 18);
  deepEqual(loads(narrow), []);
  const wide = drawn(900);
  equal(wide.layout.yaxis.tickvals.length, 64);
  equal(loads(wide)[0].text.length, 64);
  ok(wide.layout.height < 1100);
});

test('either stack of an encoder–decoder with experts can be shown, with its own tokens', () => {
  const trace = pairTrace();
  deepEqual(experts.places(trace), [], 'a dense one has nothing to choose from');
  const routed = Object.entries(sampleTrace().tensors).filter(([site]) =>
    site.includes('.experts.'),
  );
  for (const [stack, count] of Object.entries({ encoder: COUNT, decoder: TARGET_TOKENS.length })) {
    for (const [
      site,
      {
        shape: [, columns],
        data,
        ...array
      },
    ] of routed) {
      const own = { shape: [count, columns], data: data.slice(0, count * columns) };
      trace.tensors[site.replace('decoder', stack)] = { ...array, ...own };
    }
  }
  const places = experts.places(trace).map(({ id }) => id);
  deepEqual(places, ['encoder', 'decoder']);
  const seen = ({ grid }) => [grid.columns, grid.sides.rows, grid.request.capture];
  const [encoder] = figuresOf(experts, trace, { where: 'encoder' });
  deepEqual(seen(encoder), [COUNT, 'source', ['encoder.layers.1.experts.*']]);
  const [decoder, ...others] = figuresOf(experts, trace);
  deepEqual(seen(decoder), [TARGET_TOKENS.length, 'target', ['decoder.layers.1.experts.*']]);
  deepEqual(others, []);
});

test('router entropy stands token by token in a strip up to log₂ n, its mean and the balance loss beside the title', () => {
  for (const width of [358, 900]) {
    const [{ data, layout, facts }] = figuresOf(experts, sampleTrace(), { width });
    const along = width === 358 ? data.at(-1).x : data.at(-1).y;
    equal(along.length, COUNT);
    ok(along.every((entropy) => Math.abs(entropy - 1.1421 / Math.LN2) < 1e-3));
    deepEqual((layout.yaxis3 ?? layout.xaxis3).range, [0, 2]);
    deepEqual(facts[1], ['balance loss', '1.600']);
  }
});

test('pointing at an expert tints the sentence by what it takes of every token', () => {
  const [{ grid }] = figuresOf(experts, routedTrace(), { layer: 0 });
  const tint = Array.from(grid.tint(0, 2), (weight) => Number(weight.toFixed(2)));
  deepEqual(tint, [0.75, 0.6, 0, 0.5, 0.8]);
  const [{ grid: down }] = figuresOf(experts, routedTrace(), { width: 358, layer: 0 });
  deepEqual(down.tint(2, 0), grid.tint(0, 2));
  equal(grid.ofToken(1).tint[1], 1);
  for (const experts_show of ['routing', 'route', 'specialities']) {
    const state = { experts_show, answers: ANSWERS };
    for (const figure of figuresOf(experts, routedTrace(), state))
      equal(figure.grid.ceiling, 1, 'a tint counts up to 1');
  }
});

test('token by token every choice stands with its expert and weight, and can be walked', () => {
  const [{ data, grid }] = route(routedTrace(), { query: 2, layer: 1 });
  const [map, numbers] = data;
  deepEqual([map.z.length, ...map.z.map((row) => row.length)], [4, 5, 5, 5, 5]);
  const first = CHOSEN[0].map(([expert]) => String(expert));
  deepEqual(numbers.text.slice(0, 5), first);
  deepEqual([grid.value(2, 4), Number(grid.chosenWeight(2, 4).toFixed(2))], [1, 0.65]);
  for (const [width, axis] of Object.entries({ 700: 'yaxis', 358: 'xaxis' })) {
    const [{ layout }] = route(routedTrace(), { width: Number(width) });
    deepEqual(layout[axis].ticktext, grid.rowLabels, 'layer and choice, uncut');
  }
  deepEqual(grid.start, { row: 2, column: 2 });
  match(plain(grid.describe(3, 4)), /^“it” at 4 goes .* layer 1; choice 2 is expert 3$/);
  deepEqual(grid.choose(3, 4), { query: 4, layer: 1 });
  const [{ grid: down }] = route(routedTrace(), { width: 358 });
  deepEqual([down.rows, down.columns, down.value(4, 2)], [5, 4, 1]);
});

test('specialities: every kind of token by expert, and the tokens that it takes most', () => {
  const [{ data, grid }] = specialities(routedTrace(), { layer: 0 });
  const [map] = data;
  deepEqual(grid.columnLabels, ['all tokens', 'punctuation', 'start of word']);
  deepEqual(map.z[0], [0.6, 0.9, 0.2]);
  equal(
    grid.describe(0, 1),
    'Expert 0 takes 90.0 % of the tokens of the kind “punctuation”; most of all “it” “<b>” “‹line break›” (layer 0)',
  );
  equal(grid.call.path, '/api/v1/models/tiny');
});

test('specialities: the full card is asked for, and waited for', () => {
  const state = { ...FRAME, experts_show: 'specialities' };
  deepEqual(experts.asks(routedTrace(), state), { card: { card: 'tiny' } });
  deepEqual(experts.asks(routedTrace(), { ...state, experts_show: 'routing' }), {});
  deepEqual(experts.asks(sampleTrace({ isDense: true }), state), {});
  for (const { notice } of specialities(routedTrace(), { answers: { card: { isWaiting: true } } }))
    equal(notice, 'Reading…');
});

test('the balance loss is n times the sum of load and mean probability, by hand', () => {
  const { balanceLoss, load, entropies, mostEntropy, meanEntropy } = readRouting(
    sampleTrace().tensors,
    1,
  );
  deepEqual(load, [0.5, 0.5, 0, 0]);
  ok(Math.abs(balanceLoss - 4 * (0.5 * 0.5 + 0.5 * 0.3)) < 1e-6);
  near(mostEntropy, 2);
  for (const entropy of entropies)
    ok(Math.abs(entropy - meanEntropy) < 1e-12 && entropy > 1 && entropy < mostEntropy);
});

test('the path of a token overlaps fully with itself, and with another by the smaller weights', () => {
  const stages = listStages(routedTrace());
  const shared = pathOverlap(stages, 1);
  near(shared[1], 1);
  near(shared[0], (0.6 + 0.25 + 0) / 2);
  near(shared[2], (0 + 0.625 + 0.05) / 2);
  near(pathOverlap(stages, 0)[1], shared[0]);
});
