/**
 * Stream: the norm of the residual stream, the writes of each part, the inputs of the layer norms,
 * and the logit lens.
 */

import { isFilling, stackOf, stacksOf } from '../../data/attention.js';
import { depthAsks, depthFigure, depthPanels } from './depth.js';
import { lensAsks, lensFigure, lensPanels } from './lens.js';
import { entryOf } from '../registry.js';

/**
 * @import { Trace } from '../../data/trace.js'
 * @import { Arrangement, View, ViewState } from '../../plot/figure.js'
 */

const LENS = 'lens';
const STREAM = [
  'residual stream',
  'the vector of d_model numbers of each token, to which every part of every layer adds',
];
const LENS_TERM = [
  'logit lens',
  'the last norm and the token embeddings, applied to the stream after an earlier layer',
];
const LENS_WITHOUT_NORM = [
  'logit lens',
  'the token embeddings, applied to the stream after an earlier layer',
];
const MOST_SIDE_BY_SIDE = 48;

const OPTIONS = [
  { id: LENS, title: 'Logit lens', help: 'The prediction of each layer' },
  { id: 'norms', title: 'Norms', help: 'The norm of the stream' },
  { id: 'writes', title: 'Writes', help: 'The vectors that each part adds to the stream' },
  { id: 'layer_norm', title: 'Layer norms', help: 'The inputs of the layer norms' },
];

/** @type {View} */
export const stream = {
  ...entryOf('stream'),
  help: 'Each row applies the model’s final unembedding to an earlier layer. The cell shows the likeliest next token, its colour the probability.',
  terms: [STREAM, LENS_TERM],
  asks: (trace, state) => partOf(state).asks(trace),
  controls: (_, state) => [
    {
      kind: 'choice',
      name: 'stream_show',
      label: 'Show',
      options: OPTIONS,
      value: state.stream_show ?? LENS,
    },
  ],
  places: (trace, state) => (isLens(state) ? [] : stacksOf(trace)),
  place: (trace, state) => stackOf(state, trace),
  arrangement,
  wording,
  panels: (trace, state) => partOf(state).panels(trace, state),
  figure: (trace, state) => partOf(state).figure(trace, state),
};

/** @param {ViewState} state */
function isLens({ stream_show: show = LENS }) {
  return show === LENS;
}

/** @param {ViewState} state */
function partOf(state) {
  return isLens(state)
    ? { asks: lensAsks, panels: lensPanels, figure: lensFigure }
    : { asks: depthAsks, panels: depthPanels, figure: depthFigure };
}

/**
 * The lens takes the whole width, as do the maps of a long text.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Arrangement}
 */
function arrangement(trace, state) {
  if (isLens(state)) return 'led';
  return (trace.target_tokens ?? trace.tokens).length > MOST_SIDE_BY_SIDE ? '' : 'many';
}

const NORM = ['norm', 'the length of a vector: the root of the sum of its squares'];
/** @type {Record<string, (trace: Trace) => {help: string, terms: string[][]}>} */
const WORDING = {
  norms: ({ card }) => ({
    help:
      card?.norm_place === 'post'
        ? 'Every part of every layer adds its vector to the stream, and the norm after it rescales the sum.'
        : 'Every part of every layer adds its vector to the stream. No norm rescales it, so it mostly grows with depth.',
    terms: [STREAM, NORM],
  }),
  writes: () => ({
    help: 'Attention and the feed-forward network (or the experts) each add a vector to the stream: its norm, and its cosine with the stream.',
    terms: [
      STREAM,
      [
        'cosine',
        '1 if two vectors point the same way, 0 at right angles, −1 if they point opposite ways',
      ],
    ],
  }),
  layer_norm: layerNormWording,
};

/**
 * Wording that depends on the part and on the model.
 * @param {Trace} trace
 * @param {ViewState} state
 */
function wording(trace, state) {
  if (!isLens(state)) return WORDING[state.stream_show](trace);
  const terms = trace.card?.norm_place === 'post' ? [STREAM, LENS_WITHOUT_NORM] : stream.terms;
  if (!isFilling(trace)) return { terms };
  return {
    terms,
    help: 'Each row applies the model’s final unembedding to an earlier layer. The cell shows the likeliest token at that position, its colour the probability.',
  };
}

/** @param {Trace} trace */
function layerNormWording({ card }) {
  const isPost = card?.norm_place === 'post';
  const name = card?.norm === 'rms_norm' ? 'RMSNorm' : 'LayerNorm';
  const where = isPost
    ? `${name} follows every part: its input is the stream plus the part’s output.`
    : `${name} precedes every part and the prediction: its input is the stream.`;
  return {
    help: `${where} It rescales the token’s numbers.`,
    terms: [
      STREAM,
      [
        'norm',
        card?.norm === 'rms_norm'
          ? 'divides a token’s d_model numbers by their root mean square'
          : 'subtracts the mean of a token’s d_model numbers and divides by their standard deviation',
      ],
    ],
  };
}
