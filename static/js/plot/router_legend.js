/**
 * What a map of a router says twice: by colour how likely it holds each expert, and in the cell of a
 * chosen one the weight that its answer gets. The two are not on one scale, so both are named.
 */

import { shortBarTitle } from './figure.js';

const COLOUR = 'router probability';
const WEIGHT = 'weight of a chosen expert’s answer';
const ONE_LINE = 640;
const LINE = 22;

/** @param {number} width pixels of the drawing @returns {number} pixels below the map */
export function legendRoom(width) {
  return width < ONE_LINE ? 40 + LINE : 40;
}

/**
 * Beside the short colour bar, and below it where one line is too long.
 * @param {import('./figure.js').Frame['palette']} palette
 * @param {{width: number, left: number, hasNumbers: boolean}} box `left` pixels before the map; without numbers a mark is in each chosen cell
 * @returns {Object[]} annotations
 */
export function routerLegend(palette, { width, left, hasNumbers }) {
  const chosen = hasNumbers ? `number: ${WEIGHT}` : 'marked: chosen';
  if (width >= ONE_LINE) return [shortBarTitle(`colour: ${COLOUR} · ${chosen}`, palette)];
  return [
    shortBarTitle(COLOUR, palette),
    { ...shortBarTitle(chosen, palette), xshift: -left, yshift: -4 - 2 * LINE + 10 },
  ];
}
