/** Patching and saliency: the change of the logit by a changed text, part by part, as shares of it. */

import { capitalised } from '../../words/lists.js';
import { signed, amount } from '../../words/numbers.js';
import { guessInWords, named, tokenLabels } from '../../words/tokens.js';
import { tokensOf, sideOf, hasTwoSides } from '../../trace/attention.js';
import { chart } from '../../plot/chart.js';
import { band, isTurned } from '../../plot/scales.js';
import { withSign } from '../../plot/bars.js';
import { matrixAt, highestIn, rowOf } from '../../trace/trace.js';
import { cell } from '../../plot/marks/mark.js';
import { comparedIn, requestOf } from './explained.js';

/**
 * @import { ViewState, Figure, Frame } from '../../plot/figure.js'
 * @import { Trace, NamedArray, Token } from '../../trace/trace.js'
 * @import { Side } from '../../trace/attention.js'
 * @import { Datum } from '../../plot/marks/mark.js'
 * @import { Attribution } from './parts.js'
 */

/** @type {Record<string, string>} */
const PATCHED_TITLES = {
  residual: 'Stream before each layer',
  self_attention: 'Attention',
  cross_attention: 'Cross-attention',
};

/** Help for each activation of the second sentence that can be put in. @type {Record<string, string>} */
const PATCHED_HELP = {
  residual: 'The stream of one token before one layer.',
  self_attention: 'The output of the attention of one layer at one token.',
  cross_attention: 'The output of the cross-attention of one layer at one token.',
};
/** The change of a logit difference below which its shares say little. */
const SMALL_CHANGE = 0.5;
/** The change below which a share has one digit. */
const COARSE_CHANGE = 1e-2;

/**
 * Return the change that is shared out, and the places whose stream carries most of it.
 * @param {Trace} trace
 * @param {Attribution} patching
 * @returns {string[]}
 */
export function patchingInWords(trace, patching) {
  const [here, there] = patching.differences.data;
  const [token, against] = [patching.token, patching.against].map(({ text }) => guessInWords(text));
  const headline = `The logit of “${token}” minus that of “${against}” is ${withSign(here)} here and ${withSign(there)} with the second sentence.`;
  if (Math.abs(there - here) < SMALL_CHANGE)
    return [
      headline,
      'That is a small change, so its shares say little: choose two words that the sentences decide between.',
    ];
  const name = Object.keys(patching).findLast(
    (key) => key.endsWith('.residual') && patching[key].axes?.[0] === 'layer',
  );
  if (!name) return [headline];
  const tokens = tokensOf(trace, sideOf(name.startsWith('encoder') ? 'encoder' : 'decoder', trace));
  const of = hasTwoSides(trace) ? `${name.split('.')[0]} ` : '';
  const shares = matrixAt(patching[name]);
  const [first, last] = [0, shares.rows - 1].map((layer) => {
    const row = rowOf(shares, layer);
    const at = row.indexOf(Math.max(...row));
    return `before ${of}layer ${layer} by the stream at ${named(tokens, at)} (${percentOf(row[at], there - here)})`;
  });
  return [headline, `Most of the change is carried ${first}, and ${last}.`];
}

/**
 * @param {Trace} trace
 * @param {ViewState} state with the panel’s `chart`, the name of the array
 * @param {Attribution} patching
 * @returns {Figure}
 */
export function patchingFigure(trace, state, patching) {
  const name = patching[state.chart]
    ? state.chart
    : Object.keys(patching).find((key) => patching[key]?.axes?.[0] === 'layer');
  const [stack, part, heads] = name.split('.');
  const side = sideOf(stack === 'encoder' ? 'encoder' : 'decoder', trace);
  const array = patching[name];
  const numbered = Array.from({ length: array.shape[1] }, (_, head) => ({
    ...trace.tokens[0],
    text: `h${head}`,
    part: null,
  }));
  const before = hasTwoSides(trace) ? `${capitalised(stack)}: ` : '';
  const title = `${before}${PATCHED_TITLES[part] ?? part}${heads ? ', by head' : ''}`;
  return {
    title,
    help: heads ? 'The output of one head, at every token.' : PATCHED_HELP[part],
    summary: `${title}: the share of the change that each layer and ${heads ? 'head' : 'position'} carries.`,
    ...sharesFigure(array, heads ? numbered : tokensOf(trace, side), state, {
      side,
      title,
      request: requestOf(trace, state),
      about: comparedIn(trace, patching),
      change: patching.differences.data[1] - patching.differences.data[0],
      where: part === 'cross_attention' ? 'cross' : hasTwoSides(trace) ? stack : '',
    }),
  };
}

/**
 * Draw a map of shares, layers by positions or by heads.
 * @param {NamedArray} array
 * @param {Token[]} columns
 * @param {Frame} state
 * @param {{side: Side, title: string, request: Record<string, any>, about: string, where: string, change: number}} of
 */
function sharesFigure(array, columns, state, { side, title, request, about, where, change }) {
  const [rows, count] = array.shape;
  const isOfHeads = array.axes[1] === 'head';
  const labels = tokenLabels(columns);
  const matrix = { rows, columns: count, data: Float64Array.from(array.data) };
  const layers = Array.from({ length: rows }, (_, layer) => `layer ${layer}`);
  /** @param {number} column */
  const nameOf = (column) => (isOfHeads ? `head ${column}` : labels[column]);
  /** @param {Datum} datum */
  const say = ({ row, column, value }) =>
    `${title}, layer ${row}, ${isOfHeads ? '' : 'token '}${nameOf(column)}: it carries ${percentOf(value, change)} of what the other sentence changes`;
  const best = highestIn(matrix.data);
  const start = { row: Math.floor(best / count), column: best % count };
  const most = Math.max(1, ...matrix.data.map(Math.abs));
  return chart(
    {
      x: band(labels, { side: 'top', isSlanted: true }),
      y: band(layers, { side: 'top', isSlanted: true, letters: 19 }),
      isSwapped: isTurned(state),
      marks: [
        cell(matrix, {
          ramp: {
            title: '% of the change',
            domain: [-most, most],
            isDiverging: true,
            write: (value) => amount(100 * value),
          },
          text: ({ value }) => String(Math.round(100 * value) || 0).replace('-', '−'),
          format: (value) => percentOf(value, change),
          name: ({ row, column }) => `layer ${row}, ${nameOf(column)}`,
          say,
          tokens: ({ column }) => (isOfHeads ? {} : { key: column }),
          ...(isOfHeads && {
            choose: ({ row, column }) => ({
              view: 'attention',
              layer: row,
              head: column,
              ...(where && { where }),
            }),
          }),
        }),
      ],
      table: {
        rows: { title: 'layer', labels: layers },
        columns: { title: isOfHeads ? 'head' : 'token', labels },
        quantity: 'share of the change in the logit difference',
        request,
        about,
      },
      sentence: {
        sides: { rows: side, columns: side },
        rest: { readout: say({ ...start, value: matrix.data[best] }) },
      },
      cursor: { start, ...(isOfHeads && { chooseHint: 'Enter opens the head' }) },
    },
    state,
  );
}

/**
 * Return a share of the change in tens of percent if rounding reaches the next digit.
 * @param {number} share
 * @param {number} change that is shared out
 * @returns {string} `97 %`, `−12 %`
 */
function percentOf(share, change) {
  const step = Math.abs(change) < COARSE_CHANGE ? 10 : 1;
  return `${signed(step * Math.round((100 * share) / step), 0)} %`;
}
