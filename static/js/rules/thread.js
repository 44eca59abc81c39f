/**
 * The thread of a prediction, step by step: the head that spoke for it, and why each head looked where
 * it did. A part is called a reason only where half of the weight is lost without it.
 */

import { isFilling, labelledHeads, describeRole, findPlaces, sideOf } from '../trace/attention.js';
import { nameToken, readSide } from '../trace/word_names.js';
import { capitalised } from '../words/lists.js';
import { percent, share as weightInWords, signed } from '../words/numbers.js';
import { guessInWords, inQuotes } from '../words/tokens.js';
import { nameOf } from './scene.js';

/** @import { Side } from '../trace/attention.js' @import { Spot } from './scene.js' */

/** @typedef {{name: string, share: number}} Shared */
/** @typedef {Shared & {kind: string, side: 'logits'|'query'|'key'|'', others: Shared[], opposite: Shared|null, attention: string|null, head: number|null, query: number|null, key: number|null, weight: number|null, adds: [number, number]|null, edge: string|null, before: number|null, after: number|null}} Step as the API gives it */
/** @typedef {{position: number, token: {text: string}, against: {text: string}, steps: Step[], at: number}} Thread `at`: the step that is shown */

/** The shares of a weight that are lost where a part is a reason, and where it changes little. */
export const LOST = { much: 0.5, little: 0.05 };

/** Return the thread of the open view; null: none is open, or it is not known yet. @param {Record<string, any>} state @returns {Thread|null} */
export function threadIn({ view, word_show: show, word_step: at, answers }) {
  const thread =
    view === 'word' && show === 'thread' && answers?.parts?.trace?.analyses.attention_thread;
  return thread ? { ...thread, at: Math.min(at ?? 0, thread.steps.length - 1) } : null;
}

/** Return the change that goes a step on or back; null: there is none. @param {Record<string, any>} state @param {number} by @returns {{word_step: number}|null} */
export function walked(state, by) {
  const thread = threadIn(state);
  const to = (thread?.at ?? 0) + by;
  return thread?.steps[to] ? { word_step: to } : null;
}

/** Return the two tokens of a cell. @param {Trace} trace @param {Step} step @returns {{from: Spot, to: Spot}|null} null: the step is no head */
export function endsOf(trace, { attention, query, key }) {
  if (attention === null || query === null || key === null) return null;
  const [stack, , , kind] = attention.split('.');
  const side = sideOf(/** @type {'encoder'|'decoder'} */ (stack), trace);
  /** @type {Side} */
  const read = kind === 'cross_attention' ? 'source' : side;
  return { from: { side, index: query }, to: { side: read, index: key } };
}

/** Return the arcs up to the step that is shown, the first from the predicted word. @param {Trace} trace @param {Thread} thread @returns {Arc[]} */
export function arcsOfThread(trace, { steps, at }) {
  return steps.slice(0, at + 1).flatMap((step, number) => {
    const ends = endsOf(trace, step);
    if (!ends) return [];
    const { side, index } = ends.from;
    const isNext = number === 0 && !isFilling(trace);
    const from = { side, index: isNext ? index + 1 : index };
    return [{ from, to: ends.to, share: step.weight ?? 0, isPast: number < at }];
  });
}

/**
 * Say a step in two sentences: what it is, and what is lost without it.
 * @param {Trace} trace
 * @param {Thread} thread
 * @param {number} at the step
 * @returns {{finding: string, more: string}}
 */
export function stepInWords(trace, { steps, token, against }, at) {
  const step = steps[at];
  const { name, kind, side, share, adds, weight } = step;
  if (kind === 'end') return { finding: `Here it ends: ${name}.`, more: '' };
  const ends = endsOf(trace, step);
  const reads = ends
    ? `reads ${tokenAt(trace, ends.to)} with ${percent(weight ?? 0, 0)} of its weight`
    : '';
  const [word, rival] = [token, against].map(({ text }) => inQuotes(guessInWords(text)));
  const part = partInWords(trace, step, steps[at - 1]);
  const others = step.others.map(sizedInWords).join(', ');
  const near = others && ` Nearly as much: ${others}.`;
  if (side === 'logits') {
    const speaks =
      adds && adds[1] < 0 && -adds[1] > Math.abs(adds[0])
        ? `; above all it speaks against ${rival}`
        : '';
    const added =
      adds && `: it adds ${signed(adds[0], 2)} to ${word}, ${signed(adds[1], 2)} to ${rival}`;
    const most = `${capitalised(part)} makes ${percent(share, 0)} of the difference from ${rival}`;
    return {
      finding: `For ${word}: ${part} ${reads}.`,
      more: `${most}${added ?? ''}${speaks}.${cutInWords(step, 'the difference')}${near}`,
    };
  }
  const before = endsOf(trace, steps[at - 1]);
  const place = before && tokenAt(trace, side === 'query' ? before.from : before.to);
  const isReason = step.after !== null && (step.after ?? 0) < (1 - LOST.much) * (step.before ?? 0);
  const much = `${percent(share, 0)} of the lead`;
  const what = WHAT[kind]?.(place ?? '') ?? `what ${part} wrote at ${place}`;
  const said = isReason
    ? `It looked there because of ${what}`
    : `The largest part of it came from ${what}`;
  const then = reads && ` That head ${reads}.`;
  const other = step.opposite
    ? ` On the other side most comes from ${sizedInWords(step.opposite)}.`
    : '';
  return {
    finding: `${said}: ${much}, on the ${side} side.${then}`,
    more: `${cutInWords(step, 'the weight').trim()}${near}${other}`.trim(),
  };
}

/** Return `head 3.0 (41 %)`, `network 2 (8 %)`, `position (5 %)`. @param {{name: string, share: number}} part */
function sizedInWords({ name, share }) {
  const [, stack = '', layer, head] = /^(?:(encoder|cross)\.)?(\d+)\.(\w+)$/.exec(name) ?? [];
  const part = head === 'ff' ? `network ${layer}` : head ? `head ${layer}.${head}` : name;
  return `${[stack, part].filter(Boolean).join(' ')} (${percent(share, 0)})`;
}

/** A part that is no head and no network, at a token. @type {Record<string, (place: string) => string>} */
const WHAT = {
  token: (place) => `${place} itself`,
  position: (place) => `the place of ${place}`,
  distance: () => 'the distance',
  constant: () => 'the constant of all biases',
};

/** @param {Step} step @param {string} what @returns {string} what a cut changes; empty: nothing can be cut */
function cutInWords({ before, after, share, side }, what) {
  if (before === null || after === null) return '';
  const written = side === 'logits' ? (/** @type {number} */ n) => signed(n, 2) : weightInWords;
  const expected = Math.abs(before * (side === 'logits' ? share : 1));
  const moved = `${written(before)} → ${written(after)}`;
  return Math.abs(after - before) < LOST.little * expected
    ? ` Without it almost nothing changes: ${moved}; other parts stand in.`
    : ` Without it ${what} ${after < before ? 'falls' : 'rises'}: ${moved}.`;
}

/** @param {Trace} trace @param {Spot} spot */
const tokenAt = (trace, { side, index }) => nameToken(readSide(trace, side), index);

/** Return a part with its role, if it has one. @param {Trace} trace @param {Step} step @param {Step|undefined} before */
function partInWords(trace, { name, attention, query }, before) {
  const [, prefix, layer, head] = /^(encoder\.|cross\.)?(\d+)\.(\w+)$/.exec(name) ?? [];
  if (layer === undefined) return name;
  const stack = (attention ?? before?.attention ?? '').split('.')[0];
  const place = prefix?.slice(0, -1) ?? stack;
  const number = head === 'ff' ? null : Number(head);
  const said = nameOf(trace, { place, layer: Number(layer), head: number });
  const where = findPlaces(trace).find(({ id }) => id === place) ?? null;
  const known = labelledHeads(trace, where, query ?? -1);
  const heads = known.find((each) => each.layer === Number(layer))?.heads;
  const role = number !== null && heads?.[number] ? describeRole(heads[number]) : '';
  return role ? `${said} (“${role}”)` : said;
}
