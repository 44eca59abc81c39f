/**
 * Attention block by block, as FlashAttention computes it (Dao et al. 2022,
 * https://arxiv.org/abs/2205.14135): for one row of this pass the running maximum and the running
 * sum after each block of keys, and the result beside that of the pass.
 *
 * The scores of the row come from its exact weights, s_j = ln w_j + logsumexp.
 */

import { amount, decimal, grouped, percent, small, quoted } from '../../data/format.js';
import { isCausal, range } from '../../data/trace.js';
import { sequential, plotlyScale, translucent } from '../../plot/colour.js';
import { baseLayout, downwards, isNarrow, paperText } from '../../plot/figure.js';
import { name, op, power, row, sub } from '../../ui/formula.js';

/**
 * @import { NamedArray, Token, Trace } from '../../data/trace.js'
 * @import { Figure, Palette, ViewState } from '../../plot/figure.js'
 * @import { Grid } from '../../plot/grid.js'
 */

/** The blocks of a row that are still told apart. */
const MOST_BLOCKS = 16;
const FLOAT = 4;
/** Less of a row's sum is rounding. */
const LEAST_SINK = 1e-3;

/**
 * @typedef {Object} Step the row after a block of keys
 * @property {number} first key
 * @property {number} last the key after the last
 * @property {number} greatest score of the block
 * @property {number} maximum of all scores so far
 * @property {number} factor by which the earlier sum is scaled, e^(old maximum − maximum)
 * @property {number} added Σ e^(score − maximum) of the block
 * @property {number} sum
 */

/**
 * @param {ArrayLike<number>} scores of the row; −∞: not visible
 * @param {number} size keys of a block
 * @returns {Step[]} of the blocks with a visible key
 */
export function stepsOf(scores, size) {
  /** @type {Step[]} */
  const steps = [];
  let [maximum, sum] = [-Infinity, 0];
  for (let first = 0; first < scores.length; first += size) {
    const last = Math.min(scores.length, first + size);
    let greatest = -Infinity;
    for (let at = first; at < last; at += 1) greatest = Math.max(greatest, scores[at]);
    if (greatest === -Infinity) continue;
    const next = Math.max(maximum, greatest);
    const factor = Math.exp(maximum - next);
    let added = 0;
    for (let at = first; at < last; at += 1) added += Math.exp(scores[at] - next);
    [maximum, sum] = [next, factor * sum + added];
    steps.push({ first, last, greatest, maximum, factor, added, sum });
  }
  return steps;
}

/**
 * The row's context, Σ w·v, corrected at every block like the sum.
 * @param {ArrayLike<number>} scores
 * @param {Step[]} steps
 * @param {ArrayLike<number>} values (key, dimension)
 * @param {number} width dimensions
 */
export function outputOf(scores, steps, values, width) {
  let output = new Float64Array(width);
  for (const { first, last, maximum, factor } of steps) {
    output = output.map((value) => value * factor);
    for (let key = first; key < last; key += 1) {
      const weight = Math.exp(scores[key] - maximum);
      if (weight === 0) continue;
      for (let at = 0; at < width; at += 1) output[at] += weight * values[key * width + at];
    }
  }
  const { sum } = steps[steps.length - 1];
  return output.map((value) => value / sum);
}

/**
 * The bytes of the scores of a layer, whole and in blocks of one head: a block of scores, and for
 * each of its queries the maximum, the sum and the output.
 * @param {{queries: number, keys: number}} size
 * @param {number} heads
 * @param {number} block
 * @param {number} width dimensions of a head
 */
export function memoryOf({ queries, keys }, heads, block, width) {
  return { whole: heads * queries * keys * FLOAT, blocks: block * (block + 2 + width) * FLOAT };
}

/**
 * @param {{rows: unknown[], columns: unknown[]}} texts
 * @returns {number} keys of a block: a power of two
 */
export function blockFor({ rows, columns }) {
  const longest = Math.max(rows.length, columns.length);
  return 2 ** Math.max(0, Math.ceil(Math.log2(longest / MOST_BLOCKS)));
}

/**
 * The weight of a row that goes to no key, of a model with attention sinks.
 * @param {NamedArray} weights
 */
function sinkOf({ data, scale }) {
  let sum = 0;
  for (let at = 0; at < data.length; at += 1) sum += data[at] * scale;
  return 1 - sum > LEAST_SINK ? 1 - sum : 0;
}

/**
 * The row and the numbers beside it.
 * @param {string} attention
 * @param {number} query
 * @param {number} head
 */
export function blocksAsk(attention, query, head) {
  return {
    capture: ['logsumexp', 'values', 'context'].map((site) => `${attention}.${site}`),
    layers: [Number(attention.match(/\d+/)?.[0])],
    heads: [head],
    queries: [query],
  };
}

/** @typedef {{title: string, attention: string, query: number, texts: {rows: Token[], columns: Token[]}, trace: Trace, state: ViewState}} Subject */

/**
 * @param {Subject} subject
 * @param {Record<string, NamedArray>} tensors of `blocksAsk`
 * @returns {Figure}
 */
export function blocksFigure(subject, tensors) {
  const { title, attention, query, texts, trace, state } = subject;
  const weights = tensors[`${attention}.rows`];
  const logsumexp = tensors[`${attention}.logsumexp`].data[query];
  const isHidden = isCausal(`${attention}.weights`);
  const keys = isHidden ? query + 1 : texts.columns.length;
  const scores = Float64Array.from(
    { length: keys },
    (_, key) => Math.log(weights.data[key] * weights.scale) + logsumexp,
  );
  const size = state.long_block ?? blockFor(texts);
  const steps = stepsOf(scores, size);
  const { maximum, sum } = steps[steps.length - 1];
  const sink = sinkOf(weights);
  const all = sum + sink * Math.exp(logsumexp - maximum);
  const found = maximum + Math.log(all);
  const context = contextOf(tensors, attention, query);
  const output = context && outputOf(scores, steps, context.values, context.width);
  const apart = output?.reduce(
    (most, value, at) => Math.max(most, Math.abs((value * sum) / all - (context?.exact[at] ?? 0))),
    0,
  );
  const memory = memoryOf(
    { queries: texts.rows.length, keys: texts.columns.length },
    trace.card?.n_heads ?? 1,
    size,
    context?.width ?? 64,
  );
  const grid = gridOf(steps, size, subject);
  const first = `${quoted(texts.rows[query])} at ${grouped(query)}`;
  return {
    title: `${title}, block by block`,
    help: 'No row is ever held whole: each block of keys corrects the maximum m, the sum ℓ and the output o of the row, and after the last one o / ℓ is the same as with the whole matrix.',
    formula: [
      row(name('m′'), '=', 'max', '(', name('m'), ',', 'max', sub(name('s'), name('j')), ')'),
      row(name('ℓ′'), '=', correction(), name('ℓ'), '+', '∑', term()),
      row(name('o′'), '=', correction(), name('o'), '+', '∑', term(), sub(name('v'), name('j'))),
    ],
    summary: `The row of ${first}, in ${steps.length} blocks of ${grouped(size)} keys. Running maximum ${decimal(maximum)}, running sum ${amount(sum, 4)}; their logarithm of the sum of exponentials differs from the pass's by ${small(Math.abs(found - logsumexp))}.`,
    facts: [
      ['Row', `query ${first}`],
      ['Blocks', `${steps.length} of ${grouped(size)} keys, left to right`],
      ['After the last', `m ${decimal(maximum)}, ℓ ${amount(sum, 4)}`],
      ...(sink
        ? [['Sink', `${percent(sink)} of the row goes to no key; it joins ℓ at the end`]]
        : []),
      [
        'm + ln ℓ',
        `${decimal(found, 6)}; in the pass ${decimal(logsumexp, 6)}, apart ${small(Math.abs(found - logsumexp))}`,
      ],
      ...(apart === undefined
        ? []
        : [['o / ℓ', `at most ${small(apart)} from the pass’s context`]]),
      [
        'Scores of a layer',
        `${bytes(memory.whole)} as whole matrices, ${bytes(memory.blocks)} as one block with its m, ℓ and o`,
      ],
    ],
    ...drawn(steps, subject, size, memory),
    grid,
  };
}

const correction = () => power(name('e'), row(name('m'), op('−'), name('m′')));
const term = () => power(name('e'), row(sub(name('s'), name('j')), op('−'), name('m′')));

/**
 * @param {Record<string, NamedArray>} tensors
 * @param {string} attention
 * @param {number} query
 * @returns {{values: ArrayLike<number>, exact: number[], width: number}|null} null: heads share their values
 */
function contextOf(tensors, attention, query) {
  const values = tensors[`${attention}.values`];
  const context = tensors[`${attention}.context`];
  if (values?.shape[0] !== 1 || context?.shape[0] !== 1) return null;
  const width = values.shape[2];
  const exact = Array.from({ length: width }, (_, at) => context.data[query * width + at]);
  return { values: values.data, exact, width };
}

/** @param {number} count */
function bytes(count) {
  if (count < 1e3) return `${count} B`;
  if (count < 1e6) return `${amount(count / 1e3)} kB`;
  return count < 1e9 ? `${amount(count / 1e6)} MB` : `${amount(count / 1e9)} GB`;
}

/** @type {[string, (step: Step) => number][]} */
const QUANTITIES = [
  ['greatest score', (step) => step.greatest],
  ['running maximum m', (step) => step.maximum],
  ['factor of the earlier sum', (step) => step.factor],
  ['added by the block', (step) => step.added],
  ['running sum ℓ', (step) => step.sum],
  ['m + ln ℓ', (step) => step.maximum + Math.log(step.sum)],
];

/**
 * @param {Step[]} steps
 * @param {number} size of a block
 * @param {Subject} subject
 * @returns {Grid}
 */
function gridOf(steps, size, { attention, query, state }) {
  /** @param {Step} step */
  const label = ({ first, last }) => `keys ${grouped(first)} to ${grouped(last - 1)}`;
  /** @param {number} at */
  const whole = (at) => ({ x0: at - 0.5, x1: at + 0.5, y0: 0, y1: 1 });
  return {
    rows: steps.length,
    columns: QUANTITIES.length,
    rowTitle: 'block',
    columnTitle: 'quantity',
    rowLabels: steps.map(label),
    columnLabels: QUANTITIES.map(([title]) => title),
    quantity: `the row of query ${query}, block by block, layer ${state.layer}, head ${state.head}`,
    request: blocksAsk(attention, query, state.head),
    kind: 'chart',
    value: (at, column) => QUANTITIES[column][1](steps[at]),
    format: (value) => decimal(value, 4),
    describe: (at, column) =>
      `${label(steps[at])}: ${QUANTITIES[column][0]} ${decimal(QUANTITIES[column][1](steps[at]), 4)}`,
    tip: (at) => [
      label(steps[at]),
      `greatest ${decimal(steps[at].greatest)}, m ${decimal(steps[at].maximum)}, ℓ ${amount(steps[at].sum, 4)}`,
    ],
    tokens: () => ({ query }),
    start: { row: 0, column: 0 },
    query: null,
    geometry: {
      box: (at) => (at === undefined ? null : whole(steps[at].first / size)),
      at: (x) => {
        const at = steps.findIndex(({ first }) => first / size === Math.round(x));
        return at >= 0 ? { row: at, column: 1 } : null;
      },
    },
  };
}

/**
 * The squares of the matrix in the order in which they are visited; below, the row after each block,
 * and the memory of the scores.
 * @param {Step[]} steps
 * @param {Subject} subject
 * @param {number} size of a block
 * @param {{whole: number, blocks: number}} memory in bytes
 */
function drawn(steps, { attention, query, texts, state }, size, memory) {
  const { palette, width } = state;
  const narrow = isNarrow(width);
  const nColumns = Math.ceil(texts.columns.length / size);
  const nRows = Math.ceil(texts.rows.length / size);
  const isHidden = isCausal(`${attention}.weights`);
  const order = orderOf(nRows, nColumns, isHidden);
  const [chart, gap, bars] = [104, 34, 50];
  const margin = { l: narrow ? 46 : 84, r: 16, t: 34, b: 8 };
  const across = Math.min(width - margin.l - margin.r, 860);
  const square = Math.max(120, Math.min(300, nRows * 18));
  const charts = square + 3 * (chart + gap);
  const all = charts + 2.5 * gap + bars;
  /** @param {number} top @param {number} length @returns {[number, number]} */
  const domain = (top, length) => [1 - (top + length) / all, 1 - top / all];
  const place = (/** @type {number} */ at) => domain(square + gap + at * (chart + gap), chart);
  const own = Math.floor(query / size);
  const xs = steps.map(({ first }) => first / size);
  const values = (/** @type {(step: Step) => number} */ read) => steps.map(read);
  const axis = {
    showgrid: true,
    gridcolor: palette.line,
    zeroline: false,
    nticks: 4,
    tickfont: { size: 11, color: palette.muted },
  };
  const line = { color: palette.query, width: 2, shape: 'hv' };
  return {
    data: [
      {
        type: 'scatter',
        x: [0],
        y: [0.5],
        mode: 'markers',
        marker: { opacity: 0 },
        hoverinfo: 'none',
      },
      {
        type: 'heatmap',
        z: order,
        x: range(nColumns),
        y: range(nRows),
        yaxis: 'y2',
        colorscale: plotlyScale(sequential(palette.theme)),
        zmin: 0,
        zmax: 4 * nRows * nColumns,
        showscale: false,
        xgap: 1,
        ygap: 1,
        hoverinfo: 'none',
      },
      ...(nColumns <= MOST_BLOCKS && !narrow ? [numbers(order, palette)] : []),
      {
        type: 'bar',
        x: xs,
        y: values(({ greatest }) => greatest),
        yaxis: 'y3',
        marker: { color: translucent(palette.key, 0.45) },
        hoverinfo: 'none',
      },
      {
        type: 'scatter',
        mode: 'lines+markers',
        x: xs,
        y: values(({ maximum }) => maximum),
        yaxis: 'y3',
        line,
        marker: { size: 5 },
        hoverinfo: 'none',
      },
      {
        type: 'bar',
        x: xs,
        y: values(({ sum, added }) => sum - added),
        yaxis: 'y4',
        marker: { color: translucent(palette.query, 0.35) },
        hoverinfo: 'none',
      },
      {
        type: 'bar',
        x: xs,
        y: values(({ added }) => added),
        yaxis: 'y4',
        marker: { color: palette.query },
        hoverinfo: 'none',
      },
      {
        type: 'scatter',
        mode: 'lines+markers',
        x: xs,
        y: values(({ maximum, sum }) => maximum + Math.log(sum)),
        yaxis: 'y5',
        line: { ...line, color: palette.beam },
        marker: { size: 5 },
        hoverinfo: 'none',
      },
      {
        type: 'bar',
        orientation: 'h',
        xaxis: 'x2',
        yaxis: 'y6',
        x: [memory.whole, memory.blocks],
        y: [0, 1],
        marker: { color: [translucent(palette.key, 0.45), palette.query] },
        text: [`${bytes(memory.whole)}: whole matrices`, `${bytes(memory.blocks)}: one block`],
        textposition: ['inside', 'outside'],
        insidetextanchor: 'start',
        textangle: 0,
        textfont: { size: 11, color: palette.ink },
        cliponaxis: false,
        hoverinfo: 'none',
      },
    ],
    layout: {
      ...baseLayout(palette, {
        width: across + margin.l + margin.r,
        height: all + margin.t + margin.b,
        margin,
      }),
      barmode: 'stack',
      bargap: 0.2,
      annotations: [
        'the blocks of the matrix, numbered in their order; outlined: those of this row',
        'greatest score of each block (bars) and running maximum m (line)',
        'running sum ℓ: what was there, scaled (pale), and what the block adds (dark)',
        'm + ln ℓ: after the last block the logarithm of the whole row’s sum',
        'memory of the scores of this layer: all heads at once, and one block of one head with its m, ℓ and o',
      ].map((text, at, { length }) =>
        paperText(narrow ? text.replace(/[:;(].*$/, '') : text, palette.muted, {
          x: 0,
          xanchor: 'left',
          y: at === 0 ? 1 : at < length - 1 ? place(at - 1)[1] : bars / all,
          yanchor: 'bottom',
          yshift: 5,
        }),
      ),
      shapes: [
        {
          type: 'rect',
          xref: 'x',
          yref: 'y2',
          x0: xs[0] - 0.5,
          x1: xs[xs.length - 1] + 0.5,
          y0: own - 0.5,
          y1: own + 0.5,
          line: { color: palette.query, width: 2 },
        },
      ],
      xaxis: {
        ...axis,
        showgrid: false,
        range: [-0.5, nColumns - 0.5],
        anchor: 'y5',
        tickmode: 'array',
        ...ticksAt(nColumns, size, across / (narrow ? 46 : 58)),
        title: { text: 'first key of the block', font: { size: 12, color: palette.key } },
      },
      // Over everything that has keys, for the cursor.
      yaxis: { range: [0, 1], domain: domain(0, charts), visible: false },
      yaxis2: {
        ...downwards({ ...axis, range: [-0.5, nRows - 0.5] }),
        domain: domain(0, square),
        showgrid: false,
        tickmode: 'array',
        ...ticksAt(nRows, size, square / 22),
        title: { text: narrow ? '' : 'query', font: { size: 12, color: palette.query } },
      },
      yaxis3: { ...axis, domain: place(0) },
      yaxis4: { ...axis, domain: place(1), rangemode: 'tozero' },
      yaxis5: { ...axis, domain: place(2) },
      xaxis2: { range: [0, memory.whole], anchor: 'y6', visible: false },
      yaxis6: { range: [1.5, -0.5], domain: [0, bars / all], anchor: 'x2', visible: false },
    },
  };
}

/**
 * The number of each block: one row of blocks of queries after another, those before the diagonal
 * alone if later keys are hidden.
 * @param {number} rows
 * @param {number} columns
 * @param {boolean} isHidden
 * @returns {(number|null)[][]} from 1; null: skipped
 */
export function orderOf(rows, columns, isHidden) {
  let count = 0;
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (__, column) => {
      if (isHidden && column > row) return null;
      count += 1;
      return count;
    }),
  );
}

/** @param {(number|null)[][]} order @param {Palette} palette */
function numbers(order, { ink }) {
  const cells = order.flatMap((each, y) =>
    each.flatMap((at, x) => (at === null ? [] : [{ x, y, at }])),
  );
  return {
    type: 'scatter',
    mode: 'text',
    x: cells.map(({ x }) => x),
    y: cells.map(({ y }) => y),
    yaxis: 'y2',
    text: cells.map(({ at }) => String(at)),
    textfont: { size: 10, color: ink },
    hoverinfo: 'none',
  };
}

/**
 * @param {number} count of blocks
 * @param {number} size
 * @param {number} most labels
 */
function ticksAt(count, size, most) {
  const step = Math.max(1, Math.ceil(count / Math.max(1, most)));
  const tickvals = range(count).filter((at) => at % step === 0);
  return { tickvals, ticktext: tickvals.map((at) => grouped(at * size)) };
}
