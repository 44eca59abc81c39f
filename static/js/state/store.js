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

/** @import { Field } from './state.js' */

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

/** The page's state, with every change of it and its address. */
export class Store {
  /** @type {State & Record<string, any>} */
  state;
  /** True: the reader chose layer, head or place. Until then the page chooses them for each text. */
  #isHeadChosen;
  /** True: the reader, an example or a link names the opened head; false: the page chose it. */
  isHeadGiven = false;
  /** True: a model was named and nothing of it shown yet, so the page chooses the view. */
  #isOpening = true;
  #standards;
  #by;

  /**
   * @param {Object} by
   * @param {Record<string, Field<any>>} by.fields
   * @param {string[]} by.views their ids
   * @param {Address} by.address
   * @param {() => Trace|null} by.traceNow the trace that is shown
   * @param {(change: Change) => void} by.onChange
   */
  constructor({ fields, views, address, traceNow, onChange }) {
    this.#by = { fields, views, address, traceNow, onChange };
    this.state = address.read();
    this.#isHeadChosen = choosesHead(this.state);
    this.#standards = { ...NOTHING_CHOSEN, ...standardsOfText(fields) };
  }

  /** @param {Patch} patch */
  #isOtherText(patch) {
    return isOfOtherText({ ...this.state, ...patch }, this.state);
  }

  #normalize() {
    const trace = this.#by.traceNow();
    if (trace) this.state = normalized(this.state, trace, this.#by.views);
  }

  /** @param {Patch} wanted @param {{isTyped?: boolean, isStep?: boolean}} [how] */
  #set(wanted, { isTyped = false, isStep = true } = {}) {
    const patch = withoutStale(wanted, this.state);
    const before = this.state;
    this.#isHeadChosen ||= choosesHead(patch);
    this.isHeadGiven ||= choosesHead(patch);
    this.state = { ...this.state, ...patch };
    const isOther = isOfOtherText(this.state, before);
    if (!isOther) this.#normalize();
    if (isStep) this.#by.address.write(this.state, isTyped);
    else this.#by.address.rewrite(this.state);
    this.#by.onChange({ before, patch, isTyped, isStep, isOtherText: isOther });
  }

  /**
   * Change the state, as a step of the history.
   * @param {Patch} patch
   * @param {boolean} [isTyped] what is typed in one go is one step
   */
  change = (patch, isTyped = false) => this.#set(patch, { isTyped });

  /**
   * Change the state without a step of the history, as a running text does.
   * @param {Patch} patch
   */
  goOn = (patch) => this.#set(patch, { isStep: false });

  /**
   * Take a typed text or target, unless it is the one that was read.
   * @param {{text: string, words: string}|{target: string|null}} written
   * @param {boolean} isTyped
   * @returns {boolean} is it another one?
   */
  write(written, isTyped) {
    if (!this.#isOtherText(written)) return false;
    this.#set(
      { ...(this.#isHeadChosen ? {} : NO_HEAD), ...this.#standards, ...written },
      { isTyped },
    );
    return true;
  }

  /**
   * Open an example at its own place.
   * @param {Example} example
   * @returns {boolean} is it another text?
   */
  follow({ text, opens }) {
    const written = { text, words: '', target: null, ...opened(opens) };
    const isOther = this.#isOtherText(written);
    this.#set(isOther ? { ...this.#standards, ...NO_HEAD, ...written } : written);
    this.#isHeadChosen = false;
    return isOther;
  }

  /**
   * Choose another model: an example that was not edited gives way to one of that model.
   * @param {string} model
   * @param {Example[]} examples of the model in use
   * @param {Example[]} others of the other model
   */
  chooseModel(model, examples, [other]) {
    const isExample = other && examples.some(({ text }) => text === this.state.text);
    this.#isOpening = true;
    this.#set({
      model,
      target: null,
      ...this.#standards,
      ...NO_HEAD,
      ...(isExample && { text: other.text, words: '', ...opened(other.opens) }),
    });
    this.#isHeadChosen = false;
  }

  /**
   * Return the change to another text, which resets what was chosen in the one before.
   * @param {Patch} written
   * @returns {Patch}
   */
  withStandards(written) {
    return { ...this.#standards, ...written };
  }

  /**
   * Prepare the state for a model that is about to read: the first example, if there is no text
   * yet. The address follows when the trace arrives.
   * @param {Card} card
   */
  begin(card) {
    // Attention is what the address leaves out; a link to it names a head.
    const isFree = this.#isOpening && !this.#isHeadChosen && this.state.view === INITIAL.view;
    this.state = begun(this.state, card, isFree ? this.#by.views : []);
    this.#isOpening = false;
  }

  /** Open the view of long texts. The address follows when the trace arrives. */
  openLong() {
    this.state = { ...this.state, view: LONG_VIEW };
  }

  /** Open a head, unless one was named: the page has found a better one. @param {Patch} head */
  suggest(head) {
    if (this.isHeadGiven) return;
    this.state = { ...this.state, ...head };
    this.#normalize();
    this.#by.address.rewrite(this.state);
  }

  /** Bring the state into the bounds of the trace that arrived, and the address with it. */
  fit() {
    this.isHeadGiven = this.state.layer !== null && this.state.head !== null;
    this.#normalize();
    this.#by.address.rewrite(this.state);
  }

  /**
   * Take the state from the address: the browser went back or forward, or a kernel wrote it.
   * @param {boolean} [isNamed] a head that differs was named, not found by the page
   * @returns {boolean} is it of another text?
   */
  restore(isNamed = false) {
    const before = this.state;
    this.state = this.#by.address.read();
    if (isOfOtherText(this.state, before)) return true;
    this.state = { ...this.state, ...elsewhere(before, this.state.view, this.#by.fields) };
    const isOther = this.state.layer !== before.layer || this.state.head !== before.head;
    if (isNamed && isOther) this.#isHeadChosen = this.isHeadGiven = true;
    this.#normalize();
    return false;
  }
}

/**
 * Return the state with the first example, if there is no text yet, and a translator on its view.
 * @param {State} state
 * @param {Card} card
 * @param {string[]} views that the page may choose
 * @returns {State}
 */
function begun(state, { examples, kind }, views) {
  const filled = state.text === null ? beginning(state, examples[0]) : state;
  if (kind !== 'encoder-decoder') return { ...filled, target: null };
  return views.includes(ALIGNMENT_VIEW) ? { ...filled, view: ALIGNMENT_VIEW } : filled;
}

/** @param {Patch} patch */
function choosesHead({ layer = null, head = null, where = '' }) {
  return layer !== null || head !== null || where !== '';
}

/** @param {State} now @param {State} before */
function isOfOtherText(now, before) {
  const parts = /** @type {const} */ ([
    ...['text', 'model', 'target', 'chat', 'pair', 'read_special'],
  ]);
  return parts.some((part) => now[part] !== before[part]);
}
