/**
 * Entropy: how widely each token attends in each layer, in bits, averaged over the heads of the layer;
 * above the map, the mean of every token over the layers.
 */

import { entropyInBits } from '../../trace/arithmetic.js';
import {
  ATTENTIONS,
  choosePlace,
  tokensOf,
  heldWeightsAt,
  weightsAt,
} from '../../trace/attention.js';
import { decimal } from '../../words/numbers.js';
import { named } from '../../words/tokens.js';
import { matrixAt, range, rowOf } from '../../trace/trace.js';
import { chart } from '../../plot/chart.js';
import { css, sequential } from '../../plot/colour.js';
import { isTurned, band, linear, tokenBand } from '../../plot/scales.js';
import { bar } from '../../plot/marks/bar.js';
import { cell } from '../../plot/marks/mark.js';
import { choosing, createMemo, queryOf } from '../../state/state.js';
import { panes } from '../../plot/panes.js';

/**
 * @import { Place } from '../../trace/attention.js'
 * @import { Matrix, Trace } from '../../trace/trace.js'
 * @import { ViewCode, ViewState } from '../../plot/figure.js'
 */

/** @type {ViewCode} */
export const entropy = {
  help: 'A row of attention with one large weight has little entropy; one that is spread over n keys evenly has log₂ n bits. The first tokens have few keys to attend to.',
  terms: {
    entropy: '−Σ w·log₂ w over the weights of a row, in bits',
    bit: 'one bit more: as if the weight were spread over twice as many keys',
  },
  ...ATTENTIONS,

  figure(trace, state) {
    const title = 'How widely each token attends';
    const place = choosePlace(state, trace);
    if (!place || weightsAt(place, trace).length === 0)
      return { title, notice: 'This pass holds no attention weights.' };
    const tokens = tokensOf(trace, place.rows);
    const spread = measureSpread(trace, place);
    const { layers, bits, means } = spread;
    const most = Math.log2(tokensOf(trace, place.columns).length) || 1;
    const query = queryOf(state, trace, place.rows);
    /** @param {number} row @param {number} column */
    const say = (row, column) =>
      `${named(tokens, column)} spreads its attention in layer ${layers[row]} by ${decimal(bits.data[row * bits.columns + column], 2)} bits, ${decimal(means[column], 2)} over all layers`;
    const shown = Math.max(layers.indexOf(state.layer), 0);
    return {
      title,
      summary: `Entropy of the attention of ${tokens.length} tokens in ${layers.length} layers, of at most ${decimal(most, 2)} bits.`,
      facts: [
        ['Mean', `${decimal(meanOf(means), 2)} bits`],
        ['Evenly over all keys', `${decimal(most, 2)} bits`],
      ],
      ...chart(
        {
          x: tokenBand(
            tokens,
            { side: place.rows, query, choose: (token) => choosing(trace, place.rows, token) },
            { title: 'query', side: 'top', isSlanted: true },
          ),
          y: band(layers.map(String), { title: 'layer', side: 'top' }),
          isSwapped: isTurned(state),
          marks: [
            cell(bits, {
              ramp: { title: 'bits', domain: [0, most] },
              text: ({ value }) => decimal(value, 1),
              format: (value) => decimal(value, 4),
              name: ({ row, column }) => `${named(tokens, column)}, layer ${layers[row]}`,
              number: ({ value }) => `${decimal(value, 2)} bits`,
              say: ({ row, column }) => say(row, column),
              choose: ({ row, column }) => ({
                ...choosing(trace, place.rows, column),
                view: 'attention',
                layer: layers[row],
              }),
            }),
          ],
          panes: panes([meansPane(means, most, state)]),
          table: {
            rows: { title: 'layer', labels: layers.map((layer) => `layer ${layer}`) },
            columns: { title: 'query' },
            quantity: 'entropy of the attention weights in bits, mean over the heads',
            request: { capture: weightsAt(place, trace).map(({ site }) => site) },
            made: 'The entropy of each row of weights, −Σ w·log₂ w, averaged over heads.',
          },
          sentence: {
            ofToken: (token) => ({
              readout: say(shown, token),
              tint: shareOf(spread, shown, most),
            }),
            rest: { readout: say(shown, query), tint: shareOf(spread, shown, most) },
            ceiling: 1,
          },
          cursor: {
            start: { row: shown, column: query },
            chooseHint: 'Enter opens the attention of the layer at the token',
            note: 'Choose a cell to open the attention of the layer.',
          },
        },
        state,
      ),
    };
  },
};

/** @typedef {{layers: number[], bits: Matrix, means: number[]}} Spread bits by layer and query, and the mean over the layers */

const memo = createMemo();

/** @param {Trace} trace @param {Place} place @returns {Spread} */
export function measureSpread(trace, place) {
  return memo([trace, place.id], () => {
    const sites = heldWeightsAt(place, trace);
    const rows = sites.map(({ site }) => {
      const { shape } = trace.tensors[site];
      const heads = range(shape[0]).map((head) => matrixAt(trace.tensors[site], head));
      return range(shape[1]).map((query) =>
        meanOf(heads.map((head) => entropyInBits(rowOf(head, query)))),
      );
    });
    const columns = rows[0].length;
    return {
      layers: sites.map(({ layer }) => layer),
      bits: { rows: rows.length, columns, data: Float64Array.from(rows.flat()) },
      means: range(columns).map((query) => meanOf(rows.map((row) => row[query]))),
    };
  });
}

/** @param {number[]} values */
function meanOf(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/**
 * Draw bars of the means, on the side of the map where its tokens are named.
 * @param {number[]} means
 * @param {number} most
 * @param {ViewState} state
 */
function meansPane(means, most, state) {
  return {
    y: linear('', { domain: [0, most], ticks: [] }),
    marks: [
      bar(means, {
        length: Number,
        isUpright: true,
        thickness: 0.8,
        fill: css(sequential(state.palette.theme), 128),
      }),
    ],
    pixels: 44,
    isAbove: true,
    title: ['mean'],
    titleAt: isTurned(state) ? /** @type {const} */ ('above') : /** @type {const} */ ('before'),
  };
}

/** Return the entropies of a layer as shares of the most that there can be. @param {Spread} spread @param {number} row @param {number} most */
function shareOf({ bits }, row, most) {
  return rowOf(bits, row).map((value) => value / most);
}
