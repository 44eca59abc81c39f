/** The sentence on experts: the one that takes most punctuation of the open layer, and its words. */

import { predictingSide, tokensOf } from '../../trace/attention.js';
import { highestIn, layersWith, matrixAt, rowOf } from '../../trace/trace.js';

/** Tokens of punctuation of a text from which it is told which expert takes them. */
const LEAST_MARKS = 3;

/** @param {Token} token */
const isPunctuation = ({ text, part, is_special: isSpecial }) =>
  !isSpecial && !part && /^\p{P}+$/u.test(text.trim());

/** @param {Token} token */
const isOfWord = ({ text, part, is_special: isSpecial }) =>
  !isSpecial && !part && /[\p{L}\p{N}]/u.test(text);

/** @param {Trace} trace @param {{layer: number|null}} chosen */
export function explainExperts(trace, { layer }) {
  const layers = layersWith(trace.tensors, 'experts.expert_indices');
  const open = layers.find((each) => each.layer === layer) ?? layers[0];
  if (!open) return '';
  const isOfSource = open.site.startsWith('encoder');
  const tokens = tokensOf(trace, isOfSource ? 'source' : predictingSide(trace));
  const indices = matrixAt(trace.tensors[open.site]);
  /** @param {(token: Token) => boolean} isCounted */
  const countBy = (isCounted) => {
    const places = tokens.flatMap((token, at) => (isCounted(token) ? [at] : []));
    /** @param {number} expert */
    const takenBy = (expert) => places.filter((at) => rowOf(indices, at).includes(expert)).length;
    return { total: places.length, takenBy };
  };
  const [marks, words] = [isPunctuation, isOfWord].map(countBy);
  if (marks.total < LEAST_MARKS) return '';
  const experts = Array.from({ length: Math.max(...indices.data) + 1 }, (_, expert) => expert);
  const most = highestIn(experts.map(marks.takenBy));
  return `In layer ${open.layer}, expert ${most} takes ${marks.takenBy(most)} of the ${marks.total} tokens of punctuation, and ${words.takenBy(most)} of the ${words.total} tokens of words.`;
}
