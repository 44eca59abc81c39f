/**
 * The attentions of a model: which tokens attend to which, and what each head does with this text.
 * A model of one stack has one sentence and one attention; an encoder–decoder has two sentences, the
 * source and the target, and three attentions. Labels and scores of heads come from the analysis
 * `head_labels`.
 */

import { capitalised } from '../words/lists.js';
import { share } from '../words/numbers.js';
import { agrees, rowsDoing } from './label_here.js';
import { isHeld } from './layered.js';
import { isCausal, layersWith } from './trace.js';

/** @typedef {'source'|'target'} Side the text that was given, or the one that a decoder reads in addition */

/**
 * @typedef {Object} Place
 * @property {'encoder'|'decoder'|'cross'} id
 * @property {string} title as a choice
 * @property {string} name in a sentence: `cross-attention`
 * @property {'encoder'|'decoder'} stack
 * @property {string} ending of its sites, after `layers.N.`
 * @property {Side} rows whose tokens attend
 * @property {Side} columns whose tokens are attended to
 */

/** @type {Omit<Place, 'rows'|'columns'>[]} */
const ALL = [
  { id: 'encoder', title: 'Encoder', name: 'encoder', stack: 'encoder', ending: 'self_attention' },
  { id: 'decoder', title: 'Decoder', name: 'decoder', stack: 'decoder', ending: 'self_attention' },
  {
    id: 'cross',
    title: 'Cross',
    name: 'cross-attention',
    stack: 'decoder',
    ending: 'cross_attention',
  },
];

/** Cross-attention comes first: it shows most of a translation. */
const FIRST_CHOICE = ['cross', 'decoder', 'encoder'];

/**
 * Return the places whose attention weights a trace holds.
 * @param {Trace} trace
 * @returns {Place[]} in the order of the model's parts
 */
export function findPlaces(trace) {
  return placesThat(
    trace,
    ({ stack, ending }) => layersWith(trace.tensors, `${ending}.weights`, stack).length > 0,
  );
}

/** @param {Trace} trace @param {(place: typeof ALL[number]) => boolean} hold @returns {Place[]} */
export function placesThat(trace, hold) {
  return ALL.filter(hold).map((place) => ({
    ...place,
    rows: sideOf(place.stack, trace),
    columns: place.id === 'cross' ? 'source' : sideOf(place.stack, trace),
  }));
}

/**
 * @param {{where?: string}} state
 * @param {Trace} trace
 * @returns {Place|null} the chosen one, or the first of the order above; null if there is none
 */
export function choosePlace({ where }, trace) {
  const places = findPlaces(trace);
  /** @param {string|undefined} wanted */
  const find = (wanted) => places.find(({ id }) => id === wanted);
  return find(where) ?? FIRST_CHOICE.map(find).find(Boolean) ?? null;
}

/** The choice of an attention, as views of heads offer it. */
export const ATTENTIONS = {
  places: (/** @type {Trace} */ trace) => (findPlaces(trace).length > 1 ? findPlaces(trace) : []),
  place: (/** @type {Trace} */ trace, /** @type {{where?: string}} */ state) =>
    choosePlace(state, trace)?.id,
};

/**
 * Return a head in a sentence: `cross-attention, layer 1, head 0`.
 * @param {Trace} trace
 * @param {Place|null} place
 * @param {number} layer
 * @param {number} head
 */
export function headInWords(trace, place, layer, head) {
  const where = place && findPlaces(trace).length > 1 ? `${place.name}, ` : '';
  return `${where}layer ${layer}, head ${head}`;
}

/**
 * Return the weights of a place, layer by layer.
 * @param {Pick<Place, 'stack'|'ending'>|null} place
 * @param {Trace} trace
 * @returns {{layer: number, site: string}[]}
 */
export function weightsAt(place, { tensors }) {
  return place ? layersWith(tensors, `${place.ending}.weights`, place.stack) : [];
}

/** As `weightsAt`, of the layers whose numbers are here. @param {Place|null} place @param {Trace} trace */
export function heldWeightsAt(place, trace) {
  return weightsAt(place, trace).filter(({ site }) => isHeld(trace.tensors[site]));
}

/** Return true unless the weights of a layer have to be asked for. @param {Trace} trace @param {Place} place @param {number|null} layer */
export function holdsLayer(trace, place, layer) {
  return !trace.isLayered || heldWeightsAt(place, trace).some((held) => held.layer === layer);
}

/** Heads from which a model is large: most of them rest on the first token, and little else is seen. */
const MANY_HEADS = 100;
/** Queries from which a text shows where heads rest. */
const FEW_QUERIES = 4;

/**
 * Return the share of the weight that heads of a large model put on the first token, if it is more
 * than half and so hides the rest; else 0.
 * @param {Pick<Trace, 'card'>} trace
 * @param {string} site of the weights of a decoder
 * @param {NamedArray} weights
 * @param {number[]} heads
 */
export function restOnFirst({ card }, site, { shape: [, rows, columns], data, scale }, heads) {
  const isLarge = card && card.n_layers * card.n_heads >= MANY_HEADS;
  if (!isLarge || !isCausal(site) || rows <= FEW_QUERIES || data.length === 0) return 0;
  let sum = 0;
  for (const head of heads)
    for (let row = 1; row < rows; row += 1) sum += data[(head * rows + row) * columns];
  const share = (sum * scale) / (heads.length * (rows - 1));
  return share > 0.5 ? share : 0;
}

/**
 * Return the stacks of an encoder–decoder, to choose from; of any other model there is nothing to
 * choose.
 * @param {Trace} trace
 * @returns {Place[]}
 */
export function findStacks(trace) {
  return hasTwoSides(trace) ? findPlaces(trace).filter(({ id }) => id !== 'cross') : [];
}

/**
 * Return the stack that is looked at: the chosen one, or the one that predicts.
 * @param {{where?: string}} state
 * @param {Trace} trace
 * @returns {'encoder'|'decoder'}
 */
export function chooseStack({ where }, trace) {
  if (hasTwoSides(trace)) return where === 'encoder' ? 'encoder' : 'decoder';
  return Object.keys(trace.tensors).some((site) => site.startsWith('encoder.'))
    ? 'encoder'
    : 'decoder';
}

/**
 * Return the side whose tokens a stack reads.
 * @param {'encoder'|'decoder'} stack
 * @param {Trace} trace
 * @returns {Side}
 */
export function sideOf(stack, trace) {
  return stack === 'decoder' && hasTwoSides(trace) ? 'target' : 'source';
}

/** @param {Trace} trace */
export function hasTwoSides({ target_tokens: target }) {
  return Boolean(target);
}

/** Return the side whose tokens the model predicts from. @param {Trace} trace @returns {Side} */
export function predictingSide(trace) {
  return hasTwoSides(trace) ? 'target' : 'source';
}

/** @param {Trace} trace @param {Side} side @returns {Token[]} */
export function tokensOf(trace, side) {
  return side === 'target' ? (trace.target_tokens ?? []) : trace.tokens;
}

/**
 * Return true if the model sees both ways: it predicts the token at each position, not the next.
 * @param {{card?: {kind: string}}} trace
 */
export function isFilling({ card }) {
  return card?.kind === 'encoder';
}

/**
 * Return true if a model predicts labels: they stand where words do elsewhere.
 * @param {{card?: {labels?: string[], predicts?: string}}} trace
 */
export function isLabelling({ card }) {
  return Boolean(card?.labels?.length) && card?.predicts !== 'answer';
}

/** Return true if the labels are of the whole text. @param {{card?: {labels?: string[], predicts?: string}}} trace */
export function isOfText(trace) {
  return isLabelling(trace) && trace.card?.predicts !== 'token_label';
}

/** Return the position at which the label of a whole text is read. @param {Trace} trace */
export const labelledAt = (trace) => (isFilling(trace) ? 0 : trace.tokens.length - 1);

/** Leads to the view of what made a head look at a key. */
export const WHY_THERE = 'Why does it look there?';

/** Return true if a model tells the parts of a score. @param {{card?: {analyses?: string[]}}} trace */
export function splitsScores({ card }) {
  return Boolean(card?.analyses?.includes('score_attribution'));
}

/** Return true if a trace is of two texts. @param {Trace} trace */
export const isPair = ({ tokens }) => tokens.some(({ role }) => role === 'second');

/** The four parts of the attention between the texts of a pair: who attends, and to which. @type {{from: string, to: string, title: string}[]} */
export const PAIR_PARTS = [
  { from: 'first', to: 'first', title: 'within A' },
  { from: 'second', to: 'second', title: 'within B' },
  { from: 'first', to: 'second', title: 'A to B' },
  { from: 'second', to: 'first', title: 'B to A' },
];

/** Return true for a reward model: it rates texts and predicts no token. @param {{card?: {analyses?: string[]}}} trace */
export function isRating({ card }) {
  return Boolean(card?.analyses?.includes('reward'));
}

/**
 * Return true if a head of cross-attention aligns the words of both languages by the row of the word
 * that was just written, as the card of its model says.
 * @param {Trace} trace
 * @param {{layer: number|null, head: number|null}} of
 */
export function looksUpWritten({ card }, { layer, head }) {
  const { aligner } = card ?? {};
  return aligner?.shift === 0 && aligner.layer === layer && aligner.head === head;
}

/**
 * @typedef {Object} Label
 * @property {string} id as the API names it
 * @property {string} title
 * @property {string} short for narrow spaces
 * @property {string} help what its score is
 */

/**
 * @typedef {Object} LabelledHead
 * @property {number} layer
 * @property {number} head
 * @property {Label|null} label null: this trace says nothing about it
 * @property {number|null} score between 0 and 1; null: no score reaches its threshold
 * @property {(Label & {score: number})[]|null} profile its labels over many sentences that this text does not disagree with, the highest score first; null: it was not measured, or the text disagrees with all
 */

/** @type {Record<string, [title: string, short: string, help: string]>} */
const TITLES = {
  previous: ['previous token', 'prev', 'mean weight on the token just before the query'],
  next: ['next token', 'next', 'mean weight on the token just after the query'],
  current: ['current token', 'self', 'mean weight on the query itself'],
  same_token: ['same token', 'same', 'for repeated tokens: mean weight on their other occurrences'],
  induction: [
    'induction',
    'ind',
    'for repeated tokens: mean weight on the tokens that followed them before',
  ],
  monotonic: [
    'monotonic',
    'mono',
    'how steadily the attended position advances with the query, as in translation',
  ],
  sink: [
    'sink',
    'sink',
    'mean weight on the first token, the first word or end tokens, where idle heads put it',
  ],
  broad: ['broad', 'broad', 'entropy of the weights, as a share of its maximum'],
  positional: ['positional', 'pos', 'the share of the weights that distance alone explains'],
  punctuation: ['punctuation', 'punc', 'over many sentences: mean weight on punctuation'],
  repetition: [
    'induction on random tokens',
    'rep',
    'over repeated random tokens: mean weight on the tokens that followed them before',
  ],
  subject: ['subject', 'subj', 'over made sentences: mean weight of a verb on its subject'],
  antecedent: ['antecedent', 'ante', 'over made sentences: mean weight of a pronoun on its noun'],
  multiplicand: [
    'multiplicand',
    'first',
    'over solutions: mean weight on the first factor while a partial product is written',
  ],
  multiplier: [
    'multiplier',
    'mult',
    'over solutions: mean weight on the digit that multiplies while a partial product is written',
  ],
  column: [
    'column',
    'col',
    'over solutions: mean weight on the digits at the same place while the sum is written',
  ],
  carry: [
    'carry',
    'carry',
    'over solutions: mean weight on the digits one place lower while the sum is written',
  ],
  narrow: ['narrow', 'narr', 'how concentrated the weights are: 1 − “broad”'],
  mixed: ['mixed', 'mix', 'no score of this head reaches its threshold in this text'],
};

/** @returns {[string, string][]} what each label means, in the words of the page */
export function labelsExplained() {
  return Object.values(TITLES).map(([title, , help]) => [capitalised(title), capitalised(help)]);
}

/** @typedef {{names: string[], labels: ArrayLike<number>, scores: NamedArray, queries: ArrayLike<number>}} Labelling in the API's order */

/** Labels that say which keys a head looks at; the others say how its weights spread. */
const LOOKS_AT = ['previous', 'next', 'current', 'same_token', 'induction', 'monotonic', 'sink'];

/** @param {string} id @returns {Label} a label that the page has no words for keeps its name */
export function describeLabel(id) {
  const [title, short, help] = TITLES[id] ?? [id.replaceAll('_', ' '), id.slice(0, 4), ''];
  return { id, title, short, help };
}

/**
 * Return the heads of a place, layer by layer. A label over many sentences is absent where this text
 * disagrees, or the open row.
 * @param {Trace} trace
 * @param {Place|null} place
 * @param {number} [query] the open row
 * @returns {{layer: number, heads: LabelledHead[]}[]}
 */
export function labelledHeads(trace, place, query = -1) {
  return weightsAt(place, trace).map(({ layer, site }) => {
    const labelling = labellingAt(trace, site);
    const profiles = trace.card?.head_labels?.[pathOf(site)];
    const heads = Array.from({ length: trace.tensors[site].shape[0] }, (_, head) => ({
      layer,
      head,
      ...labelIn(labelling, head),
      profile: place && profiles ? profileHere(trace, place, site, head, query) : null,
    }));
    return { layer, heads };
  });
}

/** @param {string} site of weights */
const pathOf = (site) => site.replace(/\.weights$/, '');

/** @param {Trace} trace @param {Place} place @param {string} site @param {number} head @param {number} query */
function profileHere(trace, place, site, head, query) {
  const all = Object.entries(trace.card?.head_labels?.[pathOf(site)][head] ?? {});
  const rowsOf = (/** @type {string} */ id) => rowsDoing(trace, place, site, head, id);
  const profile = all
    .filter(([id]) => agrees(rowsOf(id)))
    .map(([id, score]) => ({ ...describeLabel(id), score }));
  const told = toldLabel({ profile });
  const isOther = told ? rowsOf(told.id)[query] === false : all.length > 0;
  return isOther ? null : profile;
}

/**
 * Return the analysis of the attention with these weights; null if it was not requested.
 * @param {Trace} trace
 * @param {string} site
 * @returns {Labelling|null}
 */
function labellingAt({ analyses }, site) {
  const labels = analyses.head_labels;
  const path = pathOf(site);
  if (!labels?.[`${path}.label`]) return null;
  const [scores, queries] = ['label_scores', 'label_queries'].map(
    (name) => labels[`${path}.${name}`],
  );
  return {
    names: labels.labels,
    labels: labels[`${path}.label`].data,
    scores,
    queries: queries.data,
  };
}

/** @param {Labelling|null} labelling @param {number} head */
function labelIn(labelling, head) {
  if (!labelling) return { label: null, score: null };
  const index = labelling.labels[head];
  const nScores = labelling.scores.shape[1];
  return {
    label: describeLabel(labelling.names[index]),
    score: index < nScores ? labelling.scores.data[head * nScores + index] : null,
  };
}

/**
 * Return the head with the highest score for each label that says where a head looks; a label that
 * no head carries is left out.
 * @param {Trace} trace
 * @param {Place|null} place
 * @returns {(Label & {layer: number, head: number, score: number, queries: number})[]} in the API's order
 */
export function strongestHeads(trace, place) {
  const layers = weightsAt(place, trace)
    .map(({ layer, site }) => ({ layer, labelling: labellingAt(trace, site) }))
    .flatMap(({ layer, labelling }) => (labelling ? [{ layer, labelling }] : []));
  const names = layers[0]?.labelling.names ?? [];
  return names.flatMap((id, index) => {
    const best = LOOKS_AT.includes(id) ? strongest(layers, index) : null;
    return best ? [{ ...describeLabel(id), ...best }] : [];
  });
}

/** @param {{layer: number, labelling: Labelling}[]} layers @param {number} index */
function strongest(layers, index) {
  /** @type {{layer: number, head: number, score: number, queries: number}|null} */
  let best = null;
  for (const {
    layer,
    labelling: { labels, scores, queries },
  } of layers) {
    const [nHeads, nScores] = scores.shape;
    for (let head = 0; head < nHeads; head += 1) {
      if (labels[head] !== index) continue;
      const score = scores.data[head * nScores + index];
      if (!best || score > best.score) best = { layer, head, score, queries: queries[index] };
    }
  }
  return best;
}

/** The words of a label on the map, the most telling label first. @type {Record<string, string>} */
const ROLES = {
  repetition: 'repeats a phrase',
  induction: 'repeats a phrase',
  previous: 'token before',
  next: 'token after',
  punctuation: 'punctuation',
  current: 'itself',
  sink: 'rests',
};

/** All that `describeRole` may say, in one order for all models. */
export const ROLE_WORDS = [...new Set(Object.values(ROLES))];

/**
 * The scores from which a label is on the map: of every head that ships, most rows of unseen text then
 * do what it says. `tests/page/test_labels.py` measures that; a phrase that repeats in a text is less
 * sure to be continued than random tokens. Labels of subjects, sums and translations are measured as
 * shares of weight only, and are not on the map.
 */
const DESERVED = 0.54;
const DESERVED_BY_REPETITION = 0.75;

/** @param {Label & {score: number}} label */
const isDeserved = ({ id, score }) =>
  score >= (id === 'repetition' ? DESERVED_BY_REPETITION : DESERVED);

/**
 * Return the label of a head that is told: the most telling one of those that most of its rows
 * deserve, or else the one with the highest score.
 * @param {Pick<LabelledHead, 'profile'>} head
 * @returns {(Label & {score: number})|undefined}
 */
export function toldLabel({ profile }) {
  const deserved = profile?.filter(isDeserved);
  return (
    Object.keys(ROLES)
      .map((role) => deserved?.find(({ id }) => id === role))
      .find(Boolean) ?? profile?.[0]
  );
}

/**
 * Return what a head is for, over many sentences, in a few words.
 * @param {Pick<LabelledHead, 'profile'>} head
 * @returns {string} empty if it has no profile, or most of its rows do nothing of the kind
 */
export function describeRole(head) {
  const label = toldLabel(head);
  return label && isDeserved(label) ? (ROLES[label.id] ?? '') : '';
}

/**
 * Return a title without the word “token”, for narrow spaces.
 * @param {Pick<Label, 'title'>|null} label
 */
export function bareTitle(label) {
  return label?.title.replace(/ token$/, '') ?? '';
}

/** Return a head’s label in a few words: `sink 0.92`. @param {LabelledHead} head */
export function labelInWords({ label, score }) {
  if (!label) return '';
  return score === null ? label.title : `${label.title} ${share(score)}`;
}

/**
 * Return what a head does over many sentences, and in this text: `sink 0.96 over many texts, previous
 * token 0.61 in this text`.
 * @param {LabelledHead} head
 * @returns {string} empty if it has no label
 */
export function labelsInWords(head) {
  const many = head.profile?.map(({ title, score }) => `${title} ${share(score)}`).join(', ');
  const inText = head.label?.id === 'mixed' ? '' : labelInWords(head);
  return [many && `${many} over many texts`, inText && `${inText} in this text`]
    .filter(Boolean)
    .join(', ');
}
