/**
 * The scene of a model that predicts nothing: the head that moves the vector of the sentence most, and
 * how far the vector moves without the head that is open.
 */

import { capitalised } from '../words/lists.js';
import { percent, signed } from '../words/numbers.js';
import { nameOf } from './scene.js';
import { partOff } from './prediction.js';

/** @import { Chosen } from './prediction.js' @import { Scene } from './scene.js' */

/** @typedef {{layer: number, head: number, share: number}} Mover */

/** The analyses that say what moves the output, by what they measure. */
const MOVED = ['moved_vectors', 'moved_scores'];

/** Return the request of the scene. @param {Trace} trace @returns {Record<string, Ask>} */
export function movedAsks(trace) {
  const offered = trace.card?.analyses ?? [];
  const analyses = [...MOVED, 'answer'].filter((name) => offered.includes(name));
  if (!MOVED.includes(analyses[0]) || trace.resolution || trace.isLayered) return {};
  return { moved: { capture: [], analyses } };
}

/**
 * Return the heads by how far the vector moves without each, the farthest first.
 * @param {Record<string, any>} state with the answers
 * @returns {Mover[]} empty: it is not known
 */
export function moversIn({ answers }) {
  const { analyses = {} } = answers?.moved?.trace ?? {};
  const { heads } = analyses.moved_vectors ?? analyses.moved_scores ?? {};
  if (!heads) return [];
  const [, width] = heads.shape;
  return Array.from(heads.data, (share, at) => ({
    ...{ layer: Math.floor(at / width), head: at % width },
    share: Number(share),
  })).sort((a, b) => Math.abs(b.share) - Math.abs(a.share));
}

/**
 * @param {Trace} trace
 * @param {Chosen} state with the answers
 * @returns {Partial<Scene>} empty: nothing is known yet
 */
export function sceneOfVector(trace, state) {
  const movers = moversIn(state);
  if (movers.length === 0) return {};
  const [most, next] = movers;
  const off = partOff(trace, state);
  const shown = off && Number.isInteger(off.head) ? off : state;
  const place = trace.card?.kind === 'decoder' ? 'decoder' : 'encoder';
  const opened = movers.find(({ layer, head }) => layer === shown.layer && head === shown.head);
  const mover = opened ?? most;
  const { layer, head, share } = mover;
  const name = nameOf(trace, { place, layer, head });
  const { answer, moved_scores: scores } = state.answers?.moved?.trace?.analyses ?? {};
  /** @param {number} by */
  const far = (by) => (scores ? signed(-by, 2) : percent(by, by < 0.1 ? 1 : 0));
  const what = answer ? 'the score of the answer' : scores ? 'the score' : 'the sentence’s vector';
  const score = scores ? `The score is ${signed(Number(scores.before.data[0]), 2)}. ` : '';
  const told = answer ? `The answer is “${answer.text}”. ` : score;
  const isMost = mover === most;
  const id = `head ${place} ${layer} ${head}`;
  return {
    subject: { where: place, layer, head },
    part: { id, label: `Head ${layer}.${head}`, isOn: off === null },
    decisive: isMost ? '' : `head ${place} ${most.layer} ${most.head}`,
    finding: off
      ? `Without ${name}, ${what} moves by ${far(share)}${scores ? '' : ' of its length'}.`
      : `${told}${capitalised(name)} moves ${what} by ${far(share)}${isMost ? ', more than any other head' : ''}.`,
    more: isMost
      ? next
        ? `Next is ${nameOf(trace, { place, ...next })}, with ${far(next.share)}.`
        : ''
      : `The most that a head moves it is ${far(most.share)}.`,
  };
}
