/**
 * The side of the Attention view that heads are chosen from. It shows all heads at a glance,
 * and lists the well-known kinds of head in this text.
 */

import {
  labelsExplained,
  choosePlace,
  describeRole,
  strongestHeads,
  tokensOf,
  labelledHeads,
  heldWeightsAt,
} from '../trace/attention.js';
import { capitalised } from '../words/lists.js';
import { share } from '../words/numbers.js';
import { named, positionLabels } from '../words/tokens.js';
import { choosingHead, isShown, readSwitches } from '../state/attention_switches.js';
import { choosing } from '../state/state.js';
import { rowShift, rowShown } from '../state/written_rows.js';
import { button, createHelp, element, partOf } from './dom.js';
import { createHeads } from './heads.js';
import { isCausal } from '../trace/trace.js';

/**
 * @import { Place } from '../trace/attention.js'
 * @import { Trace } from '../trace/trace.js'
 * @import { ViewState } from '../plot/figure.js'
 * @import { Switches } from '../state/attention_switches.js'
 * @import { Patch, State } from '../state/state.js'
 */

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
  const pairs = createHeadPairs(onState);
  const patterns = element('div.patterns');
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
  heads.foot.append(png);
  const block = element(
    'section.heads-block',
    { 'aria-label': 'All heads' },
    element('div.heads-head', element('div.heads-title', heading, help.element)),
    pairs.element,
    heads.element,
    patterns,
  );
  /** @type {{trace: Trace, place: string|undefined, state: ViewState, switches: Switches}|null} */
  let shown = null;
  /** @type {ReturnType<typeof strongestHeads>} */
  let strongest = [];

  return {
    element: block,
    /** @param {Trace} trace @param {ViewState} state */
    show(trace, state) {
      const place = choosePlace(state, trace);
      const switches = readSwitches(state, {
        placeId: place?.id ?? '',
        nHeads: trace.card?.n_heads ?? Infinity,
      });
      heading.textContent = areMapsOther(switches) ? 'All weights' : 'All heads';
      heads.show(trace, {
        ...state,
        width: block.clientWidth,
        pair: place && pairOf(trace, place, state),
        isChosen: (head) => isShown(switches, state, head),
      });
      pairs.show(trace, place, state);
      const isOther = trace !== shown?.trace || place?.id !== shown.place;
      shown = { trace, place: place?.id, state, switches };
      if (isOther) {
        strongest = strongestHeads(trace, place);
        patterns.replaceChildren(...patternList(strongest, onState));
      }
      patterns.querySelectorAll('button').forEach((button, index) => {
        button.setAttribute(
          'aria-pressed',
          String(switches.which === 'head' && isShown(switches, state, strongest[index])),
        );
      });
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

/** The small maps are weights, whatever the large one is. @param {Switches} switches */
function areMapsOther({ what, which }) {
  return what !== 'weights' || which === 'rollout';
}

/** @param {ReturnType<typeof strongestHeads>} strongest @param {(patch: Patch) => void} onState */
function patternList(strongest, onState) {
  if (strongest.length === 0) return [];
  return [
    element('h2', 'Heads worth a look'),
    element(
      'p.patterns-note',
      'The head with the highest score in this text, for each pattern of attention.',
    ),
    element(
      'ul',
      strongest.map((pattern) => {
        const { title, layer, head, score } = pattern;
        return element(
          'li',
          element(
            'button',
            {
              type: 'button',
              title: helpOf(pattern),
              onclick: () => onState({ layer, head, attention_which: 'head' }),
            },
            element('span.patterns-title', capitalised(title)),
            element('span.patterns-place', `layer ${layer}, head ${head}`),
            element('span.patterns-score', share(score, 2)),
          ),
        );
      }),
    ),
  ];
}

/** The words over the maps. */
const WORDS = '.heads-label:not(.is-corner), .heads-name';
/** The heads that are listed for a pair. */
const MOST_RANKED = 6;

/**
 * "From this token to that one: which heads?": two tokens to choose, and the heads ranked by their
 * weight on the pair. Folded until a pair is chosen or asked for.
 * @param {(patch: Patch) => void} onState
 */
function createHeadPairs(onState) {
  const from = element('select', { 'aria-label': 'From the token' });
  const to = element('select', { 'aria-label': 'To the token' });
  const none = button('No pair', () => onState({ key: null }), { class: 'button pair-none' });
  const note = element('p.patterns-note', { 'aria-live': 'polite' });
  const list = element('ul');
  /** @type {{trace: Trace, place: Place, shift: number}|null} */
  let shown = null;
  let offered = '';
  const choose = () => {
    if (!shown || to.value === '') return;
    onState({
      ...choosing(shown.trace, shown.place.rows, Number(from.value) + shown.shift),
      key: Number(to.value),
    });
  };
  from.addEventListener('change', choose);
  to.addEventListener('change', choose);

  const details = element(
    'details.patterns.head-pairs',
    element('summary', 'From one token to another: which heads?'),
    element(
      'div.patterns.head-pairs',
      { role: 'group', 'aria-label': 'Heads by a pair of tokens' },
      element(
        'div.pair-choice.control',
        'From (query, reads) ',
        from,
        ' to (key, is read) ',
        to,
        none,
      ),
      list,
      note,
    ),
  );
  /** The key of the pair before, so that a folded list stays folded. @type {number|null} */
  let last = null;

  return {
    element: details,

    /** @param {Trace} trace @param {Place|null} place @param {ViewState} state */
    show(trace, place, state) {
      if (state.key !== null && state.key !== last) details.open = true;
      last = state.key;
      shown = place && { trace, place, shift: rowShift(trace, place, state) };
      if (!place) return;
      const [rows, columns] = [place.rows, place.columns].map((side) => tokensOf(trace, side));
      const labels = [positionLabels(rows), positionLabels(columns)];
      const wanted = JSON.stringify(labels);
      if (wanted !== offered) {
        from.replaceChildren(...labels[0].map(optionOf));
        to.replaceChildren(
          element('option', { value: '' }, 'a token …'),
          ...labels[1].map(optionOf),
        );
        offered = wanted;
      }
      const query = rowShown(trace, place, state);
      const key = state.key !== null && state.key < columns.length ? state.key : null;
      from.value = String(query);
      to.value = key === null ? '' : String(key);
      none.hidden = key === null;
      list.hidden = key === null;
      if (key === null) {
        note.textContent =
          'Choose two tokens, or a cell of the large map, to rank all heads by it.';
        return;
      }
      const ranked = rankedByPair(trace, place, query, key);
      note.textContent =
        ranked.length === 0
          ? `${named(rows, query)} cannot attend to ${named(columns, key)}, which comes later.`
          : `${countSaid(ranked.length)} from ${named(rows, query)}, the query, which reads, to ${named(columns, key)}, the key, which is read; the cell is marked on every map.`;
      const labelled = labelledHeads(trace, place);
      /** @param {number} layer @param {number} head */
      const labelAt = (layer, head) => {
        const of = labelled[layer]?.heads[head];
        return of ? describeRole(of) : '';
      };
      list.replaceChildren(
        ...ranked
          .slice(0, MOST_RANKED)
          .map(({ layer, head, weight }) =>
            element(
              'li',
              element(
                'button',
                {
                  type: 'button',
                  'aria-pressed': String(layer === state.layer && head === state.head),
                  onclick: () => onState({ layer, head, attention_which: 'head' }),
                },
                element('span.patterns-title', `Layer ${layer}, head ${head}`),
                element('span.patterns-place', labelAt(layer, head)),
                element('span.patterns-score', share(weight, 2)),
              ),
            ),
          ),
      );
    },
  };
}

/** @param {number} all heads */
function countSaid(all) {
  return all > MOST_RANKED
    ? `The ${MOST_RANKED} of ${all} heads with the greatest weight`
    : `The weight of all ${all} heads`;
}

/** @param {string} title @param {number} index */
function optionOf(title, index) {
  return element('option', { value: String(index) }, title);
}

/**
 * Return the meaning of a score, and the number of queries it covers.
 * @param {{help: string, queries: number}} pattern
 */
export function helpOf({ help, queries }) {
  return `${help}; here over ${queries === 1 ? '1 query' : `${queries} queries`}`;
}

/**
 * Return the heads that link two tokens: all heads of a place, ranked by their weight from one to
 * the other.
 * @param {Trace} trace
 * @param {Place} place
 * @param {number} query
 * @param {number} key
 * @returns {{layer: number, head: number, weight: number}[]} the highest weight first; empty if the key is masked
 */
export function rankedByPair(trace, place, query, key) {
  return heldWeightsAt(place, trace)
    .flatMap(({ layer, site }) => {
      if (isCausal(site) && key > query) return [];
      const { shape, data, scale } = trace.tensors[site];
      const [nHeads, nQueries, nKeys] = shape;
      return Array.from({ length: nHeads }, (_, head) => ({
        layer,
        head,
        weight: data[(head * nQueries + query) * nKeys + key] * scale,
      }));
    })
    .sort((a, b) => b.weight - a.weight);
}
