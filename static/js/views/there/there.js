/**
 * Why there: the parts of the stream that make a head look from a token at a key, on both sides and in
 * pairs. Each can be cut, and the weight before and after stand side by side.
 */

import { lackOf, noticeOf } from '../../api/answers.js';
import { ATTENTIONS } from '../../trace/attention.js';
import { extent, matrixAt, matrixFrom, valueIn } from '../../trace/trace.js';
import { share } from '../../words/numbers.js';
import { signedBars, withSign } from '../../plot/bars.js';
import { diverging } from '../../plot/colour.js';
import { mapChart } from '../../plot/map.js';
import { rowShown } from '../../state/written_rows.js';
import { cellControls, cellOf } from '../derivation/cell.js';
import { rowsOf, saidOf, strongestOf, weightIn } from './parts.js';

/** @import { Answer, Cell, Row, SideOf, Subject } from './parts.js' */

const TITLE = 'Why there';
const NEEDS = { title: TITLE, needs: ['analyses.score_attribution.table'] };
const QUANTITY = 'share of the score';
const CUT_HELP = 'Choose a part to cut it: the head then reads zero in its place.';

/** @type {ViewCode} */
export const there = {
  help: 'A score is the product of a query and a key, and each is a sum of what was written into the residual stream before. So the score, against the mean of the keys that the token sees, is a sum over pairs of parts, exactly; the scales of the norms are kept as they are in this pass. A share of a sum is no cause: the cut is.',
  terms: {
    part: 'what the token, its position, an earlier head or an earlier network wrote into the stream',
    'query side': 'the parts of the token that looks',
    'key side': 'the parts of the token that is looked at, against the mean key',
    lead: 'the score of the key less the mean score of the keys that the token sees',
    cut: 'the query, or the key, of this head reads zero in place of what the part wrote, at every token',
  },
  arrangement: 'pair',
  ...ATTENTIONS,

  asks(trace, state) {
    const cell = cellIn(trace, state);
    if (!cell || lackIn(trace)) return {};
    const subject = subjectOf(trace, state);
    const first = subject && strongestOf(subject.key)?.edges;
    const cut = subject?.cut?.row.edges;
    return {
      parts: partsAsk(cell, state),
      ...(first?.length && { first: cutAsk(cell, state, first) }),
      ...(cut && { cut: cutAsk(cell, state, cut) }),
    };
  },

  wording(trace, state) {
    const subject = subjectOf(trace, state);
    return subject ? { answer: saidOf(trace, state, subject) } : {};
  },

  controls(trace, state) {
    const cell = cellIn(trace, state);
    return cell ? cellControls(trace, state, cell) : [];
  },

  panels(trace, state) {
    const subject = subjectOf(trace, state);
    if (!subject) return [{ id: '', state: {} }];
    return [
      { id: 'key', state: { drawn: 'key' } },
      { id: 'query', state: { drawn: 'query' } },
      { id: 'table', state: { drawn: 'table' }, isWide: true },
    ];
  },

  /** The state has the panel’s `drawn`. */
  figure(trace, state) {
    if (!cellIn(trace, state))
      return { title: TITLE, notice: 'This trace holds no attention weights.' };
    const lack = lackIn(trace);
    if (lack) return { title: TITLE, notice: lack };
    const subject = subjectOf(trace, state);
    const answer = state.answers?.parts;
    if (!subject) return { title: TITLE, notice: noticeOf(answer), isWaiting: !answer?.problem };
    if (state.drawn === 'table') return tableFigure(state, subject);
    return sideFigure(state, subject, state.drawn === 'query' ? 'query' : 'key');
  },
};

/** @param {Trace} trace @param {ViewState} state */
function cellIn(trace, state) {
  return cellOf(trace, state, (place) => rowShown(trace, place, state));
}

/** @param {Trace} trace @returns {string} why the model tells no parts; empty if it does */
const lackIn = ({ card }) => (card ? lackOf(NEEDS, card) : '');

/** @param {Cell} cell @param {ViewState} state @returns {Ask} */
function partsAsk({ path, query, key }, { head }) {
  const of = { attention: path, head, query, key };
  return { capture: [], analyses: ['score_attribution'], score_attribution: of };
}

/** @param {Cell} cell @param {ViewState} state @param {string[]} edges @returns {Ask} */
function cutAsk({ path }, { head }, edges) {
  const edits = [{ kind: 'cut', edges }];
  return { capture: [`${path}.weights`], heads: [head], analyses: [], edits };
}

/** @param {Trace} trace @param {ViewState} state @returns {Subject|null} null: still on its way */
function subjectOf(trace, state) {
  const cell = cellIn(trace, state);
  /** @type {Answer|undefined} */
  const answer = /** @type {any} */ (state.answers?.parts?.trace)?.analyses?.score_attribution;
  if (!cell || !answer?.table) return null;
  const [query, key] = /** @type {SideOf[]} */ (['query', 'key']).map((side) =>
    rowsOf(trace, cell, answer, side),
  );
  const rows = /** @type {SideOf[]} */ (['query', 'key'])
    .flatMap((side) => (side === 'key' ? key : query).map((row) => ({ side, row })))
    .filter(({ row }) => row.edges.length > 0);
  const cut =
    rows.find(({ row }) => row.edges.join(' ') === state.there_cut) ??
    rows.find(({ row }) => row === strongestOf(key));
  return { cell, answer, query, key, before: cell.weights[cell.key], cut: cut ?? null };
}

/** @param {Row} row */
const cutting = ({ edges }) => (edges.length > 0 ? { there_cut: edges.join(' ') } : {});

/** @param {ViewState} state @param {Subject} subject @param {SideOf} side @returns {Figure} */
function sideFigure(state, subject, side) {
  const { cell, answer, before, cut } = subject;
  const rows = subject[side];
  const after = weightIn(state.answers?.cut, cell)?.weight;
  const bars = rows.map((row) => {
    const isCut = cut?.row === row;
    const label = isCut ? `✂ ${row.label}` : row.label;
    const mark = isCut ? '; it is cut' : row.edges.length > 0 ? '' : '; it cannot be cut';
    const said = `${row.name}, ${side} side: ${withSign(row.value)} of ${withSign(answer.score)}${mark}`;
    return { ...row, label, said };
  });
  return {
    title: side === 'key' ? 'Key side' : 'Query side',
    help: CUT_HELP,
    ...(cut?.side === side && {
      facts: [
        ['cut', cut.row.label],
        ['weight', `${share(before)} → ${after === undefined ? '…' : share(after)}`],
      ],
    }),
    summary: `${rows.length} parts of the ${side} side, which sum to ${withSign(answer.score)}; the largest is ${bars[0].said}.`,
    ...signedBars(
      bars,
      {
        title: QUANTITY,
        ends: ['away', 'there'],
        say: ({ said }) => said,
        choose: cutting,
        table: {
          rows: { title: 'part' },
          columns: { title: '', labels: [QUANTITY] },
          quantity: `${QUANTITY} by part of the ${side} side`,
          request: partsAsk(cell, state),
        },
        sentence: { rest: { readout: bars[0].said } },
        cursor: { start: { row: 0, column: 0 }, chooseHint: 'Enter cuts the part' },
      },
      state,
    ),
  };
}

/** @param {ViewState} state @param {Subject} subject @returns {Figure} */
function tableFigure(state, { cell, answer, query, key }) {
  const pair = valueIn(matrixAt(answer.table));
  const values = query.map(({ of }) =>
    key.map((column) =>
      of.reduce((sum, a) => column.of.reduce((inner, b) => inner + pair(a, b), sum), 0),
    ),
  );
  const top = extent(matrixFrom(values)) || 1;
  const total = withSign(answer.score);
  return {
    title: 'Parts of the query × parts of the key',
    help: `Each cell is what one pair of parts adds to the score; all sum to ${total}. ${CUT_HELP}`,
    summary: `${query.length} parts of the query by ${key.length} of the key.`,
    ...mapChart(
      {
        values,
        rows: query.map(({ label }) => label),
        columns: key.map(({ label }) => label),
        titles: { rows: 'part of the query', columns: 'part of the key' },
        scale: { bottom: -top, top, colours: diverging(state.palette.theme) },
        quantity: QUANTITY,
        format: withSign,
        text: (row, column) =>
          Math.abs(values[row][column]) < 0.05 ? '0' : withSign(values[row][column]),
        say: (row, column) => `${query[row].name} of the query × ${key[column].name} of the key`,
        request: partsAsk(cell, state),
        cursor: {
          choose: (_, column) => cutting(key[column]),
          chooseHint: 'Enter cuts the part of the key',
        },
        isSlanted: true,
      },
      state,
    ),
  };
}
