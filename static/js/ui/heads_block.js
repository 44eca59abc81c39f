/**
 * The side of the Attention view that heads are chosen from: all heads at a glance, and the door to the
 * view that ranks them.
 */

import { labelsExplained, choosePlace, tokensOf } from '../trace/attention.js';
import { choosingHead, isShown, readSwitches } from '../state/attention_switches.js';
import { rowShown } from '../state/written_rows.js';
import { button, createHelp, element, partOf } from './dom.js';
import { createHeads } from './heads.js';

/** @import { Place } from '../trace/attention.js' */

/**
 * @param {{onState: (patch: Partial<State>) => void, announce: (message: string) => void, onSight?: () => void}} handlers
 */
export function createHeadsBlock({ onState, announce, onSight }) {
  const heads = createHeads({
    onChoose: (layer, head) => {
      if (!shown) return;
      onState(choosingHead(shown.switches, shown.state, { layer, head }));
      onSight?.();
    },
  });
  const help = createHelp('Labels of heads');
  help.show([{ title: '', parts: labelsExplained() }]);
  const savePng = async () =>
    (await import('./picture.js')).savePicture(
      partOf(block, '.heads', HTMLElement),
      WORDS,
      'headlight-all-heads.png',
      announce,
    );
  const png = button('PNG', savePng, {
    class: 'heads-png',
    title: 'Save the maps of all heads as an image',
  });
  const heading = element('h2');
  const openSky = () =>
    onState({ view: 'sky', ...(shown?.state.key !== null && { sky_y: 'pair' }) });
  const door = button('As points, ranked by any measure', openSky, { class: 'link' });
  heads.foot.append(png);
  const block = element(
    'section.heads-block',
    { 'aria-label': 'All heads' },
    element('div.heads-head', element('div.heads-title', heading, help.element), door),
    heads.element,
  );
  /** @type {{state: ViewState, switches: Switches}|null} */
  let shown = null;

  return {
    element: block,
    /** @param {Trace} trace @param {ViewState} state */
    show(trace, state) {
      const place = choosePlace(state, trace);
      const switches = readSwitches(state, {
        placeId: place?.id ?? '',
        nHeads: trace.card?.n_heads ?? Infinity,
      });
      const { what, which } = switches; // the small maps are weights, whatever the large one is
      const isOther = what !== 'weights' || which === 'rollout';
      heading.textContent = isOther ? 'All weights' : 'All heads';
      heads.show(trace, {
        ...state,
        width: block.clientWidth,
        pair: place && pairOf(trace, place, state),
        isChosen: (head) => isShown(switches, state, head),
      });
      door.hidden = Boolean(trace.resolution);
      shown = { state, switches };
    },
  };
}

/**
 * Return the chosen cell, which every map marks.
 * @param {Trace} trace
 * @param {Place} place
 * @param {ViewState} state
 */
function pairOf(trace, place, state) {
  if (state.key === null || state.key >= tokensOf(trace, place.columns).length) return null;
  return { query: rowShown(trace, place, state), key: state.key };
}

/** The words over the maps. */
const WORDS = '.heads-label:not(.is-corner), .heads-name';
