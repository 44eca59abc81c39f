/**
 * Circuit: the few edges of the model that do what it does here, on a map of its parts; each can be
 * cut.
 */

import { noticeOf } from '../../api/answers.js';
import { counted } from '../../words/lists.js';
import { signedBars } from '../../plot/bars.js';
import { curvesChart, warm } from '../../plot/curves.js';
import { css, diverging } from '../../plot/colour.js';
import { mapFigure, tableOf } from './map.js';
import {
  asks,
  circuitIn,
  controls,
  cutsIn,
  cutting,
  isCut,
  isLacking,
  taskOf,
  chooseWords,
} from './request.js';
import { effectOf, sayIn, wording } from './words.js';

/** @import { Circuit } from './request.js' */

const RIGHT_LEVEL = 215;

/** @type {ViewCode} */
export const circuit = {
  help: 'The edges are chosen by how much the prediction depends on each; then the model is run with only them of this sentence, and with all others as the other one has them; of a task, over its pairs. Faithfulness is the share of the difference in logits that this run keeps.',
  terms: {
    edge: 'what one part of the model writes and a later part reads',
    circuit: 'a few edges that do most of what the model does here',
    faithfulness: '(circuit − other sentence) / (this sentence − other sentence), in logits',
    cut: 'the reader is given what the writer wrote for the other sentence',
    'q, k, v': 'the query, key or value of a head',
    ff: 'the feed-forward network, or the experts, of a layer',
  },
  arrangement: () => 'led',
  asks,
  controls,
  wording,

  panels(trace, state) {
    const found = circuitIn(state);
    if (!found || found.edges.length === 0) return [{ id: '', state: {} }];
    return [
      { id: 'map', state: { part: 'map' } },
      { id: 'edges', state: { part: 'edges' } },
      ...(found.curve.length > 0 ? [{ id: 'curve', state: { part: 'curve' } }] : []),
    ];
  },

  /** The state has the panel’s `part`. */
  figure(trace, state) {
    if (isLacking(trace, state))
      return {
        title: 'Circuit',
        notice:
          'Type a second sentence with the same number of tokens, such as this one with a word changed so that another word follows; or choose a task.',
        actions: [
          { label: 'Copy the sentence and change a word', patch: { circuit_text: trace.text } },
          { label: 'Agreement across a noun', patch: { circuit_task: 'agreement' } },
        ],
      };
    const found = circuitIn(state);
    if (!found) {
      const { other, circuit: answer } = state.answers ?? {};
      if (taskOf(state) === '' && other?.trace && !chooseWords(trace, state))
        return {
          title: 'Circuit',
          notice:
            'No word is likelier after one sentence than after the other; change another word.',
        };
      const failed = other?.problem ? other : answer;
      return { title: 'Circuit', notice: noticeOf(failed), isWaiting: !failed?.problem };
    }
    if (found.edges.length === 0)
      return {
        title: 'Circuit',
        notice: 'None of these edges leads from a token to the prediction; take more edges.',
      };
    if (state.part === 'edges') return edgesFigure(trace, state, found);
    if (state.part === 'curve') return curveFigure(trace, state, found);
    return mapFigure(trace, state, found);
  },
};

/** @param {Trace} trace @param {ViewState} state @param {Circuit} found @returns {Figure} */
function edgesFigure(trace, state, found) {
  const cuts = new Set(cutsIn(state));
  const say = sayIn(found, cuts);
  const bars = found.edges.map((edge, row) => ({
    label: isCut(cuts, edge.name) ? `✂ ${edge.name}` : edge.name,
    name: edge.name,
    value: effectOf(edge),
    row,
  }));
  return {
    title: 'By edge',
    help: 'How many logits the edge gives the right word against the wrong one, estimated: what would be lost if it were cut by itself.',
    summary: `${counted(bars.length, 'edge')}, the strongest first.`,
    ...signedBars(
      bars,
      {
        title: 'logits',
        ends: ['against the right word', 'for it'],
        say: ({ row }) => say(row),
        choose: ({ name }) => cutting(state, name),
        table: tableOf(trace, state, found),
        sentence: { rest: { readout: say(0) } },
        cursor: { start: { row: 0, column: 0 }, chooseHint: 'Enter cuts the edge, or joins it' },
      },
      state,
    ),
  };
}

/** @param {Trace} trace @param {ViewState} state @param {Circuit} found @returns {Figure} */
function curveFigure(trace, state, { curve }) {
  const points = curve.filter(({ n_edges: count }) => count > 0);
  const colours = diverging(state.palette.theme);
  const at = points.findIndex(({ n_edges: count }) => count >= (state.circuit_edges ?? 0));
  const drawn = curvesChart(
    {
      x: points.map(({ n_edges: count }) => count),
      across: { title: 'edges', isLog: true },
      up: { title: 'share' },
      curves: [
        {
          name: 'right',
          values: points.map(({ right }) => right),
          colour: css(colours, RIGHT_LEVEL),
          dash: 'dot',
        },
        {
          name: 'faithfulness',
          values: points.map(({ faithfulness }) => faithfulness),
          colour: warm(state.palette),
          hasDots: true,
        },
      ],
      marker: at < 0 ? undefined : at,
      quantity: 'share of the logit difference, and of the pairs that are right',
      height: 300,
    },
    state,
  );
  return {
    title: 'The more edges, the more faithful',
    help: 'The strongest edges of the graph, without leaving any out; the line marks the number chosen above.',
    summary: `Faithfulness with 1 to ${points[points.length - 1].n_edges} edges.`,
    ...drawn,
  };
}
