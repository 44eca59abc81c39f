import { deepEqual, equal, match } from 'node:assert/strict';
import { test } from 'node:test';
import { choices } from '../../../../static/js/views/choices/choices.js';
import { FRAME, near, plain, sampleTrace, tensor } from '../../sample.js';

test('choices are drawn side by side, each with its score and the head that moves it most', () => {
  const asked = { text: 'who sat', text_pair: 'a cat' };
  const trace = { ...sampleTrace(), asked };
  const state = { ...FRAME, choices_texts: 'a dog\n\na cat' };
  equal(choices.figure(trace, FRAME).notice, 'Type other choices, one a line.');
  const asks = choices.asks(trace, state);
  deepEqual(
    Object.values(asks).map(({ text_pair }) => text_pair),
    ['a cat', 'a dog'],
  );
  const answer = (score, heads) => ({
    trace: {
      analyses: {
        moved_scores: {
          before: tensor(['one'], [1], () => score),
          heads: tensor(['layer', 'head'], [2, 2], (at) => heads[at]),
        },
      },
    },
  });
  const answers = {
    choice_0: answer(1, [0.1, 0, -0.5, 0.2]),
    choice_1: answer(1 - Math.log(3), [0.3, 0, 0.1, 0]),
  };
  const { title, help, grid } = choices.figure(trace, { ...state, answers });
  match(title, /a cat” 75/);
  match(plain(help), /cat” scores 1\.00; without head 1\.0.* 1\.50\. “a dog”.*head 0\.0/);
  near(grid.value(0, 2), -0.5);
  match(plain(grid.describe(1, 0)), /Without head 0\.0, “a dog” scores/);
});
