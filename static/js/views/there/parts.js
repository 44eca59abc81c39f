/**
 * The parts that make a head look at a key, with their names, folded to the strongest; and what is
 * said of them, each claim with the cut that backs it.
 */

import { describeRole, findPlaces, headInWords, labelledHeads } from '../../trace/attention.js';
import { nameToken, readSide } from '../../trace/word_names.js';
import { highestIn, matrixAt, rowOf } from '../../trace/trace.js';
import { capitalised } from '../../words/lists.js';
import { percent, share } from '../../words/numbers.js';
import { nameOf } from '../../rules/scene.js';
import { LOST } from '../../rules/thread.js';
import { withSign } from '../../plot/bars.js';

/**
 * @import { Answer as Answered } from '../../api/answers.js'
 * @import { cellOf } from '../derivation/cell.js'
 */

/** @typedef {{name: string, kind: string, layer: number|null, head: number|null, edge: string|null}} Part */
/** @typedef {{score: number, n_visible: number, notes: string[], query_parts: Part[], key_parts: Part[], query_side: NamedArray, key_side: NamedArray, table: NamedArray}} Answer of the analysis */
/** @typedef {{label: string, name: string, value: number, edges: string[], of: number[], part: Part|null}} Row a part, or several together; `of`: their places in the answer */
/** @typedef {'query'|'key'} SideOf */
/** @typedef {NonNullable<ReturnType<typeof cellOf>>} Cell */
/** @typedef {{cell: Cell, answer: Answer, query: Row[], key: Row[], before: number, cut: {row: Row, side: SideOf}|null}} Subject */

/** Parts by themselves; the others are folded, into so many groups of layers. */
const MOST = { parts: 10, groups: 4 };

/** @param {Trace} trace @param {Cell} cell @param {Answer} answer @param {SideOf} side @returns {Row[]} the strongest first, then the folded ones */
export function rowsOf(trace, { path }, answer, side) {
  const { data } = answer[`${side}_side`];
  const parts = answer[`${side}_parts`];
  const depth = Math.max(...parts.map(({ layer }) => layer ?? 0)) + 1;
  const order = [...parts.keys()].sort((a, b) => Math.abs(data[b]) - Math.abs(data[a]));
  /** @type {Map<number|string, number[]>} */
  const rows = new Map();
  order.forEach((at, rank) => {
    const { layer, name } = parts[at];
    const isAlone = layer === null || rank < MOST.parts;
    const id = isAlone ? name : Math.floor((layer * MOST.groups) / Math.max(depth, MOST.groups));
    rows.set(id, [...(rows.get(id) ?? []), at]);
  });
  return [...rows.entries()]
    .sort(([a], [b]) => groupOf(a) - groupOf(b))
    .map(([, of]) => ({
      ...namesOf(
        trace,
        path,
        of.map((at) => parts[at]),
      ),
      value: of.reduce((sum, at) => sum + data[at], 0),
      edges: of.flatMap((at) => parts[at].edge ?? []),
      of,
    }));
}

/** @param {number|string} id of a row @returns {number} −1: a part by itself */
const groupOf = (id) => (typeof id === 'number' ? id : -1);

/** @type {Record<string, string>} */
const NAMES = {
  position: 'its position',
  constant: 'the constant of all biases',
  distance: 'the distance between the two',
};

/** @param {Trace} trace @param {string} path of the attention @param {Part[]} parts of one row */
function namesOf(trace, path, parts) {
  const [part] = parts;
  const { name, kind, layer, head } = part;
  const layers = parts.map((each) => each.layer ?? 0);
  const label = name.replace(/^encoder\./, '');
  if (parts.length > 1) {
    const [first, last] = [Math.min(...layers), Math.max(...layers)];
    const where = first === last ? `layer ${first}` : `layers ${first}–${last}`;
    return { label: `${where}, ${parts.length} more`, name: `other parts of ${where}`, part: null };
  }
  if (layer === null) return { label, name: NAMES[kind] ?? `the ${label} itself`, part };
  const place = placeOf(path, part);
  const named = nameOf(trace, { place, layer, head });
  const noun = head !== null ? 'head' : named.includes('experts') ? 'experts' : 'network';
  const before = name.startsWith(place) ? `${place} ` : '';
  return {
    label: `${before}${noun} ${layer}${head === null ? '' : `.${head}`}`,
    name: named,
    part,
  };
}

/** @param {string} path of the attention @param {Part} part @returns {string} where in the model it is */
function placeOf(path, { name }) {
  return name.match(/^(encoder|cross)\./)?.[1] ?? path.split('.')[0];
}

/** Return the largest part in favour, if one is. @param {Row[]} rows */
export function strongestOf(rows) {
  const [best] = rows.filter(({ part }) => part).sort((a, b) => b.value - a.value);
  return best && best.value > 0 ? best : null;
}

/** @param {Answered|undefined} answer @param {Cell} cell @returns {{weight: number, most: number}|null} of the key, and where its row has most; null: the pass is not there */
export function weightIn(answer, { path, query, key }) {
  const weights = answer?.trace?.tensors[`${path}.weights`];
  if (!weights) return null;
  const row = rowOf(matrixAt(weights, 0), query);
  return { weight: row[key], most: highestIn(row) };
}

/**
 * Return the sentences above the drawings. A part is called the reason only where the weight falls
 * without it.
 * @param {Trace} trace @param {ViewState} state @param {Subject} subject @returns {string[]}
 */
export function saidOf(trace, state, subject) {
  const { cell, answer, before, cut } = subject;
  const { place, query, key } = cell;
  const from = nameToken(readSide(trace, place.rows), query);
  const at = nameToken(readSide(trace, place.columns), key);
  const head = capitalised(headInWords(trace, place, state.layer, state.head));
  const [best, looking] = [strongestOf(subject.key), strongestOf(subject.query)];
  const looks = answer.score > 0;
  const pass = cut && weightIn(state.answers?.cut, cell);
  return [
    looks
      ? `${head} looks from ${from} at ${at}${best ? leadSaid(trace, state, subject, best, at) : ''}.`
      : `${head} does not look from ${from} at ${at}: its score is ${withSign(answer.score)} against the mean of the ${answer.n_visible} tokens that it sees, and its weight ${share(before)}.`,
    ...(looks && looking ? [`On the query side ${mostOf(looking, answer.score, from)}.`] : []),
    ...answer.notes.map((note) => `${capitalised(note)}.`),
    ...(pass && !(looks && cut.row === best)
      ? [`Without ${cut.row.name} on the ${cut.side} side ${moved(trace, subject, pass)}.`]
      : []),
  ];
}

/** Return what the strongest part of the key does, and its cut. @param {Trace} trace @param {ViewState} state @param {Subject} subject @param {Row} best @param {string} at the token */
function leadSaid(trace, state, subject, best, at) {
  const { cell, answer, before } = subject;
  const what = whatOf(trace, cell, best, at);
  const lead = withSign(answer.score);
  const much =
    best.value <= answer.score
      ? `${percent(best.value / answer.score, 0)} of the lead of ${lead} on the key side`
      : `${withSign(best.value)} on the key side, where the lead is ${lead} in all`;
  const pass = weightIn(state.answers?.first, cell);
  if (!pass) return ` with weight ${share(before)}; ${what} gives ${much}`;
  const then = `without it ${moved(trace, subject, pass)}`;
  return pass.weight < (1 - LOST.much) * before
    ? ` because of ${what}: ${much}, and ${then}`
    : `; ${what} gives ${much}, ${pass.weight < (1 - LOST.little) * before ? 'and' : 'but'} ${then}`;
}

/** Return how the weight moves, and where the head looks most then. @param {Trace} trace @param {Subject} subject @param {{weight: number, most: number}} pass */
function moved(trace, { before, cell: { place, key, weights } }, { weight, most }) {
  const verb = weight < before ? 'falls' : 'rises';
  const isLittle = Math.abs(weight - before) < LOST.little * before;
  const said = `${isLittle ? 'almost nothing changes:' : `the weight ${verb}`} ${share(before)} → ${share(weight)}`;
  return most === key || most === highestIn(weights)
    ? said
    : `${said}; the head then looks most at ${nameToken(readSide(trace, place.columns), most)}`;
}

/** @param {Trace} trace @param {Cell} cell @param {Row} row of the key @param {string} at the token */
function whatOf(trace, { path, key }, { part, name }, at) {
  if (part?.kind === 'token') return itself(name, at);
  if (part?.kind === 'position') return `the place of ${at}`;
  if (!part || part.layer === null) return name;
  const place = findPlaces(trace).find(({ id }) => id === placeOf(path, part));
  const known = labelledHeads(trace, place ?? null, key).find(({ layer }) => layer === part.layer);
  const role = part.head !== null && known ? describeRole(known.heads[part.head]) : '';
  return `what ${name}${role && ` (“${role}”)`} wrote at ${at}`;
}

/** @param {Row} row of the query @param {number} score @param {string} from the token */
function mostOf({ part, name, value }, score, from) {
  const isMost = value > score / 2 && value <= score;
  const what = part?.kind === 'token' ? itself(name, from) : name;
  return `${isMost ? 'most comes from' : 'the largest part is'} ${what} (${withSign(value)})`;
}

/** @param {string} name of the part @param {string} token */
const itself = (name, token) =>
  `${token} itself${name.includes('position') ? ', with its position' : ''}`;
