/** Similarity: the cosine of the vectors of two texts, and what each pair of their tokens gives to it. */

import { noticeOf } from '../../api/answers.js';
import { matrixAt, valueIn } from '../../trace/trace.js';
import { guessInWords } from '../../words/tokens.js';
import { decimal, signed } from '../../words/numbers.js';
import { diverging } from '../../plot/colour.js';
import { mapChart } from '../../plot/map.js';
import { control } from '../../ui/controls.js';

const TITLE = 'Similarity';

/** @type {ViewCode} */
export const similar = {
  help: 'The similarity of two texts is the cosine of their vectors. It is a sum over pairs of tokens, one of each text, exactly.',
  terms: {
    cosine: '1 for two vectors that point the same way, 0 for two at a right angle',
    'without a head': 'the head writes nothing while either text is read',
  },

  /** @returns {Record<string, Ask>} */
  asks: (_, state) => (otherIn(state) ? { pairs: askOf(state) } : {}),

  controls: (_, state) => [
    control('text', 'similar_text', 'Another text', state.similar_text ?? '', {
      placeholder: 'Type a text to compare with',
    }),
  ],

  figure(trace, state) {
    if (!otherIn(state)) return { title: TITLE, notice: 'Type another text to compare with.' };
    const answer = state.answers?.pairs;
    const found = answer?.trace?.analyses.similarity;
    if (!found) return { title: TITLE, notice: noticeOf(answer), isWaiting: !answer?.problem };
    const rows = trace.tokens.map(({ text }) => guessInWords(text));
    const columns = found.other_tokens.map(guessInWords);
    const pairs = matrixAt(found.pairs);
    const value = valueIn(pairs);
    const values = rows.map((_, row) =>
      columns.map((/** @type {string} */ _each, /** @type {number} */ column) =>
        value(row, column),
      ),
    );
    const top = Math.max(...values.flat().map(Math.abs), 1e-9);
    const sum = values.flat().reduce((all, each) => all + each, 0);
    return {
      title: `${TITLE} ${decimal(found.similarity, 3)}`,
      help: `All pairs sum to ${decimal(sum, 3)}. ${saidOfHeads(found.heads, found.similarity)}`,
      ...mapChart(
        {
          values,
          rows,
          columns,
          titles: { rows: 'token of this text', columns: 'token of the other text' },
          scale: { bottom: -top, top, colours: diverging(state.palette.theme) },
          quantity: 'part of the similarity',
          format: (number) => signed(number, 3),
          say: (row, column) =>
            `“${rows[row]}” and “${columns[column]}” give ${signed(values[row][column], 3)}`,
          request: askOf(state),
          isSlanted: true,
        },
        state,
      ),
    };
  },
};

/** @param {ViewState} state */
const otherIn = ({ similar_text: text }) => (text ?? '').trim();

/** @param {ViewState} state @returns {Ask} */
function askOf(state) {
  return { analyses: ['similarity'], similarity: { text: otherIn(state), heads: true } };
}

/** Say which head changes the similarity most when it is off. @param {NamedArray} heads @param {number} whole */
function saidOfHeads({ data, shape: [, width] }, whole) {
  const moves = Array.from(data, (without) => Math.abs(Number(without) - whole));
  const most = moves.indexOf(Math.max(...moves));
  const [layer, head] = [Math.floor(most / width), most % width];
  return `Without layer ${layer}, head ${head}, which moves it most, it is ${decimal(Number(data[most]), 3)}.`;
}
