/**
 * The switches of a comparison: with what, and which attention is looked at.
 */

import { modelName } from '../../api/catalogue.js';
import { weightsAt } from '../../data/places.js';
import { choosingModel, NOTHING_CHOSEN } from '../../state/state.js';
import { otherOf, othersOf, range, wishOf } from './sides.js';

const WAYS = [
  {
    id: 'edit',
    title: 'An edit',
    help: 'The same sentence, read by the model with a part of it changed',
  },
  { id: 'text', title: 'Another sentence', help: 'Another sentence, read by the same model' },
  { id: 'model', title: 'Another model', help: 'The same sentence, read by another model' },
];
const EDITS = [
  { id: 'heads', title: 'Heads off', help: 'Heads that write nothing' },
  { id: 'experts', title: 'Experts off', help: 'Experts that are never chosen' },
  { id: 'no_scaling', title: 'No 1/√d', help: 'Queries times keys, not divided by √d_head' },
  {
    id: 'temperature',
    title: 'Temperature',
    help: 'The scores divided before the softmax: above 1 rows even out, below they sharpen',
  },
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
export const TEMPERATURE = { least: 0.1, most: 5, standard: 2 };

/**
 * @param {import('../../data/trace.js').Trace} trace
 * @param {Object} state
 * @param {import('../../data/places.js').Place|null} place
 * @returns {import('../../ui/controls.js').Control[]}
 */
export function controls(trace, state, place) {
  const { compare_with: way } = state;
  const offered = othersOf(trace, state.cards ?? []);
  return [
    {
      kind: 'choice',
      name: 'compare_with',
      label: 'Compare with',
      value: way,
      options: offered.length > 0 ? WAYS : WAYS.slice(0, 2),
    },
    ...{ edit: editControls, text: textControls, model: modelControls }[way](trace, state),
    ...lookControls(trace, state, place),
  ];
}

function editControls(trace, state) {
  const { card } = trace;
  const wish = wishOf(trace, state);
  const layers = wish.kind === 'experts' ? card.moe.layers : range(card?.n_layers ?? 0);
  const where = wish.kind === 'experts' ? WHERE.filter(({ id }) => id !== 'cross') : WHERE;
  return [
    {
      kind: 'choice',
      name: 'compare_edit',
      label: 'What',
      value: wish.kind,
      options: card?.moe ? EDITS : EDITS.filter(({ id }) => id !== 'experts'),
    },
    ...ofKind(wish, card),
    {
      kind: 'choice',
      name: 'compare_layer',
      label: 'In layer',
      value: wish.layer,
      options: [{ id: null, title: 'All' }, ...numbered(layers)],
    },
    ...(card?.kind === 'encoder-decoder'
      ? [{ kind: 'choice', name: 'compare_where', label: 'Of', value: wish.where, options: where }]
      : []),
  ];
}

function ofKind({ kind, heads, experts, temperature }, card) {
  if (kind === 'heads')
    return [
      {
        kind: 'counts',
        name: 'compare_heads',
        label: 'Heads off',
        value: heads,
        options: numbered(range(card?.n_heads ?? 0), 'head'),
      },
    ];
  if (kind === 'experts')
    return [
      {
        kind: 'counts',
        name: 'compare_experts',
        label: 'Experts off',
        value: experts,
        options: numbered(range(card.moe.n_experts), 'expert'),
      },
    ];
  if (kind !== 'temperature') return [];
  return [
    {
      kind: 'number',
      name: 'compare_temperature',
      label: 'Temperature',
      value: temperature,
      least: TEMPERATURE.least,
      most: TEMPERATURE.most,
      step: 0.1,
      shown: temperature.toFixed(1),
    },
  ];
}

function textControls(trace, { compare_text: text }) {
  return [
    {
      kind: 'text',
      name: 'compare_text',
      label: 'Second sentence',
      value: text,
      placeholder: 'Type a sentence to compare with',
    },
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

function modelControls(trace, state) {
  const other = otherOf(trace, state);
  return [
    {
      kind: 'choice',
      name: 'compare_model',
      label: 'Model B',
      value: other?.id,
      options: othersOf(trace, state.cards).map((card) => ({
        id: card.id,
        title: modelName(card),
      })),
    },
    {
      kind: 'button',
      label: 'Swap A and B',
      patch: { ...choosingModel(other?.id), compare_model: trace.model },
    },
  ];
}

function lookControls(trace, { layer, head, range: end }, place) {
  const layers = weightsAt(place, trace);
  if (layers.length === 0) return [];
  const nHeads = trace.tensors[layers[0].site].shape[0];
  return [
    {
      kind: 'choice',
      name: 'layer',
      label: 'Layer shown',
      value: layer,
      options: numbered(layers.map((of) => of.layer)),
    },
    {
      kind: 'choice',
      name: 'head',
      label: 'Head shown',
      value: head,
      options: numbered(range(nHeads)),
    },
    { kind: 'choice', name: 'range', label: 'Colours', value: end, options: RANGES },
  ];
}

function numbered(numbers, noun) {
  return numbers.map((id) => ({ id, title: String(id), ...(noun && { help: `${noun} ${id}` }) }));
}
