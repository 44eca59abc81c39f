/**
 * The analyses `logit_lens` and `residual_stream` of the sample.
 */

import { tensor } from '../../sample.js';

const RANKS = 3;

/** The likeliest of the first layer are tags, of the last what comes next; they grow surer with depth. */
export function lensAnalysis(count, layers = 2) {
  const texts = Array.from({ length: layers }, (_, layer) =>
    Array.from({ length: count }, () => [
      layer === layers - 1 ? ' saw' : '<i>&',
      '\\xf0\\x9f',
      '</s>',
    ]),
  );
  const ids = tensor(['layer', 'query', 'rank'], [layers, count, RANKS], (at) => {
    const layer = Math.floor(at / RANKS / count);
    return [layer === layers - 1 ? 6 : 9, 3, 1][at % RANKS];
  });
  ids.data = Int32Array.from(ids.data);
  const probabilities = tensor(
    ['layer', 'query', 'rank'],
    [layers, count, RANKS],
    (at) => [0.3 + 0.5 * Math.floor(at / RANKS / count), 0.1, 0.01][at % RANKS],
  );
  return { ids, probabilities, texts };
}

/**
 * A stream that has norm 10·step + position; what is written is a hundredth of that, its cosine
 * alternates in sign.
 */
export function streamAnalysis(
  count,
  { layers = 2, stack = 'decoder', hasCross = false, isRms = false, isPost = false } = {},
) {
  const places = hasCross
    ? ['before', 'between', 'middle', 'after']
    : ['before', 'middle', 'after'];
  const parts = hasCross
    ? ['self_attention', 'cross_attention', 'feed_forward']
    : ['self_attention', 'feed_forward'];
  const norms = parts.map((part) =>
    part === 'self_attention' ? 'attention_norm' : `${part}_norm`,
  );
  const by = (value) =>
    tensor(['layer', 'query'], [layers, count], (at) => value(Math.floor(at / count), at % count));
  const found = {};
  places.forEach((place, index) => {
    found[`${stack}.residual_norm.${place}`] = by(
      (layer, position) => 10 * (layer * parts.length + index) + position,
    );
  });
  parts.forEach((part, index) => {
    found[`${stack}.written_norm.${part}`] = by(
      (layer, position) => (10 * (layer * parts.length + index) + position) / 100,
    );
    found[`${stack}.cosine.${part}`] = by((layer) => (index % 2 === 0 ? -0.5 : 0.25) * (layer + 1));
  });
  for (const statistic of isRms ? ['root_mean_square'] : ['mean', 'deviation']) {
    for (const norm of norms)
      found[`${stack}.${statistic}.${norm}`] = by(
        (layer, position) => (statistic === 'mean' ? -0.01 : 1) * (layer + position),
      );
    if (!isPost)
      found[`${stack}.${statistic}.norm`] = tensor(['query'], [count], (position) => position);
  }
  return found;
}

/** The state of the page when these answers are there. */
export function answersOf(trace, { lens, stream }) {
  const answer = (analyses) => ({ trace: { ...trace, tensors: {}, analyses } });
  return {
    ...(lens && { lens: answer({ logit_lens: lens }) }),
    ...(stream && { stream: answer({ residual_stream: stream }) }),
  };
}
