/**
 * The two models of a comparison: whether their heads correspond, and the text as a reward model
 * among them rates it, with the share of each token.
 */

import { wholeOf } from '../../api/calls.js';
import { decimal, signed } from '../../words/numbers.js';
import { named } from '../../words/tokens.js';
import { isRating } from '../../trace/attention.js';
import { alone, unitLabels } from '../../trace/words.js';
import { chart } from '../../plot/chart.js';
import { cell } from '../../plot/marks/mark.js';
import { band } from '../../plot/scales.js';

/**
 * Return the full cards of A and B, as far as they are here.
 * @param {ViewState} state
 * @returns {[Card|undefined, Card|undefined]}
 */
export function cardsOf({ answers: { ours, theirs } }) {
  return [ours?.trace?.card, theirs?.trace?.card];
}

/**
 * Return true if each head of B corresponds to that of A: one model began with the weights of the
 * other, or both are states of one training.
 * @param {[Card|undefined, Card|undefined]} cards the full ones of A and B
 */
export function haveSameHeads([ours, theirs]) {
  if (!ours || !theirs) return false;
  const isOfOne = wholeOf(ours.id) === wholeOf(theirs.id);
  return isOfOne || ours.began_from === theirs.id || theirs.began_from === ours.id;
}

const CELL = 60;

/**
 * Return the model that rates texts of the tokens of this one; undefined: there is none.
 * @param {Trace} trace
 * @param {Card[]} cards
 */
export function raterOf({ card }, cards) {
  return cards.find(
    (candidate) =>
      isRating({ card: candidate }) &&
      card?.kind === 'decoder' &&
      candidate.vocab_size === card.vocab_size,
  );
}

/**
 * @param {Trace} rated the text, read by the reward model
 * @param {ViewState} state
 * @returns {Partial<Figure>}
 */
export function rewardFigure(rated, state) {
  const { rewards, contributions } = rated.analyses.reward;
  const { tokens } = rated;
  const data = Float64Array.from(contributions.data);
  const reach = Math.max(...data.map(Math.abs)) || 1;
  const total = rewards.data[rewards.data.length - 1];
  return {
    help: 'The reward of the text up to each token; a token’s share is the change that it makes.',
    summary: `Reward of the text by token: ${tokens.length} tokens, ${decimal(total)} in all.`,
    facts: [
      ['Reward of the text', decimal(total)],
      ['Rated by', rated.model],
    ],
    ...chart(
      {
        x: band(unitLabels(alone(tokens)), { title: 'token' }),
        y: band(['share']),
        marks: [
          cell(
            { rows: 1, columns: data.length, data },
            {
              ramp: { title: 'change of the reward', domain: [-reach, reach], isDiverging: true },
              format: (change) => signed(change, 4),
              name: ({ column }) => named(tokens, column),
              say: ({ column, value }) =>
                `${named(tokens, column)} changes the reward by ${signed(value)}, to ${decimal(rewards.data[column])}`,
              tokens: ({ column }) => ({ key: column }),
            },
          ),
        ],
        size: { isSquare: true, isZoomable: true, row: CELL },
        table: {
          quantity: `change of the reward (${rated.model}) when the token is read`,
          request: { model: rated.model, capture: [], analyses: ['reward'] },
        },
        cursor: { start: { row: 0, column: data.length - 1 } },
      },
      state,
    ),
  };
}
