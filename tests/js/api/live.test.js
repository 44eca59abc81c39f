import assert from 'node:assert/strict';
import test from 'node:test';
import { stepOf } from '../../../static/js/api/live_answers.js';
import { translationOf } from '../../../static/js/api/live_translation.js';
import { createEncoder, inputsOf, takesEdits } from '../../../static/js/api/live_text.js';

const PATH = 'decoder.layers.0.self_attention';
const NETWORK = 'decoder.layers.0.feed_forward';
const TEXTS = ['<s>', '</s>', 'a', ' b', "'", 'A'];
/** @type {any} */
const MANIFEST = {
  attentions: [PATH],
  networks: [NETWORK],
  parts: [
    { site: `${PATH}.context`, layer: 0, head: 0 },
    { site: `${PATH}.context`, layer: 0, head: 1 },
    { site: `${NETWORK}.output`, layer: 0, head: null },
  ],
  analyses: ['next_token', 'rollout'],
  sizes: { n_heads: 2, d_head: 4, n_experts: 1 },
  texts: TEXTS,
  start_id: 0,
  end_id: 1,
  mask_id: null,
  lowers_capitals: true,
  tokenizer: {
    model: { vocab: { '<s>': 0, '</s>': 1, a: 2, Ġb: 3, "'": 4, A: 5 } },
    normalizer: { normalizers: [{ pattern: { Regex: '[’‘]' }, content: "'" }] },
  },
};

/** Cuts a word into letters, or takes it whole. */
class Library {
  /** @param {string} word */
  encode(word) {
    const whole = TEXTS.indexOf(word);
    return { ids: whole >= 0 ? [whole] : [...word].map((letter) => TEXTS.indexOf(letter)) };
  }
}

const encode = createEncoder(MANIFEST, Library);

test('offsets point into the text as it is typed', () => {
  const spans = encode('aa b’').map(({ id, start, end, word }) => [id, start, end, word]);
  assert.deepEqual(spans, [
    [0, 0, 0, null],
    [2, 0, 1, 0],
    [2, 1, 2, 0],
    [3, 2, 4, 1],
    [4, 4, 5, 2],
  ]);
  assert.deepEqual(
    encode('AA').map(({ id }) => id),
    [0, 2, 2],
  );
  assert.deepEqual(
    encode('A').map(({ id }) => id),
    [0, 5],
  );
  const masked = createEncoder({ ...MANIFEST, mask_id: 1 }, Library)('aa [MASK]’ b');
  assert.deepEqual(
    masked.slice(3).map(({ id, start, end, word }) => [id, start, end, word]),
    [
      [1, 2, 9, null],
      [4, 9, 10, 1],
      [3, 10, 12, 2],
    ],
  );
});

test('edits become inputs, and each part is off in a row of its own', () => {
  const edits = [
    { kind: 'heads_off', heads: [1] },
    { kind: 'temperature', value: 2, layer: 0 },
    { kind: 'set', site: `${PATH}.weights`, heads: [1], positions: [2], value: [0.25, 0.75, 0] },
  ];
  assert.ok(takesEdits(edits));
  const inputs = inputsOf(MANIFEST, encode('aa'), { edits, names: ['analyses.rollout.decoder'] });
  assert.deepEqual([...inputs.asked[1]], [0, 1]);
  assert.deepEqual([...inputs.heads[1]], [1, 0]);
  assert.deepEqual([...inputs.factors[1]], [0.5]);
  assert.deepEqual([...inputs.set_at[1]].map(Number), [0, 1, 2]);
  assert.deepEqual([...inputs.set_to[1]], [0.25, 0.75, 0]);
  const rows = inputsOf(MANIFEST, encode('aa'), { isTakingAway: true });
  assert.deepEqual([...rows.heads[1]], [1, 1, 0, 1, 1, 0, 1, 1]);
  assert.deepEqual([...rows.networks[1]], [1, 1, 1, 0]);
  assert.deepEqual(rows.ids[2], [4, 3]);
  for (const kind of ['cut', 'quantize', 'corpus_mean']) assert.ok(!takesEdits([{ kind }]));
});

test('a token is drawn by temperature, top-k and top-p', async () => {
  const logits = [-9, -9, Math.log(0.5), Math.log(0.3), Math.log(0.2), -99];
  const arrays = {
    logits: { shape: [3, 6], data: [...Array(12).fill(0), ...logits] },
    [`${PATH}.weights`]: { data: Array(18).fill(1 / 3) },
  };
  /** @type {any} */
  const model = { manifest: MANIFEST, encode, run: async () => arrays };
  const step = { text: 'aa', added: [], chance: 0.7 };
  assert.equal((await stepOf(model, { ...step, temperature: 0 })).id, 2);
  assert.equal((await stepOf(model, step)).id, 3);
  assert.equal((await stepOf(model, { ...step, top_k: 1 })).probability, 1);
  assert.equal((await stepOf(model, { ...step, top_p: 0.6, chance: 0.99 })).id, 3);
  const { rank, is_forced: isForced } = await stepOf(model, { ...step, forced: 4 });
  assert.deepEqual([rank, isForced], [3, true]);
});

test('a translation is the best of a beam, though its first word is not the likeliest', async () => {
  /** The chances of the end, “a” and “ b” after a target. @type {Record<string, number[]>} */
  const chances = { 0: [0, 0.55, 0.45], '0,2': [0.4, 0.3, 0.3], '0,3': [1, 0, 0] };
  /** @param {Token[]} _ @param {string[]} names @param {any} wish */
  const run = async (_, [scores, ids], { rows, position }) => {
    const of = rows.map((/** @type {number[]} */ row) => String(row.slice(0, position + 1)));
    const all = of.flatMap((/** @type {string} */ row) => [...(chances[row] ?? [1, 0, 0]), 0]);
    return {
      [scores]: { data: all.map(Math.log) },
      [ids]: { data: all.map((_, at) => [1, 2, 3, 4][at % 4]) },
    };
  };
  const beam = { width: 2, length_penalty: 1 };
  /** @type {any} */
  const model = { manifest: { ...MANIFEST, beam, max_tokens: 9 }, encode, run };
  assert.equal(await translationOf(model, encode('aa')), ' b');
});
