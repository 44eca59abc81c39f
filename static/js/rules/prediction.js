/**
 * The prediction at the chosen place, and its causes: the likeliest tokens at the chosen place, the parts of the model that
 * speak most for one of them, and both again with a head switched off or a weight set by hand.
 */

import {
  isFilling,
  isRating,
  choosePlace,
  findPlaces,
  predictingSide,
  tokensOf,
} from '../trace/attention.js';
import { wordNames } from './head_insight.js';
import { highestIn, isCausal, matrixAt, rowOf } from '../trace/trace.js';
import { isMask } from '../trace/words.js';

/**
 * @import { NamedArray, Ask, Edit, Token, Trace } from '../trace/trace.js'
 * @import { Place } from '../trace/attention.js'
 * @import { Patch, State } from '../state/state.js'
 */

/** @typedef {State & Record<string, any>} Chosen the state of the page; `answers` to its requests */
/** @typedef {{id: number, text: string, probability: number, before?: number}} NextWord `before`: its probability in the model's own pass, where this one is edited */
/** @typedef {{word: string, part: string, value: number, patch: Patch}} Cause `word` that a head reads, or ''; `part`: the head, or the layer's network; `value` in logits */
/** @typedef {{heads: Map<string, number>, networks: Map<string, number>, most: number, token: string, against: string}} Effects in logits, by `place layer head` and `stack layer`; `most`: the largest size of a head's, or of a network's */

/** Words of the row. */
const MOST_WORDS = 4;
const MOST_CAUSES = 3;
/** The least share of the largest cause that is worth a button. */
const WORTH_TELLING = 0.1;
/** Without edits nothing is asked for again. @type {Edit[]} */
const NO_EDITS = [];

/**
 * Return the likeliest tokens at a position, and the one that came.
 * @param {Trace} trace
 * @param {number} position
 * @param {number} most
 * @returns {NextWord[]} likeliest first
 */
export function guessesAt(trace, position, most) {
  const guesses = listedAt(trace, position);
  const tokens = tokensOf(trace, predictingSide(trace));
  const came = isFilling(trace) ? tokens[position] : tokens[position + 1];
  const rank = guesses.findIndex(({ id }) => id === came?.id);
  if (!came || isMask(came) || (rank >= 0 && rank < most)) return guesses.slice(0, most);
  const actual = { id: came.id, text: came.text, probability: guesses[rank]?.probability ?? NaN };
  return [...guesses.slice(0, most), actual];
}

/** @param {Trace} trace @param {number} position @returns {NextWord[]} all that the trace lists, likeliest first */
function listedAt({ analyses: { next_token: prediction } }, position) {
  if (!prediction?.ids || position >= prediction.ids.shape[0]) return [];
  const ids = rowOf(matrixAt(prediction.ids), position);
  const probabilities = rowOf(matrixAt(prediction.probabilities), position);
  return Array.from(ids, (id, rank) => ({
    id,
    text: prediction.texts[position][rank],
    probability: probabilities[rank],
  }));
}

/** Return true if the trace predicts tokens that could be asked about. @param {Trace} trace */
export function isPredicting(trace) {
  return !trace.resolution && !isRating(trace) && Boolean(trace.analyses.next_token?.ids);
}

/**
 * Return the requests of the row of next words: the parts of the prediction, and the pass with the
 * edits of the state.
 * @param {Trace} trace
 * @param {Chosen} state
 * @param {{position: number, row: number}} at the position that predicts, and the row of attention that is shown
 * @returns {Record<string, Ask>}
 */
export function predictionAsks(trace, state, { position, row }) {
  if (!isPredicting(trace)) return {};
  const edits = collectEdits(trace, state, row);
  const { token } = state;
  return {
    ...(trace.card?.analyses.includes('logit_attribution') && {
      next_why: {
        capture: [],
        analyses: ['logit_attribution'],
        logit_difference: { position, ...(token !== null && { token }) },
      },
    }),
    ...(edits.length > 0 && { next_edited: { capture: [], analyses: ['next_token'], edits } }),
  };
}

/**
 * Return the edits of the state: a head that is switched off, a weight that is set, and edges that are
 * cut.
 * @param {Trace} trace
 * @param {Chosen} state
 * @param {number} row of attention that is shown
 * @returns {Edit[]}
 */
export function collectEdits(trace, state, row) {
  return [...offEdit(trace, state), ...weightEdit(trace, state, row), ...cutEdit(state)];
}

/** Return the edges that the view of circuits cuts, while it is open. @param {Chosen} state @returns {Edit[]} */
function cutEdit(state) {
  const edges = cutEdges(state);
  if (edges.length === 0) return NO_EDITS;
  return [{ kind: 'cut', edges, text: state.circuit_text.trim() }];
}

/** Return the edges that are cut for this sentence. @param {Chosen} state @returns {string[]} */
export function cutEdges({ view, circuit_task: task, circuit_text: text, circuit_cut: cut }) {
  const isOfSentence = view === 'circuit' && (task ?? 'sentence') === 'sentence';
  return isOfSentence && text?.trim() ? (cut ?? '').split(' ').filter(Boolean) : [];
}

/** @param {Trace} trace @param {Chosen} state @returns {Edit[]} */
function offEdit(trace, state) {
  const off = headOff(trace, state);
  if (!off) return NO_EDITS;
  const { place, layer, head } = off;
  const kind = CORPUS[state.off_to];
  if (!kind) return [{ kind: 'heads_off', heads: [head], layer, where: place }];
  const path = place === 'cross' ? 'decoder' : place;
  const name = place === 'cross' ? 'cross_attention' : 'self_attention';
  return [{ kind, site: `${path}.layers.${layer}.${name}.context`, heads: [head] }];
}

/** The kinds of edit in place of zero. @type {Record<string, string>} */
const CORPUS = { mean: 'corpus_mean', resample: 'resample' };

/**
 * Return the head that is switched off, which the id of its part names: `head decoder 3 3`.
 * @param {Trace} trace
 * @param {Chosen} state
 * @returns {{place: string, layer: number, head: number}|null} null: none, or none that the model has
 */
export function headOff(trace, { off }) {
  const [, place, ...numbers] = /^head (\w+) (\d+) (\d+)$/.exec(off) ?? [];
  const [layer, head] = numbers.map(Number);
  const { n_layers: nLayers = 0, n_heads: nHeads = 0 } = trace.card ?? {};
  const isOfModel = findPlaces(trace).some(({ id }) => id === place);
  return isOfModel && layer < nLayers && head < nHeads ? { place, layer, head } : null;
}

/** @param {Trace} trace @param {Chosen} state @param {number} query @returns {Edit[]} */
function weightEdit(trace, state, query) {
  const cell = state.weight === null ? null : chooseCell(trace, state, query);
  if (!cell) return NO_EDITS;
  const { site, head, key, row } = cell;
  const value = rowWith(row, key, state.weight ?? 0, state.weight_fixed);
  return [{ kind: 'set', site, heads: [head], positions: [query], value: Array.from(value) }];
}

/**
 * Return a row of weights with one of them set.
 * @param {Float64Array} row
 * @param {number} key
 * @param {number} weight
 * @param {boolean} isFixed true: the others stay; false: they are scaled so that the row sums to 1
 */
export function rowWith(row, key, weight, isFixed) {
  const others = row.reduce((sum, each, at) => (at === key ? sum : sum + each), 0);
  const scale = isFixed || others === 0 ? 1 : (1 - weight) / others;
  return row.map((each, at) => (at === key ? weight : each * scale));
}

/**
 * Return the cell whose weight can be set: the chosen one, or the strongest of the chosen row.
 * @param {Trace} trace
 * @param {Chosen} state
 * @param {number} query the row that is shown
 * @returns null: there is none, or it is one of the future
 */
export function chooseCell(trace, state, query) {
  const place = choosePlace(state, trace);
  const { layer, head } = state;
  if (!place || layer === null || head === null) return null;
  const site = `${place.stack}.layers.${layer}.${place.ending}.weights`;
  const weights = trace.tensors[site];
  const isInside = weights && query >= 0 && query < weights.shape[1] && head < weights.shape[0];
  if (!isInside) return null;
  const row = rowOf(matrixAt(weights, head), query);
  const key = state.key !== null && state.key < row.length ? state.key : highestIn(row);
  if (isCausal(site) && key > query) return null;
  return { site, head, query, key, row, place };
}

/**
 * Return the row of next words.
 * @param {Trace} trace
 * @param {Chosen} state
 * @param {number} position that predicts
 * @returns {{words: NextWord[], chosen: NextWord|null, isEdited: boolean, isWaiting: boolean, problem: string, least: number[]}} `least`: the least probability that is listed before and now; one that is not listed, NaN, is no larger
 */
export function nextWords(trace, state, position) {
  const own = guessesAt(trace, position, MOST_WORDS);
  const chosen = own.find(({ id }) => id === state.token) ?? own[0] ?? null;
  const listed = listedAt(trace, position);
  const unedited = {
    words: own,
    chosen,
    isEdited: false,
    least: [leastOf(listed), leastOf(listed)],
  };
  const edited = state.answers?.next_edited;
  if (!edited) return { ...unedited, isWaiting: false, problem: '' };
  const pass = edited.trace ?? edited.previous;
  const problem = edited.problem?.message ?? '';
  if (!pass) return { ...unedited, isWaiting: !problem, problem };
  const before = new Map(listed.map(({ id, probability }) => [id, probability]));
  const now = listedAt(pass, position);
  const words = now
    .filter(({ id }, rank) => rank < MOST_WORDS || id === chosen?.id)
    .map((word) => ({ ...word, before: before.get(word.id) ?? NaN }));
  const isLost = chosen && words.every(({ id }) => id !== chosen.id);
  const lost = isLost ? [{ ...chosen, probability: NaN, before: chosen.probability }] : [];
  return {
    words: [...words, ...lost],
    chosen,
    isEdited: true,
    isWaiting: !edited.trace,
    problem,
    least: [leastOf(listed), leastOf(now)],
  };
}

/** @param {NextWord[]} listed likeliest first */
const leastOf = (listed) => listed.at(-1)?.probability ?? 1;

/**
 * Return what speaks most for the chosen word: heads with the word that they read, and networks.
 * @param {Trace} trace
 * @param {Chosen} state
 * @returns {Cause[]} the strongest first; empty while they are not known
 */
export function findCauses(trace, state) {
  const attribution = state.answers?.next_why?.trace?.analyses.logit_attribution;
  if (!attribution) return [];
  const causes = [...headCauses(trace, attribution), ...networkCauses(trace, attribution)]
    .filter(({ value }) => value > 0)
    .sort((a, b) => b.value - a.value);
  const [{ value: most } = { value: 0 }] = causes;
  return causes.filter(({ value }) => value >= most * WORTH_TELLING).slice(0, MOST_CAUSES);
}

/** @typedef {Record<string, NamedArray> & {position: number, token: {text: string}, against: {text: string}, part_names: string[]}} Attribution */

/** The attentions of an attribution, with the place of their heads. */
const ATTENTIONS = /** @type {const} */ (['self_attention', 'cross_attention']);

/** Return the place of the heads that predict. @param {Trace} trace @param {string} attention */
function placeIn(trace, attention) {
  if (attention === 'cross_attention') return 'cross';
  return trace.card?.kind === 'encoder' ? 'encoder' : 'decoder';
}

/** @param {Trace} trace @param {any} attribution @returns {Cause[]} */
function headCauses(trace, attribution) {
  return ATTENTIONS.filter((kind) => attribution[`${kind}.heads`]).flatMap((kind) => {
    const { shape, data } = attribution[`${kind}.heads`];
    const keys = attribution[`${kind}.keys`];
    const where = placeIn(trace, kind);
    const side = where === 'cross' ? 'source' : predictingSide(trace);
    const tokens = tokensOf(trace, side);
    const names = wordNames(tokens, (side === 'target' ? trace.target : trace.text) ?? '');
    return Array.from({ length: shape[0] * shape[1] }, (_, at) => {
      const [layer, head] = [Math.floor(at / shape[1]), at % shape[1]];
      const key = keys ? strongestKey(keys, at) : -1;
      const isWord = key >= 0 && !tokens[key]?.is_special;
      return {
        word: isWord ? names[key] : '',
        part: `${where === 'cross' ? 'cross-attention ' : ''}layer ${layer}, head ${head}`,
        value: isWord ? ofWord(keys, at, tokens, key) : data[at],
        patch: {
          view: 'attention',
          ...{ layer, head, where, key: isWord ? key : null },
          query: attribution.position,
          attention_which: 'head',
        },
      };
    });
  });
}

/** @param {NamedArray} keys (layer, head, key) @param {number} at layer and head */
function strongestKey({ shape, data }, at) {
  const count = shape[2];
  let best = -1;
  let most = 0;
  for (let key = 0; key < count; key += 1)
    if (data[at * count + key] > most) [best, most] = [key, data[at * count + key]];
  return best;
}

/**
 * Return what a head reads from a word: from all of its tokens.
 * @param {NamedArray} keys (layer, head, key)
 * @param {number} at layer and head
 * @param {Token[]} tokens
 * @param {number} key a token of the word
 */
function ofWord({ shape, data }, at, tokens, key) {
  const { word } = tokens[key];
  return tokens.reduce(
    (sum, token, index) =>
      index === key || (word !== null && token.word === word)
        ? sum + data[at * shape[2] + index]
        : sum,
    0,
  );
}

/** @param {Trace} trace @param {any} attribution @returns {Cause[]} */
function networkCauses(trace, attribution) {
  return networksOf(attribution).map(({ layer, value }) => ({
    word: '',
    part: `layer ${layer}, ${trace.card?.moe?.layers.includes(layer) ? 'experts' : 'feed-forward network'}`,
    value,
    patch: { view: 'word', word_show: 'parts' },
  }));
}

/** @param {any} attribution */
function networksOf({ part_names: names, parts }) {
  return /** @type {string[]} */ (names).flatMap((name, index) => {
    const [, layer] = /^layers\.(\d+)\.feed_forward$/.exec(name) ?? [];
    return layer === undefined ? [] : [{ layer: Number(layer), value: parts.data[index] }];
  });
}

/**
 * Return the effect of each head and network on the chosen prediction, for the map.
 * @param {Trace} trace
 * @param {Chosen} state
 * @returns {Effects|null} null: it is not known, or not asked for
 */
export function readEffects(trace, state) {
  const attribution = (state.answers?.next_why?.trace ?? state.answers?.next_why?.previous)
    ?.analyses.logit_attribution;
  if (!attribution || state.map !== 'effect') return null;
  const heads = new Map(
    ATTENTIONS.filter((kind) => attribution[`${kind}.heads`]).flatMap((kind) => {
      const { shape, data } = attribution[`${kind}.heads`];
      return Array.from(data, (/** @type {number} */ value, /** @type {number} */ at) => [
        `${placeIn(trace, kind)} ${Math.floor(at / shape[1])} ${at % shape[1]}`,
        value,
      ]);
    }),
  );
  const stack = placeIn(trace, 'self_attention');
  const networks = new Map(
    networksOf(attribution).map(({ layer, value }) => [`${stack} ${layer}`, value]),
  );
  const sizes = [...heads.values(), ...networks.values()].map(Math.abs);
  return {
    ...{ heads, networks, most: Math.max(...sizes, 1e-9) },
    ...{ token: attribution.token.text, against: attribution.against.text },
  };
}
