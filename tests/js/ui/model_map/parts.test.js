/** The parts of a model: what each does in a pass, in numbers and words. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { describeRole } from '../../../../static/js/trace/attention.js';
import {
  buildAnatomy,
  litParts,
  openPart,
  readParts,
} from '../../../../static/js/ui/model_map/parts.js';
import { FRAME, plain, sampleTrace, tensor } from '../../sample.js';

const CARD = {
  kind: 'decoder',
  n_layers: 2,
  n_heads: 2,
  positional: 'sinusoidal',
  moe: { n_experts: 4, top_k: 2, layers: [1] },
};
const BARE = { ...sampleTrace(), card: CARD };
const TRACE = {
  ...BARE,
  analyses: {
    ...BARE.analyses,
    head_norms: {
      'decoder.layers.0.self_attention': tensor(['head', 'query'], [2, 5], (at) =>
        at < 5 ? 3 : 1,
      ),
      'decoder.layers.1.self_attention': tensor(['head', 'query'], [2, 5], 1),
    },
    residual_stream: {
      // One token with a huge norm leaves the median as it is.
      'decoder.residual_norm.after': tensor(['layer', 'query'], [2, 5], (at) =>
        at % 5 === 0 ? 900 : at < 5 ? 4 : 8,
      ),
      'decoder.written_norm.self_attention': tensor(['layer', 'query'], [2, 5], 1),
      'decoder.written_norm.feed_forward': tensor(['layer', 'query'], [2, 5], 3),
    },
  },
};
const anatomy = buildAnatomy(CARD);
const [{ layers }] = anatomy.stacks;

test('a part is read out with what it does in this pass', () => {
  const read = readParts(CARD, TRACE);
  equal(read(layers[0].heads[0]).words, 'layer 0, head 0: writes 75 %');
  equal(read(layers[0].heads[1]).words, 'layer 0, head 1: writes 25 %');
  equal(
    read(layers[0].network).words,
    'layer 0, feed-forward network: writes 75 % of what the layer adds',
  );
  equal(
    read(layers[1].network).words,
    'layer 1, 4 experts, 2 for each token: writes 75 % of what the layer adds',
  );
  equal(read(layers[1].stream).words, 'residual stream after layer 1: median norm 8');
  equal(plain(read(anatomy.logits).words), 'next token: “saw” 50 %');
  ok(read(anatomy.stacks[0].embedding).words);
});

test('the prediction read out is that of the chosen place', () => {
  const next = TRACE.analyses.next_token;
  const texts = next.texts.map((guesses, row) =>
    row === 1 ? [' ran', ...guesses.slice(1)] : guesses,
  );
  const analyses = { ...TRACE.analyses, next_token: { ...next, texts } };
  const read = readParts(CARD, { ...TRACE, analyses }, undefined, null, 1);
  match(plain(read(anatomy.logits).label), /^After the first “it”: “ran” \d+ %$/);
  const last = readParts(CARD, TRACE, undefined, null, 4);
  match(plain(last(anatomy.logits).words), /^next token: “/);
  const rating = { ...CARD, analyses: ['reward'] };
  const rated = readParts(rating, { ...TRACE, card: rating }, undefined, null, 4);
  equal(rated(anatomy.logits).label, 'Next token', 'a reward model predicts none');
});

test('a label is read out where the heads are labelled', () => {
  const path = 'decoder.layers.0.self_attention';
  const labelled = {
    ...TRACE,
    analyses: {
      ...TRACE.analyses,
      head_labels: {
        labels: ['previous', 'mixed'],
        [`${path}.label`]: tensor(['head'], [2], (at) => at),
        [`${path}.label_scores`]: tensor(['head', 'label'], [2, 1], 0.9),
        [`${path}.label_queries`]: tensor(['label'], [1], 4),
      },
    },
  };
  const read = readParts(CARD, labelled);
  equal(
    read(layers[0].heads[0]).words,
    'layer 0, head 0: previous token 0.900 in this text, writes 75 %',
  );
  equal(
    read(layers[0].heads[1]).words,
    'layer 0, head 1: writes 25 %',
    'a mixed head does nothing',
  );
  equal(read(layers[0].heads[0]).note, '', 'its note is its role over many sentences');
  const profiles = { [path]: [{ previous: 0.8 }, {}] };
  const card = { ...CARD, head_labels: profiles };
  const profiled = readParts(card, { ...labelled, card });
  match(profiled(layers[0].heads[0]).words, /previous token 0\.80* over many texts, /);
  equal(
    profiled(layers[0].heads[0]).note,
    describeRole({ profile: [{ id: 'previous', score: 0.8 }] }),
  );
  ok(profiled(layers[0].heads[0]).note !== '' && profiled(layers[0].heads[1]).note === '');
});

test('an effect on the prediction is a share of the largest, and is read out in logits', () => {
  const effects = {
    heads: new Map([
      ['decoder 0 0', 3],
      ['decoder 0 1', -1.5],
    ]),
    networks: new Map([['decoder 1', 0.75]]),
    most: 3,
    token: ' saw',
    against: ' ran',
  };
  const read = readParts(CARD, TRACE, undefined, effects);
  const [strong, weak] = layers[0].heads.map(read);
  deepEqual([strong.effect, weak.effect], [1, -0.5]);
  equal(strong.words, 'layer 0, head 0: +3.00 for “saw” against “ran”, writes 75 %');
  match(weak.words, /: −1\.50 for/);
  equal(read(layers[1].network).effect, 0.25);
  match(read(layers[1].network).words, /^layer 1, 4 experts.*: \+0\.75 for “saw”/);
  equal(read(layers[1].heads[0]).effect, null, 'nothing is known of it');
  equal(read(layers[0].network).effect, null);
});

test('only a model whose heads were labelled has room for their words', () => {
  ok(!buildAnatomy(CARD).isLabelled && !buildAnatomy({ ...CARD, head_labels: {} }).isLabelled);
  ok(
    buildAnatomy({ ...CARD, head_labels: { 'decoder.layers.0.self_attention': [{}, {}] } })
      .isLabelled,
  );
});

test('without its numbers a part has its name and no colour', () => {
  const read = readParts(CARD, BARE);
  deepEqual(read(layers[0].heads[1]), {
    level: null,
    words: 'layer 0, head 1',
    label: '1',
    effect: null,
    note: '',
    isOff: false,
  });
  equal(read(layers[1].stream).level, null);
});

test('a head that is switched off is read out as off, before all that it does', () => {
  const read = readParts(CARD, TRACE, ({ id }) => id === 'head decoder 0 1');
  match(read(layers[0].heads[1]).words, /^layer 0, head 1: switched off, writes/);
  ok(read(layers[0].heads[1]).isOff && !read(layers[1].heads[1]).isOff);
});

test('choosing a part leads to its place', () => {
  const opening = openPart(layers[1].heads[0], 'attention');
  deepEqual([opening.view, opening.layer, opening.head], ['attention', 1, 0]);
  const experts = openPart(layers[1].network, 'experts');
  deepEqual([experts.view, experts.layer, experts.where], ['experts', 1, 'decoder']);
  equal(openPart(layers[0].stream, 'stream').stream_layer, 0);
});

test('the parts that the drawing shows are lit', () => {
  const isShown = ({ layer, head }) => layer === 1 && head === 0;
  const lit = (kind, state = FRAME) => [...litParts(anatomy, kind, state, TRACE, isShown)];
  deepEqual(lit('head'), ['head decoder 1 0']);
  deepEqual(lit('embedding'), ['embedding decoder']);
  deepEqual(lit('logits'), ['logits']);
  deepEqual(lit('stream'), ['stream decoder 0', 'stream decoder 1']);
  deepEqual(lit('expert'), ['expert decoder 1']);
  // The nearest layer that routes.
  deepEqual(lit('expert', { ...FRAME, layer: 0 }), ['expert decoder 1']);
  deepEqual(lit('model'), ['logits']);
});

test('a head of a model with two sides is read out with its side', () => {
  const card = { ...CARD, kind: 'encoder-decoder' };
  const read = readParts(card, { ...BARE, card, target: 'le chat', target_tokens: BARE.tokens });
  const heads = buildAnatomy(card).stacks.flatMap((stack) =>
    stack.layers.flatMap((layer) => [...layer.heads, ...(layer.cross ?? [])]),
  );
  const said = new Set(heads.map((head) => read(head).words.split(', ')[0]));
  ok(said.has('encoder') && said.has('decoder'), [...said].join(' · '));
});

test('without numbers of a pass a part has no level, and says what it is', () => {
  const read = readParts(CARD, { ...BARE, tensors: {}, analyses: {} });
  const parts = layers.flatMap(({ heads, network, stream }) => [...heads, network, stream]);
  for (const part of parts) {
    const { level, words } = read(part);
    equal(level, null, part.id);
    ok(words !== '' && !/NaN|undefined|%/.test(words), words);
  }
});

const levels = (of, trace) => of.map((part) => readParts(CARD, trace)(part).level);

test('the experts of a layer are one part, as strong as what they write of it', () => {
  const trace = { ...sampleTrace(), card: CARD };
  deepEqual(levels([layers[1].network], trace), [null]);
  trace.analyses.residual_stream = {
    'decoder.written_norm.self_attention': tensor(['layer', 'query'], [2, 5], 1),
    'decoder.written_norm.feed_forward': tensor(['layer', 'query'], [2, 5], 3),
  };
  deepEqual(levels([layers[1].network], trace), [0.75]);
  deepEqual([layers[0].network.kind, layers[1].network.kind], ['network', 'expert']);
});

test('the head that writes most has the full colour of its layer', () => {
  const trace = { ...sampleTrace(), card: CARD };
  trace.analyses.head_norms = {
    'decoder.layers.0.self_attention': tensor(['head', 'query'], [2, 5], (at) => (at < 5 ? 1 : 4)),
  };
  deepEqual(levels(layers[0].heads, trace), [0.25, 1]);
});

test('a model without positions has an embedding without them', () => {
  const read = readParts({ ...CARD, positional: 'none' }, sampleTrace());
  equal(read(anatomy.stacks[0].embedding).words, 'embedding');
});
