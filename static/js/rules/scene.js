/**
 * The scene that the page opens with: what the opened head reads to choose the next word, what happens
 * without it, and the words that could stand there. Each sentence is measured: a part is called a
 * reason only if the pass without it says so.
 */

import { guessInWords, inQuotes } from '../words/tokens.js';
import {
  findPlaces,
  hasTwoSides,
  isFilling,
  isLabelling,
  isOfText,
  looksUpWritten,
} from '../trace/attention.js';
import { nameToken, nameWord, readSide } from '../trace/word_names.js';
import { isHeld } from '../trace/layered.js';
import { highestIn, matrixAt, rowOf } from '../trace/trace.js';
import { capitalised } from '../words/lists.js';
import { chance, percent } from '../words/numbers.js';
import { nextWords, partId, partOff, reasonsIn } from './prediction.js';

/**
 * @import { Side } from '../trace/attention.js'
 * @import { Chosen, PartOff, Reason, Reasons } from './prediction.js'
 */

/** @typedef {{side: Side, index: number}} Spot a token of the sentence, or of its translation */
/** @typedef {{from: Spot, to: Spot, share: number, isPast?: boolean}} Arc `isPast`: of a step before the one that is shown */
/** @typedef {{id: string, label: string, isOn: boolean}} Switch */
/** @typedef {{where?: string, layer: number|null, head: number|null}} Subject a head */

/**
 * @typedef {Object} Scene
 * @property {string} finding one sentence
 * @property {string} more what follows from it, or an invitation
 * @property {Switch|null} part that can be taken away
 * @property {Subject} subject the head whose arcs are drawn
 * @property {string} decisive the id of the head that decides, where another one is open
 * @property {ReturnType<typeof nextWords>} next
 * @property {string} rule how the rival was chosen, in words
 * @property {number|null} rival its id
 */

/** Weight of a key from which an arc is drawn. */
const ARC = 0.06;
const MOST_ARCS = 5;
/** The share of its probability that a word loses, below which a part changes little. */
const LITTLE = 0.05;
/** The share of a head's difference in logits from which its two halves are both told. */
const BOTH = 0.25;

/**
 * Return the arcs of a row of a head, from its word to the words that it reads.
 * @param {Trace} trace
 * @param {Subject} of
 * @param {number} position the row
 * @returns {Arc[]} the strongest first
 */
export function arcsOf(trace, of, position) {
  const place = placeOf(trace, of.where);
  const isCross = place !== null && place.rows !== place.columns;
  // A row of cross-attention writes the next word, but for the head that looks up the last one.
  const query = isCross && looksUpWritten(trace, of) ? position + 1 : position;
  const row = place && rowAt(trace, place, of, query);
  if (!row) return [];
  const from = { side: place.rows, index: isCross ? position + 1 : position };
  const { at, words: known } = readSide(trace, place.columns);
  const own = isCross ? -1 : at[query];
  /** @type {Map<number, {index: number, most: number, share: number}>} */
  const words = new Map();
  row.forEach((weight, index) => {
    const word = at[index] ?? -1;
    const id = word < 0 || word === own || known[word].isNumber ? -1 - index : word;
    const sum = words.get(id) ?? { index, most: 0, share: 0 };
    if (weight > sum.most) Object.assign(sum, { index, most: weight });
    sum.share += weight;
    words.set(id, sum);
  });
  return [...words.values()]
    .map(({ index, share }) => ({ from, to: { side: place.columns, index }, share }))
    .filter(({ share }) => share >= ARC)
    .sort((a, b) => b.share - a.share)
    .slice(0, MOST_ARCS);
}

/** @param {Trace} trace @param {string|undefined} where */
function placeOf(trace, where) {
  const places = findPlaces(trace);
  return places.find(({ id }) => id === where) ?? places.at(-1) ?? null;
}

/**
 * @param {Trace} trace
 * @param {{stack: string, ending: string}} place
 * @param {{layer: number|null, head: number|null}} of
 * @param {number} query
 */
function rowAt(trace, { stack, ending }, { layer, head }, query) {
  const weights = trace.tensors[`${stack}.layers.${layer}.${ending}.weights`];
  if (!isHeld(weights) || head === null || head >= weights.shape[0] || query >= weights.shape[1])
    return null;
  return rowOf(matrixAt(weights, head), query);
}

/**
 * @param {Trace} trace
 * @param {Chosen} state with the answers
 * @param {{position: number, isChosen: boolean, edit: string, isSaved?: boolean}} of `position` that predicts; `isChosen`: the reader chose the head; `edit`: an edit that is no part switched off, in words; `isSaved`: there is no other pass
 * @returns {Scene}
 */
export function sceneOf(trace, state, { position, isChosen, edit, isSaved = false }) {
  const next = nextWords(trace, state, position);
  const reasons = reasonsIn(state);
  const known = reasons?.position === position ? reasons : null;
  const off = partOff(trace, state);
  const subject = { where: state.where, layer: state.layer, head: state.head };
  const scene = {
    ...{ next, subject, part: null, decisive: '', rule: '', rival: null, finding: '', more: '' },
  };
  if (known) Object.assign(scene, { rule: ruleOf(trace, known), rival: known.against.id });
  if (off || edit) {
    return {
      ...scene,
      ...(off && off.head !== null && { subject: { ...off, where: off.place } }),
      ...editedScene(trace, next, off ? `Without ${nameOf(trace, off)}` : edit, known),
      part: off && { id: state.off, label: labelOf(off), isOn: false },
    };
  }
  if (!known) return scene;
  const told = intactScene(trace, state, known, isChosen);
  if (!isSaved) return { ...scene, ...told };
  return { ...scene, ...told, part: null, more: told.reason ? outcome(known, told.reason) : '' };
}

/**
 * Return what decides in the pass itself.
 * @param {Trace} trace
 * @param {Chosen} state
 * @param {Reasons} known
 * @param {boolean} isChosen
 * @returns {Partial<Scene> & {reason?: Reason}} `reason`: the part that can be taken away
 */
function intactScene(trace, state, known, isChosen) {
  const opened = openedIn(trace, state, known);
  const decisive = known.decisive === null ? null : known.reasons[known.decisive];
  if (decisive && (!isChosen || opened === decisive))
    return {
      subject: { ...decisive, where: partId(decisive).split(' ')[1] },
      ...decisiveScene(trace, known, decisive),
    };
  if (isChosen && opened)
    return { ...openedScene(trace, known, opened), decisive: decisive ? partId(decisive) : '' };
  return undecidedScene(trace, known);
}

/** Say what happens without a part, where it cannot be tried. @param {Reasons} reasons @param {Reason} reason */
function outcome({ token, probabilities: [before] }, { probabilities: [after], top }) {
  const moved = `Without it ${quoted(token.text)} goes from ${chance(before)} to ${chance(after)}`;
  return top.id === token.id ? `${moved}.` : `${moved}, and the likeliest is ${quoted(top.text)}.`;
}

/** @param {Trace} trace @param {Chosen} state @param {Reasons} reasons */
function openedIn(trace, { where, layer, head }, { reasons }) {
  const place = placeOf(trace, where)?.id;
  return reasons.find((reason) => partId(reason) === `head ${place} ${layer} ${head}`);
}

/** @param {Trace} trace @param {Reasons} reasons @param {Reason} decisive */
function decisiveScene(trace, reasons, decisive) {
  const word = quoted(reasons.token.text);
  const head = headName(trace, decisive);
  const read = readBy(trace, decisive, reasons.position);
  const isBack = read !== null && !read.isOther && !isFilling(trace);
  const verb = trace.target ? 'write' : 'choose';
  const choosing = isLabelling(trace)
    ? `To choose ${word}${isOfText(trace) ? '' : ` for ${labelledIn(trace, reasons)}`}`
    : isFilling(trace)
      ? `To put ${word} here`
      : `To ${verb} ${word}`;
  const effect = effectOf(reasons, decisive);
  const finding =
    read === null || (effect === '' && !read.isMost)
      ? `${choosing}, the model needs ${head}${effect && `: it ${effect}`}.`
      : read.isMost
        ? `${choosing}, the model looks ${isBack && read.isBefore ? 'back ' : ''}at ${read.name}: ${head} reads ${read.isItself ? 'it there' : 'it'} with ${read.share} of its weight${effect && `${effect.includes(' and ') ? ',' : ' and'} ${effect}`}.`
        : `${choosing}, the model needs ${head}: it ${effect}, most of all by what it takes from ${read.name} (${read.share} of its weight).`;
  return { finding, ...invitation(trace, decisive, 'that head') };
}

/** Return the word that gets the label, quoted. @param {Trace} trace @param {Reasons} reasons */
function labelledIn(trace, { position }) {
  const { start, end, text } = trace.tokens[position];
  return quoted(trace.text.slice(start, end) || text);
}

/** @param {Trace} trace @param {Reasons} reasons @param {Reason} opened */
function openedScene(trace, reasons, opened) {
  const read = readBy(trace, opened, reasons.position);
  const word = quoted(reasons.token.text);
  const [before, after] = [reasons.probabilities[0], opened.probabilities[0]];
  const name = capitalised(headName(trace, opened));
  const reads = read === null ? 'is open' : `reads ${read.name} with ${read.share} of its weight`;
  const loses = 1 - after / before;
  const said =
    Math.abs(loses) < LITTLE
      ? `taken away, it changes little: ${word} keeps ${chance(after)}`
      : `without it ${word} ${loses > 0 ? 'falls' : 'rises'} from ${chance(before)} to ${chance(after)}`;
  return { finding: `${name} ${reads}; ${said}.`, ...invitation(trace, opened, 'it') };
}

/** @param {Trace} trace @param {Reasons} reasons */
function undecidedScene(trace, reasons) {
  const word = quoted(reasons.token.text);
  const [strongest] = reasons.reasons;
  const heads = reasons.reasons.filter(({ head }) => head !== null);
  const least = Math.min(...heads.map(({ probabilities }) => probabilities[0]));
  if (!strongest || heads.length === 0) return { finding: '', more: '', part: null };
  const { n_layers: nLayers = 0, n_heads: nHeads = 0 } = trace.card ?? {};
  const all = findPlaces(trace).length * nLayers * nHeads;
  // Of a large model only the heads that add most were taken away: nothing is known of the others.
  const [who, alone] =
    heads.length < all
      ? [`None of the ${heads.length} heads that add most`, 'alone']
      : ['No single head', ''];
  const none = `${[who, 'decides', word, alone].filter(Boolean).join(' ')}: without any one of ${heads.length < all ? 'them' : `the ${heads.length} that were taken away`} it keeps at least ${atLeast(least)}.`;
  if (
    strongest.head !== null ||
    strongest.probabilities[0] > (1 - LITTLE) * reasons.probabilities[0]
  )
    return { finding: none, more: '', part: null };
  return { finding: none, ...invitation(trace, strongest, nameOf(trace, strongestOff(strongest))) };
}

/** @param {Reason} reason @returns {PartOff} */
function strongestOff({ site, layer, head }) {
  return { place: site.split('.')[0], layer, head };
}

/** @param {Trace} trace @param {Reason} reason @param {string} what */
function invitation(trace, reason, what) {
  const id = partId(reason);
  const [place] = id.split(' ').slice(1);
  const label = labelOf({ place, layer: reason.layer, head: reason.head });
  return {
    reason,
    more: `Switch ${what} off, and see what the model ${isLabelling(trace) ? 'chooses' : 'writes'}.`,
    part: { id, label, isOn: true },
  };
}

/**
 * Return what the model writes with an edit.
 * @param {Trace} trace
 * @param {ReturnType<typeof nextWords>} next
 * @param {string} edit
 * @param {Reasons|null} reasons
 */
function editedScene(trace, next, edit, reasons) {
  const { words, chosen, isEdited, least } = next;
  const listed = words.filter(({ probability }) => !Number.isNaN(probability));
  if (!isEdited || !chosen || listed.length === 0)
    return { finding: `${edit} …`, more: next.problem };
  const top = listed.reduce((best, word) => (word.probability > best.probability ? word : best));
  const was = listed.reduce((best, word) =>
    (word.before ?? 0) > (best.before ?? 0) ? word : best,
  );
  const verb = isLabelling(trace) ? 'chooses' : isFilling(trace) ? 'puts' : 'writes';
  const isSame = top.id === chosen.id;
  const finding =
    isSame && was.id === chosen.id
      ? `${edit}, the model still ${verb} ${quoted(top.text)}.`
      : `${edit}, the model ${verb} ${quoted(top.text)}.`;
  const ids = [chosen.id, ...(isSame ? [reasons?.against.id] : [top.id])];
  const moves = ids.flatMap((id) => {
    const word = words.find((each) => each.id === id);
    return word ? [moveOf(word, least)] : [];
  });
  return { finding, more: `${moves.join(', ')}.` };
}

/** @param {{text: string, probability: number, before?: number}} word @param {number[]} least */
function moveOf({ text, probability, before = NaN }, least) {
  const [first, last] = [chance(before, least[0]), chance(probability, least[1])];
  if (first === last) return `${quoted(text)} stays at ${last}`;
  const known = Number.isNaN(before) ? least[0] : before;
  const now = Number.isNaN(probability) ? least[1] : probability;
  return `${quoted(text)} ${now < known ? 'falls' : 'rises'} from ${first} to ${last}`;
}

/**
 * Return what a head does to the two words, from what it adds to their logits.
 * @param {Reasons} reasons
 * @param {Reason} reason
 */
function effectOf({ token, against }, { adds }) {
  if (!adds || adds[0] <= adds[1]) return '';
  const [lift, push] = [adds[0], -adds[1]];
  const whole = lift + push;
  const [word, rival] = [quoted(token.text), quoted(against.text)];
  if (push < BOTH * whole) return `lifts ${word} above ${rival}`;
  if (lift < BOTH * whole) return `pushes ${rival} down`;
  return `lifts ${word} and pushes ${rival} down`;
}

/** @param {Trace} trace @param {Reasons} reasons */
function ruleOf(trace, { rule, against, decisive, reasons }) {
  const rival = quoted(against.text);
  if (rule === 'given') return `against ${rival}, as chosen`;
  if (rule === 'text') return `against ${rival}, the other likely word of the text`;
  if (rule === 'gains' && decisive !== null)
    return `against ${rival}, which gains most without ${headName(trace, reasons[decisive])}`;
  return `against ${rival}, the next likeliest`;
}

/**
 * Return the word that a head reads, with the weight on all of its tokens.
 * @param {Trace} trace
 * @param {Reason} reason
 * @param {number} position
 */
function readBy(trace, { site, layer, head, key }, position) {
  const [stack, , , kind] = site.split('.');
  const place = findPlaces(trace).find((each) => each.stack === stack && each.ending === kind);
  const row = place && rowAt(trace, place, { layer, head }, position);
  const hasOne = place?.id === 'decoder' && position === 0; // nothing else to read
  if (!place || !row || key === null || hasOne) return null;
  const reading = readSide(trace, place.columns);
  const word = reading.at[key];
  const { first, last, isNumber } = reading.words[word ?? -1] ?? { first: key, last: key };
  const isWhole = word !== null && !isNumber && word !== ownWord(trace, place, position);
  const isOther = place.rows !== place.columns;
  const span = isWhole ? row.subarray(first, last + 1) : row.subarray(key, key + 1);
  const strongest = (isWhole ? first : key) + highestIn(span);
  const name = isWhole ? nameWord(reading, word) : nameToken(reading, key);
  return {
    name: reading.tokens[key].is_special && key === 0 ? 'the start of the text' : name,
    share: chance(span.reduce((sum, share) => sum + share, 0)),
    isOther,
    isMost: arcsOf(trace, { where: place.id, layer, head }, position)[0]?.to.index === strongest,
    isBefore: (isWhole ? last : key) < position,
    isItself: !isOther && key === position,
  };
}

/** @param {Trace} trace @param {{rows: Side, columns: Side}} place @param {number} position */
function ownWord(trace, { rows, columns }, position) {
  return rows === columns ? readSide(trace, rows).at[position] : null;
}

/** @param {Trace} trace @param {Reason} reason */
function headName(trace, reason) {
  const [, place] = partId(reason).split(' ');
  return nameOf(trace, { place, layer: reason.layer, head: reason.head });
}

/** @param {Trace} trace @param {PartOff} part */
export function nameOf(trace, { place, layer, head }) {
  const isPair = hasTwoSides(trace);
  if (head === null) {
    const parts = trace.card?.moe?.layers.includes(layer) ? 'experts' : 'network';
    return `the ${isPair ? `${place === 'encoder' ? 'encoder' : 'decoder'}’s ` : ''}${parts} of layer ${layer}`;
  }
  const where = findPlaces(trace).find(({ id }) => id === place);
  return `${!isPair || !where ? '' : `${where.name}, `}layer ${layer}, head ${head}`;
}

/** @param {PartOff} part */
function labelOf({ layer, head }) {
  return head === null ? `Network ${layer}` : `Head ${layer}.${head}`;
}

/** @param {string} text */
const quoted = (text) => inQuotes(guessInWords(text));

/** Round down, so that the bound stays true. @param {number} probability */
const atLeast = (probability) =>
  percent(
    probability < 0.1 ? Math.floor(probability * 1000) / 1000 : Math.floor(probability * 100) / 100,
    probability < 0.1 ? 1 : 0,
  );
