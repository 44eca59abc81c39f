/**
 * The maps of the heads of the opened layer, small, next to the drawing; a press opens one.
 */

import { choosePlace, heldWeightsAt } from '../trace/attention.js';
import { matrixAt } from '../trace/trace.js';
import { sequential } from '../plot/colour.js';
import { element, paintValues } from './dom.js';
import { shrunk } from './map_heads.js';

/**
 * @import { Palette } from '../plot/figure.js'
 * @import { Patch, State } from '../state/state.js'
 * @import { Trace } from '../trace/trace.js'
 */

/** Cells a side, at most: of a longer text each shows the mean of several. */
const MOST_CELLS = 64;
/** Heads of a layer, at most: those of a wider one are in the view of all heads. */
const MOST_HEADS = 16;

/**
 * @param {HTMLElement} host
 * @param {(patch: Patch) => void} onChoose
 */
export function createLayerHeads(host, onChoose) {
  let shown = '';

  /**
   * Draw the maps, unless they are there.
   * @param {Trace} trace
   * @param {State} state
   * @param {Palette} palette
   */
  return function show(trace, state, palette) {
    const place = choosePlace(state, trace);
    const site = heldWeightsAt(place, trace).find(({ layer }) => layer === state.layer)?.site;
    const weights = site ? trace.tensors[site] : null;
    host.hidden = !weights || weights.shape[0] > MOST_HEADS || weights.shape[0] < 2;
    if (!weights || host.hidden) return;
    const key = [trace.id, site, palette.theme].join(' ');
    if (key !== shown) {
      shown = key;
      const maps = Array.from({ length: weights.shape[0] }, (_, head) =>
        mapOf(matrixAt(weights, head), head, palette, () =>
          onChoose({ where: state.where, layer: state.layer, head }),
        ),
      );
      host.replaceChildren(element('h2', `Layer ${state.layer}`), ...maps);
    }
    host
      .querySelectorAll('button')
      .forEach((node, head) => (node.ariaPressed = String(head === state.head)));
  };
}

/**
 * @param {import('../trace/trace.js').Matrix} matrix
 * @param {number} head
 * @param {Palette} palette
 * @param {() => void} onclick
 */
function mapOf({ rows, columns, data }, head, { theme }, onclick) {
  const isSmall = rows === columns && rows <= MOST_CELLS;
  const side = isSmall ? rows : Math.min(MOST_CELLS, Math.max(rows, columns));
  const canvas = element('canvas', { width: side, height: side, 'aria-hidden': 'true' });
  const map = { data, offset: 0, rows, columns, scale: 1, isCausal: false };
  paintValues(canvas, isSmall ? Float64Array.from(data) : shrunk(map, side), sequential(theme), 1);
  const name = { 'aria-label': `Head ${head}` };
  return element('button.layer-head', { type: 'button', onclick, ...name }, canvas, `${head}`);
}
