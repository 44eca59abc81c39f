/** The sentence on a reward: the rating of the text, and the token that changed it most. */

import { highestIn } from '../../trace/trace.js';
import { counted } from '../../words/lists.js';
import { decimal, signed } from '../../words/numbers.js';
import { nameToken, readSide } from '../../trace/word_names.js';

/** @param {Trace} trace */
export function explainReward(trace) {
  const { analyses, tokens } = trace;
  const { rewards, contributions } = analyses.reward ?? {};
  if (!rewards) return '';
  const reward = decimal(rewards.data[rewards.data.length - 1], 2);
  // The start token has the reward of no text.
  if (!contributions) return `The score of this text is ${reward}.`;
  const sizes = tokens.map((token, at) =>
    token.is_special ? 0 : Math.abs(contributions.data[at]),
  );
  const typed = tokens.filter((token) => !token.is_special).length;
  const most = highestIn(sizes);
  if (typed === 0 || sizes[most] === 0) return `The reward of this text is ${reward}.`;
  const way = contributions.data[most] < 0 ? 'lowered' : 'raised';
  return `The reward of this text is ${reward}; of its ${counted(typed, 'token')}, ${nameToken(readSide(trace, 'source'), most)} ${way} it most, by ${signed(sizes[most], 2)}.`;
}
