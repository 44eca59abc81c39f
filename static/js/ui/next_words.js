/**
 * The finding above the drawing: what the chosen head does in a sentence, the likeliest next words,
 * and what speaks most for the chosen one. It changes at once when a head is switched off.
 */

import { isFilling, predictingSide, tokensOf } from '../trace/attention.js';
import { capitalised } from '../words/lists.js';
import { percent } from '../words/numbers.js';
import { quoted } from '../words/tokens.js';
import { findCauses, cutEdges, headOff, nextWords } from '../rules/prediction.js';
import { isMask } from '../trace/words.js';
import { guessInWords, withSign } from '../plot/bars.js';
import { button, element, partOf } from './dom.js';

/**
 * @import { Trace } from '../trace/trace.js'
 * @import { Cause, Chosen, NextWord } from '../rules/prediction.js'
 * @import { Patch } from '../state/state.js'
 */

/**
 * @param {HTMLElement} host
 * @param {{onState: (patch: Patch) => void, announce: (message: string) => void}} handlers
 */
export function createFinding(host, { onState, announce }) {
  /** @param {string} name */
  const find = (name) => partOf(host, `#${name}`, HTMLElement);
  const [insight, where, row, causes] = ['insight', 'insight-where', 'next', 'causes'].map(find);
  /** The row on the page: an unchanged row keeps its buttons, and the focus. */
  let shown = '';
  let told = '';
  /** The finding on an edit, in place of that on the head. */
  let moved = '';

  return {
    /**
     * @param {string} words on the chosen row of the chosen head; '': another kind of view is open
     * @param {string} address of the head, and what it is for
     */
    explain(words, address) {
      insight.textContent = (words && moved ? moved : words).replaceAll(' %', '\u00a0%');
      where.textContent = words === '' ? '' : address;
      host.classList.toggle('has-insight', words !== '');
    },

    /**
     * @param {Trace} trace
     * @param {Chosen} state
     * @param {number} position that predicts; −1: this trace predicts nothing
     */
    show(trace, state, position) {
      host.classList.toggle('has-next', position >= 0);
      if (position < 0) return;
      const next = nextWords(trace, state, position);
      const because = next.isEdited ? [] : findCauses(trace, state);
      const label = labelOf(trace, position);
      const isWaiting = !next.isEdited && Boolean(state.answers?.next_why?.isWaiting);
      host.classList.toggle('is-waiting', next.isWaiting || isWaiting);
      const edit = editInWords(trace, state);
      moved = movedInWords(next, edit);
      const wanted = JSON.stringify([
        trace.id,
        next,
        because,
        label,
        state.off,
        state.weight,
        edit,
      ]);
      if (wanted === shown || next.isWaiting) return;
      shown = wanted;
      const focused = focusIn(host);
      row.replaceChildren(
        element('span.next-label', label),
        ...next.words.map((word) => wordOf(word, next, onState)),
        doorOf('why?', 'Why this word: every part of the model', next.chosen, onState),
      );
      causes.replaceChildren(
        ...(edit
          ? [
              `${next.problem || edit} `,
              button('Put it back', () => onState(unedited(state)), { 'data-focus': 'back' }),
              ...othersOf(trace, state, onState),
            ]
          : sentenceOf(next.chosen, because, onState)),
      );
      refocus(host, focused);
      tell(next, edit);
    },
  };

  /**
   * Announce how an edit moves the chosen word.
   * @param {ReturnType<typeof nextWords>} next
   * @param {string} edit
   */
  function tell({ words, chosen, isEdited, least }, edit) {
    const word = words.find(({ id }) => id === chosen?.id);
    const message =
      isEdited && word
        ? `${edit} “${guessInWords(word.text)}”: ${chance(word.before ?? NaN, least[0])} → ${chance(word.probability, least[1])}`
        : '';
    if (message && message !== told) announce(message);
    told = message;
  }
}

/**
 * Return how the edit moves the chosen word.
 * @param {ReturnType<typeof nextWords>} next
 * @param {string} edit
 */
function movedInWords({ words, chosen, isEdited, least }, edit) {
  const word = isEdited && edit ? words.find(({ id }) => id === chosen?.id) : undefined;
  if (!word) return '';
  const [before, now] = [chance(word.before ?? NaN, least[0]), chance(word.probability, least[1])];
  const way = before === now ? 'stays at' : `goes from ${before} to`;
  return `${edit} “${guessInWords(word.text)}” ${way} ${now}.`;
}

/** @type {Patch} */
const UNEDITED = { off: '', weight: null };

/** @param {Chosen} state @returns {Patch} */
const unedited = (state) => ({
  ...UNEDITED,
  ...(cutEdges(state).length > 0 && { circuit_cut: '' }),
});

/** @param {number} probability NaN: it is not listed @param {number} least that is listed */
const chance = (probability, least) =>
  Number.isNaN(probability)
    ? `under ${percent(least)}`
    : percent(probability, probability < 0.1 ? 1 : 0);

/** @param {Trace} trace @param {number} position */
function labelOf(trace, position) {
  const tokens = tokensOf(trace, predictingSide(trace));
  const token = tokens[position];
  if (isFilling(trace)) return isMask(token) ? 'fits here' : `at ${quoted(token)}`;
  return position === tokens.length - 1 ? 'next' : `after ${quoted(token)}`;
}

/**
 * Create a word, which is chosen by a press, and its probability, which opens all of them.
 * @param {NextWord} word
 * @param {ReturnType<typeof nextWords>} row
 * @param {(patch: Patch) => void} onState
 */
function wordOf({ id, text, probability, before }, { chosen, least }, onState) {
  const isChosen = chosen?.id === id;
  const name = guessInWords(text);
  const moved = before === undefined ? '' : chance(before, least[0]);
  const number = chance(probability, least[1]);
  const isMoved = moved !== '' && moved !== number;
  return element(
    'span',
    { class: isChosen ? 'next-word is-chosen' : 'next-word' },
    button(name, () => onState({ token: id }), {
      class: 'next-name',
      'aria-pressed': String(isChosen),
      title: `What speaks for “${name}”`,
      'data-focus': `word ${id}`,
    }),
    isChosen
      ? button(number, () => onState({ view: 'next_token', token: id }), {
          class: 'next-number',
          title: 'The probabilities of all tokens',
          'aria-label': `${name}: ${number}${isMoved ? `, before ${moved}` : ''}; show the probabilities of all tokens`,
          'data-focus': 'number',
        })
      : element('span.next-number', number),
    isMoved ? element('s.next-before', { 'aria-hidden': 'true' }, moved) : null,
  );
}

/**
 * @param {string} label
 * @param {string} title
 * @param {{id: number}|null} chosen
 * @param {(patch: Patch) => void} onState
 */
function doorOf(label, title, chosen, onState) {
  return button(
    label,
    () => onState({ view: 'word', word_show: 'parts', word_token: chosen?.id ?? null }),
    { class: 'next-why', title, 'data-focus': 'why' },
  );
}

/**
 * Return the causes as a sentence with a button each.
 * @param {{text: string}|null} chosen
 * @param {Cause[]} causes
 * @param {(patch: Patch) => void} onState
 */
function sentenceOf(chosen, causes, onState) {
  if (!chosen || causes.length === 0) return [];
  return [
    element('span.next-label', `“${guessInWords(chosen.text)}” because of`),
    ...causes.map(({ part, value, patch }, index) =>
      button('', () => onState(patch), {
        class: 'next-cause',
        title: `${withSign(value)} logits, written by ${part}`,
        'data-focus': `cause ${index}`,
      }),
    ),
  ].map((node, index) => {
    const cause = causes[index - 1];
    if (cause)
      node.append(
        ...(cause.word
          ? [element('b', `“${cause.word}”`), ` (${cause.part})`]
          : [capitalised(cause.part)]),
        element('span.next-value', withSign(cause.value)),
      );
    return node;
  });
}

/** The output of a head that is off, in words, and as a button. @type {Record<string, {does: string, label: string, title: string}>} */
const BASELINES = {
  zero: { does: 'is switched off', label: 'Nothing', title: 'It writes nothing' },
  mean: {
    does: 'writes its mean over a corpus',
    label: 'Its mean',
    title: 'It writes its mean over the tokens of a corpus',
  },
  resample: {
    does: 'writes what it wrote at a token drawn from a corpus',
    label: 'A drawn value',
    title: 'It writes what it wrote at a token drawn from a corpus',
  },
};

/**
 * Return buttons for what the head that is off may write instead.
 * @param {Trace} trace
 * @param {Chosen} state
 * @param {(patch: Patch) => void} onState
 */
function othersOf(trace, state, onState) {
  if (!headOff(trace, state)) return [];
  const shown = state.off_to ?? 'zero';
  return [
    element('span.next-label', ' or let it write '),
    ...Object.entries(BASELINES)
      .filter(([id]) => id !== shown)
      .map(([id, { label, title }]) =>
        button(label, () => onState(/** @type {Patch} */ ({ off_to: id })), {
          title,
          'data-focus': `off ${id}`,
        }),
      ),
  ];
}

/** @param {Trace} trace @param {Chosen} state */
function editInWords(trace, state) {
  const head = headOff(trace, state);
  const cross = head?.place === 'cross' ? 'Cross-attention, layer' : 'Layer';
  const cuts = cutEdges(state);
  const isSet = state.weight !== null && Boolean(state.answers?.next_edited);
  return [
    head &&
      `${cross} ${head.layer}, head ${head.head} ${(BASELINES[state.off_to] ?? BASELINES.zero).does}.`,
    isSet && `The chosen weight is set to ${state.weight}.`,
    cuts.length > 0 && `${cuts.join(', ')} ${cuts.length === 1 ? 'is' : 'are'} cut.`,
  ]
    .filter(Boolean)
    .join(' ');
}

/** @param {HTMLElement} host */
function focusIn(host) {
  const { activeElement: focused } = document;
  return focused instanceof HTMLElement && host.contains(focused) ? focused.dataset.focus : '';
}

/** @param {HTMLElement} host @param {string|undefined} name */
function refocus(host, name) {
  if (!name) return;
  const part = host.querySelector(`[data-focus="${name}"]`) ?? host.querySelector('button');
  if (part instanceof HTMLElement) part.focus({ preventScroll: true });
}
