/**
 * Numbers of each row beside a map, as narrow curves along its queries: how spread the row is, how
 * much of it is on the first token, how far it looks.
 */

import { amount, grouped, percent } from '../../data/format.js';
import { translucent } from '../../plot/colour.js';
import { isNarrow } from '../../plot/figure.js';

/**
 * @import { NamedArray } from '../../data/trace.js'
 * @import { Drawing, Frame } from '../../plot/figure.js'
 * @import { Grid } from '../../plot/grid.js'
 * @import { Part } from './subject.js'
 */

/** @typedef {{id: string, title: string, short: string, label: string, values: Float64Array, format: (value: number) => string}} Strip the mean of each bin of queries; NaN: none */

const TEXT_SIZE = 11;
/** Pixels after the map into which its last slanted label reaches. */
const LABELS = 34;

/** The sites of an attention whose numbers are shown, the unit of each and how it is written. */
const STATISTICS = [
  {
    id: 'entropy',
    title: 'Entropy',
    short: 'entropy',
    label: 'entropy of the row',
    unit: 1 / Math.LN2,
    format: (/** @type {number} */ value) => `${amount(value)} bits`,
  },
  {
    id: 'first_token',
    title: 'On the first',
    short: 'on first',
    label: 'weight on the first token',
    unit: 1,
    format: (/** @type {number} */ value) => percent(value),
  },
  {
    id: 'mean_distance',
    title: 'Distance',
    short: 'distance',
    label: 'mean distance',
    unit: 1,
    format: (/** @type {number} */ value) =>
      `${value < 1000 ? amount(value) : grouped(Math.round(value))} tokens`,
  },
];

/** Between two texts there is no distance. @param {string} attention its path */
export function statisticsOf(attention) {
  return STATISTICS.filter(
    ({ id }) => id !== 'mean_distance' || !attention.endsWith('cross_attention'),
  );
}

/**
 * The statistics of one head, by bins of queries.
 * @param {Record<string, NamedArray>|undefined} tensors absent: not known yet
 * @param {string} attention its path
 * @param {number} head
 * @param {Part[]} rows
 * @returns {Strip[]}
 */
export function stripsOf(tensors, attention, head, rows) {
  return statisticsOf(attention).map(({ id, unit, ...strip }) => {
    const found = tensors?.[`${attention}.${id}`];
    const count = found?.shape.at(-1) ?? 0;
    return { id, ...strip, values: means(found?.data, head * count, rows, unit) };
  });
}

/**
 * The loss of the token after each query, by bins of queries; the last token predicts none.
 * @param {NamedArray|undefined} following the probabilities that these tokens had
 * @param {Part[]} rows
 * @returns {Strip}
 */
export function lossStrip(following, rows) {
  const count = following?.shape[0] ?? 0;
  const losses = following && Float64Array.from(following.data, (value) => -Math.log2(value));
  const bins = rows.map(([first, last]) => /** @type {Part} */ ([first, Math.min(last, count)]));
  return {
    id: 'loss',
    title: 'Loss',
    short: 'loss',
    label: 'loss of the next token',
    values: means(losses, 0, bins),
    format: (value) => `${amount(value)} bits`,
  };
}

/**
 * @param {ArrayLike<number>|undefined} data
 * @param {number} offset
 * @param {Part[]} bins
 * @param {number} unit a factor
 */
function means(data, offset, bins, unit = 1) {
  return Float64Array.from(bins, ([first, last]) => {
    if (!data) return NaN;
    let sum = 0;
    for (let at = first; at < last; at += 1) sum += data[offset + at];
    return last > first ? (unit * sum) / (last - first) : NaN;
  });
}

/**
 * @param {Strip[]} strips
 * @param {number} row
 * @returns {string} `entropy of the row 3.2 bits, …`; '' if nothing is known
 */
export function stripsInWords(strips, row) {
  return strips
    .filter(({ values }) => !Number.isNaN(values[row]))
    .map(({ label, values, format }) => `${label} ${format(values[row])}`)
    .join(', ');
}

/** @param {Strip[]} strips @returns {Grid['ofRows']} */
export function columnsOf(strips) {
  return strips.map(({ label, values, format }) => ({
    label,
    value: (row) => values[row],
    format,
  }));
}

/**
 * @param {number} count of strips
 * @param {number} width pixels of the drawing
 * @returns {{each: number, gap: number, lead: number, all: number}} pixels
 */
export function stripRoom(count, width) {
  const [each, gap, lead] = isNarrow(width) ? [20, 5, 5] : [64, 14, LABELS];
  return { each, gap, lead, all: lead + count * each + (count - 1) * gap };
}

/**
 * The drawing of a map, with strips to its right whose rows are the map's.
 * @param {Drawing} drawing of a map that leaves their room
 * @param {Strip[]} strips
 * @param {Frame} frame
 * @returns {Drawing}
 */
export function withStrips({ data, layout }, strips, { palette, width }) {
  const room = stripRoom(strips.length, width);
  const across = layout.width - layout.margin.l - layout.margin.r;
  const all = across + room.all;
  const narrow = isNarrow(width);
  /** @param {number} at @returns {[number, number]} */
  const domain = (at) => {
    const start = across + room.lead + at * (room.each + room.gap);
    return [start / all, (start + room.each) / all];
  };
  const axes = strips.map(({ values }, at) => [
    `xaxis${at + 2}`,
    {
      domain: domain(at),
      anchor: 'y',
      range: [0, topOf(values)],
      showticklabels: false,
      ticks: '',
      showgrid: false,
      zeroline: true,
      zerolinecolor: palette.line,
      zerolinewidth: 1,
    },
  ]);
  const titles = strips.map(({ title, short, values, format }, at) => ({
    text: narrow
      ? short
      : `${title}<br>${Number.isNaN(values[0]) ? '' : `0 – ${format(topOf(values)).replace(' tokens', '')}`}`,
    showarrow: false,
    xref: 'paper',
    yref: 'paper',
    x: narrow ? (domain(at)[0] + domain(at)[1]) / 2 : domain(at)[0],
    xanchor: narrow ? 'center' : 'left',
    y: 1,
    yanchor: 'bottom',
    yshift: 6,
    align: 'left',
    ...(narrow && { textangle: -90 }),
    font: { size: narrow ? TEXT_SIZE - 1 : TEXT_SIZE, color: palette.muted },
  }));
  /** Of the map's own words only the colour bar's stand right of the strips. */
  const words = (layout.annotations ?? []).map((/** @type {any} */ one) =>
    one.yanchor === 'bottom' ? { ...one, x: one.x * (across / all) } : one,
  );
  return {
    data: [...data, ...strips.map((strip, at) => curve(strip, at, palette.query))],
    layout: {
      ...layout,
      width: layout.width + room.all,
      annotations: [...words, ...titles],
      xaxis: { ...layout.xaxis, domain: [0, across / all] },
      ...Object.fromEntries(axes),
    },
  };
}

/** @param {Float64Array} values */
function topOf(values) {
  return values.reduce((most, value) => (value > most ? value : most), 0) || 1;
}

/** @param {Strip} strip @param {number} at @param {string} color */
function curve({ values }, at, color) {
  // Each value is as high as its row: the first and the last reach to the edges.
  const rows = [-0.5, ...values.keys(), values.length - 0.5];
  const ends = [values[0], ...values, values[values.length - 1]];
  return {
    type: 'scatter',
    mode: 'lines',
    xaxis: `x${at + 2}`,
    yaxis: 'y',
    x: ends.map((value) => (Number.isNaN(value) ? null : value)),
    y: rows,
    fill: 'tozerox',
    fillcolor: translucent(color, 0.22),
    line: { color, width: 1, shape: 'vhv' },
    hoverinfo: 'none',
  };
}
