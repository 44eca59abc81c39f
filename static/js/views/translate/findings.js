/**
 * The findings of an alignment: words that change places, words that become several, and the rows of
 * attention from which a word was written.
 */

import { findPlaces, tokensOf, weightsAt } from '../../trace/attention.js';
import { enumerated } from '../../words/lists.js';
import { matrixAt, rowOf } from '../../trace/trace.js';
import { isEnding, isWord } from '../../trace/word_names.js';
import { namedUnit, tokensIn } from '../../trace/words.js';

/** @import { Place } from '../../trace/attention.js' @import { Alignment } from './translate.js' */

/** Return the links between words, signs apart, that have half of a word’s weight. @param {Alignment} subject @param {number} [least] that weight */
export function wordLinks({ rows, columns, weights, links }, least = 0.5) {
  return links.filter(({ row, column }) => {
    const weight = weights.data[row * weights.columns + column];
    return isWord(rows[row]) && isWord(columns[column]) && weight >= least;
  });
}

/**
 * Return which neighbours of the translation change places; a contraction is one word.
 * @param {Alignment} subject
 */
export function swapsIn({ rows, columns, links }) {
  return links.flatMap((link) => {
    const next = links.find(({ row }) => row === link.row + 1);
    if (!next || next.column >= link.column || isEnding(columns[link.column])) return [];
    const [first, second] = [link, next].map(({ row }) => namedUnit(rows, row));
    const [before, after] = [next, link].map(({ column }) => namedUnit(columns, column));
    return [
      `${first} and ${second} change places: in the sentence ${before} comes before ${after}.`,
    ];
  });
}

/** Return the words of the sentence that become several. @param {Alignment} subject */
export function splitsIn({ rows, columns, links }) {
  return columns.flatMap((unit, column) => {
    const linked = links.filter((link) => link.column === column);
    if (linked.length < 2) return [];
    const words = enumerated(linked.map(({ row }) => namedUnit(rows, row)));
    return [`${namedUnit(columns, column)} becomes ${words}.`];
  });
}

/**
 * Return the ways to the attention behind the chosen word: how it was written, and what it reads to
 * write the next, each in the head with most weight on the linked word.
 * @param {Trace} trace
 * @param {Alignment} subject
 * @param {number|null} row of the word; null: none is chosen
 */
export function rowsOf(trace, subject, row) {
  const cross = findPlaces(trace).find(({ id }) => id === 'cross');
  if (row === null || !cross) return [];
  const { first, last } = subject.rows[row];
  /** @param {number} at of the word in the translation */
  const keysOf = (at) =>
    subject.links
      .filter((link) => link.row === at)
      .flatMap(({ column }) => [tokensIn(subject.columns[column])].flat());
  const { length } = tokensOf(trace, 'target');
  return [
    { name: 'written', query: first, from: first - 1, keys: keysOf(row) },
    { name: 'next', query: last, from: last, keys: keysOf(row + 1) },
  ].flatMap(({ name, query, from, keys }) => {
    if (from < 0 || from >= length || keys.length === 0) return [];
    const label =
      name === 'written'
        ? `How ${namedUnit(subject.rows, row)} was written`
        : 'What it reads to write the next';
    const { layer, head } = strongestHead(trace, cross, from, keys);
    return [
      {
        label,
        patch: { view: 'attention', where: 'cross', attention_rows: name, layer, head, query },
      },
    ];
  });
}

/**
 * Return the head of cross-attention with most weight from a row on some keys.
 * @param {Trace} trace
 * @param {Place} cross
 * @param {number} row
 * @param {number[]} keys
 */
function strongestHead(trace, cross, row, keys) {
  let best = { layer: 0, head: 0, weight: -1 };
  for (const { layer, site } of weightsAt(cross, trace)) {
    const [nHeads] = trace.tensors[site].shape;
    for (let head = 0; head < nHeads; head += 1) {
      const weights = rowOf(matrixAt(trace.tensors[site], head), row);
      const weight = keys.reduce((sum, key) => sum + weights[key], 0);
      if (weight > best.weight) best = { layer, head, weight };
    }
  }
  return best;
}
