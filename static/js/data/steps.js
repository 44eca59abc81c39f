/**
 * How the numbers of a drawing are made of what the API gives, as lines of Python and in words.
 */

import { literal } from './python.js';

/** @typedef {import('./words.js').Unit} Unit */

/**
 * @typedef {Object} Made
 * @property {string[]} [steps] Python that makes `shown`, rows of numbers, of the answers `trace` and `before`
 * @property {string} said what is done with the answer, in plain words that do no harm in a shell
 */

const MERGED = [
  'def merged(weights, rows, columns):',
  '    """Columns from first to last summed, rows averaged; what may not be seen is 0."""',
  '    def cell(top, bottom, left, right):',
  '        parts = [part or 0 for row in weights[top : bottom + 1] for part in row[left : right + 1]]',
  '        return sum(parts) / (bottom + 1 - top)',
  '    return [[cell(*row, *column) for column in columns] for row in rows]',
  '',
];

/** Units by their first and last token; tokens in a row need no list. */
function spans(units) {
  const [{ first: start } = { first: 0 }] = units;
  const isRun = units.every(({ first, last }, index) => first === last && first === start + index);
  if (isRun) return `[[token, token] for token in range(${start}, ${start + units.length})]`;
  return literal(units.map(({ first, last }) => [first, last]));
}

/** @param {string[]} keys @param {string} [answer] @returns {string} the numbers of an array of an answer */
export function dataAt(keys, answer = 'trace') {
  return `${answer}${keys.map((key) => `[${literal(key)}]`).join('')}["data"]`;
}

/**
 * @param {Object} of
 * @param {string} of.heads Python for a list of maps
 * @param {Unit[]} of.rows those that are shown
 * @param {Unit[]} of.columns
 * @param {boolean} of.isMax the largest of the heads, else their mean
 * @param {boolean} of.isRenormalised
 * @returns {string[]}
 */
export function mapSteps({ heads, rows, columns, isMax, isRenormalised }) {
  return [
    ...MERGED,
    `rows = ${spans(rows)}  # first and last token of each`,
    `columns = ${spans(columns)}`,
    `heads = [merged(head, rows, columns) for head in ${heads}]`,
    `shown = [[${isMax ? 'max(cells)' : 'sum(cells) / len(cells)'} for cells in zip(*row)] for row in zip(*heads)]`,
    ...(isRenormalised
      ? ['shown = [[weight / (sum(row) or 1) for weight in row] for row in shown]']
      : []),
  ];
}

/**
 * @param {{site: string, rows: Unit[], columns: Unit[]}} a
 * @param {{site: string, rows: Unit[], columns: Unit[]}} b of as many rows and columns
 * @returns {Made}
 */
export function differenceMade(a, b) {
  const map = ({ site, rows, columns }, answer) =>
    `merged(${dataAt(['tensors', site], answer)}[0], ${spans(rows)}, ${spans(columns)})`;
  return {
    said: 'The first answer is B, the second A: B less A, of the tokens or words that both have, is what is drawn',
    steps: [
      ...MERGED,
      `a = ${map(a, 'before')}`,
      `b = ${map(b, 'trace')}`,
      'shown = [[y - x for x, y in zip(*row)] for row in zip(a, b)]',
    ],
  };
}

/**
 * @param {string[]} sites by layer
 * @param {[number, number][]} rows
 * @param {[number, number][]} columns
 * @returns {Made}
 */
export function movedMade(sites, rows, columns) {
  return {
    said: 'The first answer is B, the second A: half the sum of absolute changes in a row, as a mean of rows, is what is drawn',
    steps: [
      `queries = ${literal(rows)}  # of A and of B`,
      `keys = ${literal(columns)}`,
      'def moved(a, b):',
      '    return sum(abs(b[j][l] - a[i][k]) for i, j in queries for k, l in keys) / 2 / (len(queries) or 1)',
      '',
      'shown = [',
      '    [moved(a, b) for a, b in zip(before["tensors"][site]["data"], trace["tensors"][site]["data"])]',
      `    for site in ${literal(sites)}`,
      ']',
    ],
  };
}

/**
 * @param {number} before the place in A
 * @param {number} after the place in B
 * @param {{isOneVocabulary: boolean, ofEach: number, most: number}} setting how many of each side’s likeliest, and in all
 * @returns {Made}
 */
export function expectedMade(before, after, { isOneVocabulary, ofEach, most }) {
  const softmax = [
    'def chances(answer, at):',
    `    logits = ${dataAt(['tensors', 'logits'], 'answer')}[at]`,
    '    top = max(logits)',
    '    powers = [math.exp(logit - top) for logit in logits]',
    '    total = sum(powers)',
    '    return [power / total for power in powers]',
  ];
  const listed = [
    'def chances(answer, at):',
    '    found = answer["analyses"]["next_token"]',
    '    return dict(zip(found["texts"][at], found["probabilities"]["data"][at]))',
  ];
  const key = isOneVocabulary ? 'found["ids"]["data"][at]' : 'found["texts"][at]';
  const chance = (name) => (isOneVocabulary ? `${name}[token]` : `${name}.get(token, math.nan)`);
  return {
    said: 'The first answer is B, the second A: the softmax of both at the chosen token, and B less A, is what is drawn',
    steps: [
      'import math',
      '',
      ...(isOneVocabulary ? softmax : listed),
      '',
      'texts = {}',
      `for answer, at in (before, ${before}), (trace, ${after}):`,
      '    found = answer["analyses"]["next_token"]',
      `    texts |= dict(list(zip(${key}, found["texts"][at]))[:${ofEach}])`,
      `a, b = chances(before, ${before}), chances(trace, ${after})`,
      `shown = [[text, ${chance('a')}, ${chance('b')}, ${chance('b')} - ${chance('a')}] for token, text in texts.items()]`,
      `shown = sorted(shown, key=lambda row: -max(chance for chance in row[1:3] if chance == chance))[:${most}]`,
    ],
  };
}
