/**
 * The parts of the page's address that all views share, as a chapter may open them; `make openapi`
 * makes them of `Opens`.
 */

/** @type {Readonly<Record<string, any>>} */
export const PARTS = Object.freeze({
  text: { kind: 'text' },
  target: { kind: 'text' },
  words: { kind: 'text' },
  model: { kind: 'text' },
  view: { kind: 'text', standard: 'attention' },
  where: { kind: 'choice', values: ['', 'encoder', 'decoder', 'cross'] },
  layer: { kind: 'count' },
  head: { kind: 'count' },
  query: { kind: 'count' },
  source: { kind: 'count' },
  key: { kind: 'count' },
  range: { kind: 'choice', values: ['one', 'head'] },
  token: { kind: 'count' },
  against: { kind: 'count' },
  off: { kind: 'text' },
  off_to: { kind: 'choice', values: ['zero', 'mean', 'resample'] },
  weight: { kind: 'number', least: 0, most: 1 },
  weight_fixed: { kind: 'flag' },
  map: {
    kind: 'choice',
    values: ['effect', 'writes', 'template', 'system', 'user', 'assistant', 'tool'],
  },
});
