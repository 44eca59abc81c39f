/**
 * Which words of two texts go together, as the analysis `alignment` tells it.
 */

import { matrixAt } from './trace.js';
import { wordsOf } from './words.js';

/**
 * @typedef {Object} Alignment
 * @property {import('./words.js').Unit[]} rows the words of the target
 * @property {import('./words.js').Unit[]} columns the words of the source
 * @property {import('./trace.js').Matrix} weights target word by source word; a row sums to 1, or to 0
 * @property {import('../plot/cell_cursor.js').Cell[]} links
 * @property {{layer: number, head: number, shift: number}|null} aligner the head they were read from; null: the mean of all
 */

/**
 * @param {import('./trace.js').Trace} trace with the analysis
 * @returns {Alignment}
 */
export function alignmentOf(trace) {
  const { weights, links, aligner } = trace.analyses.alignment;
  const linked = matrixAt(links);
  return {
    rows: numbered(trace.target_tokens, trace.target, linked.rows),
    columns: numbered(trace.tokens, trace.text, linked.columns),
    weights: matrixAt(weights),
    links: Array.from(linked.data.keys())
      .filter((at) => linked.data[at] > 0)
      .map((at) => ({ row: Math.floor(at / linked.columns), column: at % linked.columns })),
    aligner: aligner?.head === undefined ? null : aligner,
  };
}

/** The words in the order of their numbers. */
function numbered(tokens, text, count) {
  const words = wordsOf(tokens, text).filter((unit) => !unit.is_special);
  return Array.from({ length: count }, (_, number) => words.find(({ word }) => word === number));
}
