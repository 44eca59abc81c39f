/**
 * The measures of all heads of a place: means over many sentences, from the profile of the model, and
 * numbers of this text. Each has its control, what uniform attention would give, and says over how
 * many texts it is a mean.
 */

import { decimal, share, signed } from '../words/numbers.js';
import { counted } from '../words/lists.js';
import { countedTexts } from './card.js';
import { named } from '../words/tokens.js';
import { describeLabel, labelledHeads, PAIR_PARTS, tokensOf, heldWeightsAt } from './attention.js';
import { isCausal } from './trace.js';

/** @import { Place } from './attention.js' */

/**
 * @typedef {Object} Measure of every head of a place
 * @property {string} id as the address and a filter name it
 * @property {string} title
 * @property {number[]} values by head; NaN: not known
 * @property {number[]} [controls] by head; absent: uniform attention says nothing about it
 * @property {string} over the texts it is a mean of
 * @property {(value: number) => string} write
 */

/** @typedef {{heads: LabelledHead[], measures: Measure[]}} Measured */

/** @typedef {{roles: Record<string, boolean[]>, effects: Map<string, number>|null, token: string, pair: {query: number, key: number}|null}} Here what else is known of this text: the tokens of each role, the logits that heads add to a token, a chosen pair */

/** @type {Record<string, string>} */
const TITLES = {
  first_token: 'first token',
  first_word: 'first word',
  sink: 'first token or word',
  induction: 'induction in sentences',
  subject: 'subject of the verb',
  antecedent: 'antecedent of the pronoun',
};

/** @param {string} name of a score of a profile */
export function titleOfScore(name) {
  return TITLES[name] ?? describeLabel(name).title;
}

/**
 * Return every measure that is known of the heads of a place.
 * @param {Trace} trace
 * @param {Place} place
 * @param {HeadProfiles|null} profiles
 * @param {Here} here
 * @returns {Measured}
 */
export function measureHeads(trace, place, profiles, here) {
  const heads = labelledHeads(trace, place).flatMap((row) => row.heads);
  /** @param {LabelledHead} of */
  const profileOf = ({ layer, head }) =>
    profiles?.attentions[`${place.stack}.layers.${layer}.${place.ending}`]?.[head];
  const measures = [
    ...(profiles ? overSentences(heads.map(profileOf), profiles) : []),
    ...inThisText(trace, place, heads, here),
    ofHeads('layer', 'layer', heads, ({ layer }) => layer, 'by its place', String),
  ];
  return { heads, measures: measures.filter(({ values }) => !values.every(Number.isNaN)) };
}

/**
 * @param {string} id
 * @param {string} title
 * @param {any[]} heads
 * @param {(head: any, at: number) => number|undefined} value
 * @param {string} over
 * @param {(value: number) => string} [write]
 * @returns {Measure}
 */
function ofHeads(id, title, heads, value, over, write = (number) => share(number, 2)) {
  return { id, title, over, write, values: heads.map((head, at) => value(head, at) ?? NaN) };
}

/** @param {(HeadProfile|undefined)[]} of heads @param {HeadProfiles} profiles that hold them @returns {Measure[]} */
export function overSentences(of, profiles) {
  const over = `over ${countedTexts(profiles)}`;
  const overAblated = `over ${countedTexts(profiles, profiles.ablated_in)}`;
  /** @param {string} id @param {string} title @param {(profile: HeadProfile) => number|null|undefined} value @param {string} unit @param {string} [texts] */
  const plain = (id, title, value, unit, texts = over) =>
    ofHeads(
      id,
      title,
      of,
      (_, at) => (of[at] && value(of[at])) ?? NaN,
      texts,
      (number) => `${decimal(number, id === 'cost' ? 4 : 2)} ${unit}`,
    );
  const names = [...new Set(of.flatMap((profile) => Object.keys(profile?.scores ?? {})))];
  return [
    ...names.map((name) => ({
      ...ofHeads(
        name,
        titleOfScore(name),
        of,
        (_, at) => of[at]?.scores[name]?.score,
        overOf(name, profiles, over),
      ),
      controls: of.map((profile) => profile?.scores[name]?.control || NaN),
    })),
    plain('entropy', 'entropy', ({ entropy }) => entropy, 'bits'),
    plain('distance', 'distance', ({ distance }) => distance, 'tokens'),
    plain('cost', 'cost when off', ({ cost }) => cost, 'bits per byte', overAblated),
  ];
}

/** @param {string} name @param {HeadProfiles} profiles @param {string} over */
function overOf(name, { controlled }, over) {
  if (controlled[name]) return `over ${counted(controlled[name], 'made sentence')}`;
  return name === 'repetition' ? 'over random tokens that are repeated once' : over;
}

/** @param {Trace} trace @param {Place} place @param {LabelledHead[]} heads @param {Here} here @returns {Measure[]} */
function inThisText(trace, place, heads, { roles, effects, token, pair }) {
  const tokens = tokensOf(trace, place.columns);
  /** @param {string} id @param {string} title @param {(key: number) => boolean} isKey @param {(query: number) => boolean} [isQuery] @returns {Measure} */
  const shares = (id, title, isKey, isQuery) => {
    const by = new Map(
      heldWeightsAt(place, trace).map(({ layer, site }) => [
        layer,
        shareOn(trace.tensors[site], site, isKey, isQuery),
      ]),
    );
    return {
      ...{ id, title: `${title}, here`, write: (number) => share(number, 2) },
      values: heads.map(({ layer, head }) => by.get(layer)?.shares[head] ?? NaN),
      controls: heads.map(({ layer }) => by.get(layer)?.control ?? NaN),
      over: `over ${queriesOf([...by.values()][0]?.n)}`,
    };
  };
  const measures = [
    shares('first_here', 'first token', (key) => key === 0),
    ...scoresHere(trace, heads, place),
  ];
  for (const [role, isOf] of Object.entries(roles))
    measures.push(shares(`role_${role}`, `role “${role}”`, (key) => isOf[key]));
  for (const { from, to, title } of roles.second ? PAIR_PARTS : [])
    measures.push(
      shares(
        `${from}_${to}`,
        title,
        (key) => roles[to]?.[key],
        (query) => roles[from]?.[query],
      ),
    );
  if (pair) {
    const title = `from ${named(tokensOf(trace, place.rows), pair.query)} to ${named(tokens, pair.key)}`;
    const [isKey, isQuery] = [pair.key, pair.query].map(
      (at) => (/** @type {number} */ of) => of === at,
    );
    measures.push(shares('pair', title, isKey, isQuery));
  }
  if (effects) {
    const title = `effect on “${token.trim()}”, here`;
    /** @param {LabelledHead} of */
    const effectOf = ({ layer, head }) => effects.get(`${place.id} ${layer} ${head}`);
    const write = (/** @type {number} */ number) => `${signed(number, 3)} logits`;
    measures.push(ofHeads('effect', title, heads, effectOf, 'of this text', write));
  }
  return measures;
}

/** @param {number} [n] */
const queriesOf = (n = 0) => `${counted(n, 'row')} of this text`;

/** Return the scores of the heads in this text, as the analysis `head_labels` has them. @param {Trace} trace @param {LabelledHead[]} heads @param {Place} place @returns {Measure[]} */
function scoresHere({ analyses: { head_labels: all } }, heads, { stack, ending }) {
  const names = /** @type {string[]} */ (all?.labels ?? []);
  /** @param {LabelledHead} of @param {string} part */
  const partOf = ({ layer }, part) => all?.[`${stack}.layers.${layer}.${ending}.label_${part}`];
  return names.slice(0, -1).map((name, at) => ({
    ...ofHeads(
      `${name}_here`,
      `${describeLabel(name).title}, here`,
      heads,
      (of) => {
        const scores = partOf(of, 'scores');
        return scores && at < scores.shape[1]
          ? scores.data[of.head * scores.shape[1] + at]
          : undefined;
      },
      `over ${queriesOf(heads[0] && partOf(heads[0], 'queries')?.data[at])}`,
    ),
  }));
}

/**
 * Return the mean weight of each head of a layer on some keys, over the queries that see one of them
 * and another key, and the mean of uniform attention.
 * @param {NamedArray} weights (head, query, key)
 * @param {string} site
 * @param {(key: number) => boolean} isKey
 * @param {(query: number) => boolean} [isQuery] all if omitted
 * @returns {{shares: number[], control: number, n: number}} NaN without such a query
 */
export function shareOn({ shape, data, scale }, site, isKey, isQuery = () => true) {
  const [nHeads, rows, columns] = shape;
  const sums = new Float64Array(nHeads);
  let [control, n] = [0, 0];
  for (let row = 0; row < rows; row += 1) {
    if (!isQuery(row)) continue;
    const seen = isCausal(site) ? Math.min(row + 1, columns) : columns;
    const keys = [];
    for (let key = 0; key < seen; key += 1) if (isKey(key)) keys.push(key);
    if (keys.length === 0 || keys.length === seen) continue;
    n += 1;
    control += keys.length / seen;
    for (let head = 0; head < nHeads; head += 1)
      for (const key of keys) sums[head] += data[(head * rows + row) * columns + key];
  }
  return { shares: Array.from(sums, (sum) => (sum * scale) / n), control: control / n, n };
}

/** Return the value in the middle of those that are known. @param {number[]} values */
export function medianOf(values) {
  const known = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  return known[Math.floor(known.length / 2)] ?? NaN;
}

/** Return the control of a measure in words: of uniform attention, or else the head in the middle. @param {Measure} measure */
export function controlInWords({ values, controls, write }) {
  const known = controls?.filter((control) => !Number.isNaN(control)) ?? [];
  if (known.length === 0) return `the head in the middle has ${write(medianOf(values))}`;
  const [least, most] = [Math.min(...known), Math.max(...known)].map(write);
  return `control ${least === most ? least : `${least} to ${most}`}`;
}

const CONDITION = /^(.+?)\s*(>=|<=|>|<|=|≥|≤)\s*(-?[\d.]+)$/;

/**
 * Read a filter: `sink >= 0.5, entropy < 2, label = induction`.
 * @param {string} written
 * @param {Measured} measured
 * @returns {{holds: (at: number) => boolean, problem: string}} an unknown part holds for all, and is named
 */
export function readFilter(written, { heads, measures }) {
  /** @type {((at: number) => boolean)[]} */
  const conditions = [];
  for (const part of written.split(',').map((each) => each.trim())) {
    if (part === '') continue;
    const [, label] = /^label\s*=\s*(.+)$/.exec(part) ?? [];
    const [, name = '', sign = '', number = ''] = CONDITION.exec(part) ?? [];
    const measure = measures.find(({ id, title }) => name === id || name === title);
    const bound = Number(number);
    if (label) conditions.push((at) => labelsOf(heads[at]).includes(label.toLowerCase()));
    else if (!measure || Number.isNaN(bound))
      return {
        holds: () => true,
        problem: `“${part}” is no condition; write one as “${measures[0].id} >= 0.5”, of ${measures.map(({ id }) => id).join(', ')} or label.`,
      };
    else conditions.push((at) => compare(measure.values[at], sign, bound));
  }
  return { holds: (at) => conditions.every((holds) => holds(at)), problem: '' };
}

/** @param {LabelledHead} head */
function labelsOf({ label, profile }) {
  return [...(profile ?? []), ...(label ? [label] : [])].flatMap(({ id, title }) => [id, title]);
}

/** @param {number} value @param {string} sign @param {number} bound */
function compare(value, sign, bound) {
  if (sign === '=') return value === bound;
  if (sign === '>' || sign === '<') return sign === '>' ? value > bound : value < bound;
  return sign === '>=' || sign === '≥' ? value >= bound : value <= bound;
}
