/**
 * What a head attends to in this sentence, measured on its weights: the mean, over the queries that
 * the pattern speaks of, of the weight that falls where the pattern says.
 * Induction after Olsson et al. 2022, https://arxiv.org/abs/2209.11895
 */

import { placeOf, tokensOf, weightsAt } from './places.js';
import { matrixAt } from './trace.js';

/** @typedef {{id: string, title: string, help: string, layer: number, head: number, score: number}} Pattern */

/** A head that puts less of its weight where the pattern says does not follow it. */
const WORTH_A_LOOK = 0.2;

/** @typedef {{tokens: import('./trace.js').Token[], nKeys: number}} Sentences the tokens that attend, and how many are attended to */

const BEFORE = {
  id: 'previous',
  title: 'The token before',
  help: 'mean weight on the token just before the query',
  keys: (query) => (query > 1 ? [query - 1] : []),
};
const AFTER = {
  id: 'next',
  title: 'The token after',
  help: 'mean weight on the token just after the query',
  keys: (query, { nKeys }) => (query > 1 && query + 1 < nKeys ? [query + 1] : []),
};
const FIRST = {
  id: 'first',
  title: 'The first token',
  help: 'mean weight on the first token, where heads rest when they have nothing to do',
  keys: (query) => (query > 1 ? [0] : []),
};
const INDUCTION = {
  id: 'induction',
  title: 'What came next last time',
  help: 'where a token repeats: mean weight on the tokens that followed it earlier (an induction head)',
  keys: (query, { tokens }) => earlier(query, tokens).map((key) => key + 1).filter((key) => key < query - 1),
};
const EARLIER = {
  id: 'duplicate',
  title: 'The same token earlier',
  help: 'where a token repeats: mean weight on its earlier occurrences',
  keys: (query, { tokens }) => earlier(query, tokens).filter((key) => key < query - 1),
};
const ELSEWHERE = {
  id: 'duplicate',
  title: 'The same token elsewhere',
  help: 'where a token repeats: mean weight on its other occurrences',
  keys: (query, { tokens }) => sameAs(query, tokens).filter((key) => Math.abs(key - query) > 1),
};
const DIAGONAL = {
  id: 'diagonal',
  title: 'About the same place',
  help: 'mean weight on the source tokens about as far into their sentence: a translation goes along with it',
  keys: (query, { tokens, nKeys }) => around(((query + 0.5) / tokens.length) * nKeys - 0.5, nKeys),
};

/**
 * For each place, the patterns worth looking for. A pattern names for each query the keys that it is
 * expected to attend to; none: the query does not count. Where a simpler pattern expects the same
 * key, nothing can be told apart, so there it does not count either.
 */
const PATTERNS = {
  decoder: [BEFORE, INDUCTION, EARLIER, FIRST],
  encoder: [BEFORE, AFTER, ELSEWHERE, FIRST],
  cross: [DIAGONAL, FIRST],
};

/** The keys within one token of a place between them. */
function around(place, count) {
  return Array.from({ length: count }, (_, key) => key).filter((key) => Math.abs(key - place) <= 1);
}

function sameAs(query, tokens) {
  if (tokens[query].is_special) return [];
  return tokens.flatMap(({ id }, key) => (key !== query && id === tokens[query].id ? [key] : []));
}

function earlier(query, tokens) {
  return sameAs(query, tokens).filter((key) => key < query);
}

/**
 * The head that fits each pattern best; a pattern that no head follows here is left out.
 * @param {import('./trace.js').Trace} trace
 * @param {import('./places.js').Place|null} [place]
 * @returns {Pattern[]}
 */
export function strongestHeads(trace, place = placeOf({}, trace)) {
  if (!place) return [];
  const tokens = tokensOf(trace, place.rows);
  const sentences = { tokens, nKeys: tokensOf(trace, place.columns).length };
  const layers = weightsAt(place, trace);
  return PATTERNS[place.id].flatMap(({ keys, ...pattern }) => {
    const expected = tokens.map((_, query) => keys(query, sentences));
    if (expected.every((of) => of.length === 0)) return [];
    const heads = layers.flatMap(({ layer, site }) => scoresOf(trace.tensors[site], expected, layer));
    const best = heads.reduce((strongest, head) => (head.score > strongest.score ? head : strongest));
    return best.score < WORTH_A_LOOK ? [] : [{ ...pattern, ...best }];
  });
}

/**
 * The layer and head to open where nobody chose one.
 * @param {import('./trace.js').Trace} trace
 * @param {import('./places.js').Place|null} place
 * @returns {{layer: number, head: number}}
 */
export function tellingHead(trace, place) {
  const found = strongestHeads(trace, place);
  return found.find(({ id }) => id === 'induction') ?? found[0] ?? { layer: 0, head: 0 };
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
