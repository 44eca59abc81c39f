/**
 * What a head attends to in this sentence, measured on its weights: the mean, over the queries that
 * the pattern speaks of, of the weight that falls where the pattern says.
 * Induction after Olsson et al. 2022, https://arxiv.org/abs/2209.11895
 */

import { matrixAt } from './trace.js';
import { layersWith } from './sites.js';

/** @typedef {{id: string, title: string, help: string, layer: number, head: number, score: number}} Pattern */

/** A head that puts less of its weight where the pattern says does not follow it. */
const WORTH_A_LOOK = 0.2;

/**
 * For each pattern, the keys a query is expected to attend to; none: the query does not count. Where
 * a simpler pattern expects the same key, nothing can be told apart, so there it does not count either.
 */
const PATTERNS = [
  {
    id: 'previous',
    title: 'The token before',
    help: 'mean weight on the token just before the query',
    keys: (query) => (query > 1 ? [query - 1] : []),
  },
  {
    id: 'induction',
    title: 'What came next last time',
    help: 'where a token repeats: mean weight on the tokens that followed it earlier (an induction head)',
    keys: (query, tokens) => earlier(query, tokens).map((key) => key + 1).filter((key) => key < query - 1),
  },
  {
    id: 'duplicate',
    title: 'The same token earlier',
    help: 'where a token repeats: mean weight on its earlier occurrences',
    keys: (query, tokens) => earlier(query, tokens).filter((key) => key < query - 1),
  },
  {
    id: 'first',
    title: 'The first token',
    help: 'mean weight on the first token, where heads rest when they have nothing to do',
    keys: (query) => (query > 1 ? [0] : []),
  },
];

function earlier(query, tokens) {
  if (tokens[query].is_special) return [];
  return tokens.slice(0, query).flatMap(({ id }, key) => (id === tokens[query].id ? [key] : []));
}

/**
 * The head that fits each pattern best; a pattern that no head follows here is left out.
 * @param {import('./trace.js').Trace} trace
 * @returns {Pattern[]}
 */
export function strongestHeads({ tensors, tokens }) {
  const layers = layersWith(tensors, 'self_attention.weights');
  return PATTERNS.flatMap(({ keys, ...pattern }) => {
    const expected = tokens.map((_, query) => keys(query, tokens));
    if (expected.every((of) => of.length === 0)) return [];
    const heads = layers.flatMap(({ layer, site }) => scoresOf(tensors[site], expected, layer));
    if (heads.length === 0) return [];
    const best = heads.reduce((strongest, head) => (head.score > strongest.score ? head : strongest));
    return best.score < WORTH_A_LOOK ? [] : [{ ...pattern, ...best }];
  });
}

function scoresOf(weights, expected, layer) {
  const [heads] = weights.shape;
  return Array.from({ length: heads }, (_, head) => ({ layer, head, score: fit(matrixAt(weights, head), expected) }));
}

/**
 * @param {import('./trace.js').Matrix} weights query × key
 * @param {number[][]} expected keys by query
 * @returns {number} between 0 and 1
 */
export function fit({ columns, data }, expected) {
  let sum = 0;
  let queries = 0;
  expected.forEach((keys, query) => {
    if (keys.length === 0) return;
    queries += 1;
    for (const key of keys) sum += data[query * columns + key];
  });
  return queries === 0 ? 0 : sum / queries;
}
