/**
 * Before anything is written: what the model expects after the text, and each of it a way to begin.
 */

import { whyOver } from '../../data/generation.js';
import { guessesIn, wordsFor } from '../../data/guesses.js';
import { percent } from '../../data/number.js';
import { named } from '../../data/text.js';
import { matrixAt, rowOf } from '../../data/trace.js';
import { guessBars } from '../../plot/guess_bars.js';

const SHOWN = 10;
const REQUEST = { capture: [], analyses: ['next_token'] };
const WAYS =
  'Step writes one token, Run goes on until you stop it; then you see what else could have come.';

/**
 * @param {import('../../data/trace.js').Trace} trace
 * @param {import('../../state/state.js').State & import('../../plot/figure.js').Frame} state with `generation`
 * @returns {import('../../plot/figure.js').Figure}
 */
export function startFigure(trace, state) {
  const found = trace.analyses.next_token;
  if (!found?.probabilities)
    return { title: 'What could come', notice: `Nothing is written yet. ${WAYS}` };
  const last = trace.tokens.length - 1;
  const guesses = guessesIn(
    { ...found, texts: found.texts[last] },
    [last],
    () => ({ mark: '', markInWords: '' }),
    SHOWN,
  );
  const after = named(trace.tokens, last);
  return {
    title: `After ${after}`,
    help: `What the model itself expects to come, before temperature, top-k and top-p. ${WAYS}`,
    summary: `The ${guesses.length} likeliest tokens after ${after}; nothing is written yet.`,
    ...guessBars(state, guesses, wordsFor(trace)),
    grid: {
      ...gridOf(guesses, after, last),
      ...beginning(trace, state, rowOf(matrixAt(found.ids), last)),
    },
  };
}

function gridOf(guesses, after, last) {
  const say = (row) =>
    `After ${after}, “${guesses[row].name}” has probability ${percent(guesses[row].probability)}, rank ${row + 1}`;
  return {
    rows: guesses.length,
    columns: 1,
    kind: 'bar chart',
    rowTitle: 'token',
    columnTitle: '',
    rowLabels: guesses.map(({ name }) => name),
    columnLabels: ['probability'],
    quantity: `probability of coming as token ${last + 1}`,
    request: REQUEST,
    value: (row) => guesses[row].probability,
    format: (probability) => percent(probability),
    describe: say,
    tip: (row) => [`“${guesses[row].name}”`, percent(guesses[row].probability)],
    tokens: () => ({ query: last }),
    query: last,
    start: { row: 0, column: 0 },
    ceiling: 1,
    rest: { readout: say(0) },
  };
}

/** A text that is over has no token that could begin. */
function beginning(trace, { generation }, ids) {
  if (whyOver(trace, [], generation?.most ?? Infinity) !== '') return {};
  return {
    choose: (row) => ({ generate_path: [ids[row]], generate_step: null }),
    chooseHint: 'Enter begins with this token',
    note: 'Choose a bar to begin with it.',
  };
}
