/** The strongest head of each label, and which head is opened. */

import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { choosePlace, strongestHeads } from '../../../static/js/trace/attention.js';
import { headToOpen } from '../../../static/js/rules/head_insight.js';
import { headLabels, sampleTrace, tensor } from '../sample.js';

const pathOf = (layer) => `decoder.layers.${layer}.self_attention`;

test('of the heads with a label, the one with the highest score is the strongest', () => {
  const labels = headLabels(
    {
      [pathOf(0)]: [
        { label: 'sink', scores: { sink: 0.9, previous: 0.99 } },
        { label: 'sink', scores: { sink: 0.6 } },
      ],
      [pathOf(1)]: [
        { label: 'sink', scores: { sink: 0.8 } },
        { label: 'previous', scores: { previous: 0.4 } },
      ],
    },
    { sink: 7 },
  );
  const trace = sampleTrace();
  const labelled = { ...trace, analyses: { ...trace.analyses, head_labels: labels } };
  deepEqual(
    strongestHeads(labelled, choosePlace({ where: '' }, labelled)).map(
      ({ id, layer, head, score, queries }) => [id, layer, head, Number(score.toFixed(3)), queries],
    ),
    [
      ['previous', 1, 1, 0.4, 4],
      ['sink', 0, 0, 0.9, 7],
    ],
  );
  deepEqual(strongestHeads(trace, choosePlace({ where: '' }, trace)), []);
});

test('a label that names no token that is looked at has no strongest head', () => {
  const trace = sampleTrace();
  const head_labels = headLabels({
    [pathOf(0)]: [{ label: 'broad', scores: { broad: 0.9 } }, { label: 'mixed' }],
  });
  const labelled = { ...trace, analyses: { ...trace.analyses, head_labels } };
  deepEqual(strongestHeads(labelled, choosePlace({ where: '' }, labelled)), []);
});

/** A decoder of one layer; each head has its links, the rest of a row is on the first token. */
function traceOf(words, heads, labels) {
  const tokens = words.map((text, at) => ({
    id: at,
    text,
    start: at,
    end: at + 1,
    word: text === '<s>' || text === '[MASK]' ? null : at,
    is_special: text === '<s>' || text === '[MASK]',
  }));
  const count = tokens.length;
  const weights = tensor(['head', 'query', 'key'], [heads.length, count, count], 0);
  heads.forEach((links, head) => {
    for (let query = 0; query < count; query += 1) weights.data[(head * count + query) * count] = 1;
    for (const [query, key, weight] of links) {
      weights.data[(head * count + query) * count + key] = weight;
      weights.data[(head * count + query) * count] -= weight;
    }
  });
  const head_labels = headLabels({ [pathOf(0)]: labels.map((label) => ({ label })) });
  return {
    ...sampleTrace(),
    card: { kind: 'decoder' },
    tokens,
    tensors: { [`${pathOf(0)}.weights`]: weights },
    analyses: { head_labels },
  };
}
const opened = (trace) => headToOpen(trace, choosePlace({}, trace));

test('a word of three letters counts for nearly as much as a longer one', () => {
  const words = ['<s>', 'The', ' hungry', ' cat', ' was', ' then', ' fed', '.'];
  const linked = (weight) =>
    opened(traceOf(words, [[[6, 3, 0.9]], [[6, 2, weight]]], ['mixed', 'mixed'])).head;
  equal(linked(0.5), 0);
  equal(linked(0.85), 1);
});

test('a word of two letters counts for less than one of three', () => {
  const words = ['<s>', 'The', ' ox', ' cat', ' was', ' then', ' fed', '.'];
  const trace = traceOf(words, [[[6, 2, 0.9]], [[6, 3, 0.6]]], ['mixed', 'mixed']);
  equal(opened(trace).head, 1);
});

test('of a text with a mask that nothing links, a common head is opened, wherever the mask is', () => {
  for (const at of [0, 1, 4]) {
    const words = ['<s>', 'The', ' king', ' was', ' afraid', ' of', ' him'];
    words[at] = '[MASK]';
    const trace = traceOf(words, [[], []], ['induction', 'sink']);
    equal(opened(trace).head, 1, `the mask is token ${at}`);
  }
  const unmasked = traceOf(['<s>', 'The', ' king', ' was'], [[], []], ['induction', 'sink']);
  equal(opened(unmasked).head, 0);
});
