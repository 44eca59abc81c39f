/**
 * Attention: the weights of one head by query and key, its scores, or several heads combined.
 */

import { noticeOf, READING } from '../../api/answers.js';
import { counted, capitalised } from '../../words/lists.js';
import { percent } from '../../words/numbers.js';
import { quoted } from '../../words/tokens.js';
import { ATTENTIONS, isPair, PAIR_PARTS, tokensOf } from '../../trace/attention.js';
import { asksRoles, findRoles } from '../../rules/head_insight.js';
import { canBeLines, QUANTITIES } from '../../state/attention_switches.js';
import { range } from '../../trace/trace.js';
import { rolesIn } from '../../plot/roles.js';
import { choosing } from '../../state/state.js';
import {
  chosenIn,
  cursorOf,
  matrixChart,
  describeCells,
  sentenceOf,
  tableOf,
  WRITTEN,
} from './matrix.js';
import { asks, hiddenBy, readSetting, selectWeights } from './chosen_weights.js';
import { wordingFor } from './wording.js';
import { control, choice, numbered } from '../../ui/controls.js';

/** @import { Subject } from './chosen_weights.js' */

/** Loaded when lines are first asked for. @type {typeof import('../../plot/line_map.js').linesChart|null} */
let linesChart = null;

async function loadLines() {
  ({ linesChart } = await import('../../plot/line_map.js'));
}

/** @type {ViewCode} */
export const attention = {
  loadOverview: async () => (await import('../../ui/heads_block.js')).createHeadsBlock,
  ...wordingFor('decoder'),
  wording: (trace, state) => {
    const setting = readSetting(trace, state);
    return setting
      ? wordingFor(setting.isWritten ? 'written' : setting.place.id, setting.switches)
      : {};
  },
  ...ATTENTIONS,
  asks: (trace, state) => ({
    ...asks(trace, state),
    ...asksRoles(trace),
    // Of layers whose weights are not here, All heads shows small maps.
    ...(trace.isLayered && { maps: { capture: [], analyses: [], resolution: 48 } }),
  }),

  /** Load the lines if they are wanted and not here yet. */
  prepare(trace, state) {
    const isWanted = readSetting(trace, state)?.switches.as === 'lines';
    return isWanted && !linesChart ? loadLines() : undefined;
  },
  controls: (trace, state) => {
    const setting = readSetting(trace, state);
    if (!setting) return [];
    const display = [
      ...ofWhat(setting),
      ...ofHow(setting),
      ...(isPair(trace) ? [ofPair(setting)] : []),
      choice('range', 'Colours', state.range, RANGES),
      ...(trace.card?.analyses.includes('logit_attribution')
        ? [choice('map', 'Map of the model', state.map, coloursFor(trace))]
        : []),
    ];
    return display.map((control) => ({ ...control, isMore: true }));
  },

  figure(trace, state) {
    const setting = readSetting(trace, state);
    if (!setting) return { title: 'Attention', notice: 'This trace holds no attention weights.' };
    const awaited = Object.keys(asks(trace, state))
      .map((name) => noticeOf(state.answers?.[name]))
      .find(Boolean);
    if (awaited) return { title: 'Attention', notice: awaited };
    const isOfLines = setting.switches.as === 'lines';
    if (isOfLines && !linesChart) return { title: 'Attention', notice: READING, isWaiting: true };
    const subject = selectWeights(trace, state, setting);
    const { name, quantity, matrix } = subject;
    if (matrix.rows * matrix.columns === 0)
      return {
        title: capitalised(name),
        notice: 'Every token is hidden. Hide fewer of them to see the map.',
      };
    const chosen = chosenIn(trace, state, subject);
    const isResting = subject.switches.resting > 0;
    return {
      title: capitalised(name) + (isResting ? ', without the first token' : '') + quantity.suffix,
      facts: subject.switches.which === 'head' ? findRoles(state) : [],
      summary: `${capitalised(quantity.noun)} of ${name}: ${matrix.rows} queries by ${matrix.columns} keys.`,
      ...(isOfLines && linesChart
        ? asLines(linesChart, trace, state, subject, chosen)
        : { ...matrixChart(trace, state, subject), help: notesOf(trace, subject) }),
      actions: [
        ...actionsFor(trace, state, subject, chosen),
        ...(isResting
          ? [{ label: 'Show the first token', patch: { attention_hide: 'nothing' } }]
          : []),
      ],
    };
  },
};

/**
 * The lines of the chosen query are emphasised.
 * @param {typeof import('../../plot/line_map.js').linesChart} drawLines
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @param {ReturnType<typeof chosenIn>} chosen
 */
function asLines(drawLines, trace, state, subject, { row }) {
  const { drawing, left } = drawLines(
    {
      weights: subject.matrix,
      titles: { rows: subject.isWritten ? WRITTEN : 'query', columns: 'key' },
      quantity: subject.quantity.noun,
      ceiling: subject.scale.top,
      chosenRow: row < 0 ? null : row,
      meaning: describeCells(trace, state, subject),
      table: tableOf(subject),
      sentence: sentenceOf(trace, state, subject),
      cursor: cursorOf(trace, state, subject),
    },
    state,
  );
  return { ...drawing, help: notesOf(trace, subject, left) };
}

/**
 * The arithmetic exists for a cell of one head, one query and one key.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @param {ReturnType<typeof chosenIn>} chosen
 */
function actionsFor(
  trace,
  { layer, head: open },
  { place, isWritten, switches, matrix, quantity, columns },
  { query, row, column },
) {
  if (whyNot(switches) || row < 0) return [];
  const head = switches.which === 'head' ? open : switches.heads[0];
  const value = matrix.data[row * matrix.columns + column];
  const label = Number.isNaN(value) ? 'Why is it hidden?' : `Why ${quantity.write(value)}?`;
  return [
    {
      label,
      patch: {
        view: 'why',
        ...choosing(trace, place.rows, isWritten ? query - 1 : query),
        key: columns[column].first,
        layer,
        head,
      },
    },
  ];
}

const RANGES = [
  { id: 'one', title: '0 to 1', help: 'The same colours for every head' },
  { id: 'head', title: '0 to max', help: 'Up to each head’s own maximum' },
];
const COLOURS = [
  { id: 'effect', title: 'Effect', help: 'What each head adds to the chosen next word' },
  { id: 'writes', title: 'Writes', help: 'The share of what its layer writes' },
];
/** @param {Trace} trace */
const coloursFor = (trace) => [
  ...COLOURS,
  ...rolesIn(trace).map((id) => ({
    id,
    title: `To ${id}`,
    help: `The share of each head’s attention that goes to tokens of the role ${id}`,
  })),
];
const WHICH = [
  { id: 'head', title: 'One head', help: 'The head chosen in the overview' },
  { id: 'heads', title: 'Several', help: 'The mean of selected heads of this layer' },
  { id: 'mean', title: 'Mean', help: 'The mean of all heads of this layer' },
  {
    id: 'max',
    title: 'Largest',
    help: 'In each cell the largest weight of all heads of this layer',
  },
  {
    id: 'rollout',
    title: 'Rollout',
    help: 'Attention through all layers up to this one (rollout)',
  },
];
const AS = [
  { id: 'matrix', title: 'Matrix', help: 'A row for each query, a column for each key' },
  { id: 'lines', title: 'Lines', help: 'Lines between two columns of words' },
];
const ROWS = [
  { id: 'written', title: 'How it was written', help: 'The row from which the word was written' },
  {
    id: 'next',
    title: 'What it reads',
    help: 'The row of the word, from which the next is written',
  },
];
const HIDE = [
  {
    id: 'auto',
    title: 'As needed',
    help: 'The first token, where most of the attention of a large model’s head rests on it and hides the rest',
  },
  { id: 'nothing', title: 'Nothing' },
  {
    id: 'first',
    title: 'First token',
    help: 'Many heads attend to it when they find nothing else (an attention sink)',
  },
  {
    id: 'special',
    title: 'Special tokens',
    help: 'Tokens that are not text, such as the start marker',
  },
];

/** @param {NonNullable<ReturnType<typeof readSetting>>} setting @returns {Control[]} */
function ofWhat({ place, nHeads, switches: { what, which, heads } }) {
  const quantities = Object.entries(QUANTITIES).map(([id, { title, help }]) => ({
    id,
    title,
    help,
  }));
  const isRolled = which === 'rollout';
  const canRoll = place.id !== 'cross' && (what === 'weights' || what === 'log');
  return [
    choice('attention_what', 'Show', what, isRolled ? quantities.slice(0, 2) : quantities),
    choice('attention_which', 'Of', which, canRoll ? WHICH : WHICH.slice(0, -1)),
    ...(which === 'heads'
      ? [
          control('counts', 'attention_heads', 'Heads', heads, {
            options: numbered(range(nHeads), 'Head'),
          }),
        ]
      : []),
  ];
}

/** @param {NonNullable<ReturnType<typeof readSetting>>} setting @returns {Control[]} */
function ofHow({ place, isWritten, switches }) {
  const { what, as, isWords, hidden, isShare } = switches;
  const words = control('flag', 'attention_words', 'Whole words', isWords, {
    isSet: isWords,
    help: 'The tokens of a word merged: columns summed, rows averaged',
  });
  const hide = choice('attention_hide', 'Mute', hidden, HIDE);
  return [
    ...(place.id === 'cross'
      ? [choice('attention_rows', 'Word', isWritten ? 'written' : 'next', ROWS)]
      : []),
    ...(canBeLines(what) ? [choice('attention_as', 'As', as, AS)] : []),
    hide,
    ...(isShare ? [words] : []),
  ];
}

/** @param {NonNullable<ReturnType<typeof readSetting>>} setting */
function ofPair({ switches: { pair } }) {
  return choice('attention_pair', 'Texts', pair ? `${pair.from}_${pair.to}` : 'all', [
    { id: 'all', title: 'All' },
    ...PAIR_PARTS.map(({ from, to, title }) => ({
      id: `${from}_${to}`,
      title: capitalised(title),
      help: `Rows of the ${from} text, columns of the ${to}`,
    })),
  ]);
}

/**
 * @param {Trace} trace
 * @param {Subject} subject
 * @param {number} [nLeft] lines left out, being too many
 * @returns {string} '' for an unchanged map
 */
function notesOf(trace, subject, nLeft = 0) {
  const { quantity, switches } = subject;
  return [
    quantity.note,
    ofHeads(switches),
    ofWords(switches),
    ofHidden(trace, subject),
    switches.pair
      ? `Only the rows of the ${switches.pair.from} text and the columns of the ${switches.pair.to} are shown; the special tokens are of neither.`
      : '',
    nLeft > 0 ? `The ${counted(nLeft, 'faintest line')} are left out.` : '',
    whyNot(switches),
  ]
    .filter(Boolean)
    .join(' ');
}

/**
 * Return the reason why a cell has no arithmetic to show.
 * @param {Switches} switches
 * @returns {string} '' if it can
 */
function whyNot({ which, heads, isWords }) {
  const isOne = which === 'head' || (which === 'heads' && heads.length === 1);
  if (!isOne) return '“Why” needs one head.';
  return isWords ? '“Why” needs single tokens; a cell of whole words combines several.' : '';
}

/** @param {Switches} switches */
function ofHeads({ which, isShare }) {
  return which === 'max' && isShare
    ? 'Each cell is the largest weight of any head, so rows sum to 1 or more.'
    : '';
}

/** @param {Switches} switches */
function ofWords({ isWords, which }) {
  if (!isWords) return '';
  return `The tokens of a word are merged: columns summed, rows averaged${which === 'max' ? '' : ', so that rows still sum to 1'}.`;
}

/** @param {Trace} trace @param {Subject} subject */
function ofHidden(trace, { place, switches }) {
  const { isShare, resting } = switches;
  const hidden = hiddenBy(switches);
  if (resting > 0)
    return `The first token, ${quoted(tokensOf(trace, place.columns)[0])}, is left out: ${percent(resting, 0)} of the weight rests on it and would hide the rest. Colours end at the highest weight that is shown.`;
  if (hidden === 'nothing') return '';
  const what =
    hidden === 'first'
      ? `The first token, ${quoted(tokensOf(trace, place.columns)[0])}, is hidden`
      : 'Special tokens are hidden';
  return `${what}${isShare ? '; rows are not renormalised, so they sum to less than 1' : ''}.`;
}
