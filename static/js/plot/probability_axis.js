/**
 * The axis of bars that say how probable tokens are, with a number at the end of each.
 */

import { labelWidth } from './figure.js';
import { tick } from '../data/number.js';
import { roundTicks } from './ticks.js';

const MOST_TICKS = 4;
/** Where all are unlikely, bars stay short. */
const LEAST_END = 0.026;
const MOST_TAKEN = 0.8;
const GAP = 8;

/**
 * Ends where every bar has room for its number behind it; no tick is past all there is.
 * @param {{probability: number, number: string}[]} bars `number`: what stands at its end
 * @param {string} event whose probability it is
 * @param {{palette: import('./figure.js').Frame['palette'], pixels: number, lettering: import('./figure.js').Lettering}} set `pixels`: how long the axis is; `lettering` of the numbers
 * @returns {Object} an axis of Plotly's
 */
export function probabilityAxis(bars, event, { palette, pixels, lettering }) {
  const endOf = ({ probability, number }) =>
    probability / (1 - Math.min(MOST_TAKEN, (labelWidth([number], lettering) + GAP) / pixels));
  const end = Math.max(...bars.map(endOf), LEAST_END);
  const tickvals = roundTicks(Math.min(end, 1), MOST_TICKS);
  return {
    range: [0, end],
    tickvals,
    ticktext: tickvals.map((probability) => `${tick(probability * 100)} %`),
    tickfont: { size: 11, color: palette.muted },
    title: {
      text: `probability of ${event}`,
      font: { size: 12, color: palette.muted },
      standoff: 8,
    },
    gridcolor: palette.line,
    zerolinecolor: palette.line,
  };
}
