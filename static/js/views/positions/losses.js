/** The loss by position of models on held-out text, far beyond the length that they were trained on. */

import { capitalised } from '../../data/text.js';
import { amount, grouped } from '../../data/format.js';
import { css, sequential } from '../../plot/colour.js';
import { curvesChart, warm } from '../../plot/curves.js';

/**
 * @import { Card } from '../../data/trace.js'
 * @import { Figure, ViewState } from '../../plot/figure.js'
 */

/** The name of the panel. */
export const LOSSES = 'losses';

const DASHES = /** @type {const} */ (['solid', 'dash', 'dot', 'solid']);
const FIGURE = /^up_to_(\d+)$/u;

/**
 * @typedef {Object} Losses of one model
 * @property {string} name of its positional encoding
 * @property {number} trained tokens of a text of its training
 * @property {Map<number, number>} byEnd bits per token by the last position of each part of a text
 */

/**
 * The measured losses on the cards; a card without them is left out.
 * @param {(Card|undefined)[]} cards
 * @returns {Losses[]}
 */
export function lossesOf(cards) {
  return cards.flatMap((card) => {
    const found = Object.entries(card?.metrics?.loss_by_position ?? {}).flatMap(([name, loss]) => {
      const end = Number(FIGURE.exec(name)?.[1]);
      return end > 0 && typeof loss === 'number' ? [/** @type {const} */ ([end, loss])] : [];
    });
    if (!card || found.length === 0) return [];
    const name = capitalised(card.positional).replace('Alibi', 'ALiBi');
    return [{ name, trained: card.metrics?.trained_tokens ?? NaN, byEnd: new Map(found) }];
  });
}

/**
 * @param {Losses[]} losses
 * @param {Pick<ViewState, 'width'|'height'|'palette'>} state
 * @returns {Figure}
 */
export function lossFigure(losses, state) {
  const { palette } = state;
  const x = [...new Set(losses.flatMap(({ byEnd }) => [...byEnd.keys()]))].sort((a, b) => a - b);
  const trained = losses[0].trained;
  const colours = [warm(palette), palette.ink, palette.muted, css(sequential(palette.theme), 190)];
  const drawing = curvesChart(
    {
      x,
      across: { title: 'position in the text', write: grouped },
      up: { title: 'bits per token' },
      curves: losses.map(({ name, byEnd }, line) => ({
        name,
        values: x.map((end) => byEnd.get(end) ?? NaN),
        colour: colours[line % colours.length],
        dash: DASHES[line % DASHES.length],
      })),
      marker: x.includes(trained) ? x.indexOf(trained) : undefined,
      quantity: 'loss by position in bits per token',
      unit: 'up to position',
      format: (value) => amount(value, 3),
    },
    state,
  );
  return {
    title: 'Loss by position',
    help: `Mean loss on held-out text by the position of the token, measured for the cards. The vertical line is the length of the texts that the models were trained on, ${grouped(trained)} tokens; learned positions end there or soon after.`,
    summary: `Loss by position, in bits per token: ${losses.map((one) => inWords(one)).join('; ')}.`,
    ...drawing,
    grid: { ...drawing.grid, start: { row: 0, column: 0 } },
  };
}

/** @param {Losses} losses */
function inWords({ name, trained, byEnd }) {
  const last = Math.max(...byEnd.keys());
  const inside = byEnd.get(trained);
  const beyond = `${amount(byEnd.get(last) ?? NaN, 3)} up to ${grouped(last)}`;
  if (inside === undefined || last === trained) return `${name} ${beyond}`;
  return `${name} ${amount(inside, 3)} up to ${grouped(trained)}, ${beyond}`;
}
