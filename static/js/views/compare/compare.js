/**
 * Compare: two passes side by side, and their difference.
 */

import { noticeOf } from '../../api/answers.js';
import { wholeOf } from '../../api/calls.js';
import { percent } from '../../words/numbers.js';
import { range } from '../../trace/trace.js';
import { ATTENTIONS, isRating, choosePlace } from '../../trace/attention.js';
import { differenceFigure, sideFigure } from './attention.js';
import { controls } from './controls.js';
import { cardsOf, haveSameHeads, rewardFigure } from './models.js';
import { headsFigure, mostChanged } from './heads.js';
import { nextFigure } from './next_token.js';
import { TO_EXPERIMENT, UNSCALED } from '../unscaled.js';
import { asks, isMapped, nameOfB, otherOf, readSides, readWish } from './sides.js';

/** The sentence on the prediction does not depend on the width of its bars. */
const ANY_WIDTH = 600;

/** @type {ViewCode} */
export const compare = {
  help: 'Two passes side by side: the same sentence with a part of the model switched off, another sentence, or another model. B − A is the change of the attention; the bars show that of the prediction.',
  terms: {
    A: 'the page’s own sentence and model, as they are',
    B: 'the pass it is compared with',
    difference: 'B − A: warm where B attends more, blue where it attends less',
    'total variation': 'half the sum of all changes of probability: the share that moved',
    'Kullback–Leibler':
      'Σ p·log₂(p/q): the bits that are lost if the probabilities q of B are expected in place of p of A',
  },
  arrangement: 'triple',
  ...ATTENTIONS,
  asks,

  /** Return the change of the prediction in one sentence, and the head that changed most. */
  wording(trace, state) {
    const before = state.answers?.before?.trace;
    if (!isAsked(trace, state) || !state.answers.after?.trace || !before) return {};
    const sides = readSides(trace, state);
    if (!isPredicted(trace, state)) return { answer: ofHeads(trace, sides, state) };
    const { grid } = nextFigure(sides, before.tensors.logits, { ...state, width: ANY_WIDTH });
    if (!grid) return {};
    const first = range(grid.rows).reduce((best, row) =>
      grid.value(row, 0) > grid.value(best, 0) ? row : best,
    );
    return {
      help: compare.help,
      answer: [`${grid.describe(first, 0)}.`, ...ofHeads(trace, sides, state)],
    };
  },
  controls: (trace, state) =>
    controls(trace, state, {
      place: choosePlace(state, trace),
      isOfPrediction: isOfPrediction(trace, state),
    }),

  /**
   * Maps are shown where one changed: an edit of the last layer changes the prediction only. The
   * change by head is shown for one model only.
   */
  panels(trace, state) {
    if (isOfPrediction(trace, state)) return [{ id: 'next', state: { part: 'next' } }];
    const parts = [
      'b',
      ...(haveCommonHeads(state) ? ['difference'] : []),
      ...(isPredicted(trace, state) ? ['next'] : []),
      ...lastParts(trace, state),
    ];
    const others = isAsked(trace, state) && !state.answers.after?.problem ? parts : ['b'];
    return [
      { id: '', state: { part: 'a' } },
      ...others.map((part) => ({ id: part, state: { part } })),
    ];
  },

  figure(trace, state) {
    const { answers } = state;
    /** @type {string} */
    const part = state.part ?? 'a';
    const title = TITLES[part];
    if (!isAsked(trace, state))
      return part === 'a' ? figureOfA(trace, state) : { title, ...invitation(trace, state) };
    const notice = noticeOf(answers.after) || (areCardsPending(state) ? noticeOf(undefined) : '');
    if (notice)
      return part === 'a'
        ? figureOfA(trace, state)
        : {
            title: part === 'b' ? `B: ${nameOfB(trace, state)}` : title,
            notice,
            isWaiting: !answers.after?.problem,
          };
    const sides = readSides(trace, state);
    if (part === 'a' || part === 'b')
      return { title: `${title}: ${sides[part].name}`, ...sideFigure(sides, part, state) };
    if (part === 'difference') return { title, ...differenceFigure(sides, state) };
    if (part === 'heads') return { title, ...headsFigure(sides, state) };
    if (part === 'reward') {
      const rated = answers.rated?.trace;
      return {
        title,
        ...(rated
          ? rewardFigure(rated, state)
          : { notice: noticeOf(answers.rated), isWaiting: !answers.rated?.problem }),
      };
    }
    const before = answers.before?.trace;
    const isUnscaled = state.compare_with === 'edit' && state.compare_edit === 'no_scaling';
    return {
      title,
      ...(isUnscaled && { actions: [TO_EXPERIMENT] }),
      ...(before
        ? nextFigure(sides, before.tensors.logits, state)
        : { notice: noticeOf(answers.before), isWaiting: !answers.before?.problem }),
    };
  },
};

/** Return true if the heads of A correspond to those of B. @param {ViewState} state */
function haveCommonHeads(state) {
  if (state.compare_with !== 'model' || areCardsPending(state)) return true;
  return haveSameHeads(cardsOf(state));
}

/** @param {ViewState} state */
function areCardsPending({ answers: { ours, theirs } }) {
  return [ours, theirs].some((answer) => answer && !answer.trace && !answer.problem);
}

/** Return true if both sides predict tokens. @param {Trace} trace @param {ViewState} state */
function isPredicted(trace, state) {
  const otherCard = state.compare_with === 'model' ? otherOf(trace, state) : undefined;
  return ![trace.card, otherCard].some((card) => isRating({ card }));
}

/** Return the relation of the heads of both models, in words. @param {ViewState} state */
function relationOf(state) {
  const [ours, theirs] = cardsOf(state);
  const goesOn = { A: ours?.began_from === theirs?.id, B: theirs?.began_from === ours?.id };
  if (ours && theirs && (goesOn.A || goesOn.B))
    return `${goesOn.A ? 'A' : 'B'} began with the weights of ${goesOn.A ? 'B' : 'A'}, so B − A is the change of each head by training.`;
  if (ours && theirs && wholeOf(ours.id) === wholeOf(theirs.id))
    return 'A and B are states of one training, so B − A is the change of each head between them.';
  return 'Heads of the two models do not correspond.';
}

/** @param {Trace} trace @param {ReturnType<typeof readSides>} sides @param {ViewState} state */
function ofHeads(trace, sides, state) {
  const { compare_with: way, compare_edit: edit } = state;
  if (way === 'model') return areCardsPending(state) ? [] : [relationOf(state)];
  const most = mostChanged(sides);
  if (way === 'edit' && !most && isMapped(sides.a)) {
    const isOfLast = isLast(trace, readWish(trace, state).layer);
    return [
      isOfLast
        ? `B: ${sides.b.name}. No attention map changed: after the last layer comes only the prediction.`
        : `B: ${sides.b.name}. No attention map changed.`,
    ];
  }
  const isOff = way === 'edit' && edit === 'heads';
  return [
    ...(way === 'edit' && edit === 'no_scaling' ? [UNSCALED] : []),
    ...(isOff ? ['A head that is off still attends as before, but writes nothing.'] : []),
    ...(most
      ? [
          `The attention that changed most is that of layer ${most.layer}, head ${most.head}: ${percent(most.moved)} of it moved.`,
        ]
      : []),
  ];
}

/** Return the last part; heads of two models do not correspond. @param {Trace} trace @param {ViewState} state */
function lastParts(trace, state) {
  if (state.compare_with !== 'model') return ['heads'];
  return 'rated' in asks(trace, state) ? ['reward'] : [];
}

/**
 * Return true if no map changes, only the prediction: as the pass of B shows it, or, until that is
 * here, because the heads that are off are in the last layer.
 * @param {Trace} trace
 * @param {ViewState} state
 */
function isOfPrediction(trace, state) {
  if (state.compare_with !== 'edit' || !isPredicted(trace, state)) return false;
  if (!isAsked(trace, state) || state.answers.after?.problem) return false;
  if (state.answers.after?.trace) return mostChanged(readSides(trace, state)) === null;
  const { kind, layer } = readWish(trace, state);
  return kind === 'heads' && isLast(trace, layer);
}

/** @param {Trace} trace @param {number|null} layer */
function isLast({ card }, layer) {
  return layer !== null && layer === (card?.n_layers ?? 0) - 1;
}

/** @param {Trace} trace @param {ViewState} state */
function isAsked(trace, state) {
  return 'after' in asks(trace, state);
}

/** @type {Record<string, string>} */
const TITLES = {
  a: 'A',
  b: 'B',
  difference: 'B − A',
  next: 'The prediction',
  heads: 'Which heads changed',
  reward: 'The reward of this text',
};

/** Draw only A, before there is a B. @param {Trace} trace @param {ViewState} state */
function figureOfA(trace, state) {
  const { a } = readSides(trace, { ...state, answers: { after: { trace } } });
  return { title: `A: ${a.name}`, ...sideFigure({ a, b: null }, 'a', state) };
}

/**
 * Return a notice in place of a figure that needs B.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {{notice: string, actions?: Figure['actions']}}
 */
function invitation(trace, { compare_with: way }) {
  if (way !== 'text') return { notice: 'No other model is available to compare with.' };
  return {
    notice:
      'Type a second sentence above, preferably one that shares most of its words with the first.',
    actions: [{ label: 'Copy the first and change a word', patch: { compare_text: trace.text } }],
  };
}
