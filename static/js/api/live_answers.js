/**
 * The answers of a model whose graph runs in the browser, from the graph’s outputs: a trace, and a
 * token that continues a text, drawn as `headlight.model.generation.sampling` draws it.
 */

import { globOf } from './archive.js';
import { softmax } from '../trace/arithmetic.js';
import { translationOf } from './live_translation.js';
import { placeArrays, range, withParts } from '../trace/trace.js';

/** @import { Model } from './live_worker.js' */
/** @typedef {{temperature?: number|null, top_k?: number|null, top_p?: number|null}} Sampling */

/** The rules by which a rival is chosen, as in `headlight.model.analysis.reasons`. */
const RULES = ['text', 'gains', 'likeliest'];

/** @param {Model} by @param {Ask} body @returns {Promise<Trace>} */
export async function traceOf(by, body) {
  const { manifest, encode, run } = by;
  const { text = '', capture = [], analyses = [], edits, predictions, logit_difference } = body;
  const { id: model, revision, precision, texts, metadata } = manifest;
  const tokens = encode(text);
  const written = manifest.beam ? (body.target ?? (await translationOf(by, tokens))) : null;
  const target = written === null ? undefined : encode(written).slice(0, manifest.max_tokens);
  const wanted = /** @type {string[]} */ ([...analyses]);
  const isTakingAway = wanted.includes('reasons');
  if (logit_difference) wanted.push('reasons', 'logit_attribution');
  const globs = [...capture, ...(predictions ? ['logits'] : [])].map(globOf);
  const names = Object.keys(manifest.axes).filter((name) => {
    const [first, id] = name.split('.');
    return first === 'analyses' ? wanted.includes(id) : globs.some((glob) => glob.test(name));
  });
  const { position = (target ?? tokens).length - 1, ...ids } = /** @type {any} */ (
    logit_difference ?? {}
  );
  const wish = { edits, position, target, against: isTakingAway ? -1 : -2, ...ids, isTakingAway };
  const arrays = await run(tokens, names, wish);
  const told = Object.entries(metadata).filter(([id]) => wanted.includes(id));
  const { tensors, analyses: found } = placeArrays(arrays, Object.fromEntries(told));
  const { next_token: next, logit_lens: lens, reasons, logit_attribution: split } = found;
  for (const each of [next, lens]) if (each) each.texts = nested(each.ids, texts);
  if (next && predictions) Object.assign(next, predicted(arrays.logits, next.ids, predictions));
  if (reasons) {
    const [token, rival] = Array.from(reasons.tokens.data, (id) => ({ id, text: texts[id] }));
    Object.assign(split, { position, token, against: rival });
    found.reasons = isTakingAway && { ...split, ...reasonsOf(manifest, reasons, ids) };
  }
  return {
    ...{ id: '', model, revision, precision, text, tokens: withParts(tokens, text) },
    ...{ target: written, target_tokens: target ? withParts(target, written ?? '') : null },
    ...{ timings: {}, tensors, analyses: found },
  };
}

/** Return the texts of token ids, nested as the ids are. @param {NamedArray} ids @param {string[]} texts @returns {any[]} */
function nested({ shape, data }, texts) {
  let parts = /** @type {any[]} */ (Array.from(data, (id) => texts[id]));
  for (const size of shape.slice(1).reverse())
    parts = range(parts.length / size).map((at) => parts.slice(at * size, (at + 1) * size));
  return parts;
}

/**
 * Return the members of the analysis of reasons that are no arrays, from rows of a pass: the text
 * itself, then without a part each.
 * @param {Manifest} manifest @param {Record<string, NamedArray>} found @param {{against?: number}} asked
 */
function reasonsOf({ parts, texts }, found, asked) {
  /** @param {string} name @param {number} row */
  const at = (name, row) => found[name].data[row];
  /** @param {string} name @param {number} row */
  const pair = (name, row) => [at(name, 2 * row), at(name, 2 * row + 1)];
  const reasons = parts.map((part, index) => {
    const row = index + 1;
    const id = at('top', row);
    const top = { id, text: texts[id], probability: at('top_probability', row) };
    const read = part.head === null ? [null, null] : [at('key', row), at('weight', row)];
    const of = { adds: pair('adds', row), probabilities: pair('probabilities', row) };
    return { ...part, ...of, row, top, key: read[0], weight: read[1] };
  });
  reasons.sort((a, b) => at('lost', b.row) - at('lost', a.row));
  const decisive = reasons.findIndex(({ row }) => row === at('decisive', 0));
  return {
    rule: asked.against === undefined ? RULES[at('rule', 0)] : 'given',
    probabilities: pair('probabilities', 0),
    reasons,
    decisive: decisive < 0 ? null : decisive,
  };
}

/**
 * Return what a request asks of the predictions besides the ids of the likeliest tokens.
 * @param {NamedArray} logits @param {NamedArray} ids @param {NonNullable<Ask['predictions']>} asked
 */
function predicted({ shape: [count, size], data }, ids, { tokens = [], ...sampling }) {
  const rows = range(count).map((row) => rowOf(data, row, size));
  const chosen = rows.flatMap((row) => tokens.map((id) => softmax(row)[Number(id)]));
  const sampled = rows.flatMap((row, at) => {
    const shares = samplingDistribution(row, sampling);
    return rowOf(ids.data, at, ids.shape[1]).map((id) => shares[id]);
  });
  const of = { axes: ['query', 'token'], shape: [count, tokens.length], scale: 1 };
  return {
    chosen_ids: { axes: ['token'], shape: [tokens.length], data: tokens.map(Number), scale: 1 },
    chosen_probabilities: { ...of, data: chosen },
    ...(Object.keys(sampling).length > 0 && { sampled: { ...ids, data: sampled } }),
  };
}

/** @param {ArrayLike<number>} data @param {number} row @param {number} size @returns {number[]} */
function rowOf(data, row, size) {
  return Array.prototype.slice.call(data, row * size, (row + 1) * size);
}

/**
 * Return the next token of a text, as the server’s event tells it.
 * @param {Model} model
 * @param {Sampling & {text: string, added: number[], chance: number, forced?: number, repetition_penalty?: number, n_alternatives?: number, edits?: Ask['edits']}} step `added`: the tokens after the text so far; `chance`: a random number from 0 to 1
 */
export async function stepOf({ manifest, encode, run }, step) {
  const { text, added, chance, forced, repetition_penalty: penalty = 1, edits } = step;
  const { texts, end_id, attentions, sizes } = manifest;
  const typed = encode(text);
  const tokens = [...typed, ...added.map((id) => ({ ...typed[0], id }))];
  const paths = attentions.map((path) => `${path}.weights`);
  const { logits: all, ...weights } = await run(tokens, ['logits', ...paths], { edits });
  const logits = rowOf(all.data, tokens.length - 1, all.shape[1]);
  const own = softmax(logits);
  for (const id of new Set(tokens.map((token) => token.id)))
    logits[id] *= logits[id] > 0 ? 1 / penalty : penalty;
  const drawn = samplingDistribution(logits, step);
  let left = chance;
  const found = drawn.findIndex((each) => (left -= each) < 0);
  const id = forced ?? (found < 0 ? drawn.findLastIndex((each) => each > 0) : found);
  /** @param {number} each */
  const described = (each) => ({
    ...{ id: each, text: texts[each], probability: drawn[each], model_probability: own[each] },
  });
  const order = ranked(own);
  const { length } = tokens;
  const heads = range(sizes.n_heads);
  /** @param {NamedArray} of */
  const lastRows = (of) => heads.map((head) => rowOf(of.data, (head + 1) * length - 1, length));
  const layers = attentions.map((path) => Number(path.split('.')[2]));
  return {
    attention: { layers, heads, data: paths.map((path) => lastRows(weights[path])) },
    ...{
      ...described(id),
      index: added.length,
      position: tokens.length,
      rank: order.indexOf(id) + 1,
    },
    ...{ is_special: id === end_id, is_forced: forced !== undefined },
    alternatives: order.slice(0, step.n_alternatives ?? 5).map(described),
  };
}

/** Return the ids, the likeliest first; of equals the smaller one. @param {Float64Array} shares */
function ranked(shares) {
  return Array.from(shares, (_, id) => id).sort((a, b) => shares[b] - shares[a] || a - b);
}

/** Apply temperature, then top-k, then top-p. @param {number[]} logits @param {Sampling} sampling */
function samplingDistribution(logits, { temperature, top_k: k, top_p: p }) {
  const own = softmax(logits.map((each) => each / (temperature || 1)));
  const kept = new Float64Array(own.length);
  const order = ranked(own).slice(0, temperature === 0 ? 1 : (k ?? own.length));
  const all = order.reduce((sum, id) => sum + own[id], 0);
  let reached = 0;
  for (const id of order) {
    if (reached > 0 && reached / all >= (p ?? 2)) break;
    kept[id] = own[id];
    reached += own[id];
  }
  return kept.map((each) => each / reached);
}
