/** All heads as points. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import {
  medianOf,
  readFilter,
  measureHeads,
  shareOn,
} from '../../../../static/js/trace/head_measures.js';
import { findPlaces } from '../../../../static/js/trace/attention.js';
import { sky } from '../../../../static/js/views/sky/sky.js';
import { FRAME, headLabels, near, sampleTrace } from '../../sample.js';
import { assertContract } from '../view_contract.js';

const SITE = (layer) => `decoder.layers.${layer}.self_attention`;
/** A head whose score of `sink` is this, of a control of 0.2. */
const profiled = (sink, cost) => ({
  labels: sink > 0.5 ? ['sink'] : [],
  scores: { sink: { score: sink, control: 0.2 } },
  ...{ entropy: 4 * sink, distance: 2, cost, strongest: [] },
});
const PROFILES = {
  ...{ sentences: 64, text: ['sample.txt'], controlled: {}, examples: [], tokens: 640 },
  attentions: {
    [SITE(0)]: [profiled(0.1, 0.02), profiled(0.9, 0.01)],
    [SITE(1)]: [profiled(0.3, 0.3), profiled(0.6, 0)],
  },
};
const STATE = {
  ...FRAME,
  ...{ sky_x: '', sky_y: '', sky_size: '', sky_colour: 'label', sky_only: '' },
};
const ANSWERED = { ...STATE, answers: { card: { trace: { card: { heads: PROFILES } } } } };
const NOTHING = { roles: {}, effects: null, token: '', pair: null };
const measuredIn = (here) => {
  const trace = sampleTrace();
  return measureHeads(trace, findPlaces(trace)[0], PROFILES, { ...NOTHING, ...here });
};

test('a share is the mean weight over the queries that see the key and another, next to even attention', () => {
  const { tensors } = sampleTrace();
  const site = `${SITE(0)}.weights`;
  const first = shareOn(tensors[site], site, (key) => key === 0);
  // The second head puts 0.8 on the first token; the first one 0.8 at the second query, then 0.2 / query.
  near(first.shares[1], 0.8, 1e-4);
  near(first.shares[0], (0.8 + 0.1 + 0.2 / 3 + 0.05) / 4, 1e-4);
  near(first.control, (1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 4);
  equal(first.n, 4);
  const pair = shareOn(
    tensors[site],
    site,
    (key) => key === 2,
    (query) => query === 3,
  );
  near(pair.shares[0], 0.8, 1e-4);
  deepEqual([pair.n, pair.control], [1, 1 / 4]);
  ok(
    Number.isNaN(
      shareOn(
        tensors[site],
        site,
        (key) => key === 4,
        (query) => query === 1,
      ).shares[0],
    ),
  );
});

test('of a pair, each head has four shares, over the rows of one text and the keys of one', () => {
  const roles = { first: [false, true, true], second: [false, false, false, true, true] };
  const { measures } = measuredIn({ roles });
  const [within, back] = ['first_first', 'second_first'].map((id) =>
    measures.find((each) => each.id === id),
  );
  equal(back.title, 'B to A, here');
  const { data, shape, scale } = sampleTrace().tensors[`${SITE(0)}.weights`];
  const sum = (row) => [1, 2].reduce((all, key) => all + data[row * shape[2] + key], 0) * scale;
  near(back.values[0], (sum(3) + sum(4)) / 2, 1e-4);
  equal(within.over, 'over 2 rows of this text');
});

test('a point is two measures of its head, with their controls and texts, and opens it', () => {
  const figure = sky.figure(sampleTrace(), ANSWERED);
  assertContract([figure], FRAME.width);
  const [{ x, y, marker }] = figure.data;
  deepEqual(x, [0.1, 0.9, 0.3, 0.6]);
  deepEqual(y, [0.4, 3.6, 1.2, 2.4]);
  ok(marker.opacity.every((each) => each === marker.opacity[0]));
  deepEqual(figure.grid.choose(3, 0), { view: 'head', layer: 1, head: 1 });
  const facts = Object.fromEntries(figure.facts);
  match(facts['First token or word'], /64 sentences.*control 0\.2/);
  match(facts.Entropy, /middle has 2\.4/);
  match(figure.grid.tip(1, 0)[1], /first token or word.*0\.9.*control 0\.2/);
  ok(figure.grid.picture(0).ceiling > 0);
  const sized = sky.figure(sampleTrace(), { ...ANSWERED, sky_size: 'cost' });
  const [{ marker: grown }] = sized.data;
  ok(grown.size[2] > grown.size[0] && grown.size[0] > grown.size[3]);
});

test('a filter selects, and a box that is drawn is one', () => {
  const { grid } = sky.figure(sampleTrace(), ANSWERED);
  const patch = grid.brush({ x0: 0.5, x1: 0.95, y0: 2, y1: 3 });
  const { data, grid: selected } = sky.figure(sampleTrace(), { ...ANSWERED, ...patch });
  deepEqual(selected.only, [3]);
  const [shown, dimmed] = [data[0].marker.opacity[3], data[0].marker.opacity[0]];
  ok(shown > dimmed);
  const all = measuredIn({});
  const kept = (written) => [0, 1, 2, 3].filter(readFilter(written, all).holds);
  deepEqual(kept('sink >= 0.3, cost<0.2'), [1, 3]);
  deepEqual(kept('layer = 1, entropy ≤ 1.2'), [2]);
  deepEqual(kept(''), [0, 1, 2, 3]);
  match(readFilter('sinks > 1', all).problem, /“sinks > 1”.*sink/);
  equal(readFilter('sink > 1', all).problem, '');
});

test('a chosen pair, the roles of a chat and the effect on a word are measures of this text', () => {
  const { measures } = measuredIn({
    pair: { query: 3, key: 2 },
    roles: { user: [false, true, true, false, false] },
    effects: new Map([['decoder 0 1', -0.5]]),
    token: ' saw',
  });
  const of = (id) => measures.find((measure) => measure.id === id);
  near(of('pair').values[0], 0.8, 1e-4);
  near(of('pair').controls[0], 0.25);
  ok(of('role_user').controls[0] > 0);
  equal(of('effect').values[1], -0.5);
  ok(Number.isNaN(of('effect').values[0]));
  equal(
    measuredIn({}).measures.find(({ id }) => id === 'pair'),
    undefined,
  );
});

test('without a profile the measures are of this text, and the page says that this is little', () => {
  const labels = headLabels({
    [SITE(0)]: [{ label: 'previous', scores: { previous: 0.7 } }, { label: 'sink' }],
    [SITE(1)]: [{ label: 'sink', scores: { sink: 0.9 } }, { label: 'sink' }],
  });
  const trace = sampleTrace();
  const figure = sky.figure(
    { ...trace, analyses: { ...trace.analyses, head_labels: labels } },
    STATE,
  );
  match(figure.help, /too little/);
  near(figure.data[0].x[2], 0.9);
  equal(medianOf([NaN, 3, 1, 2]), 2);
});

test('each head is joined to its match in another model, and where they part most is told', () => {
  const pair = (layer, head, moved) => ({
    ...{ attention: SITE(layer), head, other_attention: SITE(1), other_head: head },
    ...{ similarity: 0.9, similar_by_chance: 0.5, moved, by_chance: 0.7 },
  });
  const texts = [{ text: 'He said “no”.', moved: 0.5, by_chance: 0.7 }];
  const figureOf = (matches, n_texts) => {
    const atlas = { other: 'tuned', matches, n_texts, texts };
    const theirs = { trace: { card: { heads: PROFILES } } };
    const answers = { ...ANSWERED.answers, matches: { trace: { atlas } }, theirs };
    return sky.figure(sampleTrace(), { ...ANSWERED, answers, sky_with: 'tuned' });
  };
  const asked = sky.asks(sampleTrace(), { ...ANSWERED, sky_with: 'tuned' });
  deepEqual(asked.matches.atlas.query, { other: 'tuned' });
  const { data, facts, actions, grid } = figureOf([pair(0, 0, 0.2), pair(1, 1, 0.6)], 60);
  deepEqual(data[0].x, [0.1, 0.3, null, 0.6, 0.6, null]);
  deepEqual(data[1].x, [0.3, 0.6]);
  const told = Object.fromEntries(facts)['Attention elsewhere in tuned'];
  match(told, /^40.% \(70.% by chance\) over 60 sentences; most of layer 1, head 1: 60.% \(70/);
  deepEqual(actions[0].patch.compare_model, 'tuned');
  const moved = grid.ofRows.find(({ label }) => label === 'attention that is elsewhere in tuned');
  deepEqual([0, 1, 2, 3].map(moved.value), [0.2, NaN, NaN, 0.6]);
  const instead = Object.fromEntries(figureOf([pair(0, 0, null)], 0).facts);
  match(instead['Against tuned'], /too few/);
});
