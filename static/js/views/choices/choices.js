/** Choices: the scores of several second texts, or of several texts, and the heads that move each. */

import { noticeOf } from '../../api/answers.js';
import { percent, signed } from '../../words/numbers.js';
import { diverging } from '../../plot/colour.js';
import { mapChart } from '../../plot/map.js';
import { isNarrow } from '../../plot/scales.js';
import { moversIn } from '../../rules/moved.js';
import { control } from '../../ui/controls.js';

/** @import { Mover } from '../../rules/moved.js' */

const TITLE = 'Choices';
const MOST_HEADS = 12;
const MOST = 8;

/** @type {ViewCode} */
export const choices = {
  help: 'The model scores each choice by itself; the softmax over all scores is the probability of each. A cell is what its score loses without the head.',
  terms: { 'without a head': 'the head writes nothing while the choice is read' },

  asks: (trace, state) =>
    Object.fromEntries(
      textsIn(trace, state).map((text, at) => [`choice_${at}`, askOf(trace, text)]),
    ),

  controls: (_, state) => [
    control('entry', 'choices_texts', 'Other choices, one a line', state.choices_texts ?? '', {
      isLong: true,
    }),
  ],

  figure(trace, state) {
    const texts = textsIn(trace, state);
    const answers = texts.map((_, at) => state.answers?.[`choice_${at}`]);
    const missing = answers.find((answer) => !answer?.trace);
    if (texts.length < 2) return { title: TITLE, notice: 'Type other choices, one a line.' };
    if (missing || !answers.every((answer) => answer?.trace))
      return { title: TITLE, notice: noticeOf(missing), isWaiting: !missing?.problem };
    const movers = answers.map((answer) => moversIn({ answers: { moved: answer } }));
    const scores = answers.map((answer) =>
      Number(answer?.trace?.analyses.moved_scores.before.data[0]),
    );
    const powers = scores.map((score) => Math.exp(score - Math.max(...scores)));
    const chances = powers.map((power) => power / powers.reduce((sum, each) => sum + each, 0));
    const best = chances.indexOf(Math.max(...chances));
    const heads = strongest(movers);
    const values = movers.map((list) => heads.map((name) => shareOf(list, name)));
    const top = Math.max(...values.flat().map(Math.abs), 1e-9);
    return {
      title: `${TITLE}: “${texts[best]}” ${percent(chances[best])}`,
      help: texts.map((text, at) => saidOf(text, scores[at], movers[at][0])).join(' '),
      ...mapChart(
        {
          values,
          rows: texts.map((text, at) => `${percent(chances[at])} ${text}`),
          columns: heads,
          titles: { rows: 'choice', columns: 'head, as layer.head' },
          scale: { bottom: -top, top, colours: diverging(state.palette.theme) },
          quantity: 'lost without the head',
          format: (number) => signed(number, 3),
          text: (row, column) => signed(values[row][column], 2),
          say: (row, column) =>
            `Without head ${heads[column]}, “${texts[row]}” scores ${signed(scores[row] - values[row][column], 2)}, with it ${signed(scores[row], 2)}`,
          request: askOf(trace, texts[best]),
          letters: isNarrow(state.width) ? 18 : 28,
          cell: 40,
        },
        state,
      ),
    };
  },
};

/** Return the choice that is read, and the typed ones. @param {Trace} trace @param {ViewState} state */
function textsIn({ asked, text }, { choices_texts: typed }) {
  const lines = String(typed ?? '').split('\n');
  const all = [asked?.text_pair ?? text, ...lines].map((line) => line.trim()).filter(Boolean);
  return [...new Set(all)].slice(0, MOST);
}

/** @param {Trace} trace @param {string} text @returns {Ask} */
function askOf({ asked }, text) {
  const texts = asked?.text_pair ? { text: asked.text, text_pair: text } : { text };
  return { ...texts, analyses: ['moved_scores'] };
}

/** @param {string} text @param {number} score @param {Mover} most */
const saidOf = (text, score, most) =>
  `“${text}” scores ${signed(score, 2)}; without head ${nameOf(most)}, which moves it most, ${signed(score - most.share, 2)}.`;

/** @param {Mover} mover */
const nameOf = ({ layer, head }) => `${layer}.${head}`;

/** @param {Mover[]} movers @param {string} name */
const shareOf = (movers, name) => movers.find((mover) => nameOf(mover) === name)?.share ?? NaN;

/** Return the heads that move a score most, in the order of the layers. @param {Mover[][]} movers */
function strongest(movers) {
  const all = movers.flat().sort((a, b) => Math.abs(b.share) - Math.abs(a.share));
  const names = [...new Set(all.map(nameOf))].slice(0, MOST_HEADS);
  return names.sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
}
