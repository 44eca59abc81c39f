/** The sentence on a reward: the rating of the text, and the token that changed it most. */

import { highestIn } from '../../trace/trace.js';
import { counted } from '../../words/lists.js';
import { decimal, signed } from '../../words/numbers.js';
import { nameToken, readSide } from '../../trace/word_names.js';

/** @import { Trace } from '../../trace/trace.js' */

/** @param {Trace} trace */
export function explainReward(trace) {
  const { analyses, tokens } = trace;
  const { rewards, contributions } = analyses.reward ?? {};
  if (!rewards) return '';
  const reward = rewards.data[rewards.data.length - 1];
  const most = highestIn(Array.from(contributions.data, Math.abs));
  const change = contributions.data[most];
  const name = nameToken(readSide(trace, 'source'), most);
  return `The reward of this text is ${decimal(reward, 2)}; of its ${counted(tokens.length, 'token')}, ${name} ${change < 0 ? 'lowered' : 'raised'} it most, by ${signed(Math.abs(change), 2)}.`;
}
