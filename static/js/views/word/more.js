/**
 * The other explanations of a prediction: the strongest path, patching with a second sentence, and
 * input saliency.
 */

import { percent, signed } from '../../data/format.js';
import { nameOf, tokenLabels } from '../../data/text.js';
import { transposedGrid } from '../../plot/grid.js';
import { depthMap, isDown } from '../stream/depth_drawing.js';
import { withSign } from './bars.js';

/**
 * @import { NamedArray, Token } from '../../data/trace.js'
 * @import { Drawing, Frame } from '../../plot/figure.js'
 * @import { Grid } from '../../plot/grid.js'
 * @import { Side } from '../../data/attention.js'
 * @import { Part } from './parts.js'
 */

/** @typedef {{path: string, head: number, position: number}} HeadAt */
/** @typedef {{reader: HeadAt|null, head: HeadAt|null, token: number|null, difference: number, probability: number}} Edge */

/**
 * The edges of the strongest path as bars: by how much the logit difference falls without each.
 * @param {{edges: Edge[], difference: number, probability: number}} found
 * @param {Token[]} tokens that the decoder, or the only stack, reads
 * @param {Token[]} sources
 * @returns {Part[]} from the prediction to the token
 */
export function pathParts(found, tokens, sources) {
  return found.edges.map(({ reader, head, token, difference, probability }) => {
    const readsSource =
      reader !== null &&
      (reader.path.includes('cross_attention') || reader.path.startsWith('encoder'));
    const from = head
      ? headName(head)
      : `“${nameOf((readsSource ? sources : tokens)[token ?? 0])}” (token ${token})`;
    const to = reader ? headName(reader) : 'the prediction';
    const where = head && {
      layer: Number(head.path.split('.')[2]),
      head: head.head,
      where: head.path.includes('cross') ? 'cross' : '',
    };
    return {
      label: head ? from : `${from.replace(/ \(.*/, '')} → ${reader ? shortName(reader) : ''}`,
      name: `${from} → ${to}: without this edge ${percent(probability)}`,
      value: found.difference - difference,
      written: `${withSign(found.difference - difference)} · ${percent(probability)}`,
      ...where,
    };
  });
}

/** @param {HeadAt} head */
function headName({ path, head }) {
  const [stack, , layer, kind] = path.split('.');
  const before =
    kind === 'cross_attention' ? 'cross-attention ' : stack === 'encoder' ? 'encoder ' : '';
  return `${before}layer ${layer}, head ${head}`;
}

/** @param {HeadAt} head */
function shortName({ path, head }) {
  return `${path.split('.')[2]}.${head}`;
}

/**
 * The saliency of each token, source and target apart.
 * @param {Record<string, NamedArray>} found
 * @param {'gradient_times_input'|'erasure'} kind
 * @param {Token[]} tokens
 * @param {Token[]} sources
 * @returns {Part[]}
 */
export function saliencyParts(found, kind, tokens, sources) {
  const hasBoth = `encoder.${kind}` in found && `decoder.${kind}` in found;
  return ['encoder', 'decoder']
    .filter((stack) => `${stack}.${kind}` in found)
    .flatMap((stack) => {
      const isSource = hasBoth && stack === 'encoder';
      const read = isSource ? sources : tokens;
      return Array.from(found[`${stack}.${kind}`].data, (value, token) => ({
        label: `${isSource ? 'source ' : ''}${token} ${nameOf(read[token])}`,
        name: `token ${token}, “${nameOf(read[token])}”${isSource ? ' of the source' : ''}`,
        value,
        token,
        side: isSource ? 'source' : undefined,
      }));
    });
}

/**
 * A map of shares, layers by positions or by heads, and its grid.
 * @param {NamedArray} array
 * @param {Token[]} columns
 * @param {Frame} state
 * @param {{side: Side, title: string, request: Record<string, any>, where: string}} of
 * @returns {Drawing & {grid: Grid}}
 */
export function sharesFigure(array, columns, state, { side, title, request, where }) {
  const { shape, data } = array;
  const isOfHeads = array.axes[1] === 'head';
  const labels = tokenLabels(columns);
  /** @param {number} row @param {number} column */
  const value = (row, column) => data[row * shape[1] + column];
  /** @param {number} row @param {number} column */
  const say = (row, column) =>
    `${title}, layer ${row}, ${isOfHeads ? '' : 'token '}${labels[column]}: it carries ${percentOf(value(row, column))} of what the other sentence changes`;
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
    tip: (row, column) => [`layer ${row}, ${labels[column]}`, percentOf(value(row, column))],
    tokens: (_, column) => (isOfHeads ? {} : { key: column }),
    query: null,
    start,
    rest: { readout: say(start.row, start.column) },
    ...(isOfHeads && {
      choose: (layer, head) => ({ view: 'attention', layer, head, ...(where && { where }) }),
      chooseHint: 'Enter opens the head',
    }),
  };
  return {
    ...shareMap(array, columns, state),
    grid: isDown(state.width) ? transposedGrid(grid) : grid,
  };
}

/** @param {number} share @returns {string} `97 %`, `−12 %` */
function percentOf(share) {
  return `${signed(100 * share, 0)} %`;
}

/**
 * @param {NamedArray} array
 * @param {Token[]} columns
 * @param {Frame} state
 * @returns {Drawing}
 */
function shareMap({ shape, data }, columns, state) {
  const [rows, width] = shape;
  const most = Math.max(1, ...Array.from(data, Math.abs));
  const steps = Array.from({ length: rows }, (_, layer) => ({
    title: `layer ${layer}`,
    name: `layer ${layer}`,
  }));
  return depthMap(
    { steps, matrix: { rows, columns: width, data: Float64Array.from(data) } },
    {
      tokens: columns,
      scale: { least: -most, most, isSigned: true, short: (value) => signed(value, 2) },
      quantity: 'share of the change',
    },
    state,
  );
}
