/**
 * The store of the page's state: every change of it, the address and the history that hold it, and
 * its bounds, which the trace sets.
 */

import {
  beginning,
  elsewhere,
  INITIAL,
  normalized,
  NOTHING_CHOSEN,
  opened,
  readFragment,
  standardsOf,
  standardsOfText,
  withoutStale,
  writeFragment,
} from './state.js';

/**
 * @import { Card, Example } from '../trace/card.js'
 * @import { Trace } from '../trace/trace.js'
 * @import { Field, Patch, State } from './state.js'
 */

/** The view that shows texts of any length. */
export const LONG_VIEW = 'long';

/** The view that a translator opens on. */
const ALIGNMENT_VIEW = 'translate';

/** The page's own choice of a head. */
const NO_HEAD = { layer: null, head: null, where: '' };

/** Milliseconds between two strokes of what is typed in one go. */
const ONE_GO = 2500;

/**
 * @typedef {Object} Change
 * @property {State} before
 * @property {Patch} patch
 * @property {boolean} isTyped
 * @property {boolean} isStep of the history
 * @property {boolean} isOtherText text, target or model differ: the trace is of another pass
 */

/** @typedef {ReturnType<typeof createAddress>} Address */
/** @typedef {ReturnType<typeof createStore>} Store */

/**
 * @param {Record<string, Field<any>>} fields
 * @param {{location: {hash: string}, history: Pick<History, 'pushState'|'replaceState'>}} browser
 */
export function createAddress(fields, browser = globalThis) {
  let typedAt = -Infinity;

  return {
    /** @returns {State} */
    read: () => ({ ...standardsOf(fields), ...readFragment(browser.location.hash, fields) }),

    /**
     * @param {State} state
     * @param {boolean} isTyped what is typed in one go, or pushed along a slider, is one step
     */
    write(state, isTyped) {
      const goesOn = isTyped && performance.now() - typedAt < ONE_GO;
      if (isTyped) typedAt = performance.now();
      const fragment = writeFragment(state, fields);
      if (fragment === browser.location.hash) return;
      if (goesOn) browser.history.replaceState(null, '', fragment);
      else browser.history.pushState(null, '', fragment);
    },

    /** Replace the current history entry. @param {State} state */
    rewrite(state) {
      browser.history.replaceState(null, '', writeFragment(state, fields));
    },
  };
}

/**
 * @param {Object} by
 * @param {Record<string, Field<any>>} by.fields
 * @param {string[]} by.views their ids
 * @param {Address} by.address
 * @param {() => Trace|null} by.traceNow the trace that is shown
 * @param {(change: Change) => void} by.onChange
 */
export function createStore({ fields, views, address, traceNow, onChange }) {
  let state = address.read();
  /**
   * True: the reader chose layer, head or place. Until then the page chooses them for each text.
   */
  let isHeadChosen = choosesHead(state);
  /** True: a model was named and nothing of it shown yet, so the page chooses the view. */
  let isOpening = true;
  const standards = { ...NOTHING_CHOSEN, ...standardsOfText(fields) };

  function normalize() {
    const trace = traceNow();
    if (trace) state = normalized(state, trace, views);
  }

  /** @param {Patch} patch */
  const isOtherText = (patch) => isOfOtherText({ ...state, ...patch }, state);

  /** @param {Patch} wanted @param {{isTyped?: boolean, isStep?: boolean}} [how] */
  function set(wanted, { isTyped = false, isStep = true } = {}) {
    const patch = withoutStale(wanted, state);
    const before = state;
    isHeadChosen ||= choosesHead(patch);
    state = { ...state, ...patch };
    const isOther = isOfOtherText(state, before);
    if (!isOther) normalize();
    if (isStep) address.write(state, isTyped);
    else address.rewrite(state);
    onChange({ before, patch, isTyped, isStep, isOtherText: isOther });
  }

  return {
    /** @returns {State & Record<string, any>} */
    get state() {
      return state;
    },

    /**
     * Change the state, as a step of the history.
     * @param {Patch} patch
     * @param {boolean} [isTyped] what is typed in one go is one step
     */
    change(patch, isTyped = false) {
      set(patch, { isTyped });
    },

    /**
     * Change the state without a step of the history, as a tour or a running text does.
     * @param {Patch} patch
     */
    goOn(patch) {
      set(patch, { isStep: false });
    },

    /**
     * Take a typed text or target, unless it is the one that was read.
     * @param {{text: string, words: string}|{target: string|null}} written
     * @param {boolean} isTyped
     * @returns {boolean} is it another one?
     */
    write(written, isTyped) {
      if (!isOtherText(written)) return false;
      set({ ...(isHeadChosen ? {} : NO_HEAD), ...standards, ...written }, { isTyped });
      return true;
    },

    /**
     * Open an example at its own place.
     * @param {Example} example
     * @returns {boolean} is it another text?
     */
    follow({ text, opens }) {
      const written = { text, words: '', target: null, ...opened(opens) };
      const isOther = isOtherText(written);
      set(isOther ? { ...standards, ...NO_HEAD, ...written } : written);
      isHeadChosen = false;
      return isOther;
    },

    /**
     * Choose another model: an example that was not edited gives way to one of that model.
     * @param {string} model
     * @param {Example[]} examples of the model in use
     * @param {Example[]} others of the other model
     */
    chooseModel(model, examples, [example]) {
      const isExample = examples.some(({ text }) => text === state.text);
      const written =
        isExample && example ? { text: example.text, words: '', ...opened(example.opens) } : {};
      isOpening = true;
      set({ model, target: null, ...standards, ...NO_HEAD, ...written });
      isHeadChosen = false;
    },

    /**
     * Return the change to another text, which resets what was chosen in the one before.
     * @param {Patch} written
     * @returns {Patch}
     */
    withStandards: (written) => ({ ...standards, ...written }),

    /**
     * Prepare the state for a model that is about to read: the first example, if there is no text
     * yet. The address follows when the trace arrives.
     * @param {Card} card
     */
    begin({ examples, kind }) {
      if (state.text === null) state = beginning(state, examples[0]);
      const isPair = kind === 'encoder-decoder';
      if (!isPair) state = { ...state, target: null };
      // Attention is what the address leaves out; a link to it names a head.
      const isFree = isOpening && !isHeadChosen && state.view === INITIAL.view;
      if (isPair && isFree && views.includes(ALIGNMENT_VIEW))
        state = { ...state, view: ALIGNMENT_VIEW };
      isOpening = false;
    },

    /** Open the view of long texts. The address follows when the trace arrives. */
    openLong() {
      state = { ...state, view: LONG_VIEW };
    },

    /** Bring the state into the bounds of the trace that arrived, and the address with it. */
    fit() {
      normalize();
      address.rewrite(state);
    },

    /**
     * Take the state from the address: the browser went back or forward.
     * @returns {boolean} is it of another text?
     */
    restore() {
      const before = state;
      state = address.read();
      if (isOfOtherText(state, before)) return true;
      state = { ...state, ...elsewhere(before, state.view, fields) };
      normalize();
      return false;
    },
  };
}

/** @param {Patch} patch */
function choosesHead({ layer = null, head = null, where = '' }) {
  return layer !== null || head !== null || where !== '';
}

/** @param {State} now @param {State} before */
function isOfOtherText(now, before) {
  return now.text !== before.text || now.model !== before.model || now.target !== before.target;
}
