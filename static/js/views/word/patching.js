/**
 * Activation patching: by how much the prediction changes if one activation of a second sentence
 * takes the place of that of the first.
 */

import { hasTwoSides, sideOf, tokensOf } from '../../data/attention.js';
import { signed } from '../../data/format.js';
import { capitalised, named, tokenLabels } from '../../data/text.js';
import { matrixAt, rowOf } from '../../data/trace.js';
import { nameOfGuess, withSign } from '../../plot/bars.js';
import { isNarrow } from '../../plot/figure.js';
import { transposedGrid } from '../../plot/grid.js';
import { stepMap } from '../../plot/map.js';
import { requestOf } from './subject.js';

/**
 * @import { NamedArray, Token, Trace } from '../../data/trace.js'
 * @import { Drawing, Figure, Frame, ViewState } from '../../plot/figure.js'
 * @import { Grid } from '../../plot/grid.js'
 * @import { Side } from '../../data/attention.js'
 * @import { Found } from './parts.js'
 */

/** @type {Record<string, string>} */
const PATCHED_TITLES = {
  residual: 'Stream before each layer',
  self_attention: 'Attention',
  cross_attention: 'Cross-attention',
};

/** Which activation of the second sentence is put in. @type {Record<string, string>} */
const HELP = {
  residual: 'The stream of one token before one layer.',
  self_attention: 'The output of the attention of one layer at one token.',
  cross_attention: 'The output of the cross-attention of one layer at one token.',
};
/** The change of a logit difference below which its shares say little. */
const SMALL = 0.5;

/**
 * The change that is shared out, and the places whose stream carries most of it.
 * @param {Trace} trace
 * @param {Found} found
 * @returns {string[]}
 */
export function patchingInWords(trace, found) {
  const [own, other] = found.differences.data;
  const [token, against] = [found.token, found.against].map(({ text }) => nameOfGuess(text));
  const headline = `The logit of “${token}” minus that of “${against}” is ${withSign(own)} here and ${withSign(other)} with the second sentence.`;
  if (Math.abs(other - own) < SMALL)
    return [
      headline,
      'That is a small change, so its shares say little: choose two words that the sentences decide between.',
    ];
  const name = Object.keys(found).findLast(
    (one) => one.endsWith('.residual') && found[one].axes?.[0] === 'layer',
  );
  if (!name) return [headline];
  const tokens = tokensOf(trace, sideOf(name.startsWith('encoder') ? 'encoder' : 'decoder', trace));
  const of = hasTwoSides(trace) ? `${name.split('.')[0]} ` : '';
  const shares = matrixAt(found[name]);
  const [first, last] = [0, shares.rows - 1].map((layer) => {
    const row = rowOf(shares, layer);
    const at = row.indexOf(Math.max(...row));
    return `before ${of}layer ${layer} by the stream at ${named(tokens, at)} (${percentOf(row[at])})`;
  });
  return [headline, `Most of the change is carried ${first}, and ${last}.`];
}

/**
 * @param {Trace} trace
 * @param {ViewState} state with the panel’s `chart`, the name of the array
 * @param {Found} found
 * @returns {Figure}
 */
export function patchingFigure(trace, state, found) {
  const name = found[state.chart]
    ? state.chart
    : Object.keys(found).find((one) => found[one]?.axes?.[0] === 'layer');
  const [stack, part, heads] = name.split('.');
  const side = sideOf(stack === 'encoder' ? 'encoder' : 'decoder', trace);
  const array = found[name];
  const numbered = Array.from({ length: array.shape[1] }, (_, head) => ({
    ...trace.tokens[0],
    text: `h${head}`,
    part: null,
  }));
  const before = hasTwoSides(trace) ? `${capitalised(stack)}: ` : '';
  const title = `${before}${PATCHED_TITLES[part] ?? part}${heads ? ', by head' : ''}`;
  return {
    title,
    help: heads ? 'The output of one head, at every token.' : HELP[part],
    summary: `${title}: the share of the change that each layer and ${heads ? 'head' : 'position'} carries.`,
    ...sharesFigure(array, heads ? numbered : tokensOf(trace, side), state, {
      side,
      title,
      request: requestOf(trace, state),
      where: part === 'cross_attention' ? 'cross' : hasTwoSides(trace) ? stack : '',
    }),
  };
}

/**
 * A map of shares, layers by positions or by heads, and its grid.
 * @param {NamedArray} array
 * @param {Token[]} columns
 * @param {Frame} state
 * @param {{side: Side, title: string, request: Record<string, any>, where: string}} of
 * @returns {Drawing & {grid: Grid}}
 */
function sharesFigure(array, columns, state, { side, title, request, where }) {
  const { shape, data } = array;
  const isOfHeads = array.axes[1] === 'head';
  const labels = tokenLabels(columns);
  /** @param {number} row @param {number} column */
  const value = (row, column) => data[row * shape[1] + column];
  /** @param {number} row @param {number} column */
  const say = (row, column) =>
    `${title}, layer ${row}, ${isOfHeads ? `head ${column}` : `token ${labels[column]}`}: it carries ${percentOf(value(row, column))} of what the other sentence changes`;
  const best = Array.from(data).reduce((most, one, at) => (one > data[most] ? at : most), 0);
  const start = { row: Math.floor(best / shape[1]), column: best % shape[1] };
  /** @type {Grid} */
  const grid = {
    rows: shape[0],
    columns: shape[1],
    sides: { rows: side, columns: side },
    rowTitle: 'layer',
    columnTitle: isOfHeads ? 'head' : 'token',
    rowLabels: Array.from({ length: shape[0] }, (_, layer) => `layer ${layer}`),
    columnLabels: labels,
    quantity: 'share of the change in the logit difference',
    request,
    value,
    format: (share) => percentOf(share),
    describe: say,
    tip: (row, column) => [
      `layer ${row}, ${isOfHeads ? `head ${column}` : labels[column]}`,
      percentOf(value(row, column)),
    ],
    tokens: (_, column) => (isOfHeads ? {} : { key: column }),
    start,
    rest: { readout: say(start.row, start.column) },
    ...(isOfHeads && {
      choose: (layer, head) => ({ view: 'attention', layer, head, ...(where && { where }) }),
      chooseHint: 'Enter opens the head',
    }),
  };
  return {
    ...shareMap(array, columns, state),
    grid: isNarrow(state.width) ? transposedGrid(grid) : grid,
  };
}

/** @param {number} share @returns {string} `97 %`, `−12 %` */
function percentOf(share) {
  return `${signed(100 * share, 0)} %`;
}

/** @param {NamedArray} array @param {Token[]} tokens @param {Frame} state @returns {Drawing} */
function shareMap({ shape: [rows, columns], data: shares }, tokens, state) {
  const data = Float64Array.from(shares, (share) => 100 * share);
  const most = Math.max(100, ...data.map(Math.abs));
  const steps = Array.from({ length: rows }, (_, layer) => `layer ${layer}`);
  /** @param {number} value */
  const short = (value) => String(Math.round(value) || 0).replace('-', '−');
  return stepMap(
    { rows, columns, data },
    {
      steps,
      tokens,
      scale: { least: -most, most, isSigned: true, short },
      quantity: '% of the change',
    },
    state,
  );
}
