/**
 * Stream: how the residual stream grows, what each part writes to it, what the layer norms see, and
 * what each layer would predict if it were the last.
 */

import { isFilling, stackOf, stacksOf } from '../../data/attention.js';
import { depthAsks, depthFigure, depthPanels } from './depth.js';
import { lensAsks, lensFigure, lensPanels } from './lens.js';
import { entryOf } from '../registry.js';

const LENS = 'lens';
const STREAM = [
  'residual stream',
  'the vector of d_model numbers that each token has, to which every part of every layer adds',
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
  { id: LENS, title: 'Logit lens', help: 'What each layer would predict' },
  { id: 'norms', title: 'Norms', help: 'How long the stream is' },
  { id: 'writes', title: 'Writes', help: 'What each part adds to the stream' },
  { id: 'layer_norm', title: 'Layer norms', help: 'What each norm sees' },
];

/** @type {import('../../plot/figure.js').View} */
export const stream = {
  ...entryOf('stream'),
  help: 'The exit of the last layer is put behind every layer: what the model would expect next if it stopped there. The likeliest token stands in the cell; the colour is its probability.',
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

/** @param {Record<string, any>} state */
function isLens({ stream_show: show = LENS }) {
  return show === LENS;
}

function partOf(state) {
  return isLens(state)
    ? { asks: lensAsks, panels: lensPanels, figure: lensFigure }
    : { asks: depthAsks, panels: depthPanels, figure: depthFigure };
}

/** The lens takes the whole width, and so do the maps of a long text. */
function arrangement(trace, state) {
  if (isLens(state)) return 'led';
  return (trace.target_tokens ?? trace.tokens).length > MOST_SIDE_BY_SIDE ? '' : 'many';
}

const NORM = ['norm', 'the length of a vector: the root of the sum of its squares'];
const WORDING = {
  norms: ({ card }) => ({
    help:
      card?.norm_place === 'post'
        ? 'Every part of every layer adds its vector to the stream, and the norm behind it brings the sum back to one size.'
        : 'Every part of every layer adds its vector to the stream. No norm stands in its way, so it mostly grows with the depth.',
    terms: [STREAM, NORM],
  }),
  writes: () => ({
    help: 'Attention and the feed-forward network, or experts in its place, each write a vector to the stream: how long it is, and whether it points along the stream or against it.',
    terms: [
      STREAM,
      [
        'cosine',
        '1 where two vectors point the same way, 0 where they are at right angles, −1 where they point opposite ways',
      ],
    ],
  }),
  layer_norm: layerNormWording,
};

/** What is said differently of this part, of this model, or of both. */
function wording(trace, state) {
  if (!isLens(state)) return WORDING[state.stream_show](trace);
  const terms = trace.card?.norm_place === 'post' ? [STREAM, LENS_WITHOUT_NORM] : stream.terms;
  if (!isFilling(trace)) return { terms };
  return {
    terms,
    help: 'The exit of the last layer is put behind every layer: what the model would put at each place if it stopped there. The likeliest token stands in the cell; the colour is its probability.',
  };
}

function layerNormWording({ card }) {
  const isPost = card?.norm_place === 'post';
  const name = card?.norm === 'rms_norm' ? 'RMSNorm' : 'LayerNorm';
  const where = isPost
    ? `${name} stands after every part: it sees the stream with what the part has written.`
    : `${name} stands before every part, and before the prediction: it sees the stream that the part is about to read.`;
  return {
    help: `${where} It brings the token’s numbers to one size.`,
    terms: [
      STREAM,
      [
        'norm',
        card?.norm === 'rms_norm'
          ? 'divides a token’s d_model numbers by their root mean square'
          : 'takes the mean of a token’s d_model numbers away and divides by their standard deviation',
      ],
    ],
  };
}
