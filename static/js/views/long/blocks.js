/**
 * Attention block by block, as FlashAttention computes it (Dao et al. 2022,
 * https://arxiv.org/abs/2205.14135): for one row of this pass the running maximum and the running
 * sum after each block of keys, and the result next to that of the pass.
 *
 * The scores of the row come from its exact weights, s_j = ln w_j + logsumexp.
 */

import { amount, decimal, grouped, percent, small } from '../../words/numbers.js';
import { quoted } from '../../words/tokens.js';
import { isCausal, matrixFrom } from '../../trace/trace.js';
import { chart } from '../../plot/chart.js';
import { translucent } from '../../plot/colour.js';
import { isNarrow, band, linear, pixels } from '../../plot/scales.js';
import { bar } from '../../plot/marks/bar.js';
import { cell, reader } from '../../plot/marks/mark.js';
import { line } from '../../plot/marks/line.js';
import { rect, text } from '../../plot/marks/decorations.js';
import { name, op, power, row, sub } from '../../ui/formula.js';
import { panes } from '../../plot/panes.js';

/**
 * @import { NamedArray, Token, Trace } from '../../trace/trace.js'
 * @import { Figure, ViewState } from '../../plot/figure.js'
 * @import { Mark } from '../../plot/marks/mark.js'
 * @import { Pane } from '../../plot/panes.js'
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
export function computeSteps(scores, size) {
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
 * Return the row's context, Σ w·v, corrected at every block like the sum.
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
 * Return the bytes of the scores of a layer, whole and in blocks of one head: a block of scores,
 * and for each of its queries the maximum, the sum and the output.
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
 * Return the weight of a row that goes to no key, of a model with attention sinks.
 * @param {NamedArray} weights
 */
function sinkOf({ data, scale }) {
  let sum = 0;
  for (let at = 0; at < data.length; at += 1) sum += data[at] * scale;
  return 1 - sum > LEAST_SINK ? 1 - sum : 0;
}

/**
 * The request: the row and the numbers next to it.
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
  const steps = computeSteps(scores, size);
  const { maximum, sum } = steps[steps.length - 1];
  const sink = sinkOf(weights);
  const all = sum + sink * Math.exp(logsumexp - maximum);
  const logarithm = maximum + Math.log(all);
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
  const first = `${quoted(texts.rows[query])} at ${grouped(query)}`;
  return {
    title: `${title}, block by block`,
    help: 'No row is ever held whole: each block of keys corrects the maximum m, the sum ℓ and the output o of the row, and after the last one o / ℓ is the same as with the whole matrix.',
    formula: [
      row(name('m′'), '=', 'max', '(', name('m'), ',', 'max', sub(name('s'), name('j')), ')'),
      row(name('ℓ′'), '=', correction(), name('ℓ'), '+', '∑', term()),
      row(name('o′'), '=', correction(), name('o'), '+', '∑', term(), sub(name('v'), name('j'))),
    ],
    summary: `The row of ${first}, in ${steps.length} blocks of ${grouped(size)} keys. Running maximum ${decimal(maximum)}, running sum ${amount(sum, 4)}; their logarithm of the sum of exponentials differs from the pass's by ${small(Math.abs(logarithm - logsumexp))}.`,
    facts: [
      ['Row', `query ${first}`],
      ['Blocks', `${steps.length} of ${grouped(size)} keys, left to right`],
      ['After the last', `m ${decimal(maximum)}, ℓ ${amount(sum, 4)}`],
      ...(sink
        ? [['Sink', `${percent(sink)} of the row goes to no key; it joins ℓ at the end`]]
        : []),
      [
        'm + ln ℓ',
        `${decimal(logarithm, 6)}; in the pass ${decimal(logsumexp, 6)}, apart ${small(Math.abs(logarithm - logsumexp))}`,
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

/** @param {Step} step */
function keysIn({ first, last }) {
  return `keys ${grouped(first)} to ${grouped(last - 1)}`;
}

/**
 * Return the numbers of each block, over its whole column.
 * @param {Step[]} steps
 * @param {number} size of a block
 * @param {number} query
 */
function numbersOf(steps, size, query) {
  /** @param {{row: number, column: number}} of */
  const value = ({ row, column }) => QUANTITIES[column][1](steps[row]);
  return reader(steps.length, QUANTITIES.length, {
    kind: 'chart',
    value,
    format: (number) => decimal(number, 4),
    name: ({ row }) => keysIn(steps[row]),
    number: ({ row }) => {
      const { greatest, maximum, sum } = steps[row];
      return `greatest ${decimal(greatest)}, m ${decimal(maximum)}, ℓ ${amount(sum, 4)}`;
    },
    say: (of) => `${keysIn(steps[of.row])}: ${QUANTITIES[of.column][0]} ${decimal(value(of), 4)}`,
    tokens: () => ({ query }),
    hits: () => ({
      box(row) {
        if (row === undefined) return null;
        const at = steps[row].first / size;
        return { x0: at - 0.5, x1: at + 0.5, y0: 0, y1: 1 };
      },
      at(x) {
        const row = steps.findIndex(({ first }) => first / size === Math.round(x));
        return row >= 0 ? { row, column: 1 } : null;
      },
    }),
  });
}

const SQUARE = { least: 120, most: 300, row: 18 };
const WIDEST = 960;

/**
 * Return the squares of the matrix in the order in which they are visited; below, the row after
 * each block, and the memory of the scores.
 * @param {Step[]} steps
 * @param {Subject} subject
 * @param {number} size of a block
 * @param {{whole: number, blocks: number}} memory in bytes
 */
function drawn(steps, { attention, query, texts, state }, size, memory) {
  const { palette, width, layer, head } = state;
  const narrow = isNarrow(width);
  const nRows = Math.ceil(texts.rows.length / size);
  const nColumns = Math.ceil(texts.columns.length / size);
  const order = orderOf(nRows, nColumns, isCausal(`${attention}.weights`));
  const current = Math.floor(query / size);
  return chart(
    {
      title: titleFor(
        'the blocks of the matrix, numbered in their order; outlined: those of this row',
        narrow,
      ),
      x: band(firstsOf(nColumns, size), { title: 'first key of the block', ink: palette.key }),
      y: band(firstsOf(nRows, size), { title: narrow ? '' : 'query', ink: palette.query }),
      marks: [
        numbersOf(steps, size, query),
        cell(matrixFrom(order), {
          ramp: { title: '', domain: [0, 4 * nRows * nColumns], legend: 'none' },
          ...(nColumns <= MOST_BLOCKS && {
            text: ({ value }) => (Number.isNaN(value) ? '' : String(value)),
          }),
        }),
        rect([steps], {
          from: ([first]) => ({ x: first.first / size - 0.5, y: current - 0.5 }),
          to: (all) => ({ x: all[all.length - 1].first / size + 0.5, y: current + 0.5 }),
          stroke: palette.query,
          width: 2,
        }),
      ],
      panes: panes([...ofSteps(steps, size, state), memoryPane(memory, state)]),
      isCovered: true,
      size: {
        row: Math.max(SQUARE.least, Math.min(SQUARE.most, nRows * SQUARE.row)) / nRows,
        widest: WIDEST,
      },
      table: {
        rows: { title: 'block', labels: steps.map(keysIn) },
        columns: { title: 'quantity', labels: QUANTITIES.map(([title]) => title) },
        quantity: `the row of query ${query}, block by block, layer ${layer}, head ${head}`,
        request: blocksAsk(attention, query, head),
      },
      sentence: { query: null },
    },
    state,
  );
}

/** Return the title; on a phone its explanation is left out. @param {string} title @param {boolean} narrow */
function titleFor(title, narrow) {
  return narrow ? title.replace(/[:;(].*$/, '') : title;
}

/** Return the first token of each block. @param {number} count of blocks @param {number} size */
function firstsOf(count, size) {
  return Array.from({ length: count }, (_, at) => grouped(at * size));
}

/**
 * Return the maximum, the sum and their logarithm after each block.
 * @param {Step[]} steps
 * @param {number} size of a block
 * @param {ViewState} state
 * @returns {Pane[]}
 */
function ofSteps(steps, size, { palette, width }) {
  const narrow = isNarrow(width);
  /** @param {Step} step */
  const x = ({ first }) => first / size;
  /** @param {(step: Step) => number} length @param {string} fill @param {(step: Step) => number} [base] */
  const bars = (length, fill, base) =>
    bar(steps, { isUpright: true, at: x, length, base, fill, thickness: 0.8 });
  /** @param {(step: Step) => number} y @param {string} stroke */
  const stepped = (y, stroke) =>
    line([{ name: '', values: steps.map(y), stroke, dots: 5, isStepped: true, isQuiet: true }], {
      x: steps.map(x),
    });
  /** @param {string} title @param {Mark<any>[]} marks @returns {Pane} */
  const pane = (title, marks) => ({
    y: linear(''),
    marks,
    pixels: 104,
    gap: 34,
    title: [titleFor(title, narrow)],
  });
  return [
    pane('greatest score of each block (bars) and running maximum m (line)', [
      bars(({ greatest }) => greatest, translucent(palette.key, 0.45)),
      stepped(({ maximum }) => maximum, palette.query),
    ]),
    pane('running sum ℓ: what was there, scaled (pale), and what the block adds (dark)', [
      bars(({ sum, added }) => sum - added, translucent(palette.query, 0.35)),
      bars(
        ({ added }) => added,
        palette.query,
        ({ sum, added }) => sum - added,
      ),
    ]),
    pane('m + ln ℓ: after the last block the logarithm of the whole row’s sum', [
      stepped(({ maximum, sum }) => maximum + Math.log(sum), palette.beam),
    ]),
  ];
}

/** @param {{whole: number, blocks: number}} memory @param {ViewState} state @returns {Pane} */
function memoryPane({ whole, blocks }, { palette, width }) {
  const parts = [
    { count: whole, title: 'whole matrices', fill: translucent(palette.key, 0.45) },
    { count: blocks, title: 'one block', fill: translucent(palette.query, 0.35) },
  ];
  const title =
    'memory of the scores of this layer: all heads at once, and one block of one head with its m, ℓ and o';
  return {
    x: pixels([0, Math.max(whole, blocks)]),
    y: pixels([-0.5, 1.5]),
    marks: [
      bar(parts, { length: ({ count }) => count, fill: ({ fill }) => fill, thickness: 0.8 }),
      text(parts, {
        // In a long bar, or after a short one.
        x: ({ count }) => (count > whole / 2 ? 0 : count),
        y: (_, row) => row,
        text: (part) => `${bytes(part.count)}: ${part.title}`,
        at: 'middle right',
      }),
    ],
    pixels: 50,
    gap: 34,
    title: [titleFor(title, isNarrow(width))],
  };
}

/**
 * Return the number of each block: one row of blocks of queries after another, only those before the
 * diagonal if later keys are hidden.
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
