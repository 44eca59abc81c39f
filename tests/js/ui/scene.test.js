/** The scene on the page: the sentence with its words, the next word, the switch and the bars. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, find, labelled, layOut, recorder, showTemplate, texts } from '../browser.js';
import { piecesOf, sizeOf } from '../../../static/js/ui/hero.js';
import { Scene } from '../../../static/js/ui/scene.js';
import { FRAME, plain, sampleTrace, tensor } from '../sample.js';

const CARD = { kind: 'decoder', n_layers: 2, n_heads: 2, moe: null, analyses: ['reasons'] };
const sample = sampleTrace();
const COUNT = sample.tokens.length;
/** Every row of every head has most of its weight on “saw”. */
const TENSORS = Object.fromEntries(
  [0, 1].map((layer) => [
    `decoder.layers.${layer}.self_attention.weights`,
    tensor(['head', 'query', 'key'], [2, COUNT, COUNT], (at) => (at % COUNT === 2 ? 0.8 : 0.05)),
  ]),
);
const passOf = (listed) => ({
  next_token: {
    texts: sample.tokens.map(() => listed.map(([text]) => text)),
    ids: tensor(
      ['query', 'rank'],
      [COUNT, listed.length],
      (at) => listed[at % listed.length][1],
      Int32Array,
    ),
    probabilities: tensor(
      ['query', 'rank'],
      [COUNT, listed.length],
      (at) => listed[at % listed.length][2],
      Float64Array,
    ),
  },
});
const TRACE = {
  ...sample,
  tensors: TENSORS,
  card: CARD,
  analyses: passOf([
    [' are', 21, 0.6],
    [' is', 22, 0.2],
  ]),
};
const REASONS = {
  ...{ position: COUNT - 1, rule: 'gains', decisive: 0, probabilities: [0.6, 0.2] },
  token: { id: 21, text: ' are' },
  against: { id: 22, text: ' is' },
  reasons: [
    {
      ...{
        site: 'decoder.layers.1.self_attention.context',
        layer: 1,
        head: 1,
        key: 2,
        weight: 0.5,
      },
      ...{
        adds: [2, -1],
        probabilities: [0.1, 0.5],
        top: { id: 22, text: ' is', probability: 0.5 },
      },
    },
  ],
};
const WHY = { next_why: { trace: { analyses: { reasons: REASONS } } } };
const OFF = {
  off: 'head decoder 1 1',
  answers: {
    ...WHY,
    next_edited: {
      trace: {
        analyses: passOf([
          [' is', 22, 0.5],
          [' are', 21, 0.1],
        ]),
      },
    },
  },
};

const { handlers, take } = recorder('onState', 'onChoose', 'announce');
let scene;
beforeEach(() => {
  showTemplate('index.html');
  find('#text').value = TRACE.text;
  take();
  scene = new Scene((id) => find(`#${id}`), handlers);
  scene.take(TRACE);
});
const show = (state = {}, { position = COUNT - 1, isChosen = false, finding = '' } = {}) =>
  scene.show(TRACE, { ...FRAME, layer: 1, head: 1, ...state }, { position }, { isChosen, finding });

test('the pieces of a text are its tokens and the spaces between them, and join to the text', () => {
  const pieces = piecesOf(TRACE.tokens, TRACE.text);
  equal(pieces.map(({ text }) => text).join(''), TRACE.text);
  ok(pieces.filter(({ index }) => index >= 0).every(({ text }) => text.trim() !== ''));
  const split = [
    { start: 0, end: 2, word: 0 },
    { start: 2, end: 5, word: 0 },
    { start: 5, end: 5, word: null },
  ];
  deepEqual(
    piecesOf(split, '🍕abc! ').map(({ text, isInside }) => [text, isInside]),
    [
      ['🍕a', false],
      ['bc!', true],
      [' ', false],
    ],
  );
});

test('a text is set smaller the longer it is, and is a plain box in the end', () => {
  deepEqual(['Hi', 'x'.repeat(80), 'x'.repeat(200), 'x'.repeat(300), 'a\nb\nc\nd'].map(sizeOf), [
    'large',
    'middle',
    'small',
    'long',
    'long',
  ]);
});

test('the next word stands behind the sentence, and the finding has its switch', () => {
  show({ answers: WHY });
  match(find('.slot').textContent, /are.*60/);
  match(plain(find('#says').textContent), /^To choose “are”/);
  equal(find('#switch').getAttribute('aria-checked'), 'true');
  find('#switch').click();
  deepEqual(take(), [['onState', { off: 'head decoder 1 1', weight: null }]]);
});

test('switched off, it says so, and a press puts the head back', () => {
  show({ answers: WHY });
  show(OFF);
  match(find('.slot-word:not(.is-leaving)').textContent, /is/);
  match(plain(find('#says').textContent), /^Without layer 1, head 1, the model writes “is”/);
  equal(find('#switch').getAttribute('aria-checked'), 'false');
  const [announced] = take().filter(([name]) => name === 'announce');
  match(plain(announced[1]), /falls from 60 % to 10 %/);
  find('#switch').click();
  labelled('or let it write its mean').click();
  deepEqual(take(), [
    ['onState', { off: '', weight: null }],
    ['onState', { off_to: 'mean' }],
  ]);
  ok(find('#hero').classList.contains('is-off'));
});

test('a bar chooses its word, and each other word can be made the rival', () => {
  show({ answers: WHY });
  deepEqual(texts('.bar-name'), ['are', 'is']);
  deepEqual(texts('.bar-number'), ['60\u00a0%', '20\u00a0%']);
  const [first, second] = all('.bar');
  ok(first.classList.contains('is-chosen') && second.classList.contains('is-rival'));
  all('.bar-name')[1].click();
  all('.bar-against')[1].click();
  deepEqual(take(), [
    ['onState', { token: 22, against: null }],
    ['onState', { against: 22 }],
  ]);
  show(OFF);
  deepEqual(texts('.bar-name'), ['is', 'are'], 'the likeliest comes first');
  ok(all('.bar')[1] === first, 'a bar keeps its element, and slides');
});

test('what is awaited replaces nothing', () => {
  show({ answers: WHY });
  const said = find('#says').textContent;
  show({ off: 'head decoder 1 1', answers: { ...WHY, next_edited: { isWaiting: true } } });
  equal(find('#says').textContent, said);
  ok(find('#finding').classList.contains('is-waiting'));
});

test('where nothing is predicted the finding of the view is told, without a switch', () => {
  show({}, { position: -1, finding: 'The reward of this text is 2.' });
  equal(find('#says').textContent, 'The reward of this text is 2.');
  ok(find('#switch').hidden && !find('#finding').classList.contains('has-next'));
  show({}, { position: -1 });
  ok(find('#finding').hidden);
});

const frame = () =>
  new Promise((resolve) => {
    requestAnimationFrame(resolve);
  });

test('arcs run between the words of the sentence, and those read are marked', async () => {
  all('#hero-words .piece').forEach((node, at) =>
    layOut(node, { left: 50 * at, top: 80, width: 40, height: 30 }),
  );
  show({ answers: WHY });
  await frame();
  const arcs = all('#arcs path');
  ok(arcs.length > 0);
  ok(all('.piece.is-read').length > 0);
  match(find('#arcs path').getAttribute('d'), /^M\d/);
  show({ answers: WHY });
  await frame();
  const isKept = all('#arcs path').every((arc, at) => arc === arcs[at]);
  ok(isKept, 'the same arcs keep their elements, so that they can fall');
});

test('a press on a word chooses it, and while one types nothing is marked', () => {
  const piece = find('#hero-words .piece');
  document.elementsFromPoint = () => [find('#text'), piece];
  find('#text').click();
  deepEqual(take(), [['onChoose', { side: 'source', index: Number(piece.dataset.token) }]]);
  find('#text').value = 'Another text';
  find('#text').dispatchEvent(new Event('input'));
  equal(all('#hero-words .piece').length, 0);
  ok(find('#hero').classList.contains('is-typed'));
});

test('a door leads to why the opened head looks at its strongest word, where the model tells', () => {
  const door = () =>
    all('.door').find(({ textContent }) => textContent === 'Why does it look there?');
  show({ answers: WHY });
  equal(door(), undefined);
  const told = { ...TRACE, card: { ...CARD, analyses: ['reasons', 'score_attribution'] } };
  const draw = (more) =>
    scene.show(
      told,
      { ...FRAME, layer: 1, head: 1, answers: WHY, ...more },
      { position: COUNT - 1 },
      { isChosen: false, finding: '' },
    );
  draw({ isSaved: true });
  equal(door(), undefined, 'a saved page has no other pass');
  draw({});
  door().click();
  deepEqual(take().at(-1), [
    'onState',
    { ...{ view: 'there', where: '', layer: 1, head: 1 }, query: COUNT - 1, key: 2 },
  ]);
});
