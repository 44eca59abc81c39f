/**
 * The sentence on the row of a head: the word that it reads most, and how that word stands to the one
 * that reads. Words are counted and compared whole; a piece of a word is named as one.
 */

import { headInWords, looksUpWritten, choosePlace } from '../../trace/attention.js';
import { highestIn, rowOf } from '../../trace/trace.js';
import { percent } from '../../words/numbers.js';
import { matrixOf } from '../head_insight.js';
import { isWord, nameToken, nameWord, readSide, wholeWord } from '../../trace/word_names.js';

/**
 * @import { Place } from '../../trace/attention.js'
 * @import { Reading } from '../../trace/word_names.js'
 */

/** @typedef {{query: number, key: number, rows: Reading, columns: Reading, isOneText: boolean}} Link of a row to the key that it reads */

/** The share of a row from which it is said to read one word mostly. */
const MOSTLY = 0.5;
/** The share of the first word's weight from which the second is told, too. */
const NEARLY = 0.5;

/**
 * Return one sentence on what the row of a head reads.
 * @param {Trace} trace
 * @param {{where?: string, layer: number, head: number}} state
 * @param {number} query the row
 * @returns {string} empty if there are no weights
 */
export function explainRow(trace, state, query) {
  const place = choosePlace(state, trace);
  const weights = place && matrixOf(trace, place, state.layer, state.head);
  if (!place || !weights || query < 0 || query >= weights.rows) return '';
  const row = rowOf(weights, query);
  const rows = readSide(trace, place.rows);
  const columns = readSide(trace, place.columns);
  const link = {
    query,
    key: highestIn(row),
    rows,
    columns,
    isOneText: place.rows === place.columns,
  };
  const sums = sumByUnit(row, link);
  const unit = unitOf(link, link.key);
  const much = sums.get(unit) ?? 0;
  const isMost = much === Math.max(...sums.values());
  const name = nameOfRead(link);
  const opened = opening(trace, place, state, link);
  const where = headInWords(trace, place, state.layer, state.head);
  if (sums.size === 1 || (query === 0 && place.id === 'decoder'))
    return `${opened}, ${where} has nothing else to read.`;
  const reads =
    much >= MOSTLY ? `mostly reads ${name}` : isMost ? `reads ${name} most` : `reads ${name}`;
  const relation = RELATIONS.find(({ holds }) => holds(link))?.words(link) ?? '';
  return `${opened}, ${where} ${reads}${relation} (${percent(much, 0)})${second(sums, unit, link)}.`;
}

/**
 * Return the part of the text that a key counts to: its word, unless the digits of a number are read,
 * or the word is that of the query.
 * @param {Link} link
 * @param {number} key
 * @returns {string}
 */
function unitOf({ query, rows, columns, isOneText }, key) {
  const word = columns.at[key];
  const isOwn = isOneText && word === rows.at[query];
  return word === null || isOwn || columns.words[word].isNumber ? `token ${key}` : `word ${word}`;
}

/** @param {ArrayLike<number>} row @param {Link} link */
function sumByUnit(row, link) {
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (let key = 0; key < row.length; key += 1) {
    const unit = unitOf(link, key);
    sums.set(unit, (sums.get(unit) ?? 0) + row[key]);
  }
  return sums;
}

/** @param {Link} link */
function nameOfRead(link) {
  const { query, key, rows, columns, isOneText } = link;
  const word = columns.at[key];
  if (word !== null && unitOf(link, key) === `word ${word}`) return nameWord(columns, word);
  const isInWord = isOneText && word !== null && word === rows.at[query];
  if (isOneText && key === query) return `${nameToken(columns, key)} itself`;
  if (!isInWord) return nameToken(columns, key);
  return nameToken(columns, key, `the same ${columns.words[word].isNumber ? 'number' : 'word'}`);
}

/** @param {Trace} trace @param {Place} place @param {{layer: number, head: number}} of the head @param {Link} link */
function opening(trace, { id }, of, { query, rows }) {
  const name = nameToken(rows, query);
  if (id !== 'cross') return `At ${name}`;
  if (looksUpWritten(trace, of)) return `Having written ${name}`;
  return query + 1 < rows.tokens.length
    ? `To write ${nameToken(rows, query + 1)}`
    : `To write what follows ${name}`;
}

/**
 * Return the word with the second weight, where it is nearly as strong as the first.
 * @param {Map<string, number>} sums
 * @param {string} first
 * @param {Link} link
 */
function second(sums, first, { columns }) {
  const [[unit, much] = ['', 0]] = [...sums]
    .filter(([each]) => each !== first)
    .sort(([, a], [, b]) => b - a);
  const [kind, index] = unit.split(' ');
  const isNear = much >= NEARLY * (sums.get(first) ?? 0);
  if (!isNear || (kind === 'token' && !isWord(columns.tokens[Number(index)]))) return '';
  const name =
    kind === 'word' ? nameWord(columns, Number(index)) : nameToken(columns, Number(index));
  return ` and ${name} (${percent(much, 0)})`;
}

/**
 * The words between two tokens of one text: 1 from a word to the next one.
 * @param {Link} link
 * @returns {number} negative: the key comes first; NaN: words do not count here
 */
function steps({ query, key, rows, isOneText }) {
  const [from, to] = [rows.at[query], rows.at[key]];
  if (!isOneText || from === null || to === null) return NaN;
  const [first, last] = [Math.min(query, key), Math.max(query, key)];
  const isUncounted = rows.tokens
    .slice(first, last)
    .some((token, at) => rows.at[first + at] === null && isWord(token));
  return isUncounted ? NaN : to - from;
}

/** Return true if the query is a whole word, or the end of one. @param {Link} link */
function endsWord({ query, rows }) {
  const word = rows.at[query];
  return word !== null && rows.words[word].last === query;
}

/** @param {Link} link @param {number} shift of the word that is asked for */
function wordAround({ query, key, rows }, shift) {
  const [from, to] = [rows.at[query], rows.at[key]];
  return [rows.words[from ?? -1], to === null ? undefined : rows.words[to + shift]];
}

/** Return the earlier occurrence of the query's word that the read word followed. @param {Link} link */
function followed(link) {
  const { key, rows, columns } = link;
  const distance = steps(link);
  const [own, before] = wordAround(link, -1);
  const isWholeRead = unitOf(link, key).startsWith('word') || wholeWord(columns, key);
  if (!(distance < 0) || !endsWord(link) || !isWholeRead || !own || own.isNumber) return -1;
  const isFollowed =
    before?.name === own.name && before.last + 1 === rows.words[rows.at[key] ?? -1].first;
  return isFollowed ? (rows.at[key] ?? 0) - 1 : -1;
}

/**
 * The relations that a sentence may tell, the first that holds; none needs to.
 * @type {{holds: (link: Link) => boolean, words: (link: Link) => string}[]}
 */
const RELATIONS = [
  {
    holds: ({ key, columns }) => key === 0 && columns.tokens[0].is_special,
    words: () => ', the start of the text',
  },
  {
    holds: ({ key, columns: { tokens } }) => key === tokens.length - 1 && tokens[key].is_special,
    words: () => ', the end of the text',
  },
  { holds: ({ query, key, isOneText }) => isOneText && key === query, words: () => '' },
  {
    holds: (link) => {
      const [own, other] = wordAround(link, 0);
      return (
        Boolean(own && !own.isNumber && own.name === other?.name && steps(link)) && endsWord(link)
      );
    },
    words: () => ', the same word',
  },
  {
    holds: (link) => followed(link) >= 0,
    words: (link) =>
      `, which followed ${nameWord(link.rows, followed(link))}, as induction heads do`,
  },
  { holds: (link) => steps(link) === -1, words: () => ', the word before' },
  { holds: (link) => steps(link) === 1, words: () => ', the word after' },
  {
    holds: (link) => Math.abs(steps(link)) > 1,
    words: (link) => `, ${Math.abs(steps(link))} words ${steps(link) < 0 ? 'back' : 'ahead'}`,
  },
];
