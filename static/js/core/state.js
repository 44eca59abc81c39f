/**
 * What the page shows, kept in the URL's fragment: a link restores it, and no server log sees it.
 */

/**
 * @typedef {Object} State
 * @property {string|null} text null: nobody has written yet, an example is shown
 * @property {string} model '' is the server's default
 * @property {string} view
 * @property {number|null} layer counted from 0; null: the page chooses
 * @property {number|null} head counted from 0; null: the page chooses
 * @property {number|null} query index of the chosen token; null: the last one
 * @property {'one'|'head'} range where the colours end: at 1, or at each head's own maximum
 */

/** @type {Readonly<State>} */
export const INITIAL = Object.freeze({
  text: null,
  model: '',
  view: 'attention',
  layer: null,
  head: null,
  query: null,
  range: 'one',
});

const COUNTS = ['layer', 'head', 'query'];
const RANGES = ['one', 'head'];

/**
 * @param {string} hash with or without its `#`
 * @returns {Partial<State>} only what the fragment says and means
 */
export function readFragment(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ''));
  const state = {};
  for (const name of ['text', 'model', 'view']) {
    if (fields.has(name)) state[name] = fields.get(name);
  }
  for (const name of COUNTS) {
    if (/^\d{1,6}$/.test(fields.get(name) ?? '')) state[name] = Number(fields.get(name));
  }
  if (RANGES.includes(fields.get('range'))) state.range = fields.get('range');
  return state;
}

/**
 * @param {State} state
 * @returns {string} `#text=…&layer=…`, leaving out whatever is as it would be anyway
 */
export function writeFragment(state) {
  const fields = new URLSearchParams();
  for (const name of Object.keys(INITIAL)) {
    if (state[name] !== INITIAL[name]) fields.set(name, String(state[name]));
  }
  return `#${fields}`;
}

/**
 * Brings indices back into what the trace holds: a link may come from another model.
 * @param {State} state
 * @param {{layers: number, heads: number, tokens: number, views: string[]}} bounds
 * @returns {State}
 */
export function clamp(state, { layers, heads, tokens, views }) {
  return {
    ...state,
    view: views.includes(state.view) ? state.view : INITIAL.view,
    layer: within(state.layer, layers),
    head: within(state.head, heads),
    query: state.query !== null && state.query < tokens ? state.query : null,
  };
}

function within(index, count) {
  return index === null || count === 0 ? index : Math.min(index, count - 1);
}

/**
 * @param {State} state
 * @param {{tokens: unknown[]}} trace
 * @returns {number} the chosen token, the last one unless somebody chose
 */
export function queryOf({ query }, { tokens }) {
  return query === null || query >= tokens.length ? tokens.length - 1 : query;
}
