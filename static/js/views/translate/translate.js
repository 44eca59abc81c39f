/**
 * Translate: a sentence, its translation, and the attention between their words.
 */

import { modelName } from '../../api/calls.js';
import { noticeOf } from '../../api/answers.js';
import { tokensOf } from '../../trace/attention.js';
import { isWord } from '../../trace/word_names.js';
import { counted } from '../../words/lists.js';
import { share } from '../../words/numbers.js';
import { columnOf, matrixAt, range, rowOf } from '../../trace/trace.js';
import { alone, namedUnit, spread, tokensIn, unitLabels, findUnit } from '../../trace/words.js';
import { chart } from '../../plot/chart.js';
import { linesChart } from '../../plot/line_map.js';
import { findStrongest } from '../../plot/lines.js';
import { cell } from '../../plot/marks/mark.js';
import { band } from '../../plot/scales.js';
import { choosingModel, NOTHING_CHOSEN } from '../../state/state.js';
import { rowsOf, splitsIn, swapsIn, wordLinks } from './findings.js';
import { control } from '../../ui/controls.js';

/**
 * @import { Cell } from '../../plot/grid.js'
 * @import { LinesChart } from '../../plot/line_map.js'
 * @import { Line } from '../../plot/lines.js'
 */

const TITLES = { rows: 'translation', columns: 'sentence' };
const QUANTITY = 'alignment weight';
/** Words are longer than tokens. */
const LETTERS = { wide: 18, narrow: 11 };

/** @type {ViewCode} */
export const translate = {
  help: 'Type a sentence to get its translation. Lines show the words of the sentence that the model attends to for each word of the translation. Type your own translation to see its alignment.',
  terms: {
    alignment: 'the word of the sentence that a word of the translation corresponds to',
    link: 'joins each word of the translation to the word it attends to most',
    weight:
      'how much a word of the translation attends to a word of the sentence; the weights of a word sum to 1',
  },
  arrangement: 'pair',

  /** The model's translation stays available next to the user's. */
  asks(trace, state) {
    if (!isTranslator(trace)) return {};
    return {
      ...(hasWords(trace) && { alignment: { analyses: ['alignment'] } }),
      ...(state.target !== null && { made: { target: null } }),
    };
  },

  /** Return the finding: words that change places, and words that become several. */
  wording(trace, { answers }) {
    const aligned = answers?.alignment?.trace;
    if (!isTranslator(trace) || !hasWords(trace) || !aligned) return {};
    const subject = alignmentOf(aligned);
    const firm = { ...subject, links: wordLinks(subject) };
    const findings = [...swapsIn(firm), ...splitsIn(firm)].slice(0, MOST_FINDINGS);
    return { answer: findings.length > 0 ? findings : [`${restOf(subject)}.`] };
  },

  controls(trace, { translate_threshold: threshold }) {
    if (!isTranslator(trace)) return [];
    return [
      control('number', 'translate_threshold', 'Hide lines below', threshold, {
        step: 0.01,
        shown: threshold === 0 ? 'none' : share(threshold, 2),
      }),
    ];
  },

  panels(trace) {
    const lines = { id: '', state: { part: 'lines' } };
    return isTranslator(trace) && hasWords(trace)
      ? [lines, { id: 'map', state: { part: 'map' } }]
      : [lines];
  },

  figure(trace, state) {
    const title = state.part === 'map' ? 'The alignment as a map' : 'Word alignment';
    if (!isTranslator(trace)) return { title, ...noTranslator(trace, state) };
    if (!hasWords(trace))
      return {
        title,
        notice:
          'The translation is empty, so there is nothing to align. Type your own above to see its alignment.',
      };
    const { alignment } = state.answers;
    if (!alignment?.trace)
      return { title, notice: noticeOf(alignment), isWaiting: !alignment?.problem };
    const subject = alignmentOf(alignment.trace);
    return {
      title,
      ...(state.part === 'map' ? mapPart(trace, state, subject) : linesPart(trace, state, subject)),
    };
  },
};

/** @param {Trace} trace */
function isTranslator({ card }) {
  return card?.kind === 'encoder-decoder';
}

/** @param {Trace} trace */
function hasWords({ target_tokens: tokens }) {
  return (tokens ?? []).some((token) => !token.is_special);
}

const MOST_FINDINGS = 3;

/** @param {Trace} trace @param {Frame} state */
function noTranslator({ card, model }, { cards }) {
  const translators = cards.filter(({ kind }) => kind === 'encoder-decoder');
  const choice = translators.length > 0 ? 'These models do:' : 'No model on this server does.';
  return {
    notice: `${modelName(card, model)} does not translate. ${choice}`,
    actions: translators.map((translator) => ({
      label: `Use ${modelName(translator)}`,
      patch: choosingModel(translator.id),
    })),
  };
}

/** @param {Trace} trace @param {ViewState} state @param {Alignment} subject */
function linesPart(trace, state, subject) {
  const { rows, columns, weights } = subject;
  const pairs = pairsOf(trace, state, subject);
  const { drawing, ...count } = linesChart(
    {
      weights,
      titles: TITLES,
      quantity: QUANTITY,
      threshold: state.translate_threshold,
      ceiling: 1,
      left: 'columns',
      chosenRow: chosenIn(state, subject),
      letters: LETTERS,
      ...pairs,
      cursor: {
        ...pairs.cursor,
        kind: 'lines between words',
        note: 'Point at a word to see only its lines; choose it to keep them, and again to release them.',
      },
    },
    state,
  );
  return {
    summary: `Lines between ${countWords(columns)} of the sentence and ${countWords(rows)} of the translation.`,
    facts: factsOf(state, subject, count),
    actions: [...rowsOf(trace, subject, chosenIn(state, subject)), ...actionsOf(trace, state)],
    ...drawing,
  };
}

/** @param {Trace} trace @param {ViewState} state @param {Alignment} subject */
function mapPart(trace, state, subject) {
  const { rows, columns, weights, links } = subject;
  const { query, key } = state.palette;
  const { meaning, ...pairs } = pairsOf(trace, state, subject);
  return {
    summary: `Weights of ${countWords(rows)} of the translation on ${countWords(columns)} of the sentence.`,
    help: 'Each row is a word of the translation; the outlined cell is its link.',
    ...chart(
      {
        x: band(unitLabels(columns), { title: TITLES.columns, ink: key, keep: [] }),
        y: band(unitLabels(rows), { title: TITLES.rows, ink: query, keep: [] }),
        marks: [
          cell(weights, { ramp: { title: QUANTITY, domain: [0, 1] }, outlined: links, ...meaning }),
        ],
        size: { isSquare: true, isZoomable: true },
        ...pairs,
      },
      state,
    ),
  };
}

/**
 * @param {ViewState} state
 * @param {Alignment} alignment
 * @param {{drawn: Line[], left: number}} of
 */
function factsOf(state, { aligner }, { drawn, left }) {
  const made = state.answers.made?.trace?.target;
  return [
    ...(state.target === null
      ? [['Translated by', 'the model']]
      : [
          ['Translated by', 'you'],
          ['The model’s own', made === undefined ? '…' : made || 'empty: it ends at once'],
        ]),
    [
      'Read from',
      aligner
        ? `cross-attention, layer ${aligner.layer}, head ${aligner.head}, which aligns words best`
        : 'cross-attention, the mean of all heads',
    ],
    ...(left > 0 ? [['Lines', `the ${drawn.length} strongest of ${drawn.length + left}`]] : []),
  ];
}

/** @param {Trace} trace @param {ViewState} state */
function actionsOf(trace, { target, answers }) {
  if (target === null)
    return [
      { label: 'Change this translation', patch: { target: trace.target, ...NOTHING_CHOSEN } },
    ];
  return answers.made?.trace
    ? [{ label: 'Back to the model’s translation', patch: { target: null, ...NOTHING_CHOSEN } }]
    : [];
}

/** @param {ViewState} state @param {Alignment} subject @returns {number|null} the row of the chosen word */
function chosenIn({ query }, { rows }) {
  const row = query === null ? -1 : findUnit(rows, query);
  return row < 0 ? null : row;
}

/**
 * Describe the pairs of words, for both drawings.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Alignment} subject
 * @returns {Pick<LinesChart, 'meaning'|'table'> & {sentence: Partial<SentenceLink>, cursor: Partial<CellCursor>}}
 */
function pairsOf(trace, state, subject) {
  const { rows, columns, weights } = subject;
  const chosen = chosenIn(state, subject);
  const start = chosen ?? 0;
  /** @param {{row: number, column: number}} pair */
  const value = ({ row, column }) => weights.data[row * weights.columns + column];
  return {
    meaning: {
      value,
      format: (weight) => share(weight, 4),
      name: ({ row, column }) => `${namedUnit(columns, column)} — ${namedUnit(rows, row)}`,
      number: (pair) => share(value(pair), 4) + (isLinked(subject, pair) ? ', linked' : ''),
      say: (pair) => sentence(subject, pair),
      tokens: ({ row, column }) => ({ query: tokensIn(rows[row]), key: tokensIn(columns[column]) }),
      choose: ({ row, column }) =>
        row === chosen
          ? { query: null, source: null }
          : { query: rows[row].last, source: columns[column].last },
    },
    table: {
      rows: { title: 'word of the translation', labels: unitLabels(rows) },
      columns: { title: 'word of the sentence', labels: unitLabels(columns) },
      quantity: QUANTITY,
      request: { capture: [], analyses: ['alignment'] },
    },
    sentence: {
      sides: { rows: 'target', columns: 'source' },
      rowOf: (token) => findUnit(rows, token),
      columnOf: (token) => findUnit(columns, token),
      ofRow: (row) => rowShown(trace, subject, row),
      ofColumn: (column) => columnShown(trace, subject, column),
      ceiling: 1,
      rest: chosen === null ? { readout: restOf(subject) } : rowShown(trace, subject, chosen),
    },
    cursor: {
      chooseHint: 'Enter keeps or releases the lines of the word',
      ...(chosen !== null && { chosen: { row: chosen } }),
      start: { row: start, column: findStrongest(weights, { row: start }) },
    },
  };
}

/** @param {Trace} trace @param {Alignment} subject @param {number} row */
function rowShown(trace, subject, row) {
  const tint = spread(subject.columns, rowOf(subject.weights, row), trace.tokens.length);
  return {
    tint,
    readout: sentence(
      subject,
      { row, column: findStrongest(subject.weights, { row }) },
      'attends most to',
    ),
  };
}

/** @param {Trace} trace @param {Alignment} subject @param {number} column */
function columnShown(trace, subject, column) {
  const tint = spread(
    subject.rows,
    columnOf(subject.weights, column),
    tokensOf(trace, 'target').length,
  );
  const row = findStrongest(subject.weights, { column });
  return {
    tint,
    readout: `${namedUnit(subject.columns, column)} is attended to most by ${namedUnit(subject.rows, row)}, with weight ${share(subject.weights.data[row * subject.weights.columns + column])}`,
  };
}

/** @param {Alignment} subject @param {Cell} pair */
function sentence(subject, { row, column }, verb = 'attends to') {
  const { rows, columns, weights } = subject;
  const weight = weights.data[row * weights.columns + column];
  return `${namedUnit(rows, row)} ${verb} ${namedUnit(columns, column)} with weight ${share(weight)}${isLinked(subject, { row, column }) ? '; the two are linked' : ''}`;
}

/** @param {Alignment} alignment @param {Cell} pair */
function isLinked({ links }, { row, column }) {
  return links.some((link) => link.row === row && link.column === column);
}

/** @param {Unit[]} units */
const countWords = (units) => counted(units.filter(isWord).length, 'word');

/** @param {Alignment} subject */
function restOf(subject) {
  const links = wordLinks(subject, 0);
  /** @param {'row'|'column'} side */
  const linked = (side) => new Set(links.map((link) => link[side])).size;
  return `${linked('row')} of ${countWords(subject.rows)} of the translation are linked, to ${linked('column')} of ${countWords(subject.columns)} of the sentence`;
}

/**
 * @typedef {Object} Alignment
 * @property {Unit[]} rows the words of the target
 * @property {Unit[]} columns the words of the source
 * @property {Matrix} weights target word by source word; a row sums to 1, or to 0
 * @property {Cell[]} links
 * @property {{layer: number, head: number, shift: number}|null} aligner the head they were read from; null: the mean of all
 */

/** @param {Trace} trace with the analysis @returns {Alignment} */
function alignmentOf(trace) {
  const { weights, links, aligner } = trace.analyses.alignment;
  const linked = matrixAt(links);
  return {
    rows: numbered(tokensOf(trace, 'target'), trace.target, linked.rows),
    columns: numbered(trace.tokens, trace.text, linked.columns),
    weights: matrixAt(weights),
    links: Array.from(linked.data.keys())
      .filter((at) => linked.data[at] > 0)
      .map((at) => ({ row: Math.floor(at / linked.columns), column: at % linked.columns })),
    aligner: aligner?.head === undefined ? null : aligner,
  };
}

/**
 * Return words in the order of their indices.
 * @param {Token[]} tokens
 * @param {string|null} text
 * @param {number} count
 */
function numbered(tokens, text, count) {
  const characters = [...(text ?? '')];
  return range(count).flatMap((number) => {
    const pieces = alone(tokens).filter(
      ({ word, is_special: isSpecial }) => !isSpecial && word === number,
    );
    const [first, last] = [pieces[0], pieces.at(-1)];
    if (!first || !last || first === last) return pieces;
    const whole = characters.slice(first.start, last.end).join('');
    return [{ ...first, text: whole, end: last.end, last: last.last, part: null }];
  });
}
