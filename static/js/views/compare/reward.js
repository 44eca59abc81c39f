/**
 * The reward of the text, as a reward model rates it, and the share of each token.
 */

import { decimal, signed } from '../../data/format.js';
import { named } from '../../data/text.js';
import { alone, unitLabels } from '../../data/words.js';
import { diverging } from '../../plot/colour.js';
import { letteringFor } from '../../plot/figure.js';
import { squaresFigure } from '../../plot/square_map.js';

/**
 * @import { Card, Trace } from '../../data/trace.js'
 * @import { Figure, ViewState } from '../../plot/figure.js'
 */

const ROW = 60;
const AROUND = 120;

/**
 * The model that rates texts of the tokens of this one; undefined: there is none.
 * @param {Trace} trace
 * @param {Card[]} cards
 */
export function raterOf({ card }, cards) {
  return cards.find(
    (other) =>
      other.analyses?.includes('reward') &&
      card?.kind === 'decoder' &&
      other.vocab_size === card.vocab_size,
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
  const labels = unitLabels(alone(tokens));
  /** @param {number} _ @param {number} column */
  const describe = (_, column) =>
    `${named(tokens, column)} changes the reward by ${signed(data[column])}, to ${decimal(rewards.data[column])}`;
  return {
    help: 'The reward model rates the text up to each token; a token’s share is the change that it makes. Of two answers, the one with the higher reward is the one that the comparisons would prefer.',
    summary: `Reward of the text by token: ${tokens.length} tokens, ${decimal(total)} in all.`,
    facts: [
      ['Reward of the text', decimal(total)],
      ['Rated by', rated.model],
    ],
    ...squaresFigure(
      {
        matrix: { rows: 1, columns: data.length, data },
        rows: ['share'],
        columns: labels,
        titles: { rows: '', columns: 'token' },
        quantity: 'change of the reward',
        scale: { bottom: -reach, top: reach, colours: diverging(state.palette.theme) },
      },
      { ...state, height: Math.min(state.height, ROW + AROUND) },
    ),
    grid: {
      rows: 1,
      columns: data.length,
      rowTitle: '',
      columnTitle: 'token',
      rowLabels: ['share'],
      columnLabels: labels,
      thinned: { rows: letteringFor(state.width), columns: letteringFor(state.width) },
      quantity: `change of the reward (${rated.model}) when the token is read`,
      request: { model: rated.model, capture: [], analyses: ['reward'] },
      value: (_, column) => data[column],
      format: (change) => signed(change, 4),
      describe,
      tip: (_, column) => [named(tokens, column), signed(data[column], 4)],
      tokens: (_, column) => ({ key: column }),
      start: { row: 0, column: data.length - 1 },
    },
  };
}
