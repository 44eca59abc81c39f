/**
 * What is to be known of a map besides its numbers: what was merged, left out or cut, whether its
 * rows still sum to 1, and why a cell cannot be worked out.
 */

import { tokensOf } from '../../data/places.js';
import { counted, percent } from '../../data/number.js';
import { quoted } from '../../data/text.js';

/**
 * @param {import('../../data/trace.js').Trace} trace
 * @param {import('./subject.js').Subject} subject
 * @param {number} [nLeft] lines that are too many to be drawn
 * @returns {string} '' where the map is as it would be anyway
 */
export function notesOf(trace, subject, nLeft = 0) {
  const { quantity, switches } = subject;
  return [
    quantity.note,
    ofHeads(switches),
    ofWords(switches),
    ofHidden(trace, subject),
    ofThreshold(switches),
    ofLines(nLeft),
    whyNot(switches),
  ]
    .filter(Boolean)
    .join(' ');
}

/**
 * Why the arithmetic of a cell cannot be opened.
 * @param {import('../../state/attention_switches.js').Switches} switches
 * @returns {string} '' where it can
 */
export function whyNot({ which, isWords, isRenormalised }) {
  if (which !== 'head') return '“Why” is for one head: a cell here is of several.';
  if (isWords) return '“Why” is for single tokens: a cell of whole words is several cells.';
  return isRenormalised
    ? '“Why” is for weights as the model has them: these are renormalised.'
    : '';
}

function ofLines(nLeft) {
  return nLeft > 0 ? `The ${counted(nLeft, 'faintest line')} are left out.` : '';
}

function ofHeads({ which, isShare }) {
  return which === 'max' && isShare
    ? 'Cell by cell the largest weight of any head, so rows sum to 1 or more.'
    : '';
}

function ofWords({ isWords, which }) {
  if (!isWords) return '';
  return `Pieces of a word are read as one: columns summed, rows averaged${which === 'max' ? '' : ', so that rows still sum to 1'}.`;
}

function ofHidden(trace, { place, switches: { hidden, isRenormalised, isShare } }) {
  if (hidden === 'nothing') return '';
  const what =
    hidden === 'first'
      ? `The first token, ${quoted(tokensOf(trace, place.columns)[0])}, is hidden`
      : 'Special tokens are hidden';
  if (!isShare) return `${what}.`;
  return isRenormalised
    ? `${what}, and rows are renormalised: what is left of each sums to 1 again.`
    : `${what}; rows are not renormalised: they sum to what is left.`;
}

function ofThreshold({ threshold, isShare, as }) {
  if (threshold === 0) return '';
  const what = as === 'lines' ? ['Lines', 'are not drawn'] : ['Cells', 'have the lowest colour'];
  return `${what[0]} under ${isShare ? threshold : `${percent(threshold, 0)} of the scale`} ${what[1]}.`;
}
