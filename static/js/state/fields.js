/**
 * The fields of a link: how each part of the state is written, which values it takes, and the
 * browser's address and history, which hold them.
 */

import { readFragment, writeFragment } from './state.js';

/**
 * @template T
 * @typedef {Object} Field
 * @property {T} standard what holds where the link says nothing
 * @property {(text: string) => T|undefined} read undefined: the link means nothing by it
 * @property {(value: T) => string} write
 * @property {T[]} [values] all it may be, where they are few
 * @property {number} [least] of a number
 * @property {number} [most]
 * @property {boolean} [isOfText] it says nothing of another text, or of another model
 */

const LONGEST_LIST = 1024;

/**
 * @param {string|null} [standard]
 * @returns {Field<string|null>}
 */
export function text(standard = '') {
  return { standard, read: (written) => written, write: String };
}

/**
 * A number of something, from 0 on; null: the page chooses.
 * @returns {Field<number|null>}
 */
export function count() {
  return {
    standard: null,
    read: (written) => (/^\d{1,6}$/.test(written) ? Number(written) : undefined),
    write: String,
  };
}

/**
 * Numbers of things, in the order they were chosen in.
 * @returns {Field<number[]>}
 */
export function counts() {
  return {
    standard: /** @type {any} */ (Object.freeze([])),
    read: (written) => (isListOfCounts(written) ? written.split('.').map(Number) : undefined),
    write: (list) => list.join('.'),
  };
}

function isListOfCounts(written) {
  return /^\d{1,6}(\.\d{1,6})*$/.test(written) && written.split('.').length <= LONGEST_LIST;
}

/**
 * One of several words; the first holds where the link says nothing.
 * @param {string[]} values
 * @returns {Field<string>}
 */
export function choice(values) {
  return {
    standard: values[0],
    values,
    read: (written) => (values.includes(written) ? written : undefined),
    write: String,
  };
}

/**
 * @param {boolean} [standard]
 * @returns {Field<boolean>}
 */
export function flag(standard = false) {
  return {
    standard,
    read: (written) => ({ 0: false, 1: true })[written],
    write: (value) => (value ? '1' : '0'),
  };
}

/**
 * @param {{least: number, most: number, standard: number|null}} range null: the page chooses
 * @returns {Field<number|null>}
 */
export function number({ least, most, standard }) {
  return {
    standard,
    least,
    most,
    read: (written) => {
      const value = written.trim() === '' ? NaN : Number(written);
      return value >= least && value <= most ? value : undefined;
    },
    write: String,
  };
}

/**
 * A field that no other text and no other model can make use of: with them it starts afresh.
 * @template T
 * @param {Field<T>} field
 * @returns {Field<T>}
 */
export function ofText(field) {
  return { ...field, isOfText: true };
}

/**
 * What these fields are where a text is new.
 * @param {Record<string, Field<any>>} fields
 */
export function standardsOfText(fields) {
  return standardsOf(
    Object.fromEntries(Object.entries(fields).filter(([, { isOfText }]) => isOfText)),
  );
}

/**
 * @param {Record<string, Field<any>>} fields
 * @returns {any} the standard value of each
 */
export function standardsOf(fields) {
  return Object.fromEntries(Object.entries(fields).map(([name, { standard }]) => [name, standard]));
}

/** Milliseconds between two strokes of what is typed in one go. */
const ONE_GO = 2500;

/**
 * @param {Record<string, Field<any>>} fields
 */
export function createAddress(fields) {
  let typedAt = -Infinity;

  return {
    /** @returns {import('./state.js').State} */
    read: () => ({ ...standardsOf(fields), ...readFragment(location.hash, fields) }),

    /**
     * @param {import('./state.js').State} state
     * @param {boolean} isTyped what is typed in one go, or pushed along a slider, is one step
     */
    write(state, isTyped) {
      const goesOn = isTyped && performance.now() - typedAt < ONE_GO;
      if (isTyped) typedAt = performance.now();
      const fragment = writeFragment(state, fields);
      if (fragment === location.hash) return;
      if (goesOn) history.replaceState(null, '', fragment);
      else history.pushState(null, '', fragment);
    },

    /** Says more exactly what the present step shows. */
    rewrite(state) {
      history.replaceState(null, '', writeFragment(state, fields));
    },
  };
}
