/**
 * Overview: one head's map over a text of any length, from the whole map to single weights, with the
 * numbers of each row next to it. Each region is a tile that the server computes from the queries and
 * keys it kept.
 */

import { noticeOf, MOST_NUMBERS, overviewAsk } from '../../api/answers.js';
import { mapFigure, statisticsOf } from './map.js';
import {
  attentionOf,
  BINS,
  isPastTraining,
  ofTile,
  ofWhole,
  overviewOf,
  placeIn,
  placesIn,
  regionAfter,
  regionIn,
  sizeOf,
  tiledRegion,
  writeRegion,
  traceOfMaps,
} from './region.js';
import { choice } from '../../ui/controls.js';
import { createHeadsBlock } from '../../ui/heads_block.js';
import { createMemo } from '../../state/state.js';

/** @type {ViewCode} */
export const long = {
  createOverview,
  help: 'The map of the chosen head over the whole text, each cell the mean or maximum of a square of weights; zoomed in, single weights. The curves beside it are of the same queries.',
  terms: {
    'mean of 64 × 64 tokens': 'the mean weight of 64 queries on 64 keys',
    exact: 'every cell is one weight',
    entropy: 'how evenly a row spreads its weight: 2ⁿ equal weights have n bits',
    distance: 'how many tokens back the row looks, by weight',
    loss: '−log₂ of the probability that the next token had, in bits',
  },

  /** Return the map of the text, the tile of a part of it, and the numbers of the rows. */
  asks(trace, state) {
    /** @type {Record<string, Ask>} */
    const overview = trace.resolution ? {} : { overview: overviewAsk(trace.card) };
    const whole = overviewOf(trace, state);
    if (!whole) return overview;
    const tile = tileOf(whole, state);
    return { ...overview, ...(tile && { tile: { tile } }), rows: rowsAsk(trace, state) };
  },
  places: (trace) => (placesIn(trace).length > 1 ? placesIn(trace) : []),
  place: (trace, state) => placeIn(trace, state).id,

  controls: mapControls,

  figure(trace, state) {
    const title = `Overview: layer ${state.layer}, head ${state.head}`;
    const overview = overviewOf(trace, state);
    if (!overview) return waiting(title, state, 'overview');
    const attention = attentionOf(overview, state);
    const region = tiledRegion(overview, state);
    const tile = state.answers?.tile?.trace;
    if (region && !tile) return waiting(title, state, 'tile');
    const pool = state.long_pool ?? 'mean';
    const shown =
      region && tile
        ? ofTile(tile, region, attention, pool)
        : ofWhole(overview, state, regionIn(overview, state));
    if (!shown) return { title, notice: `The trace has no map of ${attention}.` };
    return mapFigure({
      title,
      trace,
      overview,
      rows: rowsAsk(trace, state),
      state,
      pool,
      attention,
      shown,
      tile: tileOf(overview, state),
    });
  },
};

/** Create the maps of all heads, small. @param {Handlers} handlers @returns {Overview} */
function createOverview(handlers) {
  const block = createHeadsBlock(handlers);
  const memo = createMemo();
  return {
    element: block.element,
    show(trace, state) {
      const of = [trace, state.answers?.overview?.trace, state.where, state.long_pool];
      const maps = memo(of, () => traceOfMaps(trace, state));
      block.element.hidden = !maps;
      if (maps) block.show(maps, { ...state, range: 'head', key: null });
    },
  };
}

/**
 * Return the numbers of every row, of all layers at once if one answer holds them: each answer
 * takes a pass. The row that is asked for besides lets the text be long.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Ask}
 */
function rowsAsk(trace, state) {
  const attention = attentionOf(trace, state);
  const sites = statisticsOf(attention).map(({ id }) => id);
  const { n_layers: layers = 1, n_heads: heads = 1 } = trace.card ?? {};
  const { queries, keys } = sizeOf(trace, state);
  const rows = placesIn(trace).length * keys;
  const isOne = layers * heads * (sites.length * queries + rows) > MOST_NUMBERS;
  const path = isOne ? attention : attention.replace(/\d+/, '*');
  return {
    capture: sites.map((site) => `${path}.${site}`),
    ...(isOne && { layers: [Number(attention.match(/\d+/)?.[0])] }),
    queries: [0],
    ...(isPastTraining(trace, state) && {
      analyses: ['next_token'],
      predictions: { top: 1, following: true },
    }),
  };
}

/**
 * @param {Trace} overview
 * @param {ViewState} state
 * @returns {Record<string, string|number>|null} the query of a tile; null: the whole map has it
 */
function tileOf(overview, state) {
  const region = tiledRegion(overview, state);
  return (
    region && {
      id: overview.id,
      attention: attentionOf(overview, state),
      head: state.head,
      queries: region.queries.join(':'),
      keys: region.keys.join(':'),
      resolution: BINS,
    }
  );
}

/** @param {Trace} trace @param {ViewState} state @returns {Control[]} */
function mapControls(trace, state) {
  const size = sizeOf(trace, state);
  const region = regionIn(trace, state);
  const now = writeRegion(region, size);
  /** @param {string} label @param {string} key @returns {Control} */
  const button = (label, key) => {
    const next = writeRegion(regionAfter(key, region, size) ?? region, size);
    return {
      kind: 'button',
      label,
      patch: { long_region: next },
      disabled: next.join() === now.join(),
    };
  };
  return [
    choice('long_pool', 'Cells', state.long_pool, [
      { id: 'mean', title: 'Mean', help: 'Of the weights that a cell stands for' },
      { id: 'max', title: 'Maximum', help: 'Of these weights: single strong ones stay visible' },
    ]),
    button('Zoom in', '+'),
    button('Zoom out', '-'),
    button('Whole text', '0'),
    button('Left', 'Shift+ArrowLeft'),
    button('Right', 'Shift+ArrowRight'),
    button('Up', 'Shift+ArrowUp'),
    button('Down', 'Shift+ArrowDown'),
  ];
}

/**
 * @param {string} title
 * @param {ViewState} state
 * @param {string} name of the answer
 * @returns {Figure}
 */
function waiting(title, { answers }, name) {
  const isWaiting = !Object.values(answers ?? {}).some(({ problem }) => problem);
  return { title, notice: noticeOf(answers?.[name]), isWaiting };
}
