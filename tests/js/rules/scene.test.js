/** The scene: which head it is about, its arcs, and the sentences on it and on the pass without it. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { arcsOf, sceneOf } from '../../../static/js/rules/scene.js';
import { FRAME, near, pairTrace, plain, tensor } from '../sample.js';

const TEXT = 'The keys to the red keys';
const WORDS = ['The', ' key', 's', ' to', ' the', ' red', ' key', 's'];
const WORD = [0, 1, 1, 2, 3, 4, 5, 5];
let at = 0;
const TOKENS = [
  { id: 0, text: '<s>', start: 0, end: 0, word: null, is_special: true, part: null },
  ...WORDS.map((text, index) => {
    const start = at;
    at += text.length;
    return {
      id: 10 + index,
      text,
      start,
      end: at,
      word: WORD[index],
      is_special: false,
      part: null,
    };
  }),
];
const COUNT = TOKENS.length;
/** The last row of head 0 of layer 1 has most of its weight on the two pieces of the first “keys”. */
const ROW = [0.05, 0.05, 0.3, 0.5, 0.02, 0.02, 0.02, 0.02, 0.02];
const weights = (row) =>
  tensor(['head', 'query', 'key'], [2, COUNT, COUNT], (index) =>
    Math.floor(index / COUNT) % COUNT === COUNT - 1
      ? row[index % COUNT]
      : index % COUNT === 0
        ? 1
        : 0,
  );
const CARD = { kind: 'decoder', n_layers: 2, n_heads: 2, moe: null, analyses: ['reasons'] };
const SITE = 'decoder.layers.1.self_attention';
const TRACE = {
  ...{ id: 't', text: TEXT, tokens: TOKENS, target_tokens: null, card: CARD },
  tensors: Object.fromEntries(
    [0, 1].map((layer) => [`decoder.layers.${layer}.self_attention.weights`, weights(ROW)]),
  ),
  analyses: {
    next_token: {
      texts: TOKENS.map(() => [' are', ' is', ' do']),
      ids: tensor(['query', 'rank'], [COUNT, 3], (index) => [1, 2, 3][index % 3], Int32Array),
      probabilities: tensor(
        ['query', 'rank'],
        [COUNT, 3],
        (index) => [0.6, 0.2, 0.1][index % 3],
        Float64Array,
      ),
    },
  },
};
const AT = { position: COUNT - 1, isChosen: false, edit: '' };
const part = (given = {}) => ({
  ...{ site: `${SITE}.context`, layer: 1, head: 0, adds: [2, -1], key: 3, weight: 0.5 },
  ...{ probabilities: [0.15, 0.5], top: { id: 2, text: ' is', probability: 0.5 } },
  ...given,
});
const answersOf = (reasons, given = {}) => ({
  next_why: {
    trace: {
      analyses: {
        reasons: {
          ...{ position: COUNT - 1, rule: 'gains', decisive: 0, probabilities: [0.6, 0.2] },
          token: { id: 1, text: ' are' },
          against: { id: 2, text: ' is' },
          ...{ reasons, ...given },
        },
      },
    },
  },
});
const bare = (scene) =>
  Object.fromEntries(
    Object.entries(scene).map(([name, value]) => [
      name,
      typeof value === 'string' ? plain(value) : value,
    ]),
  );
const sceneFor = (...given) => bare(sceneOf(...given));
const told = (reasons, { at: where = AT, given, ...state } = {}) =>
  sceneFor(
    TRACE,
    { ...FRAME, layer: 1, head: 0, answers: answersOf(reasons, given), ...state },
    where,
  );

test('arcs lead to whole words, the strongest first, with the weight of all their pieces', () => {
  const [first, ...others] = arcsOf(TRACE, { layer: 1, head: 0 }, COUNT - 1);
  deepEqual([first.from.index, first.to.index], [COUNT - 1, 3]);
  near(first.share, 0.8, 1e-6);
  ok(others.every(({ share }) => share >= 0.06));
  deepEqual(arcsOf(TRACE, { layer: 1, head: 9 }, 0), []);
  deepEqual(arcsOf({ ...TRACE, tensors: {} }, { layer: 1, head: 0 }, 0), []);
});

test('the arc of a translation runs from the word that is written to the one that is read', () => {
  const pair = { ...pairTrace(), card: { ...CARD, kind: 'encoder-decoder' } };
  const [arc] = arcsOf(pair, { where: 'cross', layer: 1, head: 0 }, 1);
  deepEqual(
    [arc.from, arc.to],
    [
      { side: 'target', index: 2 },
      { side: 'source', index: 2 },
    ],
  );
});

test('the head that decides is told with the word that it reads, and what it does to both words', () => {
  const { finding, more, part: offered, rule, rival } = told([part()]);
  equal(
    finding,
    'To choose “are”, the model looks back at the first “keys”: layer 1, head 0 reads it with 80 % of its weight, lifts “are” and pushes “is” down.',
  );
  match(more, /Switch that head off/);
  deepEqual(offered, { id: 'head decoder 1 0', label: 'Head 1.0', isOn: true });
  deepEqual([rule, rival], ['against “is”, which gains most without layer 1, head 0', 2]);
  match(told([part({ adds: [2, 0.1] })]).finding, /weight and lifts “are” above “is”\.$/);
  match(told([part({ adds: [-0.1, -3] })]).finding, /weight and pushes “is” down\.$/);
  match(told([part({ adds: null })]).finding, /of its weight\.$/, 'nothing that is not known');
  match(told([part({ adds: [1, 2] })]).finding, /of its weight\.$/, 'nor what is not so');
  match(
    told([part({ key: 0 })]).finding,
    /needs layer 1, head 0: it lifts .* from the start of the text \(5\.0 % of/,
  );
  equal(
    told([part({ key: 6, adds: null })]).finding,
    'To choose “are”, the model needs layer 1, head 0.',
  );
});

test('the rule of the rival is told in words', () => {
  const rule = (name, decisive = 0) => told([part()], { given: { rule: name, decisive } }).rule;
  match(rule('given'), /as chosen/);
  match(rule('text'), /the other likely word of the text/);
  match(rule('likeliest', null), /the next likeliest/);
});

test('a head that the reader opened is told by what changes without it', () => {
  const chosen = { at: { ...AT, isChosen: true } };
  const weak = part({ head: 1, probabilities: [0.59, 0.2], site: `${SITE}.context` });
  const { finding, decisive } = told([part(), weak], { ...chosen, head: 1 });
  match(
    finding,
    /^Layer 1, head 1 reads the first “keys” with 80 % .*changes little: “are” keeps 59 %/,
  );
  equal(decisive, 'head decoder 1 0');
  const other = part({ head: 1, probabilities: [0.3, 0.2] });
  match(told([part(), other], { ...chosen, head: 1 }).finding, /falls from 60 % to 30 %/);
  const against = part({ head: 1, probabilities: [0.9, 0.05] });
  match(told([part(), against], { ...chosen, head: 1 }).finding, /rises from 60 % to 90 %/);
});

test('where no head decides, none is named, and the part that matters most can be taken away', () => {
  const network = part({
    site: 'decoder.layers.0.feed_forward.output',
    layer: 0,
    head: null,
    key: null,
  });
  const idle = part({ probabilities: [0.5991, 0.2] });
  const scene = told([network, idle], { given: { decisive: null } });
  match(
    scene.finding,
    /^None of the 1 heads that add most decides “are” alone: .* at least 59 %\.$/,
  );
  deepEqual(scene.part, { id: 'network decoder 0', label: 'Network 0', isOn: true });
  match(scene.more, /Switch the network of layer 0 off/);
  const calm = { ...network, probabilities: [0.599, 0.2] };
  equal(told([calm, idle], { given: { decisive: null } }).part, null);
});

test('without a part the scene says what the model writes, and how both words move', () => {
  const pass = (ids, probabilities, texts) => ({
    analyses: {
      next_token: {
        texts: TOKENS.map(() => texts),
        ids: tensor(['query', 'rank'], [COUNT, 2], (index) => ids[index % 2], Int32Array),
        probabilities: tensor(
          ['query', 'rank'],
          [COUNT, 2],
          (i) => probabilities[i % 2],
          Float64Array,
        ),
      },
    },
  });
  const answers = answersOf([part()]);
  answers.next_edited = { trace: pass([2, 1], [0.5, 0.15], [' is', ' are']) };
  const off = { ...FRAME, layer: 1, head: 0, off: 'head decoder 1 0', answers };
  const scene = sceneFor(TRACE, off, AT);
  equal(scene.finding, 'Without layer 1, head 0, the model writes “is”.');
  equal(scene.more, '“are” falls from 60 % to 15 %, “is” rises from 20 % to 50 %.');
  deepEqual(scene.part, { id: 'head decoder 1 0', label: 'Head 1.0', isOn: false });
  answers.next_edited = { trace: pass([1, 2], [0.55, 0.2], [' are', ' is']) };
  const same = sceneFor(TRACE, off, AT);
  equal(same.finding, 'Without layer 1, head 0, the model still writes “are”.');
  match(same.more, /“are” falls from 60 % to 55 %, “is” stays at 20 %/);
  const edited = sceneFor(TRACE, { ...off, off: '' }, { ...AT, edit: 'With a→b cut' });
  match(edited.finding, /^With a→b cut, the model still writes/);
  answers.next_edited = { problem: { message: 'No such head.' } };
  equal(sceneFor(TRACE, off, AT).more, 'No such head.');
});

test('without a server the outcome is told in place of the switch', () => {
  const { finding, more, part: offered } = told([part()], { at: { ...AT, isSaved: true } });
  match(finding, /^To choose “are”/);
  equal(more, 'Without it “are” goes from 60 % to 15 %, and the likeliest is “is”.');
  equal(offered, null);
});

test('before the reasons are known nothing is claimed', () => {
  const scene = sceneFor(TRACE, { ...FRAME, layer: 1, head: 0 }, AT);
  deepEqual([scene.finding, scene.more, scene.part, scene.rival], ['', '', null, null]);
  const elsewhere = answersOf([part()], { position: 2 });
  equal(sceneFor(TRACE, { ...FRAME, answers: elsewhere }, AT).finding, '');
});

test('a word that is written behind the last word of the source has a finding', () => {
  const pair = { ...pairTrace(), card: { ...CARD, kind: 'encoder-decoder' } };
  const position = pair.tokens.length;
  const reasons = [part({ site: 'decoder.layers.1.cross_attention.context', key: 1 })];
  const answers = answersOf(reasons, { position });
  const { finding } = sceneFor(
    pair,
    { ...FRAME, where: 'cross', layer: 1, head: 0, answers },
    { position, isChosen: false, edit: '' },
  );
  match(finding, /^To write “are”, /);
});
