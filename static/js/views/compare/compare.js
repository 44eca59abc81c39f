/**
 * Compare: two passes side by side, and what the one has that the other has not.
 */

import { noticeOf } from '../../api/request_cache.js';
import { choice, count, counts, number, text } from '../../state/fields.js';
import { placeOf, placesOf } from '../../data/places.js';
import { differenceFigure, sideFigure } from './attention.js';
import { controls, TEMPERATURE } from './controls.js';
import { headsFigure } from './heads.js';
import { nextFigure } from './next.js';
import { asks, nameOfB, sidesOf } from './sides.js';

export const compare = {
  id: 'compare',
  title: 'Compare',
  help: 'Two passes side by side: the same sentence with a part of the model switched off, another sentence, or another model. The third map is B less A, and the bars say what changed in what the model expects.',
  terms: [
    ['A', 'the page’s own sentence and model, as they are'],
    ['B', 'what it is compared with'],
    ['difference', 'B − A: warm where B attends more, blue where it attends less'],
  ],
  needs: [
    '*.self_attention.weights',
    '*.cross_attention.weights',
    'analyses.next_token.ids',
    'analyses.next_token.probabilities',
  ],
  fields: {
    compare_with: choice(['edit', 'text', 'model']),
    compare_text: text(),
    compare_model: text(),
    compare_edit: choice(['heads', 'experts', 'no_scaling', 'temperature']),
    compare_heads: counts(),
    compare_experts: counts(),
    compare_temperature: number(TEMPERATURE),
    compare_layer: count(),
    compare_where: choice(['all', 'encoder', 'decoder', 'cross']),
  },
  arrangement: 'triple',
  places: (trace) => (placesOf(trace).length > 1 ? placesOf(trace) : []),
  place: (trace, state) => placeOf(state, trace)?.id,
  asks,
  controls: (trace, state) => controls(trace, state, placeOf(state, trace)),
  panels,
  figure,
};

/** Heads of two models are not each other’s: how much each changed is told of one model alone. */
function panels(trace, state) {
  const parts = ['b', 'difference', 'next', ...(state.compare_with === 'model' ? [] : ['heads'])];
  const others = isAsked(trace, state) && !state.answers.after?.problem ? parts : ['b'];
  return [
    { id: '', state: { part: 'a' } },
    ...others.map((part) => ({ id: part, state: { part } })),
  ];
}

function isAsked(trace, state) {
  return 'after' in asks(trace, state);
}

const TITLES = {
  a: 'A',
  b: 'B',
  difference: 'B − A',
  next: 'What is expected',
  heads: 'Which heads changed',
};

/**
 * @param {import('../../data/trace.js').Trace} trace
 * @param {import('../../state/state.js').State & import('../../plot/figure.js').Frame} state
 * @returns {import('../../plot/figure.js').Figure}
 */
function figure(trace, state) {
  const { part = 'a', answers } = state;
  const title = TITLES[part];
  if (!isAsked(trace, state))
    return part === 'a' ? alone(trace, state) : { title, ...invitation(trace, state) };
  const notice = noticeOf(answers.after);
  if (notice)
    return part === 'a'
      ? alone(trace, state)
      : {
          title: part === 'b' ? `B: ${nameOfB(trace, state)}` : title,
          notice,
          isWaiting: !answers.after?.problem,
        };
  const sides = sidesOf(trace, state);
  if (part === 'a' || part === 'b')
    return { title: `${title}: ${sides[part].name}`, ...sideFigure(sides, part, state) };
  if (part === 'difference') return { title, ...differenceFigure(sides, state) };
  if (part === 'heads') return { title, ...headsFigure(sides, state) };
  const waiting = noticeOf(answers.before);
  return {
    title,
    ...(waiting
      ? { notice: waiting, isWaiting: !answers.before?.problem }
      : nextFigure(sides, answers.before.trace.tensors.logits, state)),
  };
}

/** A, while there is no B. */
function alone(trace, state) {
  const { a } = sidesOf(trace, { ...state, answers: { after: { trace } } });
  return { title: `A: ${a.name}`, ...sideFigure({ a, b: null }, 'a', state) };
}

function invitation(trace, { compare_with: way }) {
  if (way !== 'text') return { notice: 'There is no other model here to compare with.' };
  return {
    notice:
      'Type a second sentence above. One that shares most of its words with the first shows most.',
    actions: [{ label: 'Copy the first and change a word', patch: { compare_text: trace.text } }],
  };
}
