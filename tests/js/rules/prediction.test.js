/** The next words, what speaks for one of them, and both with an edit. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import {
  chooseCell,
  collectEdits,
  corpusInWords,
  readEffects,
  guessesAt,
  partId,
  partOff,
  isPredicting,
  nextWords,
  predictionAsks,
  rivalOf,
  rowWith,
} from '../../../static/js/rules/prediction.js';
import { FILL_TEXT, fillTrace, FRAME, near, pairTrace, sampleTrace, tensor } from '../sample.js';

const CARD = {
  kind: 'decoder',
  n_layers: 2,
  n_heads: 2,
  analyses: ['next_token', 'logit_attribution'],
  moe: { n_experts: 4, top_k: 2, layers: [1] },
};
const TRACE = { ...sampleTrace(), card: CARD };
const PAIR = { ...pairTrace(), card: { ...CARD, kind: 'encoder-decoder', moe: null } };
const AT = { position: 4, row: 4 };
const sum = (row) => row.reduce((all, each) => all + each, 0);
const idsOf = (words) => words.map(({ id }) => id);

/** A pass that lists these tokens at every place. */
const passOf = (ids, probabilities) => ({
  ...TRACE,
  analyses: {
    next_token: {
      texts: TRACE.tokens.map(() => ids.map((id) => ` t${id}`)),
      ids: tensor(['query', 'rank'], [5, ids.length], (at) => ids[at % ids.length], Int32Array),
      probabilities: tensor(
        ['query', 'rank'],
        [5, ids.length],
        (at) => probabilities[at % ids.length],
        Float64Array,
      ),
    },
  },
});

test('the likeliest tokens come first, and the one that came is added to them', () => {
  const trace = passOf([7, 8, 9], [0.5, 0.3, 0.1]);
  deepEqual(idsOf(guessesAt(trace, 4, 2)), [7, 8], 'after the last token none came');
  deepEqual(idsOf(guessesAt(trace, 0, 2)), [7, 8, 5]);
  ok(Number.isNaN(guessesAt(trace, 0, 2)[2].probability), 'its probability is not listed');
  deepEqual(idsOf(guessesAt(trace, 2, 2)), [7, 8], 'the one that came is the likeliest');
  const listed = passOf([1, 2, 5], [0.5, 0.3, 0.1]);
  const [, , came] = guessesAt(listed, 0, 2);
  deepEqual([came.id, came.probability], [5, 0.1]);
  deepEqual(guessesAt(trace, 5, 2), [], 'there is no such place');
  deepEqual(guessesAt({ ...TRACE, analyses: {} }, 4, 2), []);
});

test('at a mask the words that fit are told, not the mask', () => {
  const trace = fillTrace();
  deepEqual(idsOf(guessesAt(trace, 2, 3)), [6, 9, 5]);
  deepEqual(idsOf(guessesAt(trace, 3, 2)), [6, 9, 7], 'elsewhere the token of the place itself');
  equal(trace.text, FILL_TEXT);
});

test('a reward model and a long text predict nothing', () => {
  ok(isPredicting(TRACE));
  ok(!isPredicting({ ...TRACE, card: { ...CARD, analyses: ['reward'] } }));
  ok(!isPredicting({ ...TRACE, resolution: 64 }));
  ok(!isPredicting({ ...TRACE, analyses: {} }));
  const rating = { ...TRACE, card: { ...CARD, analyses: ['reward', 'logit_attribution'] } };
  deepEqual(predictionAsks(rating, { ...FRAME, off: 'head decoder 0 0' }, AT), {});
});

test('the reasons of the chosen prediction are asked for, of models that have them', () => {
  const card = { ...CARD, analyses: ['next_token', 'reasons', 'logit_attribution'] };
  const asks = (state, trace = { ...TRACE, card }) =>
    predictionAsks(trace, { ...FRAME, ...state }, AT);
  deepEqual(asks({}), {
    next_why: { capture: [], analyses: ['reasons'], logit_difference: { position: 4 } },
  });
  deepEqual(asks({ token: 0, against: 9 }).next_why.logit_difference, {
    ...{ position: 4, token: 0, against: 9 },
  });
  deepEqual(asks({ token: 9, against: 9 }).next_why.logit_difference, { position: 4, token: 9 });
  deepEqual(asks({}, TRACE), {});
  const off = asks({ off: 'head decoder 1 0' }, TRACE);
  deepEqual(Object.keys(off), ['next_edited']);
});

test('an edited pass is asked for once the rival is known, and compared with the same one', () => {
  const card = { ...CARD, analyses: ['next_token', 'reasons', 'logit_attribution'] };
  const asks = (answers) =>
    predictionAsks({ ...TRACE, card }, { ...FRAME, off: 'head decoder 1 0', answers }, AT);
  deepEqual(Object.keys(asks({})), ['next_why'], 'it is not known yet');
  const { next_edited: edited } = asks(why({}));
  deepEqual(edited.logit_difference, { position: 4, token: 6, against: 9 });
  deepEqual(edited.predictions, { tokens: [6, 9] });
  deepEqual(edited.analyses, ['next_token', 'logit_attribution']);
  const refused = asks({ next_why: { problem: { message: 'too many heads' } } });
  deepEqual(refused.next_edited.analyses, ['next_token'], 'without reasons, the pass alone');
  const elsewhere = why({});
  elsewhere.next_why.trace.analyses.reasons.position = 2;
  deepEqual(Object.keys(asks(elsewhere)), ['next_why'], 'those of another place do not count');
});

test('one rival holds: the chosen one, or that of the reasons', () => {
  equal(rivalOf({ ...FRAME, against: 3 }), 3);
  equal(rivalOf({ ...FRAME, token: 3, against: 3, answers: why({}) }), 9);
  equal(
    rivalOf({ ...FRAME, isSaved: true, answers: why({}) }),
    null,
    'a saved page holds no other',
  );
  equal(rivalOf(FRAME), null);
});

test('a network can be switched off, too, and a part has the name that the map gives it', () => {
  const edits = (off) => collectEdits(TRACE, { ...FRAME, off }, 4);
  deepEqual(edits('network decoder 1'), [
    { kind: 'set', site: 'decoder.layers.1.experts.output', value: 0 },
  ]);
  equal(edits('network decoder 0')[0].site, 'decoder.layers.0.feed_forward.output');
  deepEqual(edits('network decoder 7'), []);
  const id = (site, layer, head) => partId({ site, layer, head });
  equal(id('decoder.layers.1.cross_attention.context', 1, 0), 'head cross 1 0');
  equal(id('encoder.layers.1.self_attention.context', 1, 2), 'head encoder 1 2');
  equal(id('decoder.layers.1.experts.output', 1, null), 'network decoder 1');
});

test('a head that is off may write its mean over a corpus', () => {
  const state = { ...FRAME, off: 'head decoder 1 0', off_to: 'mean' };
  const site = 'decoder.layers.1.self_attention.context';
  deepEqual(collectEdits(TRACE, state, 4), [{ kind: 'corpus_mean', site, heads: [0] }]);
  equal(collectEdits(TRACE, { ...state, off_to: 'resample' }, 4)[0].kind, 'resample');
});

test('edges that are cut are an edit while the circuit of this sentence is open', () => {
  const state = { ...FRAME, view: 'circuit', circuit_text: ' it was ', circuit_cut: 'a→b c→d@2' };
  deepEqual(collectEdits(TRACE, state, 4), [
    { kind: 'cut', edges: ['a→b', 'c→d@2'], text: 'it was' },
  ]);
  for (const other of [{ view: 'word' }, { circuit_task: 'agreement' }, { circuit_text: '' }])
    deepEqual(collectEdits(TRACE, { ...state, ...other }, 4), []);
});

test('a head that is switched off is an edit; one that the model lacks is none', () => {
  const edits = (off, trace = TRACE) => collectEdits(trace, { ...FRAME, off }, 4);
  deepEqual(edits('head decoder 1 0'), [
    { kind: 'heads_off', heads: [0], layer: 1, where: 'decoder' },
  ]);
  const wrong = [
    ...['head decoder 2 0', 'head decoder 0 2', 'head encoder 0 0', 'head cross 0 0'],
    ...['layer decoder 0', 'head decoder 0', 'head decoder 0 0 0', 'head decoder -1 0', 'x', ''],
  ];
  for (const off of wrong) {
    deepEqual(edits(off), [], off);
    equal(partOff(TRACE, { ...FRAME, off }), null, off);
    ok(!('next_edited' in predictionAsks(TRACE, { ...FRAME, off }, AT)), off);
  }
  deepEqual(edits('head decoder 0 0', { ...TRACE, card: null }), []);
  for (const where of ['encoder', 'decoder', 'cross'])
    deepEqual(edits(`head ${where} 1 1`, PAIR), [
      { kind: 'heads_off', heads: [1], layer: 1, where },
    ]);
  deepEqual(edits('head encoder 0 1', { ...fillTrace(), card: { ...CARD, kind: 'encoder' } }), [
    { kind: 'heads_off', heads: [1], layer: 0, where: 'encoder' },
  ]);
});

test('a weight that is set is an edit of its row, in the head and at the query that are shown', () => {
  const state = { ...FRAME, layer: 1, head: 1, key: 2, weight: 0.5 };
  const [edit, ...others] = collectEdits(TRACE, state, 3);
  const { value, ...where } = edit;
  equal(others.length, 0);
  deepEqual(where, {
    kind: 'set',
    site: 'decoder.layers.1.self_attention.weights',
    heads: [1],
    positions: [3],
  });
  equal(value[2], 0.5);
  near(sum(value), 1, 1e-4);
  equal(value[4], 0, 'nothing of the future');
  deepEqual(collectEdits(TRACE, { ...state, weight: null }, 3), []);
  const cross = collectEdits(PAIR, { ...state, where: 'cross', key: 4 }, 1)[0];
  deepEqual(
    [cross.site, cross.positions, cross.value.length, cross.value[4]],
    ['decoder.layers.1.cross_attention.weights', [1], 5, 0.5],
  );
  const both = collectEdits(TRACE, { ...state, off: 'head decoder 0 0' }, 3);
  deepEqual(
    both.map(({ kind }) => kind),
    ['heads_off', 'set'],
  );
});

test('without a chosen key the strongest of the row is set, and never one of the future', () => {
  const cell = (state, query) => chooseCell(TRACE, { ...FRAME, ...state }, query);
  equal(cell({ head: 0 }, 3).key, 2, 'the first head looks at the token before');
  equal(cell({ head: 1 }, 3).key, 0);
  equal(cell({ key: 1 }, 3).key, 1);
  equal(cell({ key: 3 }, 3).key, 3);
  equal(cell({ key: 99 }, 3).key, 2);
  equal(cell({ key: 4 }, 3), null, 'it comes after the query');
  deepEqual(collectEdits(TRACE, { ...FRAME, key: 4, weight: 0.5 }, 3), []);
  for (const [state, query] of [
    [{ layer: null }, 3],
    [{ head: null }, 3],
    [{ head: 2 }, 3],
    [{ layer: 2 }, 3],
    [{}, 5],
    [{}, -1],
  ])
    equal(cell(state, query), null, JSON.stringify([state, query]));
  equal(
    chooseCell(PAIR, { ...FRAME, where: 'encoder', key: 4 }, 1).key,
    4,
    'an encoder sees both ways',
  );
});

test('the others of a row are scaled so that it sums to 1, unless they stay', () => {
  const row = Float64Array.of(0.5, 0.3, 0.2);
  const scaled = rowWith(row, 0, 0.8, false);
  [0.8, 0.12, 0.08].forEach((each, at) => near(scaled[at], each));
  deepEqual([...rowWith(row, 0, 0.8, true)], [0.8, 0.3, 0.2]);
  [0, 0.6, 0.4].forEach((each, at) => near(rowWith(row, 0, 0, false)[at], each));
  deepEqual([...rowWith(row, 1, 1, false)], [0, 1, 0]);
  deepEqual([...rowWith(Float64Array.of(1, 0), 0, 0.4, false)], [0.4, 0], 'none to be scaled');
  deepEqual([...row], [0.5, 0.3, 0.2], 'the weights of the pass stay');
});

test('the row has the likeliest words; the chosen one is that of the link, if it is among them', () => {
  const trace = passOf([1, 2, 3, 4, 6], [0.4, 0.3, 0.1, 0.05, 0.01]);
  const row = (token) => nextWords(trace, { ...FRAME, token }, 4);
  deepEqual(idsOf(row(null).words), [1, 2, 3, 4]);
  equal(row(null).chosen.id, 1);
  equal(row(3).chosen.id, 3);
  equal(row(99).chosen.id, 1);
  deepEqual([row(3).isEdited, row(3).isWaiting, row(3).problem], [false, false, '']);
  equal(nextWords({ ...trace, analyses: {} }, FRAME, 4).chosen, null);
});

test('with an edit each word has its probability before, also one that was not listed', () => {
  const trace = passOf([1, 2, 3], [0.5, 0.25, 0.125]);
  const pass = passOf([2, 8, 1], [0.6, 0.2, 0.1]);
  const row = nextWords(trace, { ...FRAME, answers: { next_edited: { trace: pass } } }, 4);
  deepEqual(
    row.words.map(({ id, probability, before }) => [id, probability, before]),
    [
      [2, 0.6, 0.25],
      [8, 0.2, NaN],
      [1, 0.1, 0.5],
    ],
  );
  deepEqual([row.chosen.id, row.isEdited, row.isWaiting], [1, true, false]);
  deepEqual(row.least, [0.125, 0.1], 'what is not listed is no likelier');
});

test('the chosen word stays in the row when an edit makes it unlikely, or takes it out of the list', () => {
  const trace = passOf([1, 2, 3, 4, 6], [0.5, 0.25, 0.1, 0.05, 0.02]);
  const edited = (pass) =>
    nextWords(trace, { ...FRAME, answers: { next_edited: { trace: pass } } }, 4).words;
  const low = edited(passOf([2, 3, 4, 6, 1], [0.5, 0.25, 0.1, 0.05, 0.02]));
  deepEqual(idsOf(low), [2, 3, 4, 6, 1]);
  equal(low[4].probability, 0.02);
  const gone = edited(passOf([2, 3, 4, 6, 7], [0.5, 0.25, 0.1, 0.05, 0.02]));
  deepEqual(idsOf(gone), [2, 3, 4, 6, 1]);
  deepEqual([gone[4].before, gone[4].probability], [0.5, NaN]);
});

test('while an edit is computed the last one is shown, and a problem is told', () => {
  const trace = passOf([1, 2], [0.5, 0.25]);
  const of = (answer) => nextWords(trace, { ...FRAME, answers: { next_edited: answer } }, 4);
  const first = of({ isWaiting: true });
  deepEqual([idsOf(first.words), first.isEdited, first.isWaiting], [[1, 2], false, true]);
  const again = of({ isWaiting: true, previous: passOf([2, 1], [0.9, 0.1]) });
  deepEqual([idsOf(again.words), again.isEdited, again.isWaiting], [[2, 1], true, true]);
  const wrong = of({ problem: { message: 'No such head.' } });
  deepEqual([idsOf(wrong.words), wrong.isWaiting, wrong.problem], [[1, 2], false, 'No such head.']);
});

/** The reasons of a prediction: what each head and network adds. */
function why(given = {}) {
  const { heads = [0, 0, 0, 0], networks = [0, 0] } = given;
  const reasons = {
    ...{ position: 4, rule: 'gains', probabilities: [0.5, 0.25], decisive: null, reasons: [] },
    token: { id: 6, text: ' saw' },
    against: { id: 9, text: ' ran' },
    'self_attention.heads': tensor(['layer', 'head'], [2, 2], (at) => heads[at]),
    feed_forward: tensor(['layer'], [2], (at) => networks[at]),
  };
  return { next_why: { trace: { analyses: { reasons } } } };
}

test('the token and its rival are in the row, with what an edited pass makes of them', () => {
  const trace = passOf([6, 2, 3, 4, 5], [0.5, 0.3, 0.1, 0.05, 0.01]);
  const row = nextWords(trace, { ...FRAME, answers: why({}) }, 4);
  deepEqual(idsOf(row.words), [6, 2, 3, 4, 9]);
  equal(row.words[4].probability, 0.25);
  const pass = passOf([2, 3, 4, 5, 1], [0.5, 0.2, 0.1, 0.05, 0.01]);
  Object.assign(pass.analyses.next_token, {
    chosen_ids: tensor(['token'], [2], (at) => [6, 9][at], Int32Array),
    chosen_probabilities: tensor(
      ['query', 'token'],
      [5, 2],
      (at) => [0.004, 0.003][at % 2],
      Float64Array,
    ),
  });
  const edited = nextWords(
    trace,
    { ...FRAME, answers: { ...why({}), next_edited: { trace: pass } } },
    4,
  );
  deepEqual(
    edited.words.filter(({ id }) => id === 6 || id === 9).map((w) => [w.before, w.probability]),
    [
      [0.5, 0.004],
      [0.25, 0.003],
    ],
  );
});

test('the heads of a filler are those of its encoder', () => {
  const trace = { ...fillTrace(), card: { ...CARD, kind: 'encoder', moe: null } };
  const { heads, networks } = readEffects(trace, { ...FRAME, answers: why({}) });
  ok(heads.has('encoder 1 1') && networks.has('encoder 1'));
});

test('the effects of the map are of every head and network, with the size of the largest', () => {
  const answers = why({ heads: [0.5, -3, 0, 2], networks: [1, -0.5] });
  const effects = readEffects(TRACE, { ...FRAME, answers });
  deepEqual(
    [...effects.heads],
    [
      ['decoder 0 0', 0.5],
      ['decoder 0 1', -3],
      ['decoder 1 0', 0],
      ['decoder 1 1', 2],
    ],
  );
  deepEqual(
    [...effects.networks],
    [
      ['decoder 0', 1],
      ['decoder 1', -0.5],
    ],
  );
  deepEqual([effects.most, effects.token, effects.against], [3, ' saw', ' ran']);
  deepEqual([effects.mostOfNetworks, effects.isEdited], [1, false], 'networks have their scale');
  equal(readEffects(TRACE, { ...FRAME, answers, map: 'writes' }), null);
  equal(readEffects(TRACE, FRAME), null);
  const [previous] = [answers.next_why.trace];
  ok(readEffects(TRACE, { ...FRAME, answers: { next_why: { isWaiting: true, previous } } }));
  ok(readEffects(TRACE, { ...FRAME, answers: why({}) }).most > 0, 'nothing is divided by zero');
  const edited = {
    trace: { analyses: { logit_attribution: answers.next_why.trace.analyses.reasons } },
  };
  const both = { ...why({}), next_edited: edited };
  const shown = readEffects(TRACE, { ...FRAME, answers: both });
  deepEqual([shown.most, shown.isEdited], [3, true], 'with an edit, of the edited pass');
  const pending = { ...answers, next_edited: { isWaiting: true } };
  equal(readEffects(TRACE, { ...FRAME, answers: pending }), null, 'never of the pass before it');
});

test('means and draws are of a corpus, of the examples without a profile, or of nothing', () => {
  const labels = { 'decoder.layers.0.self_attention': [{ previous: 1 }] };
  equal(corpusInWords({ examples: [{ text: 'a' }], head_labels: labels }), 'a corpus');
  match(corpusInWords({ examples: [{ text: 'a' }], head_labels: {} }), /not measured/);
  equal(corpusInWords({ examples: [], head_labels: {} }), '');
});
