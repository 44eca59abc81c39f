/** Answer: the probability of each token to be the first of the answer, and to be its last. */

import { noticeOf } from '../../api/answers.js';
import { percent } from '../../words/numbers.js';
import { tokenLabels } from '../../words/tokens.js';
import { sequential } from '../../plot/colour.js';
import { mapChart } from '../../plot/map.js';
import { matrixAt, valueIn } from '../../trace/trace.js';

const TITLE = 'Answer';
const REQUEST = { capture: [], analyses: ['answer'] };
const ENDS = ['start', 'end'];

/** @type {ViewCode} */
export const answer = {
  help: 'The model gives each token two scores: to be the first of the answer, and to be its last. A softmax over the tokens makes probabilities of each.',
  terms: {},
  asks: () => ({ span: REQUEST }),

  figure(trace, state) {
    const given = state.answers?.span;
    const found = given?.trace?.analyses.answer;
    if (!found) return { title: TITLE, notice: noticeOf(given), isWaiting: !given?.problem };
    const value = valueIn(matrixAt(found.probabilities));
    const columns = tokenLabels(trace.tokens);
    const values = ENDS.map((_, end) => columns.map((_each, token) => value(token, end)));
    const [first, last] = [found.start, found.end].map(
      (token, end) => `“${columns[token]}” (${percent(value(token, end))})`,
    );
    return {
      title: `${TITLE}: “${found.text}”`,
      help: `It starts at ${first} and ends at ${last}, the likeliest pair in order, in the second text if there are two.`,
      ...mapChart(
        {
          values,
          rows: ENDS,
          columns,
          titles: { rows: '', columns: 'token' },
          scale: {
            bottom: 0,
            top: Math.max(...values.flat()),
            colours: sequential(state.palette.theme),
          },
          quantity: 'probability',
          format: (share) => percent(share),
          write: (share) => percent(share, 0),
          say: (row, column) =>
            `The ${ENDS[row]} of the answer is “${columns[column]}” with ${percent(values[row][column])}`,
          request: REQUEST,
          cell: 40,
          isSlanted: true,
        },
        state,
      ),
    };
  },
};
