/**
 * The steps from a query and a key to the output of their head, each with its formula, numbers and
 * bars.
 */

import { highestIn } from '../../trace/trace.js';
import { counted, enumerated } from '../../words/lists.js';
import { decimal, share, small } from '../../words/numbers.js';
import { named, quoted } from '../../words/tokens.js';
import { speedFacts } from '../../trace/arithmetic.js';
import { differences, hiddenReason, lengthOf, measureShare } from './derivation.js';
import {
  outputFormula,
  productFormula,
  scoreFormula,
  softmaxFormula,
  turnFormula,
  valueFormula,
} from './formulas.js';

/**
 * @import { Place } from '../../trace/attention.js'
 * @import { Term } from '../../ui/formula.js'
 * @import { Row } from './derivation.js'
 */

/** The tolerance for float32 rounding. */
export const ROUNDING = 1e-5;

/** @param {number} value */
const weightOf = (value) => (value > 0 && value < 1e-4 ? decimal(value, 4) : share(value, 4));

/**
 * @typedef {Object} Subject the cell that is asked about, and what is known of it
 * @property {string} path
 * @property {string} name of the head
 * @property {number} head
 * @property {Place} place
 * @property {Token[]} queries
 * @property {Token[]} keys
 * @property {Trace} plain as trained
 * @property {Trace|null} pass the one that is derived; null: still on its way
 * @property {boolean} isChanged
 * @property {NonNullable<NumberGrid['request']>} request what holds the numbers
 * @property {Derivation} now
 * @property {Derivation} before as trained
 */

/**
 * @typedef {Object} Lane a row of bars
 * @property {string} name
 * @property {ArrayLike<number>} values −∞ and NaN have no bar
 * @property {string} [scale] lanes of one name share one scale
 * @property {(value: number) => string} [format]
 * @property {'query'|'key'} [side] whose vector it is
 * @property {boolean} [isPast] as trained
 */

/** @typedef {{title: string, help: string, formula: Term[], facts: string[][], lanes: Lane[], over: 'keys'|'dimensions', hiddenLabel?: string, width?: number, actions?: Figure['actions']}} Step */

/** @typedef {Partial<Step> & {title: string, notice?: string, isWaiting?: boolean}} Drawn a step, or the notice that it waits */

/** @type {Record<string, (subject: Subject) => Drawn>} */
export const STEPS = { turn, product, score, softmax, value, output };

const TURN = 'Rotation by position';

/** @param {Subject} subject @returns {Step} */
function turn(subject) {
  const { now, pass, path, queries, keys } = subject;
  const off = pass && differences(now, pass, path).turn;
  if (now.terms.isForeign) return ownTurn(subject);
  return {
    title: TURN,
    help: `Each pair of dimensions is rotated by an angle proportional to the position: ${quoted(queries[now.query])} stands at ${now.query}, ${quoted(keys[now.key])} at ${now.key}.`,
    formula: turnFormula(now),
    facts: [compared('largest difference from the model’s', off)],
    over: 'dimensions',
    lanes: turnLanes(now),
  };
}

/**
 * Return the rotation of a model with its own angles, as it was captured.
 * @param {Subject} subject
 * @returns {Step}
 */
function ownTurn({ now, queries, keys, path, plain }) {
  const rotation = path.includes('.layers.0.') ? plain.card?.rotation : null;
  /** @param {'query'|'key'} side */
  const lengths = (side) =>
    `${decimal(lengthOf(now.projected[side]))}, then ${decimal(lengthOf(now.met[side]))}`;
  return {
    title: TURN,
    help: `The model rotates pairs of dimensions by angles of its own that grow with the position: ${quoted(queries[now.query])} stands at ${now.query}, ${quoted(keys[now.key])} at ${now.key}. The rotated vectors are the model’s own numbers.`,
    formula: turnFormula(now),
    facts: [
      ['length of the query', lengths('query')],
      ['length of the key', lengths('key')],
      ...(rotation ? speedFacts(rotation) : []),
    ],
    over: 'dimensions',
    lanes: turnLanes(now),
  };
}

/** @param {Derivation} now @returns {Lane[]} */
function turnLanes({ projected, met }) {
  return [
    { name: 'query as projected', values: projected.query, side: 'query' },
    { name: 'query, rotated', values: met.query, side: 'query' },
    { name: 'key as projected', values: projected.key, side: 'key' },
    { name: 'key, rotated', values: met.key, side: 'key' },
  ];
}

/** @param {Subject} subject @returns {Step} */
function product({ now, queries, keys }) {
  const { products, met } = now;
  const most = highestIn(products.map(Math.abs));
  return {
    title: 'Query times key',
    help: `The query of ${quoted(queries[now.query])} and the key of ${quoted(keys[now.key])} are multiplied dimension by dimension, and the products are summed.`,
    formula: productFormula(now),
    facts: [
      ['dimensions', String(products.length)],
      ['largest product', `${decimal(products[most])} in dimension ${most}`],
      ['length of the query', decimal(lengthOf(met.query))],
      ['length of the key', decimal(lengthOf(met.key))],
    ],
    over: 'dimensions',
    lanes: [
      { name: 'query', values: met.query, side: 'query' },
      { name: 'key', values: met.key, side: 'key' },
      { name: 'query × key', values: products },
    ],
  };
}

/** @param {Subject} subject @returns {Step} */
function score(subject) {
  const { now, before, isChanged, keys } = subject;
  const { row, key, isHidden, divisor, terms } = now;
  const hides = row.scores.some((number) => number === -Infinity);
  const masked = hides
    ? ` ${maskedKeys(terms)} are masked: their scores are −∞, their weights 0.`
    : '';
  const hidden = isHidden
    ? ` ${quoted(keys[key])} ${hiddenReason(now, key)} and is masked: its score is −∞.`
    : '';
  return {
    title: scoreTitle(subject),
    help: `${scoreHelp(subject)}${masked}${hidden}`,
    formula: scoreFormula(now),
    facts: [...scaleFacts(now), ...capturedFacts(subject, 'score')],
    over: 'keys',
    hiddenLabel: 'later: masked, −∞',
    lanes: [
      ...(row.biases || hides || terms.softcap !== null
        ? [
            {
              name: divisor === 1 ? 'product' : now.isRoot ? 'product ÷ √d' : 'product ÷ c',
              values: row.scaled,
              scale: 'score',
            },
          ]
        : []),
      ...(row.biases
        ? [{ name: `bias by ${biasBy(now)}`, values: row.biases, scale: 'score' }]
        : []),
      { name: 'score', values: row.scores, scale: 'score' },
      ...(isChanged
        ? [{ name: 'score as trained', values: before.row.scores, scale: 'score', isPast: true }]
        : []),
    ],
  };
}

/** A foreign model's bias need not be one of the distance. @param {Derivation} now */
const biasBy = ({ terms }) => (terms.isForeign ? 'position' : 'distance');

/** @param {Derivation['terms']} terms */
function maskedKeys({ isCausal, window, chunk }) {
  const kinds = [
    ...(isCausal ? ['after the query'] : []),
    ...(window === null ? [] : [`outside its window of ${counted(window, 'token')}`]),
    ...(chunk === null ? [] : [`outside its chunk of ${counted(chunk, 'token')}`]),
  ];
  return kinds.length > 0 ? `Keys ${kinds.join(' or ')}` : 'Some keys';
}

/** @param {Derivation} now */
function scaleFacts({ divisor, isRoot, met, terms: { softcap } }) {
  const root = [[`√d, of d = ${met.key.length}`, decimal(divisor)]];
  const ofModel = [['divisor c of this model', decimal(divisor, 4)]];
  return [
    ...(divisor === 1 ? [] : isRoot ? root : ofModel),
    ...(softcap === null ? [] : [['cap C of the scores', decimal(softcap)]]),
  ];
}

/** @param {Subject} subject */
function scoreTitle({ now }) {
  const done = [
    ...(now.divisor === 1 ? [] : ['scaled']),
    ...(now.terms.softcap === null ? [] : ['capped']),
    ...(now.row.biases ? ['biased'] : []),
    ...(now.temperature === 1 ? [] : ['tempered']),
    ...(now.terms.isCausal ? ['masked'] : []),
  ];
  return `The score: ${done.length > 0 ? enumerated(done) : 'the product as it is'}`;
}

/** @param {Subject} subject */
function scoreHelp({ now }) {
  const { row, temperature, terms } = now;
  const cap =
    terms.softcap === null ? '' : `; a cap of ${decimal(terms.softcap)} keeps it between −C and C`;
  const [lowers, adds] = ['; a bias lowers it by distance', '; a bias by position is added'];
  const bias = row.biases ? (terms.isForeign ? adds : lowers) : '';
  return `${scalingHelp(now)}${cap}${bias}${temperature === 1 ? '' : '; the temperature T divides the result'}.`;
}

/** @param {Derivation} now */
function scalingHelp({ divisor, isRoot, terms }) {
  if (terms.scale === 1) return 'This model does not divide the product by √d';
  if (divisor === 1) return 'Here the product is not divided by √d, so scores lie farther apart';
  return isRoot
    ? 'The product is divided by the square root of the head’s width d, so that wide heads do not give large scores'
    : 'This model divides the product by a number c of its own, in place of √d';
}

/** @param {Subject} subject @returns {Step} */
function softmax(subject) {
  const { now, before, isChanged, queries, keys } = subject;
  const { row, key, query, terms } = now;
  const hasSink = terms.sink !== null;
  const seen = Number(hasSink) + row.scores.filter(Number.isFinite).length;
  const strongest = highestIn(row.weights);
  const hidden = now.isHidden ? ` exp(−∞) is 0, and so is the weight of ${quoted(keys[key])}.` : '';
  return {
    title: 'The softmax of the row',
    help: `Every score of ${quoted(queries[query])} is exponentiated and divided by the sum of all${hasSink ? ' and of the head’s sink, a score that belongs to no key' : ''}, so that the row${hasSink ? ' and the sink sum' : ' sums'} to 1.${hidden}`,
    formula: softmaxFormula(now),
    facts: [
      ['largest score, sₘₐₓ', decimal(row.greatest)],
      ['sum of the powers', decimal(row.total)],
      ...(hasSink
        ? [
            ['score of the sink', decimal(terms.sink ?? 0)],
            ['weight of the sink', weightOf(row.sinkWeight)],
          ]
        : []),
      ...capturedFacts(subject, 'weight'),
      ['entropy of the row', `${decimal(row.entropy)} of at most ${decimal(Math.log2(seen))} bits`],
      ...(isChanged
        ? [
            ['entropy as trained', `${decimal(before.row.entropy)} bits`],
            ['weight as trained', weightOf(before.row.weights[key])],
          ]
        : []),
    ],
    over: 'keys',
    hiddenLabel: 'later: weight 0',
    lanes: [
      { name: 'weight', values: visible(row, row.weights), format: weightOf, scale: 'weights' },
      ...(isChanged
        ? [
            {
              name: 'weight as trained',
              values: visible(row, before.row.weights),
              format: weightOf,
              scale: 'weights',
              isPast: true,
            },
          ]
        : []),
    ],
    ...(strongest !== key && {
      actions: [
        {
          label: `Why ${weightOf(row.weights[strongest])} for ${named(keys, strongest)}?`,
          patch: { key: strongest },
        },
      ],
    }),
  };
}

/**
 * A masked key has no bar, rather than one of height 0.
 * @param {Row} row
 * @param {Float64Array} weights
 */
function visible({ scores }, weights) {
  return weights.map((weight, key) => (scores[key] === -Infinity ? NaN : weight));
}

/** @param {Subject} subject @returns {Step} */
function value({ now, pass, path, keys, queries }) {
  const off = pass && differences(now, pass, path).context;
  return {
    title: 'Weight times value',
    help: `The value of ${quoted(keys[now.key])} is multiplied by its weight; the sum over all keys is the head’s context at ${quoted(queries[now.query])}.`,
    formula: valueFormula(now),
    facts: [
      ['length of the value', decimal(lengthOf(now.value))],
      ['length of the context', decimal(lengthOf(now.context))],
      compared('context: largest difference from the model’s', off),
    ],
    over: 'dimensions',
    lanes: [
      { name: 'value of the key', values: now.value, side: 'key' },
      { name: 'weight × value', values: now.weighted, scale: 'context' },
      { name: 'context: all keys together', values: now.context, scale: 'context' },
    ],
  };
}

/** @param {Subject} subject @returns {Drawn} */
function output({ now, pass, path, head }) {
  const title = 'The head’s share of the output';
  if (!pass) return { title, notice: 'Reading…', isWaiting: true };
  const part = measureShare(pass, path, now.query);
  return {
    title,
    help: 'W_O projects the context of each head, and the outputs of all heads are summed. The share is this head’s part of the sum, along the direction of the sum: below 0 it works against the others. The shares of all heads, and of a bias if there is one, sum to 1. Each row of bars has its own scale; its range is on the right.',
    formula: outputFormula(part, head),
    facts: [
      ['share of the output', decimal(part.share)],
      ['cosine to the output', decimal(part.cosine)],
    ],
    over: 'dimensions',
    lanes: [
      { name: `written by head ${head}`, values: part.head },
      { name: 'output of the attention', values: part.whole },
    ],
  };
}

/** A difference of this share of the number is more than rounding. */
const LEAST_TERM = 1e-3;

/**
 * Return the captured number of the cell, and its difference to the derived one.
 * @param {Subject} subject
 * @param {'score'|'weight'} name
 */
function capturedFacts({ now, pass, path }, name) {
  const derived = (name === 'score' ? now.row.scores : now.row.weights)[now.key];
  const off = pass && differences(now, pass, path)[name];
  const isFar = pass && off !== null && off > ROUNDING;
  const far = isFar ? [['more than rounding', farther(pass, derived, off)]] : [];
  return [compared(`${name}: difference from the model’s`, off), ...far];
}

/** @param {Trace} pass @param {number} derived @param {number} off */
function farther({ precision }, derived, off) {
  if (precision === 'bfloat16')
    return 'the model computes in bfloat16, which keeps two or three digits';
  if (off > LEAST_TERM * Math.max(1, Math.abs(derived)))
    return 'these steps leave out a term of this model’s: a sink, a cap, a window, a bias or another rotation';
  return `a float32 keeps seven digits, and scores of this row are as large as ${decimal(derived)}`;
}

/** @param {string} term @param {number|null} off */
function compared(term, off) {
  return [term, off === null ? 'waiting for the model' : small(off)];
}
