/**
 * The maps of the heads of the opened layer, small, next to the drawing; a press opens one.
 */

import { choosePlace, heldWeightsAt } from '../trace/attention.js';
import { element, mapOf } from './dom.js';
import { keyOf, picturesOf } from './heads.js';

/** Cells a side, at most: of a longer text each shows the strongest of several. */
const MOST_CELLS = 64;
/** Heads of a layer, at most: those of a wider one are in the view of all heads. */
const MOST_HEADS = 16;

/** @param {HTMLElement} host @param {(patch: Patch) => void} onChoose */
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
      const pictures = picturesOf(trace, place, {}, state.layer ?? 0);
      const [heads, rows, columns] = weights.shape;
      const side = Math.min(MOST_CELLS, Math.max(rows, columns));
      const maps = Array.from({ length: heads }, (_, head) => {
        const picture = pictures.get(keyOf({ layer: state.layer ?? 0, head }));
        const onclick = () => onChoose({ where: state.where, layer: state.layer, head });
        return element(
          'button.layer-head',
          { type: 'button', onclick, 'aria-label': `Head ${head}` },
          picture ? mapOf({ ...picture, ceiling: 1 }, palette.theme, side) : [],
          `${head}`,
        );
      });
      host.replaceChildren(element('h2', `Layer ${state.layer}`), ...maps);
    }
    host
      .querySelectorAll('button')
      .forEach((node, head) => (node.ariaPressed = String(head === state.head)));
  };
}
