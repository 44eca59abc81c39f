/**
 * The two sides of a comparison. A is the page's own pass; B is one with an edit, with another
 * sentence, or of another model.
 */

import { cardOf, modelName, wholeOf } from '../../api/calls.js';
import { shortened } from '../../words/text.js';
import { hasTwoSides, headInWords, choosePlace, heldWeightsAt } from '../../trace/attention.js';
import { range } from '../../trace/trace.js';
import { sharedLength } from '../../trace/words.js';
import { request, weightSites } from '../../api/answers.js';
import { withSystem } from '../../state/conversation.js';
import { editInWords, writeEdits, pathsOf } from './edits.js';
import { raterOf } from './models.js';

/**
 * @import { Place } from '../../trace/attention.js'
 * @import { Request } from '../../plot/grid.js'
 * @import { Part, Wish } from './edits.js'
 */

const NEEDED = { needs: ['logits', 'analyses.next_token.ids'], also: weightSites };
const NAME_LETTERS = 48;
/** Letters kept of a shared beginning, before the first difference. */
const LEAD_LETTERS = 16;

/**
 * @typedef {Object} Side
 * @property {Trace} trace
 * @property {string} name its distinguishing name
 * @property {Place|null} place
 * @property {number} layer
 * @property {number} head
 * @property {string|null} site of the attention weights
 * @property {Request} request what a call for its numbers names besides what is captured
 */

/** The choice of every layer, where an edit could be of one. */
export const ALL_LAYERS = 'all';

/**
 * Return the edit in the state: numbers that the model does not have are left out; without any, the
 * shown head of the shown layer. Other edits are of all layers unless one is chosen.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Wish}
 */
export function readWish(trace, state) {
  const { card } = trace;
  const layers =
    (state.compare_edit === 'experts' ? card?.moe?.layers : null) ?? range(card?.n_layers ?? 0);
  /** @param {number[]} numbers @param {number} count */
  const known = (numbers, count) => numbers.filter((number) => number < count);
  /** @param {number[]} numbers @param {number} standard */
  const or = (numbers, standard) => (numbers.length > 0 ? numbers : [standard]);
  const kind = isOffered(state.compare_edit, card) ? state.compare_edit : 'heads';
  const wanted = state.compare_layer ?? (kind === 'heads' ? state.layer : null);
  const layer = layers.includes(wanted) && !isOutsideLayers(state) ? wanted : null;
  const where = placeOfEdit(card, state);
  return {
    kind,
    to: state.compare_to,
    ...pathsOf(card, layer, where),
    heads: or(known(state.compare_heads, card?.n_heads ?? 0), headOf(state, card?.n_heads ?? 0)),
    experts: or(known(state.compare_experts, card?.moe?.n_experts ?? 0), 0),
    temperature: state.compare_temperature,
    bits: Math.round(state.compare_bits),
    part: state.compare_part,
    modules: modulesOf(state.compare_part, layer, card),
    layer,
    where,
  };
}

/**
 * Return true if the model has experts to switch off, or weights that a pass can quantize.
 * @param {string} kind of an edit
 * @param {Card|undefined} card
 */
export function isOffered(kind, card) {
  if (kind === 'experts') return Boolean(card?.moe);
  if (kind === 'quantize') return card?.analyses?.includes('quantization_sensitivity') ?? true;
  return true;
}

/** @param {Card|undefined} card @param {ViewState} state */
function placeOfEdit(card, { compare_edit: kind, compare_where: where }) {
  if (card?.kind !== 'encoder-decoder' || kind === 'quantize') return 'all';
  return kind === 'experts' && where === 'cross' ? 'all' : where;
}

/** Return true if the edit acts on the embedding, which lies in no layer. @param {ViewState} state */
export function isOutsideLayers({ compare_edit: kind, compare_part: part }) {
  return kind === 'quantize' && part === 'embedding';
}

/**
 * Return the open head, limited to the heads of the model.
 * @param {ViewState} state
 * @param {number} count
 */
function headOf({ head }, count) {
  return Math.min(head ?? 0, Math.max(count - 1, 0));
}

/**
 * Open another head while the edit keeps its heads.
 * @param {{a: Side}} sides
 * @param {ViewState} state
 * @param {{layer: number, head: number}} shown
 */
export function showing({ a }, state, shown) {
  const wish = state.compare_with === 'edit' && a.trace.card ? readWish(a.trace, state) : null;
  return {
    ...shown,
    ...(wish?.kind === 'heads' && {
      compare_heads: wish.heads,
      compare_layer: wish.layer ?? ALL_LAYERS,
    }),
  };
}

/**
 * Return the models that this one can be compared with: other states of its training, then those of its kind.
 * @param {{card?: Card}} of
 * @param {Card[]} cards
 */
export function othersOf({ card }, cards) {
  const others = cards.filter(({ id }) => id !== card?.id);
  const whole = cards.find(({ id }) => id === wholeOf(card?.id ?? ''));
  const states = (whole?.steps ?? []).map(({ step }) => `${whole?.id}@${step}`);
  const catalogue = { models: cards, default: '' };
  return [
    ...states.filter((id) => id !== card?.id).flatMap((id) => cardOf(catalogue, id) ?? []),
    ...others.filter(({ kind }) => kind === card?.kind),
    ...others.filter(({ kind }) => kind !== card?.kind),
  ];
}

/**
 * Return the chosen other model, or the first; undefined: there is none.
 * @param {Trace} trace
 * @param {ViewState} state
 */
export function otherOf(trace, { compare_model: id, cards }) {
  const others = othersOf(trace, cards);
  return others.find((card) => card.id === id) ?? others[0];
}

/**
 * Return the request members in which B differs from A.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Ask|null} null: there is no B yet
 */
function memberOfB(trace, state) {
  const target = trace.target?.trim() ? trace.target : null;
  if (state.compare_with === 'edit') return { edits: writeEdits(readWish(trace, state)) };
  if (state.compare_with === 'text' && trace.asked?.messages)
    return { messages: withSystem(trace.asked.messages, state.compare_text) };
  if (state.compare_with === 'text')
    return state.compare_text.trim() === '' ? null : { text: state.compare_text, target };
  const otherCard = otherOf(trace, state);
  return otherCard
    ? {
        model: otherCard.id,
        text: trace.text,
        target: otherCard.kind === 'encoder-decoder' ? target : null,
      }
    : null;
}

/** @param {Trace} trace @param {ViewState} state @returns {Record<string, Ask>} */
export function asks(trace, state) {
  const member = trace.card && memberOfB(trace, state);
  if (!trace.card || !member) return {};
  const card = (state.compare_with === 'model' ? otherOf(trace, state) : null) ?? trace.card;
  return {
    before: { capture: ['logits'] },
    after: { ...request([NEEDED], card), ...member },
    ...(state.compare_with === 'model' && ofModels(trace, state, card)),
  };
}

/**
 * Return the full cards of A and B, and the text as a reward model among them rates it.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Card} theirs
 * @returns {Record<string, Ask>}
 */
function ofModels(trace, { cards }, theirs) {
  const rater = raterOf(trace, cards);
  return {
    ours: { card: trace.model },
    theirs: { card: theirs.id },
    ...(rater &&
      [trace.model, theirs.id].includes(rater.id) && {
        rated: { model: rater.id, text: trace.text, capture: [], analyses: ['reward'] },
      }),
  };
}

/**
 * @param {Trace} trace
 * @param {ViewState} state whose answers are here
 * @returns {{a: Side, b: Side}}
 */
export function readSides(trace, state) {
  const a = sideOf(trace, state, nameOfA(trace, state));
  const after = state.answers.after?.trace ?? trace;
  const b = sideOf(after, { ...state, where: a.place?.id ?? '' }, nameOfB(trace, state));
  return { a: { ...a, request: {} }, b: { ...b, request: memberOfB(trace, state) ?? {} } };
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {string} name
 * @returns {Omit<Side, 'request'>}
 */
function sideOf(trace, state, name) {
  const place = choosePlace(state, trace);
  const layers = heldWeightsAt(place, trace);
  const open = layers.find(({ layer }) => layer === state.layer) ?? layers.at(-1);
  const heads = open ? trace.tensors[open.site].shape[0] : 0;
  return {
    trace,
    name,
    place,
    layer: open?.layer ?? 0,
    head: headOf(state, heads),
    site: open?.site ?? null,
  };
}

/** @param {Trace} trace @param {ViewState} state */
function nameOfA(trace, { compare_with: way, compare_text: otherText }) {
  if (way === 'text' && trace.asked?.messages) return 'the conversation';
  if (way === 'text') return tellingPart(trace.text, otherText);
  return way === 'model' ? modelName(trace.card, trace.model) : 'as it is';
}

/**
 * Return a sentence shortened to the part that differs: a shared beginning is cut to a few words.
 * @param {string} sentence
 * @param {string} otherSentence
 * @returns {string} in quotation marks
 */
function tellingPart(sentence, otherSentence) {
  const letters = [...sentence];
  const others = [...otherSentence];
  const same = sharedLength(letters, others);
  const cut =
    same < letters.length || same < others.length
      ? letters.lastIndexOf(' ', Math.max(0, same - LEAD_LETTERS))
      : 0;
  const part = cut > 0 ? `…${letters.slice(cut).join('')}` : sentence;
  const short = shortened(part, NAME_LETTERS);
  return /[“”"]/u.test(short) ? `‘${short}’` : `“${short}”`;
}

/** @param {Trace} trace @param {ViewState} state */
export function nameOfB(trace, state) {
  if (state.compare_with === 'edit') return editInWords(readWish(trace, state));
  if (state.compare_with === 'text' && trace.asked?.messages)
    return state.compare_text.trim()
      ? `system: “${state.compare_text}”`
      : 'without your system prompt';
  if (state.compare_with === 'text') return tellingPart(state.compare_text, trace.text);
  return modelName(otherOf(trace, state));
}

/** Return the open attention of a side: `layer 1, head 0`. @param {Side} side */
export function attentionOf({ trace, place, layer, head }) {
  return headInWords(trace, place, layer, head);
}

/** @typedef {Side & {place: Place, site: string}} MappedSide a side with attention weights */

export const NO_ATTENTION = 'This model’s pass holds no attention weights.';

/** @param {Side|null} side @returns {side is MappedSide} */
export function isMapped(side) {
  return Boolean(side?.place && side.site);
}

/**
 * Return true if both sides show the same kind of attention between the same kinds of text.
 * @param {Side} a
 * @param {Side} b
 */
export function isSamePlace(a, b) {
  return a.place?.id === b.place?.id && hasTwoSides(a.trace) === hasTwoSides(b.trace);
}

/**
 * Return globs of the modules whose weights are quantized; null: every matrix of the model.
 * @param {Part} part
 * @param {number|null} layer
 * @param {Card|undefined} card
 */
function modulesOf(part, layer, card) {
  if (part === 'embedding') return ['*.embedding'];
  if (part === 'all') return layer === null ? null : [`*.layers.${layer}`];
  const names = part === 'attention' ? ['*_attention'] : feedForwards(layer, card);
  return names.map((name) => `*.layers.${layer ?? '*'}.${name}`);
}

/** @param {number|null} layer @param {Card|undefined} card */
function feedForwards(layer, card) {
  const layers = layer === null ? range(card?.n_layers ?? 0) : [layer];
  const names = layers.map((index) =>
    card?.moe?.layers.includes(index) ? 'experts' : 'feed_forward',
  );
  return [...new Set(names)];
}
