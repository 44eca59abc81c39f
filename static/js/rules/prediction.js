/**
 * The prediction at the chosen place: the likeliest tokens, the parts that decide between one of them
 * and its rival, and both again with a part switched off or a weight set by hand.
 */

import {
  isFilling,
  isLabelling,
  isRating,
  choosePlace,
  findPlaces,
  predictingSide,
  tokensOf,
} from '../trace/attention.js';
import { isHeld } from '../trace/layered.js';
import { highestIn, isCausal, matrixAt, rowOf } from '../trace/trace.js';
import { isMask } from '../trace/words.js';

/** @typedef {State & Record<string, any>} Chosen the state of the page; `answers` to its requests */
/** @typedef {{id: number, text: string, probability: number, before?: number}} NextWord `before`: its probability in the model's own pass, where this one is edited */
/** @typedef {{heads: Map<string, number>, networks: Map<string, number>, most: number, mostOfNetworks: number, isEdited: boolean, token: string, against: string}} Effects in logits, by `place layer head` and `stack layer`; `most`: the largest size of a head's; `isEdited`: of the pass with the edits */

/** Words of the row. */
const MOST_WORDS = 4;
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
  if (isLabelling(trace)) return guesses.slice(0, most);
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
 * Return the requests of the row of next words: the parts that decide the prediction, and, once their
 * rival is known, the pass with the edits of the state, compared with the same rival.
 * @param {Trace} trace
 * @param {Chosen} state
 * @param {{position: number, row: number}} at the position that predicts, and the row of attention that is shown
 * @returns {Record<string, Ask>}
 */
export function predictionAsks(trace, state, { position, row }) {
  if (!isPredicting(trace)) return {};
  const edits = collectEdits(trace, state, row);
  const { token, against = null } = state;
  const analyses = trace.card?.analyses ?? [];
  // Each reason is a pass, and of a text that is read layer by layer one takes seconds.
  const hasReasons = analyses.includes('reasons') && !trace.isLayered;
  const reasons = reasonsIn(state);
  const isKnown = reasons?.position === position;
  const isReady = !hasReasons || isKnown || Boolean(state.answers?.next_why?.problem);
  const isSplit = isKnown && analyses.includes('logit_attribution');
  return {
    ...(hasReasons && {
      next_why: {
        capture: [],
        analyses: ['reasons'],
        logit_difference: {
          position,
          ...(token !== null && { token }),
          ...(against !== null && against !== token && { against }),
        },
      },
    }),
    ...(edits.length > 0 &&
      isReady && {
        next_edited: {
          capture: [],
          analyses: ['next_token', ...(isSplit ? ['logit_attribution'] : [])],
          ...(isSplit && { logit_difference: { position, ...idsOf(reasons) } }),
          ...(isKnown && { predictions: { tokens: Object.values(idsOf(reasons)) } }),
          edits,
        },
      }),
  };
}

/** @param {Reasons} reasons */
const idsOf = ({ token, against }) => ({ token: token.id, against: against.id });

/**
 * @typedef {Object} Reason a part that was taken away in a pass, as the API gives it
 * @property {string} site
 * @property {number} layer
 * @property {number|null} head
 * @property {[number, number]|null} adds logits of the token and of its rival
 * @property {number|null} key
 * @property {number|null} weight
 * @property {[number, number]} probabilities of both without it
 * @property {{id: number, text: string, probability: number}} top
 */

/** @typedef {{position: number, token: {id: number, text: string}, against: {id: number, text: string}, rule: 'given'|'text'|'gains'|'likeliest', probabilities: [number, number], decisive: number|null, reasons: Reason[]} & Record<string, any>} Reasons */

/** Return the reasons of the prediction; null: they are not known yet, or not offered. @param {Record<string, any>} state @returns {Reasons|null} */
export function reasonsIn({ answers }) {
  return answers?.next_why?.trace?.analyses.reasons ?? null;
}

/**
 * Return the token that the prediction is compared with, everywhere on the page: the chosen one, or
 * that of the reasons. A saved page splits a prediction against the next likeliest only.
 * @param {Record<string, any>} state
 * @returns {number|null} an id; null: the next likeliest
 */
export function rivalOf(state) {
  const { against = null, token } = state;
  if (against !== null && against !== token) return against;
  return state.isSaved ? null : (reasonsIn(state)?.against.id ?? null);
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
  const off = partOff(trace, state);
  if (!off) return NO_EDITS;
  const { place, layer, head } = off;
  if (head === null) return [{ kind: 'set', site: networkSite(trace, place, layer), value: 0 }];
  const kind = CORPUS[state.off_to];
  if (!kind) return [{ kind: 'heads_off', heads: [head], layer, where: place }];
  const path = place === 'cross' ? 'decoder' : place;
  const name = place === 'cross' ? 'cross_attention' : 'self_attention';
  return [{ kind, site: `${path}.layers.${layer}.${name}.context`, heads: [head] }];
}

/** The kinds of edit in place of zero. @type {Record<string, string>} */
const CORPUS = { mean: 'corpus_mean', resample: 'resample' };

/**
 * Return the sentences that means and draws are taken of; '' if the model has none.
 * @param {Trace['card']} [card]
 */
export function corpusInWords(card) {
  if (!card?.examples || Object.keys(card.head_labels ?? {}).length > 0) return 'a corpus';
  return card.examples.length > 0 ? 'the model’s examples (its heads were not measured)' : '';
}

/** @param {Trace} trace @param {string} stack @param {number} layer */
function networkSite({ card }, stack, layer) {
  const name = card?.moe?.layers.includes(layer) ? 'experts' : 'feed_forward';
  return `${stack}.layers.${layer}.${name}.output`;
}

/** @typedef {{place: string, layer: number, head: number|null}} PartOff `head` null: the network of a layer of this stack */

/**
 * Return the part that is switched off, which its id on the map names: `head decoder 3 3`, or
 * `network decoder 2`.
 * @param {Trace} trace
 * @param {{off: string}} state
 * @returns {PartOff|null} null: none, or none that the model has
 */
export function partOff(trace, { off }) {
  const [, kind, place, ...numbers] = /^(head|network) (\w+) (\d+)(?: (\d+))?$/.exec(off) ?? [];
  const [layer, head] = numbers.map((number) => (number === undefined ? null : Number(number)));
  const { n_layers: nLayers = 0, n_heads: nHeads = 0 } = trace.card ?? {};
  const isOfModel = findPlaces(trace).some(({ id }) => id === place);
  if (!isOfModel || typeof layer !== 'number' || layer >= nLayers) return null;
  if (kind === 'network') return head === null ? { place, layer, head: null } : null;
  return typeof head === 'number' && head < nHeads ? { place, layer, head } : null;
}

/** Return the id of a part that was taken away, by which `off` names it. @param {Reason} reason */
export function partId({ site, layer, head }) {
  const [stack, , , kind] = site.split('.');
  const place = kind === 'cross_attention' ? 'cross' : stack;
  return head === null ? `network ${stack} ${layer}` : `head ${place} ${layer} ${head}`;
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
  const isInside =
    isHeld(weights) && query >= 0 && query < weights.shape[1] && head < weights.shape[0];
  if (!isInside) return null;
  const row = rowOf(matrixAt(weights, head), query);
  const key = state.key !== null && state.key < row.length ? state.key : highestIn(row);
  if (isCausal(site) && key > query) return null;
  return { site, head, query, key, row, place };
}

/**
 * Return the row of next words: the likeliest, the chosen one and its rival.
 * @param {Trace} trace
 * @param {Chosen} state
 * @param {number} position that predicts
 * @returns {{words: NextWord[], chosen: NextWord|null, isEdited: boolean, isWaiting: boolean, problem: string, least: number[]}} `least`: the least probability that is listed before and now; one that is not listed, NaN, is no larger
 */
export function nextWords(trace, state, position) {
  const reasons = reasonsIn(state);
  const compared = reasons?.position === position ? comparedIn(reasons) : [];
  const own = guessesAt(trace, position, MOST_WORDS);
  const chosen = [...own, ...compared].find(({ id }) => id === state.token) ?? own[0] ?? null;
  const listed = listedAt(trace, position);
  const unedited = {
    words: withMore(own, compared),
    chosen,
    isEdited: false,
    least: [leastOf(listed), leastOf(listed)],
  };
  const edited = state.answers?.next_edited;
  if (!edited) return { ...unedited, isWaiting: false, problem: '' };
  const pass = edited.trace ?? edited.previous;
  const problem = edited.problem?.message ?? '';
  if (!pass) return { ...unedited, isWaiting: !problem, problem };
  const before = new Map([...listed, ...compared].map(({ id, probability }) => [id, probability]));
  const now = listedAt(pass, position);
  const told = chosenAt(pass, position, [...own, ...compared]);
  const words = withMore(now.slice(0, MOST_WORDS), told)
    .filter(({ id }, rank) => rank < MOST_WORDS || id === chosen?.id || id === compared[1]?.id)
    .map((word) => ({ ...word, before: before.get(word.id) ?? NaN }));
  const isLost = chosen && words.every(({ id }) => id !== chosen.id);
  const probability = now.find(({ id }) => id === chosen?.id)?.probability ?? NaN;
  const lost = isLost ? [{ ...chosen, probability, before: chosen.probability }] : [];
  return {
    words: [...words, ...lost],
    chosen,
    isEdited: true,
    isWaiting: !edited.trace,
    problem,
    least: [leastOf(listed), leastOf(now)],
  };
}

/** Return the token and its rival, with their probabilities. @param {Reasons} reasons @returns {NextWord[]} */
function comparedIn({ token, against, probabilities }) {
  return [token, against].map(({ id, text }, at) => ({ id, text, probability: probabilities[at] }));
}

/** @param {NextWord[]} words @param {NextWord[]} more */
function withMore(words, more) {
  return [...words, ...more.filter(({ id }) => words.every((word) => word.id !== id))];
}

/**
 * Return the tokens whose probabilities an edited pass was asked for.
 * @param {Trace} trace
 * @param {number} position
 * @param {NextWord[]} known with their texts
 * @returns {NextWord[]}
 */
function chosenAt({ analyses: { next_token: prediction } }, position, known) {
  if (!prediction?.chosen_ids) return [];
  const probabilities = rowOf(matrixAt(prediction.chosen_probabilities), position);
  return Array.from(prediction.chosen_ids.data, (id, at) => ({
    id,
    text: known.find((word) => word.id === id)?.text ?? `token ${id}`,
    probability: probabilities[at],
  }));
}

/** @param {NextWord[]} listed likeliest first */
const leastOf = (listed) => listed.at(-1)?.probability ?? 1;

/** The attentions of an attribution, with the place of their heads. */
const ATTENTIONS = /** @type {const} */ (['self_attention', 'cross_attention']);

/** Return the place of the heads that predict. @param {Trace} trace @param {string} attention */
function placeIn(trace, attention) {
  if (attention === 'cross_attention') return 'cross';
  return trace.card?.kind === 'encoder' ? 'encoder' : 'decoder';
}

/**
 * Return the effect of each head and network on the chosen prediction, for the map: of the edited pass,
 * if one is.
 * @param {Trace} trace
 * @param {Chosen} state
 * @returns {Effects|null} null: it is not known, or not asked for
 */
export function readEffects(trace, state) {
  if (state.map !== 'effect') return null;
  const { next_why: why, next_edited: edited } = state.answers ?? {};
  const pass = edited ? (edited.trace ?? edited.previous) : null;
  const split = edited
    ? pass?.analyses.logit_attribution
    : (why?.trace ?? why?.previous)?.analyses.reasons;
  const kinds = ATTENTIONS.filter((kind) => split?.[`${kind}.heads`]);
  if (!split || kinds.length === 0) return null;
  const heads = new Map(
    kinds.flatMap((kind) => {
      const { shape, data } = split[`${kind}.heads`];
      return Array.from(data, (/** @type {number} */ value, /** @type {number} */ at) => [
        `${placeIn(trace, kind)} ${Math.floor(at / shape[1])} ${at % shape[1]}`,
        value,
      ]);
    }),
  );
  const stack = placeIn(trace, 'self_attention');
  const written = Array.from(split.feed_forward?.data ?? [], Number);
  const networks = new Map(written.map((value, layer) => [`${stack} ${layer}`, value]));
  return {
    ...{ heads, networks, isEdited: Boolean(edited) },
    most: Math.max(...[...heads.values()].map(Math.abs), 1e-9),
    mostOfNetworks: Math.max(...written.map(Math.abs), 1e-9),
    ...{ token: split.token.text, against: split.against.text },
  };
}
