/**
 * Why this cell: the derivation of one attention weight from the tensors of the pass, its effect, and
 * query × key in every dimension for all keys of the query.
 */

import { noticeOf } from '../../api/answers.js';
import { ATTENTIONS, headInWords, splitsScores, WHY_THERE } from '../../trace/attention.js';
import { decimal, share, signed, small } from '../../words/numbers.js';
import { named, quoted, tokenLabels } from '../../words/tokens.js';
import { highestIn, range } from '../../trace/trace.js';
import { chart } from '../../plot/chart.js';
import { cell as cells } from '../../plot/marks/mark.js';
import { text } from '../../plot/marks/decorations.js';
import { band } from '../../plot/scales.js';
import { choosing, createMemo } from '../../state/state.js';
import { chooseCell, isPredicting } from '../../rules/prediction.js';
import { rowShift, rowShown } from '../../state/written_rows.js';
import { cellControls, cellOf } from './cell.js';
import { stepFigure } from './bar_rows.js';
import { derive, differences, listSites, termsOf, isForeign } from './derivation.js';
import { productFormula } from './formulas.js';
import { ROUNDING, STEPS } from './steps.js';
import { TO_EXPERIMENT, UNSCALED } from '../unscaled.js';
import { control } from '../../ui/controls.js';

/**
 * @import { Place } from '../../trace/attention.js'
 * @import { Datum } from '../../plot/marks/mark.js'
 * @import { Subject } from './steps.js'
 */

/** The step in which scores are divided by √d. */
const SCALING_STEP = 'score';

/** @type {ViewCode} */
export const why = {
  help: 'One attention weight derived step by step from its query and key, and its effect on the output.',
  terms: {
    query: 'the vector with which a token searches',
    key: 'the vector by which a token is found',
    value: 'the vector that a token passes on when it is found',
    entropy: 'how evenly a row spreads its weight: 2ⁿ equal weights have n bits',
    softmax: 'turns scores into weights between 0 and 1 that sum to 1: exp(s) / Σ exp(s)',
    'residual stream': 'the d_model numbers of a token, to which every layer adds its output',
  },
  arrangement: 'steps',
  ...ATTENTIONS,

  /** The requests: one head of one layer, and the same of the edited pass if a switch is set. */
  asks(trace, state) {
    const cell = cellOf(trace, state);
    if (!cell || (isForeign(trace.card) && !trace.card?.sites)) return {}; // its full card tells the sites
    const ask = requestOf(trace, state, cell);
    const edits = editsOf(state, cell.place);
    return { plain: ask, ...(edits.length > 0 && { changed: { ...ask, edits } }) };
  },

  /** Return the difference between the derivation and the model's numbers. */
  wording(trace, state) {
    const subject = subjectOf(trace, state);
    if (!subject) return {};
    const answer = state.why_unscaled ? [UNSCALED] : undefined;
    return { help: `${why.help} ${checked(subject)}`, ...(answer && { answer }) };
  },

  controls(trace, state) {
    const cell = cellOf(trace, state);
    if (!cell) return [];
    const isAsTrained = editsOf(state, cell.place).length === 0;
    return [
      ...cellControls(trace, state, cell),
      ...(termsOf(trace.card, cell.path, state.head).scale === 1 ? [] : [unscaledFlag(state)]),
      control('number', 'why_temperature', 'Softmax temperature', state.why_temperature, {
        step: 0.1,
        shown: signed(state.why_temperature, 1),
      }),
      {
        kind: 'button',
        label: 'As trained',
        patch: { why_unscaled: false, why_temperature: 1 },
        disabled: isAsTrained,
      },
      ...ofWeight(trace, state),
    ];
  },

  panels(trace, state) {
    if (!cellOf(trace, state) || refusal(state))
      return [{ id: 'product', state: { step: 'product', nth: 1 } }];
    const isTurned = state.answers?.plain?.trace
      ? subjectOf(trace, state)?.now.isTurned
      : trace.card?.positional === 'rotary';
    const steps = Object.keys(STEPS).filter((step) => step !== 'turn' || isTurned);
    return [
      ...steps.map((step, index) => ({ id: step, state: { step, nth: index + 1 } })),
      { id: 'keys', state: { step: 'keys', nth: steps.length + 1 } },
    ];
  },

  /** The state has the panel’s `step`, `nth`. */
  figure(trace, state) {
    if (!cellOf(trace, state))
      return { title: 'Why this cell', notice: 'This trace holds no attention weights.' };
    const subject = subjectOf(trace, state);
    if (!subject || refusal(state))
      return {
        title: state.step === 'keys' ? 'All keys' : `Step ${state.nth}`,
        notice: noticeOf(refusal(state) ?? state.answers?.plain),
        isWaiting: !refusal(state),
      };
    if (state.step === 'keys') return allKeysFigure(subject, state);
    const drawn = stepFigure(STEPS[state.step](subject), subject, state);
    const isScore = state.why_unscaled && state.step === SCALING_STEP;
    const actions = [
      ...(drawn.actions ?? []),
      ...(isScore ? [TO_EXPERIMENT] : []),
      ...(state.nth === 1 ? doorsTo(trace, state) : []),
    ];
    return {
      ...drawn,
      title: `${state.nth}. ${drawn.title}`,
      ...(actions.length > 0 && { actions }),
    };
  },
};

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {NonNullable<ReturnType<typeof cellOf>>} cell
 * @returns {Ask}
 */
function requestOf({ card }, { layer, head }, { path }) {
  return {
    capture: listSites(path, card),
    layers: [layer],
    heads: [head],
    analyses: ['head_outputs'],
  };
}

/**
 * Return the edits of the switches, limited to this attention of this layer.
 * @param {ViewState} state
 * @param {Place} place
 */
function editsOf({ layer, why_unscaled: isUnscaled, why_temperature: value }, { id: where }) {
  return [
    ...(isUnscaled ? [{ kind: 'no_scaling', layer, where }] : []),
    ...(value !== 1 ? [{ kind: 'temperature', value, layer, where }] : []),
  ];
}

/** All steps share one derivation, so it is memoized. */
const memo = createMemo();

/** @param {Trace} trace @param {ViewState} state @returns {Subject|null} null: still on its way */
function subjectOf(trace, state) {
  const { plain, changed } = state.answers ?? {};
  const { where, layer, head, query, source, key } = state;
  const edits = [state.why_unscaled, state.why_temperature];
  const of = [trace, plain, changed, where, layer, head, query, source, key, ...edits];
  return memo(of, () => workedOut(trace, state));
}

/**
 * Return the subject of all steps. Until the edited pass arrives, its row is derived from the
 * queries and keys of the plain pass, which the edit does not change.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Subject|null}
 */
function workedOut(trace, state) {
  const cell = cellOf(trace, state);
  const plain = state.answers?.plain?.trace;
  if (!cell || !plain) return null;
  const { place, path } = cell;
  const isChanged = editsOf(state, place).length > 0;
  const pass = isChanged ? (state.answers.changed?.trace ?? null) : plain;
  const terms = termsOf(trace.card, path, state.head);
  const softmax = { isScaled: !state.why_unscaled, temperature: state.why_temperature, terms };
  return {
    ...cell,
    plain,
    pass,
    isChanged,
    name: headInWords(trace, place, state.layer, state.head),
    head: state.head,
    now: derive(pass ?? plain, path, cell, softmax),
    before: derive(plain, path, cell, { terms }),
    request: {
      ...requestOf(trace, state, cell),
      ...(isChanged && { edits: editsOf(state, place) }),
    },
  };
}

/** Return the way to the parts of the stream that made the cell. @param {Trace} trace @param {ViewState} state */
function doorsTo(trace, state) {
  const cell = splitsScores(trace) ? cellOf(trace, state) : null;
  if (!cell) return [];
  const { place, query, key } = cell;
  const looked = choosing(trace, place.rows, query + rowShift(trace, place, state));
  return [{ label: WHY_THERE, patch: { view: 'there', ...looked, key } }];
}

/** @param {Subject} subject */
function checked({ now, pass, path }) {
  if (!pass) return 'Waiting for the pass with this change.';
  const { score, weight } = differences(now, pass, path);
  const verdict = `the score is ${small(score)} and the weight ${small(weight)} from the model’s`;
  const far =
    Math.max(score, weight) > ROUNDING
      ? ', more than the usual rounding of 10⁻⁵; the steps explain why'
      : '';
  return `Recomputed in this browser in double precision from the tensors of the pass: ${verdict}${far}.`;
}

/**
 * Return the controls that set the weight of the cell by hand.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Control[]}
 */
function ofWeight(trace, state) {
  const shown = cellOf(trace, state, (place) => rowShown(trace, place, state));
  const cell = isPredicting(trace) && shown ? chooseCell(trace, state, shown.query) : null;
  if (!cell || !shown || state.isSaved) return [];
  const { key, row } = cell;
  const [to, from] = [named(shown.keys, key), named(shown.queries, cell.query)];
  const value = state.weight ?? row[key];
  return [
    control('number', 'weight', `Set the weight of ${to} for ${from}`, Number(value.toFixed(3)), {
      ...{ least: 0, most: 1, step: 0.001 },
      isTyped: true,
      help: 'The model reads the text again with this weight; the row of next words shows what changes.',
    }),
    ...(state.weight === null
      ? []
      : [
          control('flag', 'weight_fixed', 'leave the rest of the row', state.weight_fixed, {
            help: 'Off: the other weights of the row are scaled, so that it still sums to 1',
          }),
        ]),
  ];
}

/** @param {ViewState} state @returns {Control} */
function unscaledFlag(state) {
  return control('flag', 'why_unscaled', 'Leave out 1/√d', state.why_unscaled, {
    help: 'A second pass in which this attention omits the division by √d',
  });
}

/** Return the notice of a missing answer. @param {ViewState} state */
function refusal({ answers }) {
  return [answers?.plain, answers?.changed].find((answer) => answer?.problem);
}

const TITLE = 'All keys of this query';
/** Pixels that the sum and the weight of a row take. */
const SUM = 92;
/** Pixels of a cell: the least of few keys and of many, and the most. */
const CELL = { few: 28, many: 12, most: 38 };
/** So many keys have their numbers in the cells, if the width has room. */
const FEW = 24;

/** @param {Subject} subject @param {Frame} state @returns {Figure} */
function allKeysFigure(subject, state) {
  const { now, keys, queries, place, name, request } = subject;
  const { rows, columns } = now.metKeys;
  const query = quoted(queries[now.query]);
  const data = now.metKeys.data.map((value, at) => value * now.met.query[at % columns]);
  const most = data.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0) || 1;
  const best = highestIn(now.row.weights);
  return {
    title: TITLE,
    help: `The query of ${query} times each key, dimension by dimension. A row sums to query · key, the number beside it; behind the arrow is the weight.`,
    formula: productFormula(now),
    facts: [
      ['keys', String(rows)],
      ['dimensions', String(columns)],
      ['highest weight', `${share(now.row.weights[best])} for ${quoted(keys[best])}`],
    ],
    summary: `Query × key of ${query}: ${rows} keys by ${columns} dimensions.`,
    ...chart(
      {
        x: band(range(columns).map(String), { title: 'dimension of the head' }),
        y: band(tokenLabels(keys), { title: 'key', ink: state.palette.key }),
        marks: [
          cells(
            { rows, columns, data },
            {
              ramp: { title: 'query × key', domain: [-most, most], isDiverging: true },
              text: ({ value }) => (Math.abs(value) < 0.05 ? '0' : signed(value, 1)),
              ...meaningOf(subject),
            },
          ),
          sumsOf(subject, state),
        ],
        size: { isSquare: true, row: [rows > FEW ? CELL.many : CELL.few, CELL.most] },
        table: {
          columns: {
            title: 'dimension',
            labels: range(columns).map((dimension) => `dimension ${dimension}`),
          },
          quantity: `query × key by dimension, query ${query}, ${name}`,
          request,
          made: 'Each row of the keys is multiplied by the row of the query.',
        },
        sentence: {
          sides: { rows: place.columns, columns: place.columns },
          query: null,
          rowOf: () => -1,
          isSigned: true,
          rest: { readout: `${named(keys, now.key)}: ${sumInWords(subject, now.key)}` },
        },
        cursor: {
          chooseHint: 'Enter derives the key under the cursor',
          note: 'Choose a row to derive that key.',
          chosen: { row: now.key },
          start: { row: now.key, column: 0 },
        },
      },
      state,
    ),
  };
}

/**
 * Return the sum of each row and its weight, to the right of the map.
 * @param {Subject} subject
 * @param {Frame} state
 * @returns {Mark<any>}
 */
function sumsOf({ now }, { palette }) {
  const { products, weights, scores } = now.row;
  return text(range(products.length), {
    // At the edge: Plotly leaves out what is beyond the axis.
    x: () => now.metKeys.columns - 0.5,
    y: (key) => key,
    text: (key) =>
      scores[key] === -Infinity
        ? '\u00a0masked'
        : `\u00a0${signed(products[key], 1)} → ${share(weights[key], 2)}`,
    at: 'middle right',
    ink: (key) => (key === now.key ? palette.key : palette.ink),
    room: SUM,
    least: CELL.many - 1,
  });
}

/** @param {Subject} subject @returns {Partial<Meaning<Datum>>} */
function meaningOf(subject) {
  const { now, keys } = subject;
  /** @param {Datum} cell */
  const name = ({ row, column }) => `${named(keys, row)}, dimension ${column}`;
  /** @param {Datum} cell */
  const product = ({ row, column, value }) =>
    `${signed(now.met.query[column], 2)} × ${signed(now.metKeys.data[row * now.metKeys.columns + column], 2)} = ${signed(value, 3)}`;
  return {
    format: (number) => decimal(number, 4),
    name,
    number: product,
    say: (cell) => `${name(cell)}: ${product(cell)}; ${sumInWords(subject, cell.row)}`,
    tokens: ({ row }) => ({ query: now.query, key: row }),
    choose: ({ row }) => ({ key: row }),
  };
}

/** @param {Subject} subject @param {number} key */
function sumInWords({ now: { row } }, key) {
  if (row.scores[key] === -Infinity) return 'masked';
  return `sum ${signed(row.products[key], 2)}, weight ${share(row.weights[key])}`;
}
