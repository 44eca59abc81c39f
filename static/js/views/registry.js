/**
 * The views of the page, in the order of their tabs.
 */

import { attention } from './attention/attention.js';
import { compare } from './compare/compare.js';
import { experts } from './experts/experts.js';
import { generate } from './generate/generate.js';
import { nextToken } from './next_token/next_token.js';
import { positions } from './positions/positions.js';
import { stream } from './stream/stream.js';
import { translate } from './translate/translate.js';
import { why } from './why/why.js';

/** @type {import('../plot/figure.js').View[]} */
export const VIEWS = [
  attention,
  why,
  positions,
  experts,
  stream,
  nextToken,
  generate,
  translate,
  compare,
];
