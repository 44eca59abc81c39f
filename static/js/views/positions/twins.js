/**
 * Twins: models that differ only in their positional encoding, on the same text. Mean attention by
 * distance for each head, on shared axes.
 */

import { modelName } from '../../api/calls.js';
import { noticeOf } from '../../api/answers.js';
import { counted, capitalised } from '../../words/lists.js';
import { amount, grouped, share, tick } from '../../words/numbers.js';
import { matrixAt, range, rowOf } from '../../trace/trace.js';
import { css, sequential } from '../../plot/colour.js';
import { curvesChart, warm } from '../../plot/curves.js';
import { band } from '../../plot/scales.js';
import { choice, numbered } from '../../ui/controls.js';
import { COLUMN_SPACE, stripsChart } from './line_plots.js';

/**
 * @import { Answer } from '../../api/answers.js'
 * @import { Card } from '../../trace/card.js'
 * @import { Matrix } from '../../trace/trace.js'
 * @import { Figure, ViewState } from '../../plot/figure.js'
 * @import { Part } from './maps.js'
 */

const ANALYSIS = 'attention_by_distance';
/** The lower end of a logarithmic strip. */
const FAINTEST = 1e-3;
/** The panel of the loss by position on held-out text, far beyond the trained length. */
const LOSSES = 'losses';
const DASHES = /** @type {const} */ (['solid', 'dash', 'dot', 'solid']);
const LOSS_FIGURE = /^up_to_(\d+)$/u;

/** @type {Part} */
export const TWINS = {
  controls(_, state) {
    const layers = Math.max(0, ...twinsOf(state).map(({ n_layers: count }) => count));
    if (layers === 0) return [];
    return [
      choice('positions_layer', 'Layer', layerOf(state, layers), numbered(range(layers), 'layer')),
      choice('positions_scale', 'Weights', state.positions_scale, [
        { id: 'log', title: 'logarithmic', help: 'shows differences between small weights' },
        { id: 'linear', title: 'as they are' },
      ]),
    ];
  },

  asks(_, state) {
    return Object.fromEntries(
      twinsOf(state).flatMap(({ id }) => [
        [id, { model: id, capture: [], analyses: [ANALYSIS] }],
        [cardOf(id), { card: id }],
      ]),
    );
  },

  panels(_, state) {
    const twins = twinsOf(state).map(({ id }) => id);
    if (twins.length === 0) return ['twins'];
    return lossesOf(state).length > 0 ? [...twins, LOSSES] : twins;
  },

  figure(_, state) {
    if (state.plot === LOSSES) return lossFigure(lossesOf(state), state);
    const card = twinsOf(state).find(({ id }) => id === state.plot);
    if (!card)
      return {
        title: 'Twins',
        notice:
          'This server offers no models named “positions-…” that differ only in their positional encoding.',
      };
    const title = nameOf(card);
    const answer = state.answers[card.id];
    const curves = curvesOf(answer, state, card);
    if (!curves) return { title, notice: noticeInWords(answer, card) };
    return {
      title,
      help: `In “${modelName(card)}” ${HELP[card.positional] ?? 'the positional encoding is another one'}.`,
      ...draw(state, { card, curves, ...sharedAxes(state) }),
    };
  },
};

/** The order of the twins; others follow. */
const ORDER = ['sinusoidal', 'learned', 'rotary', 'alibi'];

/** @param {Pick<ViewState, 'cards'>} state @returns {Card[]} */
function twinsOf({ cards }) {
  const place = (/** @type {Card} */ { positional }) =>
    ORDER.includes(positional) ? ORDER.indexOf(positional) : ORDER.length;
  return cards.filter(({ id }) => id.startsWith('positions-')).sort((a, b) => place(a) - place(b));
}

/**
 * Return the name of a twin's full card among the answers, which has the figures.
 * @param {string} id
 */
const cardOf = (id) => `card-${id}`;

/** @param {Record<string, any>} state @param {number} layers @returns {number} */
function layerOf({ positions_layer: layer }, layers) {
  return Math.min(layer ?? 0, layers - 1);
}

/**
 * @typedef {{rows: Matrix, first: number}} Curves head × distance, and the distance of the first column
 */

/**
 * @param {Answer|undefined} answer
 * @param {ViewState} state
 * @param {Card} card
 * @returns {Curves|null}
 */
function curvesOf(answer, state, card) {
  const arrays = answer?.trace?.analyses[ANALYSIS] ?? {};
  const layer = layerOf(state, card.n_layers);
  const path = Object.keys(arrays).find((name) => name.endsWith(`.layers.${layer}.self_attention`));
  if (!path) return null;
  const [stack] = path.split('.');
  return { rows: matrixAt(arrays[path]), first: arrays[`${stack}.distances`].data[0] };
}

/** @type {Record<string, string>} */
const HELP = {
  sinusoidal: 'waves are added to the embeddings',
  learned: 'trained vectors are added to the embeddings',
  rotary: 'queries and keys are rotated by their position',
  alibi: 'scores are lowered in proportion to the distance',
};

/** @param {Answer|undefined} answer @param {Card} card */
function noticeInWords(answer, card) {
  const { message = '', limit = 0, actual = 0 } = answer?.problem ?? {};
  if (message === 'Too many tokens')
    return `This text has ${counted(actual, 'token')}, and “${modelName(card)}” reads at most ${grouped(limit)}. The others may read more.`;
  return noticeOf(answer) || 'This model has no self-attention.';
}

/**
 * Return the shared axes of all twins answered so far: distances, and the greatest weight.
 * @param {ViewState} state
 */
function sharedAxes(state) {
  const all = twinsOf(state)
    .map((card) => curvesOf(state.answers[card.id], state, card))
    .filter((curves) => curves !== null);
  const first = Math.min(...all.map((curves) => curves.first));
  const last = Math.max(...all.map((curves) => curves.first + curves.rows.columns - 1));
  const most = Math.max(
    ...all.map(({ rows }) => rows.data.reduce((high, value) => Math.max(high, value), 0)),
  );
  return { first, last, most: Math.min(1, Math.ceil(most * 20) / 20) || 1 };
}

/**
 * @param {ViewState} state
 * @param {{card: Card, curves: Curves} & ReturnType<typeof sharedAxes>} drawn
 */
function draw(state, { card, curves, first, last, most }) {
  const layer = layerOf(state, card.n_layers);
  const isLog = state.positions_scale === 'log';
  const labels = Array.from({ length: last - first + 1 }, (_, column) => tick(first + column));
  const strips = Array.from({ length: curves.rows.rows }, (_, head) => ({
    label: String(head),
    values: spread(curves, head, first, labels.length),
  }));
  /** @type {[number, number]} */
  const domain = [isLog ? FAINTEST : 0, most];
  return {
    summary: `Mean attention weight of the ${strips.length} heads of layer ${layer} of ${modelName(card)}, by the distance from query to key, on strips from ${tick(domain[0])} to ${tick(most)}.`,
    ...stripsChart(
      strips,
      {
        x: band(labels, { title: 'tokens back', space: COLUMN_SPACE }),
        rows: 'head',
        domain,
        isLog,
        isFilled: !isLog,
        format: (weight) => share(weight, 4),
        say: ({ row, column, value }) =>
          `${modelName(card)}, layer ${layer}, head ${row}: ${placeInWords(first + column)} the mean weight is ${Number.isNaN(value) ? 'unknown' : share(value)}`,
        name: ({ row, column }) => `head ${row}, ${placeInWords(first + column)}`,
        table: {
          quantity: `mean attention weight by distance, ${modelName(card)}, layer ${layer}`,
          request: { model: card.id, capture: [], analyses: [ANALYSIS] },
        },
        cursor: { start: { row: 0, column: Math.max(0, -first) } },
      },
      state,
    ),
  };
}

/**
 * Return the weights of a head over the shared axis; NaN at distances that its model lacks.
 * @param {Curves} curves
 * @param {number} head
 * @param {number} first
 * @param {number} count
 */
function spread(curves, head, first, count) {
  const weights = rowOf(curves.rows, head);
  const skipped = first - curves.first;
  return Float64Array.from({ length: count }, (_, column) => weights[column + skipped] ?? NaN);
}

/** @param {number} distance */
function placeInWords(distance) {
  if (distance === 0) return 'on the token itself';
  return distance > 0 ? `${distance} back` : `${-distance} ahead`;
}

/**
 * @typedef {Object} Losses of one model
 * @property {string} name of its positional encoding
 * @property {number} trained tokens of a text of its training
 * @property {Map<number, number>} byEnd bits per token by the last position of each part of a text
 */

/**
 * Return the losses on the full cards of the twins; a card without them is left out.
 * @param {ViewState} state
 * @returns {Losses[]}
 */
function lossesOf(state) {
  return twinsOf(state).flatMap(({ id }) => {
    const card = state.answers[cardOf(id)]?.trace?.card;
    const losses = Object.entries(card?.metrics?.loss_by_position ?? {}).flatMap(([name, loss]) => {
      const end = Number(LOSS_FIGURE.exec(name)?.[1]);
      return end > 0 && typeof loss === 'number' ? [/** @type {const} */ ([end, loss])] : [];
    });
    if (!card || losses.length === 0) return [];
    const trained = card.metrics?.trained_tokens ?? NaN;
    return [{ name: nameOf(card), trained, byEnd: new Map(losses) }];
  });
}

/** Return the name of a twin's positional encoding. @param {Card} card */
function nameOf({ positional }) {
  return positional === 'alibi' ? 'ALiBi' : capitalised(positional);
}

/**
 * @param {Losses[]} losses
 * @param {Pick<ViewState, 'width'|'height'|'palette'>} state
 * @returns {Figure}
 */
function lossFigure(losses, state) {
  const { palette } = state;
  const x = [...new Set(losses.flatMap(({ byEnd }) => [...byEnd.keys()]))].sort((a, b) => a - b);
  const trained = losses[0].trained;
  const colours = [warm(palette), palette.ink, palette.muted, css(sequential(palette.theme), 190)];
  return {
    title: 'Loss by position',
    help: `Mean loss on held-out text by the position of the token, measured for the cards. The vertical line is the length of the texts that the models were trained on, ${grouped(trained)} tokens; learned positions end there or soon after.`,
    summary: `Loss by position, in bits per token: ${losses.map((model) => lossInWords(model)).join('; ')}.`,
    ...curvesChart(
      {
        x,
        across: { title: 'position in the text', write: grouped },
        up: { title: 'bits per token' },
        curves: losses.map(({ name, byEnd }, line) => ({
          name,
          values: x.map((end) => byEnd.get(end) ?? NaN),
          colour: colours[line % colours.length],
          dash: DASHES[line % DASHES.length],
        })),
        marker: x.includes(trained) ? x.indexOf(trained) : undefined,
        quantity: 'loss by position in bits per token',
        unit: 'up to position',
        format: (value) => amount(value, 3),
      },
      state,
    ),
  };
}

/** @param {Losses} losses */
function lossInWords({ name, trained, byEnd }) {
  const last = Math.max(...byEnd.keys());
  const inside = byEnd.get(trained);
  const beyond = `${amount(byEnd.get(last) ?? NaN, 3)} up to ${grouped(last)}`;
  if (inside === undefined || last === trained) return `${name} ${beyond}`;
  return `${name} ${amount(inside, 3)} up to ${grouped(trained)}, ${beyond}`;
}
