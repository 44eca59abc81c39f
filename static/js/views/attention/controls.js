/**
 * The switches of the Attention view. Those that do not go with what is chosen are not offered.
 */

import { canBeLines } from '../../state/attention_switches.js';
import { QUANTITIES } from '../../data/quantities.js';
import { percent } from '../../data/number.js';

const WHICH = [
  { id: 'head', title: 'One head', help: 'The head chosen among all heads' },
  { id: 'heads', title: 'Several', help: 'The mean of any heads of this layer' },
  { id: 'mean', title: 'Mean', help: 'The mean of all heads of this layer' },
  { id: 'max', title: 'Largest', help: 'Cell by cell the largest of all heads of this layer' },
  { id: 'rollout', title: 'Rollout', help: 'All layers up to this one together' },
];
const AS = [
  { id: 'matrix', title: 'Matrix', help: 'A row for each query, a column for each key' },
  { id: 'lines', title: 'Lines', help: 'Lines between two columns of words' },
];
const HIDE = [
  { id: 'nothing', title: 'Nothing' },
  { id: 'first', title: 'First token', help: 'Where heads rest that find nothing to do' },
  { id: 'special', title: 'Special tokens', help: 'Tokens that stand for no text' },
];

/**
 * @param {{place: import('../../data/places.js').Place, nHeads: number, switches: import('../../state/attention_switches.js').Switches}} setting
 * @returns {import('../../ui/controls.js').Control[]}
 */
export function controlsFor({ place, nHeads, switches }) {
  return [...ofWhat(place, nHeads, switches), ...ofHow(switches)];
}

function ofWhat(place, nHeads, { what, which, heads }) {
  const quantities = Object.entries(QUANTITIES).map(([id, { title, help }]) => ({
    id,
    title,
    help,
  }));
  const isRolled = which === 'rollout';
  const canRoll = place.id !== 'cross' && (what === 'weights' || what === 'log');
  return [
    {
      kind: 'choice',
      name: 'attention_what',
      label: 'Show',
      options: isRolled ? quantities.slice(0, 2) : quantities,
      value: what,
    },
    {
      kind: 'choice',
      name: 'attention_which',
      label: 'Of',
      options: canRoll ? WHICH : WHICH.slice(0, -1),
      value: which,
    },
    ...(which === 'heads'
      ? [
          {
            kind: 'counts',
            name: 'attention_heads',
            label: 'Heads',
            value: heads,
            options: Array.from({ length: nHeads }, (_, head) => ({
              id: head,
              title: String(head),
              help: `Head ${head}`,
            })),
          },
        ]
      : []),
  ];
}

function ofHow({ what, as, isWords, hidden, isRenormalised, threshold, isShare }) {
  const words = {
    kind: 'flag',
    name: 'attention_words',
    label: 'Whole words',
    value: isWords,
    isSet: isWords,
    help: 'Pieces of a word as one: columns summed, rows averaged',
  };
  const hide = {
    kind: 'choice',
    name: 'attention_hide',
    label: 'Hide',
    options: HIDE,
    value: hidden,
    isSet: hidden !== 'nothing',
  };
  const renormalise = {
    kind: 'flag',
    name: 'attention_renormalise',
    label: 'Renormalise rows',
    value: isRenormalised,
    help: 'Divide what is left of a row by its sum',
  };
  const least = {
    kind: 'number',
    name: 'attention_threshold',
    label: 'Threshold',
    value: threshold,
    least: 0,
    most: isShare ? 0.5 : 1,
    step: 0.01,
    isSet: threshold > 0,
    shown: threshold === 0 ? 'none' : isShare ? String(threshold) : percent(threshold, 0),
  };
  const more = [
    isShare && words,
    hide,
    isShare && hidden !== 'nothing' && renormalise,
    what !== 'scores' && least,
  ];
  return [
    ...(canBeLines(what)
      ? [{ kind: 'choice', name: 'attention_as', label: 'As', options: AS, value: as }]
      : []),
    ...more.filter(Boolean).map((control) => ({ ...control, isMore: true })),
  ];
}
