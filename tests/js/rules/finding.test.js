import { equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { writeFinding } from '../../../static/js/rules/finding.js';
import { fillTrace, plain, sampleTrace, tensor, TOKENS } from '../sample.js';

const CHOSEN = { query: null, layer: null };

/** The sample, in which each place expects these tokens with these probabilities. */
function expecting(words, probabilities, trace = sampleTrace()) {
  const count = trace.tokens.length;
  const next_token = {
    texts: trace.tokens.map(() => words),
    ids: tensor(['query', 'rank'], [count, words.length], (at) => at % words.length),
    probabilities: tensor(
      ['query', 'rank'],
      [count, words.length],
      (at) => probabilities[at % words.length],
    ),
  };
  return {
    ...trace,
    card: { kind: 'decoder', ...trace.card },
    analyses: { ...trace.analyses, next_token },
  };
}

const next = (trace, chosen = CHOSEN) => plain(writeFinding(trace, 'next_token', chosen));

test('the next token is told with its probability, without the space before it', () => {
  const said = next(expecting([' is', ' was', ' are'], [0.5, 0.2, 0.1]));
  match(
    said,
    /^After the second “it”, the model expects “is” \(50\.0 %\), then “was” \(20\.0 %\)\./,
  );
  match(said, /“is” and “was” have 70\.0 % together; “are” has 10\.0 %\.$/);
});

test('forms of “to be” are compared only where they are expected, as words', () => {
  ok(!next(expecting([' dog', ' is'], [0.9, 0.01])).includes('“is” has'));
  ok(!next(expecting(['is', ' dog'], [0.9, 0.01])).includes('“is” has'), 'the end of a word');
  match(next(expecting([' were', ' is'], [0.6, 0.1])), /“were” has 60\.0 %; “is” has 10\.0 %\.$/);
});

test('a chosen token is the place that is told', () => {
  match(next(expecting([' is'], [0.5]), { ...CHOSEN, query: 2 }), /^After “saw”/);
});

test('of several masks each is told', () => {
  const filled = fillTrace();
  const mask = filled.tokens.find(({ text }) => text === '[MASK]');
  const tokens = filled.tokens.map((token, at) => (at === filled.tokens.length - 1 ? mask : token));
  const card = { ...filled.card, kind: 'encoder' };
  const said = next(expecting([' time'], [0.9], { ...filled, card, tokens }));
  match(said, /At the first mask, .*“time”.* At the second mask, /);
});

/** The sample with punctuation, and the experts of each token in layer 1. */
function routed(experts) {
  const marks = ['"', 'it', ',', 'saw', '.'];
  const tokens = TOKENS.map((token, at) => ({ ...token, text: marks[at], is_special: false }));
  const indices = tensor(['position', 'rank'], [5, 1], (at) => experts[at]);
  return {
    ...sampleTrace(),
    card: { kind: 'decoder' },
    tokens,
    tensors: { 'decoder.layers.1.experts.expert_indices': indices },
  };
}

test('the expert of the punctuation is told against what it takes of words', () => {
  equal(
    writeFinding(routed([3, 0, 3, 3, 2]), 'experts', { ...CHOSEN, layer: 1 }),
    'In layer 1, expert 3 takes 2 of the 3 tokens of punctuation, and 1 of the 2 tokens of words.',
  );
});

test('of a text with little punctuation, and of a dense model, nothing is told', () => {
  const trace = routed([3, 0, 3, 3, 2]);
  const tokens = trace.tokens.map((token) => ({ ...token, text: 'it' }));
  equal(writeFinding({ ...trace, tokens }, 'experts', CHOSEN), '');
  equal(writeFinding({ ...sampleTrace(), tensors: {} }, 'experts', CHOSEN), '');
});

test('a reward is told whatever is open, with the token that changed it most', () => {
  const reward = {
    rewards: tensor(['position'], [5], (at) => at / 2),
    contributions: tensor(['position'], [5], (at) => [0.5, -2, 0.5, 0.5, 1][at]),
  };
  const trace = {
    ...sampleTrace(),
    card: { kind: 'decoder', analyses: ['reward'] },
    analyses: { reward },
  };
  match(
    plain(writeFinding(trace, 'attention', CHOSEN)),
    /^The reward of this text is 2\.00; of its 4 tokens, the first “it” lowered it most, by 2\.00\./,
  );
  equal(writeFinding({ ...trace, analyses: {} }, 'attention', CHOSEN), '');
});

test('a view without a finding has none', () => {
  equal(writeFinding(sampleTrace(), 'stream', CHOSEN), '');
});
