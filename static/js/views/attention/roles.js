/** The parts that heads play in written calculations, measured for the card of the model. */

import { percent } from '../../data/format.js';

/**
 * @import { Card, Trace } from '../../data/trace.js'
 * @import { ViewState } from '../../plot/figure.js'
 */

const CALCULATION = /^\d+\*\d+=/u;
/** @type {Record<string, string>} */
const ROLES = {
  multiplicand: 'reads the first factor while a partial product is written',
  multiplier: 'reads the multiplier’s digit while its partial product is written',
  column: 'reads the digits of the same column while the sum is written',
  carry: 'reads the column one place lower, for the carry',
};

/**
 * The full card, for a text that is a calculation.
 * @param {Trace} trace
 * @returns {Record<string, {card: string}>}
 */
export function asksRoles({ text, model }) {
  return CALCULATION.test(text) ? { roles: { card: model } } : {};
}

/**
 * The roles in which the chosen head has more weight on its digits than any other head.
 * @param {ViewState} state
 * @returns {[string, string][]}
 */
export function rolesOf({ answers, layer, head }) {
  /** @type {Card|undefined} */
  const card = answers?.roles?.trace?.card;
  /** @type {Record<string, {layer: number, head: number, weight: number, evenly: number}>} */
  const measured = card?.metrics?.sample?.heads ?? {};
  return Object.entries(measured)
    .filter(([role, of]) => ROLES[role] && of.layer === layer && of.head === head)
    .map(([role, { weight, evenly }]) => [
      'Role',
      `${ROLES[role]}: ${percent(weight)} of its weight; ${percent(evenly)} if it were even`,
    ]);
}
