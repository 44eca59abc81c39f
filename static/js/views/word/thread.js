/** The thread of the prediction over its tokens: each step an arc, a row below the one before. */

import { chart } from '../../plot/chart.js';
import { path, dot } from '../../plot/marks/decorations.js';
import { reader } from '../../plot/marks/mark.js';
import { band } from '../../plot/scales.js';
import { endsOf, stepInWords, threadIn, walked } from '../../rules/thread.js';
import { predictingSide, tokensOf } from '../../trace/attention.js';
import { percent } from '../../words/numbers.js';
import { tokenLabels } from '../../words/tokens.js';
import { comparedIn, requestOf } from './explained.js';

/** @import { Spot } from '../../rules/scene.js' @import { Thread } from '../../rules/thread.js' */

const BEND = 24;
const ARROWS = { ArrowLeft: -1, ArrowRight: 1 };

/** @param {Trace} trace @param {ViewState} state @returns {Figure} */
export function threadFigure(trace, state) {
  const thread = /** @type {Thread} */ (threadIn(state));
  const { steps, at } = thread;
  const { source, target } = {
    source: tokenLabels(tokensOf(trace, 'source')),
    target: tokenLabels(tokensOf(trace, 'target')),
  };
  /** @param {Spot} spot @returns {number} */
  const placeOf = ({ side, index }) => (side === 'target' ? source.length + index : index);
  const rows = rowsOf(trace, thread, placeOf);
  const said = rows.map(({ row }) => {
    const { finding, more } = stepInWords(trace, thread, row);
    return `Step ${row + 1}: ${finding} ${more}`;
  });
  return {
    title: 'Step by step',
    help: 'Each arc leads from a word to the word that a head read for it; the next row says why it looked there. ← and → walk.',
    summary: said.join(' '),
    ...chart(
      {
        x: band([...source, ...target], {
          title: 'token',
          side: 'top',
          isSlanted: true,
          keep: rows.flatMap(({ from, to }) => [from, to]),
        }),
        y: band(
          rows.map(({ step }, row) => `${row + 1} · ${step.kind === 'end' ? 'end' : step.name}`),
        ),
        marks: [
          ...drawn(rows, at, state.palette),
          reader(rows.length, 1, {
            kind: 'steps',
            value: ({ row }) => steps[row].share,
            format: (value) => percent(value, 0),
            name: ({ row }) => `Step ${row + 1}: ${steps[row].name}`,
            number: ({ row }) => `${percent(steps[row].share, 0)} of its sum`,
            say: ({ row }) => said[row],
            choose: ({ row }) => ({ word_step: row }),
            box: ({ row }) => ({
              x0: -0.5,
              x1: source.length + target.length - 0.5,
              y0: row - 0.5,
              y1: row + 0.5,
            }),
          }),
        ],
        size: { height: 90 + 90 * rows.length },
        table: {
          rows: { title: 'step' },
          columns: { title: '', labels: ['share'] },
          quantity: 'share of the sum that the part belongs to',
          request: requestOf(trace, state),
          about: comparedIn(trace, /** @type {any} */ (thread)),
        },
        sentence: { rest: { readout: said[at] } },
        cursor: {
          start: { row: at, column: 0 },
          chooseHint: 'Enter shows the step',
          move: (key) => walked(state, ARROWS[/** @type {keyof typeof ARROWS} */ (key)] ?? NaN),
        },
      },
      state,
    ),
  };
}

/**
 * Return the steps with the places of their two tokens; a step that is no head stays where it was read.
 * @param {Trace} trace
 * @param {Thread} thread
 * @param {(spot: Spot) => number} placeOf
 */
function rowsOf(trace, { steps, position }, placeOf) {
  const start = placeOf({ side: predictingSide(trace), index: position });
  let last = { from: start, to: start };
  return steps.map((step, row) => {
    const ends = endsOf(trace, step);
    const read = step.side === 'query' ? last.from : last.to;
    last = ends ? { from: placeOf(ends.from), to: placeOf(ends.to) } : { from: read, to: read };
    return { step, row, ...last };
  });
}

/**
 * Draw the arcs, joined to one thread: the shown step in the colour of the beam, what follows it pale.
 * @param {ReturnType<typeof rowsOf>} rows
 * @param {number} at
 * @param {ViewState['palette']} palette
 */
function drawn(rows, at, { beam, muted, line }) {
  /** @param {number} row */
  const ink = (row) => (row === at ? beam : row < at ? muted : line);
  return [
    path(
      rows.slice(1).map(({ row, from }) => ({ row, from })),
      {
        points: ({ row, from }) => [
          { x: from, y: row - 0.7 },
          { x: from, y: row + 0.3 },
        ],
      },
    ),
    ...rows.map((each) =>
      path([each], { points: arcOf, stroke: ink(each.row), width: widthOf(each.step.weight) }),
    ),
    ...rows.map((each) =>
      dot([each], { x: ({ to }) => to, y: ({ row }) => row + 0.3, fill: ink(each.row), size: 9 }),
    ),
  ];
}

/** @param {number|null} weight */
const widthOf = (weight) => 1 + 4 * (weight ?? 0);

/** @param {{from: number, to: number, row: number}} of @returns {{x: number, y: number}[]} */
function arcOf({ from, to, row }) {
  return Array.from({ length: BEND + 1 }, (_, n) => ({
    x: from + ((to - from) * n) / BEND,
    y: row + 0.3 - 0.65 * Math.sin((Math.PI * n) / BEND),
  }));
}
