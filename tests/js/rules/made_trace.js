/** Traces of a decoder of one layer whose weights are given link by link. */

import { sampleTrace, tensor } from '../sample.js';

const CARD = { kind: 'decoder' };

/**
 * A decoder of one layer: each head is a list of `[query, key, weight]`; the rest of a row is on the
 * first token.
 */
export function traceOf(words, heads, labels = []) {
  const text = words.slice(1).join('');
  let end = 0;
  const tokens = words.map((piece, at) => ({
    id: piece.trim().toLowerCase().charCodeAt(0) * 7 + piece.length,
    text: piece,
    start: end,
    end: at === 0 ? 0 : (end += [...piece].length),
    word: at === 0 ? null : words.slice(1, at + 1).filter((each) => !/^[a-z]/.test(each)).length,
    is_special: at === 0,
  }));
  const count = tokens.length;
  const weights = tensor(['head', 'query', 'key'], [heads.length, count, count], 0);
  heads.forEach((links, head) => {
    for (let query = 0; query < count; query += 1) {
      const own = links.filter(([row]) => row === query);
      for (const [, key, weight] of own)
        weights.data[(head * count + query) * count + key] = weight;
      weights.data[(head * count + query) * count] += own.reduce((rest, [, , w]) => rest - w, 1);
    }
  });
  const path = 'decoder.layers.0.self_attention';
  const names = [...new Set([...labels, 'mixed'])];
  return {
    ...sampleTrace(),
    card: CARD,
    text,
    tokens,
    tensors: { [`${path}.weights`]: weights },
    analyses: {
      head_labels: {
        labels: names,
        [`${path}.label`]: tensor(['head'], [heads.length], (at) =>
          names.indexOf(labels[at] ?? 'mixed'),
        ),
        [`${path}.label_scores`]: tensor(['head', 'label'], [heads.length, names.length], 0.9),
        [`${path}.label_queries`]: tensor(['label'], [names.length], 4),
      },
    },
  };
}

export const KING = ['<s>', 'The', ' king', ' was', ' afraid', ' of', ' him', '.'];
