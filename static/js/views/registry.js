/**
 * The views of the page, in the order of their tabs.
 */

import { attention } from './attention.js';
import { compare } from './compare.js';
import { experts } from './experts.js';
import { generate } from './generate.js';
import { nextToken } from './next_token.js';
import { positions } from './positions.js';
import { stream } from './stream.js';
import { translate } from './translate.js';
import { why } from './why.js';

/** @type {import('../core/figure.js').View[]} */
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
