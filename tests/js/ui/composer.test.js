/** The model's card in one line, and the characters that its tokenizer replaces. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  all,
  find,
  press,
  recorder,
  send,
  settled,
  showTemplate,
  texts,
  type,
} from '../browser.js';
import { traceOf } from '../rules/made_trace.js';
import { claimInWords, createComposer, readInText } from '../../../static/js/ui/composer.js';
import { corpusOf, showCard } from '../../../static/js/ui/model_card.js';
import { readInWords } from '../../../static/js/ui/page.js';

const CORPUS = {
  by: 'passage',
  before: { documents: 15543, bytes: 30.3e6, words: 5_760_000 },
  dropped: { near_duplicate: 7, low_quality: 12345 },
};

test('the training text is told by its size and its duplicates', () => {
  assert.equal(
    corpusOf(CORPUS),
    '15,543 passages, 30.3 MB, 5.8 million words; among them 7 near-duplicates, ' +
      '12 thousand of low quality',
  );
});

const NORMALIZATION = {
  replacements: [
    { characters: '‘’', text: "'" },
    { characters: '“”', text: '"' },
    { characters: '\u00a0', text: ' ' },
  ],
  lowers_capitals: true,
};

test('the characters of a text that are read as others are named, and no more of them', () => {
  const read = (/** @type {string} */ text) => readInText({ text }, NORMALIZATION);
  assert.equal(read("I don't."), '');
  assert.equal(read('“I don’t,” she said.'), `reads ’ as ', “ ” as "`);
  assert.equal(read('a\u00a0b'), '');
  assert.equal(read('I’M HERE'), "reads ’ as ', capitals as small letters");
  assert.equal(read('I'), '');
  assert.equal(read('12:30 日本'), '');
  assert.equal(readInText({ text: '“HERE”' }), '');
  const tokens = [...'a我喜歡吃'].map((whole) => ({ part: whole === 'a' ? null : { whole } }));
  const spelled = (count) => readInText({ text: '', tokens: tokens.slice(0, count) });
  assert.equal(spelled(1), '');
  assert.equal(spelled(2), 'reads 我 as bytes');
  assert.equal(spelled(5), 'reads 我 喜 歡 … as bytes');
});

test('the status says how much could be read once that is near, unless there is no end', () => {
  const read = (count, more = {}) =>
    readInWords({
      tokens: Array.from({ length: count }, () => 'a'),
      timings: { pass: 3 },
      card: { max_tokens: 64 },
      ...more,
    });
  assert.equal(read(51), '51 tokens');
  assert.equal(read(52), '52 tokens of 64');
  assert.equal(read(52, { target_tokens: ['c'] }), '52 + 1 tokens of 64 each');
  assert.equal(read(1, { target_tokens: Array(60).fill('c') }), '1 + 60 tokens of 64 each');
  assert.equal(read(52, { card: { max_tokens: 52, is_endless: true } }), '52 tokens');
  assert.equal(read(52, { resolution: 8 }), '52 tokens', 'a long text has its own limit');
  assert.equal(read(52, { card: null }), '52 tokens');
});

test('a claim is told with its score, its control and how many it is a mean over', () => {
  const claim = {
    claim: 'previous',
    measure: 'mean weight on the token before',
    score: 0.9845,
    against: 'uniform attention',
    control: 0.1325,
    sentences: 1045,
  };
  assert.equal(
    claimInWords(claim),
    'Measured over 1,045 samples: mean weight on the token before, 0.98 (uniform attention: 0.13).',
  );
  assert.equal(claimInWords(null), '');
});

const CARD = {
  id: 'm',
  title: 'Em',
  kind: 'decoder',
  examples: [
    { title: 'One', text: 'one text', opens: { view: 'a' } },
    { title: 'Same', text: 'one text', opens: { view: 'b' } },
    {
      title: 'Claim',
      text: 'two',
      opens: {},
      claim: { measure: 'm', score: 0.5, against: 'u', control: 0.25, sentences: 3 },
    },
  ],
};
const { calls, handlers, take } = recorder(
  'onTyping',
  'onText',
  'onFile',
  'onExample',
  'onTarget',
  'onModel',
  'onOffer',
);
let composer;
const byId = (id) => find(`#${id}`);
function compose() {
  showTemplate('index.html');
  composer = createComposer(byId('composer'), handlers);
  take();
}
const show = (shown = {}) =>
  composer.show({ text: 'a text', target: null, model: 'm', card: CARD, ...shown });
const clock = (context) => context.mock.timers.enable({ apis: ['setTimeout'] });

test('a typed text is read after a pause, and at once on Enter', (context) => {
  clock(context);
  compose();
  type(byId('text'), 'a');
  context.mock.timers.tick(200);
  type(byId('text'), 'ab');
  context.mock.timers.tick(249);
  assert.deepEqual(take(), [['onTyping'], ['onTyping']]);
  context.mock.timers.tick(1);
  assert.deepEqual(take(), [['onText', 'ab', true]]);
  type(byId('text'), 'abc');
  assert.equal(press(byId('text'), 'Enter'), false);
  context.mock.timers.tick(900);
  assert.deepEqual(take(), [['onTyping'], ['onText', 'abc', false]]);
  for (const members of [{ shiftKey: true }, { isComposing: true }])
    assert.equal(press(byId('text'), 'Enter', members), true);
  assert.equal(press(byId('text'), 'x'), true);
  send(byId('text'), 'input', { isComposing: true });
  context.mock.timers.tick(900);
  assert.deepEqual(take(), [['onTyping']]);
  send(byId('text'), 'compositionend');
  context.mock.timers.tick(250);
  assert.deepEqual(take(), [['onText', 'abc', true]]);
  assert.equal(send(byId('composer'), 'submit'), false);
});

test('the box shows the text, unless one is being typed', (context) => {
  clock(context);
  compose();
  byId('text').scrollTop = 9;
  show();
  assert.deepEqual([byId('text').value, byId('text').scrollTop], ['a text', 0]);
  type(byId('text'), 'typed');
  show({ text: 'other' });
  assert.equal(byId('text').value, 'typed');
  context.mock.timers.tick(250);
  show({ text: 'other' });
  assert.equal(byId('text').value, 'other');
  byId('text').scrollTop = 9;
  show({ text: 'other' });
  assert.equal(byId('text').scrollTop, 9);
});

test('an own translation is shown, told to be stale, and given back', () => {
  compose();
  show();
  assert.ok(byId('translation').hidden);
  const pair = { ...CARD, kind: 'encoder-decoder' };
  show({ card: pair });
  assert.ok(!byId('translation').hidden && !byId('translation').classList.contains('is-own'));
  show({ card: pair, target: 'il vit' });
  assert.equal(byId('target').value, 'il vit');
  assert.ok(byId('translation').classList.contains('is-own'));
  assert.equal(byId('stale').textContent, '');
  show({ card: pair, target: 'il vit', text: 'new' });
  assert.notEqual(byId('stale').textContent, '');
  show({ card: pair, target: 'il', text: 'new' });
  assert.equal(byId('stale').textContent, '');
  byId('target').value = ' il ';
  show({ card: pair, target: 'il', text: 'new' });
  assert.equal(byId('target').value, ' il ');
  byId('own').click();
  assert.deepEqual(take(), [['onTarget', '', false]]);
  assert.equal(document.activeElement, byId('target'));
  byId('target').value = 'left';
  show({ card: pair, target: null });
  assert.equal(byId('target').value, '');
  composer.translate('il');
  assert.equal(byId('translated').textContent, 'il');
  assert.ok(!byId('translated').classList.contains('is-nothing'));
  composer.translate('');
  assert.ok(
    byId('translated').classList.contains('is-nothing') &&
      byId('translated').textContent.length > 3,
  );
  composer.translate(null);
  assert.equal(byId('translated').textContent, '–');
});

test('examples are buttons, and the one that is read is pressed', () => {
  compose();
  show({ text: 'one text' });
  const buttons = all('#examples button');
  const pressed = () => buttons.map((node) => node.ariaPressed);
  assert.deepEqual(texts('#examples button')[0], 'One');
  assert.deepEqual(pressed(), ['true', 'false', 'false']);
  buttons[1].click();
  assert.deepEqual(take(), [['onExample', CARD.examples[1]]]);
  assert.deepEqual(pressed(), ['false', 'true', 'false']);
  show({ text: 'one text' });
  assert.deepEqual(pressed(), ['false', 'true', 'false']);
  assert.equal(all('#examples button')[0], buttons[0]);
  show({ text: 'none' });
  assert.deepEqual(pressed(), ['false', 'false', 'false']);
  assert.deepEqual(texts('#examples button'), ['Examples']);
  all('#examples button')[0].click();
  assert.equal(document.activeElement, buttons[0]);
  assert.ok(buttons[2].title.startsWith('two\n') && buttons[2].hasAttribute('aria-description'));
  assert.equal(buttons[0].title, 'one text');
  assert.ok(
    buttons.every((node) => !/\d/.test(node.textContent)),
    'scores are on the card',
  );
  show({ card: { ...CARD, id: 'n', examples: [] } });
  assert.equal(all('#examples button').length, 0);
});

test('of a family the first two models are in sight, the others under More', () => {
  compose();
  const of = (id, kind = 'decoder') => ({ id, title: id, kind });
  composer.offer({ models: [of('sums'), of('sums-a'), of('sums-b'), of('fill', 'encoder')] });
  const groups = all('optgroup').map((group) => [group.label, texts('option', group)]);
  assert.deepEqual(groups[0][1], ['sums', 'sums-a']);
  assert.deepEqual(groups.at(-1), ['More', ['sums-b']]);
});

test('the menu groups models by kind, and names what cannot be used', () => {
  compose();
  const models = [
    { id: 'a', title: 'A', kind: 'encoder' },
    { id: 'b', title: '', kind: 'decoder', architecture: 'llama', state: 'not_loaded' },
    { id: 'c', title: 'C', kind: 'decoder', architecture: 'llama', state: 'loaded' },
    { id: 'd', title: 'D', kind: 'decoder', state: 'not_loaded' },
  ];
  composer.offer({ models, unavailable: [{ id: 'x', reason: 'why' }] });
  assert.equal(all('optgroup').length, 2);
  assert.deepEqual(texts('option').slice(0, 4), ['b (not loaded)', 'C', 'D', 'A']);
  assert.deepEqual(
    all('option[disabled]')
      .map(({ value }) => value)
      .slice(0, 1),
    ['x'],
  );
  assert.equal(find('option[value="x"]').title, 'why');
  assert.equal(all('option').length, 9);
  type(byId('model'), 'a', 'change');
  assert.deepEqual(take(), [['onModel', 'a']]);
  composer.offer({ models: models.slice(1) });
  assert.equal(all('optgroup').length, 0);
  assert.equal(all('option').length, 7);
  show({ model: 'c' });
  assert.equal(byId('model').value, 'c');
});

test('what does not fit is marked, left out, and can be put back', () => {
  compose();
  show({ text: 'a long text' });
  Object.defineProperty(byId('text'), 'clientHeight', { value: 20, configurable: true });
  composer.markFrom(6);
  assert.equal(find('#surplus mark').textContent, ' text');
  assert.equal(byId('surplus').textContent, 'a long text');
  assert.ok(!byId('surplus').hidden && byId('text').classList.contains('is-marked'));
  assert.equal(byId('text').scrollTop, -10);
  assert.equal(byId('surplus').scrollTop, -10);
  byId('text').scrollTop = 5;
  send(byId('text'), 'scroll');
  assert.equal(byId('surplus').scrollTop, 5);
  show({ text: 'a long' });
  assert.ok(byId('surplus').hidden && !byId('text').classList.contains('is-marked'));
  find('#text-note button').click();
  assert.deepEqual(take(), [['onText', 'a long text', false]]);
  composer.markFrom(3);
  send(byId('text'), 'input');
  assert.ok(byId('surplus').hidden);
  show({ text: 'other' });
  assert.equal(find('#text-note button'), null);
});

test('a mask that the model does not know is told', () => {
  compose();
  const note = () => byId('text-note').textContent;
  show({ text: 'it [MASK]' });
  assert.match(note(), /Em.*mask/);
  show({ text: 'it [MASK]', card: { ...CARD, has_mask: true } });
  assert.equal(note(), '');
  show({ text: 'it' });
  assert.equal(note(), '');
  show({ text: '[MASK]', card: { ...CARD, examples: [{ title: 'x', text: '[MASK]' }] } });
  assert.equal(note(), '');
});

test('a foreign model says how exact it is, and every model what it reads otherwise', () => {
  compose();
  show();
  assert.ok(byId('exact').hidden);
  show({ card: { ...CARD, checks: { weights: 0 } } });
  assert.ok(
    !byId('exact').hidden && byId('exact').textContent.startsWith('Matches Hugging Face exactly'),
  );
  show({ card: { ...CARD, checks: { weights: 0.00012 } } });
  assert.ok(byId('exact').textContent.endsWith('within 1.2·10⁻⁴'));
  composer.tellReading({
    text: 'I’m',
    tokens: [],
    card: { ...CARD, normalization: NORMALIZATION },
  });
  assert.ok(!byId('reads').hidden && byId('reads').title !== '');
  composer.tellReading(null);
  assert.ok(byId('reads').hidden);
});

test('a text that falls into pieces is met with what the model learned, and a better one', () => {
  compose();
  const sums = { ...CARD, id: 'sums', title: 'Sums', examples: [{ text: '47*23=' }] };
  composer.offer({ models: [CARD, sums] });
  const trace = {
    ...traceOf(['<s>', '1', '2', '*', '3', '4'], []),
    card: { ...CARD, learned: 'stories' },
  };
  show({ text: trace.text });
  composer.tellReading(trace);
  assert.match(byId('text-note').textContent, /learned stories; it reads this nearly digit/);
  find('#text-note button').click();
  assert.deepEqual(take(), [['onOffer', { model: 'sums', text: '12*34=' }]]);
  show({ text: 'The cat' });
  assert.equal(byId('text-note').textContent, '');
});

const fileOf = (content) => ({
  name: 'a.txt',
  size: content.length,
  arrayBuffer: async () => new TextEncoder().encode(content),
});

test('a file that is dropped is read, dragged words are not', async () => {
  showTemplate('index.html');
  const onFile = (/** @type {string} */ text) => {
    handlers.onFile(text);
    return text !== 'a chapter';
  };
  composer = createComposer(byId('composer'), { ...handlers, onFile });
  take();
  const drag = (types) => send(document, 'dragover', { dataTransfer: { types } });
  assert.deepEqual([drag(['Files']), drag(['text/plain'])], [false, true]);
  assert.equal(send(document, 'drop', { dataTransfer: { files: [] } }), true);
  assert.equal(send(document, 'drop', { dataTransfer: { files: [fileOf(' ')] } }), false);
  await settled(5);
  assert.match(byId('text-note').textContent, /empty/);
  assert.ok(calls.every(([name]) => name !== 'onFile'));
  send(document, 'drop', { dataTransfer: { files: [fileOf('of a file')] } });
  await settled(5);
  assert.ok(calls.some(([name, text]) => name === 'onFile' && text === 'of a file'));
  assert.deepEqual([byId('text').value, byId('text-note').textContent], ['of a file', '']);
  send(document, 'drop', { dataTransfer: { files: [fileOf('a chapter')] } });
  await settled(5);
  assert.equal(byId('text').value, 'of a file');
});

const FULL = {
  ...CARD,
  n_layers: 1,
  n_heads: 2,
  parameters: 1000,
  max_tokens: 64,
  positional: 'rotary',
  licence: 'MIT',
  revision: 'r1',
  moe: null,
};
const carded = (card) => {
  const host = document.createElement('div');
  showCard(host, { ...FULL, ...card });
  return host;
};
const facts = (card) => {
  const host = carded(card);
  const values = texts('dd', host);
  return Object.fromEntries(texts('dt', host).map((name, at) => [name, values[at]]));
};
/** The one line about the model, which opens the facts. */
const lineOf = (card) => find('summary', carded(card)).textContent;

test('a card is one line and a link until its facts are opened', () => {
  const host = carded({ id: 'a/b', title: 'Tiny' });
  assert.equal(find('details', host).open, false);
  assert.match(lineOf({ title: 'Tiny' }), /^Tiny: decoder, /);
  assert.equal(find('a', host).getAttribute('href'), '/models/a%2Fb/card');
  assert.equal(host.lastElementChild, find('a', host), 'the link is outside of what is folded');
  const path = 'decoder.layers.0.self_attention';
  const attentions = [
    { path, scale: 0.125, window: null },
    { path, scale: 0.125, window: 32 },
  ];
  assert.equal(
    carded({ n_heads: 9, n_kv_heads: 3, n_layers: 30, attentions }).lastElementChild.getAttribute(
      'href',
    ),
    '/experiments#experiment=kv_cache&n_heads=9&n_kv_heads=3&n_layers=30&d_head=64&window=32',
  );
});

test('a card tells its facts, and leaves out what it does not have', () => {
  assert.deepEqual(Object.keys(facts({})), ['Positions', 'Experts', 'Licence', 'Revision']);
  assert.match(lineOf({}), /: decoder, 1 layer of 2 heads, .*parameters, up to 64 tokens$/);
  assert.match(
    lineOf({ kind: 'encoder-decoder', n_layers: 3 }),
    /: encoder–decoder, 3 \+ 3 layers/,
  );
  assert.match(lineOf({ is_endless: true }), /any length/);
  assert.match(lineOf({ longest_text: 640 }), /64 tokens.*640 tokens/);
  assert.ok(!/Overview/.test(lineOf({ longest_text: 64 })));
  assert.equal(facts({ is_checked: false }).Positions, undefined);
  assert.equal(facts({}).Positions, 'rotary');
  assert.match(facts({ n_kv_heads: 1 })['Keys and values'], /^1 for 2 heads/);
  assert.equal(facts({ n_kv_heads: 2 })['Keys and values'], undefined);
  const moe = { n_experts: 4, top_k: 2, layers: [0, 2] };
  assert.match(facts({ moe }).Experts, /^4 in layers 0, 2;.* 2 /);
  assert.match(facts({ moe: { ...moe, layers: [] } }).Experts, /^4; /);
  assert.equal(facts({ architecture: 'headlight' }).Architecture, undefined);
  assert.equal(facts({ architecture: 'llama' }).Architecture, 'llama');
  assert.equal(facts({ attribution: ['a', 'b'] }).Attribution, 'a; b');
  assert.equal(facts({ trained_on: ['c'] })['Trained on'], 'c');
  assert.equal(facts({ normalization: NORMALIZATION }).Reads.split('; ').length, 3);
  assert.ok(facts({ checks: { weights: 1e-6 } })['Self-check'].endsWith('within 1.0·10⁻⁶'));
});

test('a part that every layer lacks is told once', () => {
  const omitted = {
    'decoder.layers.0.a': 'why',
    'decoder.layers.1.a': 'why',
    'decoder.layers.1.b': 'x',
  };
  assert.equal(
    facts({ n_layers: 2, omitted })['Not available'],
    'decoder.layers.*.a: why; decoder.layers.1.b: x',
  );
  assert.equal(facts({ n_layers: 3, omitted })['Not available'].split('; ').length, 3);
});

test('figures are told, tables and amounts are not', () => {
  const metrics = {
    tokens: 5,
    loss_of_it: 1.23456,
    weight: { weight: 0.5 },
    table: [1, 2],
    bleu: { text: 30.123 },
    alignment: { head: { error_rate: 0.25 } },
    bits_per_token: { inside_trained_length: 2 },
  };
  const told = facts({ metrics }).Measured.split('; ');
  assert.deepEqual(told.slice(0, 3), ['loss of it 1.23', 'weight 0.5', 'BLEU 30.1']);
  assert.ok(told[3].endsWith(' 0.25') && told[4].endsWith(' 2'));
  assert.equal(told.length, 5);
  assert.match(facts({ metrics: { bits_per_token: 3 } }).Measured, / 3$/);
});

test('a training text without duplicates says so, and no text nothing', () => {
  assert.equal(corpusOf(), '');
  assert.match(
    corpusOf({ before: { documents: 1, bytes: 5, words: 2 } }),
    /^1 document.*no duplicates/,
  );
  assert.match(
    corpusOf({ before: { documents: 2, bytes: 5, words: 2 }, dropped: { odd: 3 } }),
    /3 odd$/,
  );
});
