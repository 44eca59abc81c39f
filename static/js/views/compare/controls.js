/**
 * The switches of a comparison: what a pass is compared with, and what is shown of both.
 */

import { modelName } from '../../api/calls.js';
import { weightsAt } from '../../trace/attention.js';
import { corpusInWords } from '../../rules/prediction.js';
import { range } from '../../trace/trace.js';
import { choosingModel, NOTHING_CHOSEN } from '../../state/state.js';
import { control, choice, headControls, numbered } from '../../ui/controls.js';
import { ALL_LAYERS, isOffered, isOutsideLayers, otherOf, othersOf, readWish } from './sides.js';

/** @import { Place } from '../../trace/attention.js' @import { Wish } from './edits.js' */

const WAYS = [
  {
    id: 'edit',
    title: 'An edit',
    help: 'The same sentence and model, with a part of the model changed',
  },
  { id: 'text', title: 'Another sentence', help: 'Another sentence, read by the same model' },
  { id: 'model', title: 'Another model', help: 'The same sentence, read by another model' },
];
const EDITS = [
  { id: 'heads', title: 'Heads off', help: 'Heads that write nothing, or a value of a corpus' },
  {
    id: 'network',
    title: 'Networks off',
    help: 'Feed-forward networks, or all experts of a layer, that write nothing, or a value of a corpus',
  },
  { id: 'experts', title: 'Experts off', help: 'Experts that are never chosen' },
  { id: 'no_scaling', title: 'No 1/√d', help: 'Scores without the division by √d_head' },
  {
    id: 'temperature',
    title: 'Temperature',
    help: 'Scores divided by T before the softmax: T > 1 flattens rows, T < 1 sharpens them',
  },
  {
    id: 'quantize',
    title: 'Fewer bits',
    help: 'Weights rounded to 2 to 8 bits each, with a scale for each row of a matrix',
  },
];
const BASELINES = [
  { id: 'zero', title: 'Nothing' },
  { id: 'mean', title: 'Its mean', help: 'The mean over the tokens of a corpus' },
  { id: 'resample', title: 'A drawn value', help: 'What it wrote at a token drawn from a corpus' },
];
const PARTS = [
  { id: 'all', title: 'All' },
  { id: 'attention', title: 'Attention' },
  { id: 'feed_forward', title: 'Feed-forward', help: 'Feed-forward networks and experts' },
  { id: 'embedding', title: 'Embedding', help: 'The token vectors, which also make the logits' },
];
const WHERE = [
  { id: 'all', title: 'Everywhere' },
  { id: 'encoder', title: 'Encoder' },
  { id: 'decoder', title: 'Decoder' },
  { id: 'cross', title: 'Cross' },
];
const RANGES = [
  { id: 'one', title: '0 to 1' },
  { id: 'head', title: '0 to the strongest' },
];

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {{place: Place|null, isOfPrediction: boolean}} of the open attention, and whether no map is shown
 * @returns {Control[]}
 */
export function controls(trace, state, { place, isOfPrediction }) {
  const { compare_with: way } = state;
  const offered = othersOf(trace, state.cards ?? []);
  const title = trace.asked?.messages ? 'Another system prompt' : WAYS[1].title;
  const [edit, other, model] = [WAYS[0], { ...WAYS[1], title }, WAYS[2]];
  const ways = offered.length > 0 ? [edit, other, model] : [edit, other];
  return [
    choice('compare_with', 'Compare with', way, ways),
    ...CONTROLS[way](trace, state),
    ...(isOfPrediction ? [] : lookControls(trace, state, place)),
  ];
}

/** @type {Record<string, (trace: Trace, state: ViewState) => Control[]>} */
const CONTROLS = { edit: editControls, text: textControls, model: modelControls };

/** @param {Trace} trace @param {ViewState} state @returns {Control[]} */
function editControls(trace, state) {
  const { card } = trace;
  const wish = readWish(trace, state);
  const layers = wish.kind === 'experts' ? (card?.moe?.layers ?? []) : range(card?.n_layers ?? 0);
  const where = wish.kind === 'experts' ? WHERE.filter(({ id }) => id !== 'cross') : WHERE;
  return [
    choice(
      'compare_edit',
      'What',
      wish.kind,
      EDITS.filter(({ id }) => isOffered(id, card)),
    ),
    ...ofKind(wish, card),
    ...(isOutsideLayers(state)
      ? []
      : [
          choice('compare_layer', 'In layer', wish.layer ?? ALL_LAYERS, [
            { id: ALL_LAYERS, title: 'All' },
            ...numbered(layers),
          ]),
        ]),
    ...(card?.kind === 'encoder-decoder' && wish.kind !== 'quantize'
      ? [choice('compare_where', 'Of', wish.where, where)]
      : []),
  ];
}

/** @param {Wish} wish @param {Card|undefined} card @returns {Control[]} */
function ofKind({ kind, heads, experts, temperature, bits, part, to }, card) {
  const corpus = corpusInWords(card);
  const baselines = BASELINES.filter(({ id }) => id === 'zero' || corpus).map((each) => ({
    ...each,
    help: each.help?.replace('a corpus', corpus),
  }));
  const written = choice('compare_to', 'Writes', to, baselines);
  if (kind === 'network') return [written];
  if (kind === 'quantize')
    return [
      control('number', 'compare_bits', 'Bits a weight', bits, { step: 1, shown: String(bits) }),
      choice('compare_part', 'Of', part, PARTS),
    ];
  if (kind === 'heads')
    return [
      control('counts', 'compare_heads', 'Heads off', heads, {
        options: numbered(range(card?.n_heads ?? 0), 'head'),
      }),
      written,
    ];
  if (kind === 'experts')
    return [
      control('counts', 'compare_experts', 'Experts off', experts, {
        options: numbered(range(card?.moe?.n_experts ?? 0), 'expert'),
      }),
    ];
  if (kind !== 'temperature') return [];
  return [
    control('number', 'compare_temperature', 'Temperature', temperature, {
      step: 0.1,
      shown: temperature.toFixed(1),
    }),
  ];
}

/** @param {Trace} trace @param {ViewState} state @returns {Control[]} */
function textControls(trace, { compare_text: text }) {
  if (trace.asked?.messages)
    return [control('text', 'compare_text', 'System prompt of B', text, { placeholder: 'None' })];
  return [
    control('text', 'compare_text', 'Second sentence', text, {
      placeholder: 'Type a sentence to compare with',
    }),
    ...(text.trim() === ''
      ? []
      : [
          {
            kind: 'button',
            label: 'Swap A and B',
            patch: { text, compare_text: trace.text, words: '', ...NOTHING_CHOSEN },
          },
        ]),
  ];
}

/** @param {Trace} trace @param {ViewState} state @returns {Control[]} */
function modelControls(trace, state) {
  const otherCard = otherOf(trace, state);
  return [
    choice(
      'compare_model',
      'Model B',
      otherCard?.id,
      othersOf(trace, state.cards).map((card) => ({ id: card.id, title: modelName(card) })),
    ),
    {
      kind: 'button',
      label: 'Swap A and B',
      patch: { ...choosingModel(otherCard?.id ?? ''), compare_model: trace.model },
    },
  ];
}

/** @param {Trace} trace @param {ViewState} state @param {Place|null} place */
function lookControls(trace, state, place) {
  const layers = weightsAt(place, trace);
  if (layers.length === 0) return [];
  return [...headControls(layers, trace, state), choice('range', 'Colours', state.range, RANGES)];
}
