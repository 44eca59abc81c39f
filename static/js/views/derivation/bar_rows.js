/**
 * A step in rows of bars over shared columns: the dimensions of a head, or the keys of the query.
 */

import { decimal, share } from '../../words/numbers.js';
import { named, quoted, tokenLabels } from '../../words/tokens.js';
import { highestIn, matrixAt, rowOf } from '../../trace/trace.js';
import { chart } from '../../plot/chart.js';
import { css, sequential } from '../../plot/colour.js';
import { bar } from '../../plot/marks/bar.js';
import { rule, text } from '../../plot/marks/decorations.js';
import { reader } from '../../plot/marks/mark.js';
import { shade } from '../../plot/marks/shade.js';
import { band } from '../../plot/scales.js';
import { hiddenReason } from './derivation.js';

/** @import { Drawn, Lane, Step, Subject } from './steps.js' */

/** Pixels of a lane: its name, room for a number over the tallest bar, the bars, and air below. */
const HEAD = 20;
const NUMBER = 18;
const BARS = 66;
const FOOT = 10;
const LANE = HEAD + NUMBER + BARS + FOOT;
const WIDEST = 900;
/** Pixels: bars stay slim, and a few of them leave room for the names of their lanes. */
const COLUMN = { most: 46, all: 240 };
const NUMBER_SPACE = 30;

/** @param {Drawn} step @param {Subject} subject @param {Frame} state @returns {Figure} */
export function stepFigure(step, subject, state) {
  const { title, lanes, help, formula, facts, actions } = step;
  if (!lanes) return { title, notice: step.notice, isWaiting: step.isWaiting };
  return {
    title,
    help,
    formula,
    facts,
    actions,
    summary: `${title}, in bars: ${lanes.map(({ name }) => name).join(', ')}.`,
    ...lanesChart(/** @type {Step} */ (step), subject, state),
  };
}

/** @param {Step} step @param {Subject} subject @param {Frame} state */
function lanesChart(step, subject, { palette, width }) {
  const { now, keys, queries, name, request } = subject;
  const { lanes, over } = step;
  const labels =
    over === 'keys' ? tokenLabels(keys) : Array.from(lanes[0].values, (_, at) => String(at));
  const dimension = `dimension of the ${step.title.includes('output') ? 'residual stream' : 'head'}`;
  return chart(
    {
      x:
        over === 'keys'
          ? band(labels, { title: 'key', isUpright: true })
          : band(labels, { title: dimension, space: NUMBER_SPACE }),
      y: band(lanes.map(() => '')),
      marks: [
        reader(lanes.length, labels.length, { kind: 'rows of bars', ...meaningOf(step, subject) }),
        ...hiddenPart(step, subject, labels.length),
        ...barsOf(step, subject, palette),
        ...writingOf(step, subject, labels.length, palette),
      ],
      size: { widest: WIDEST, row: LANE, cell: Math.max(COLUMN.most, COLUMN.all / labels.length) },
      table: {
        rows: { title: 'quantity', labels: lanes.map((lane) => lane.name) },
        columns: { title: over === 'keys' ? 'key' : 'dimension', labels },
        quantity: `${step.title.toLowerCase()}, from ${quoted(queries[now.query])} to ${quoted(keys[now.key])}, ${name}`,
        request,
      },
      sentence: sentenceOf(subject),
      cursor: cursorOf(step, subject),
    },
    { palette, width },
  );
}

/** @param {Step} step @param {Subject} subject @returns {Meaning<{row: number, column: number}>} */
function meaningOf({ lanes, over }, { now, keys }) {
  const areKeys = over === 'keys';
  /** @param {{row: number, column: number}} cell */
  const value = ({ row, column }) => finite(lanes[row].values[column]);
  return {
    value,
    format: (number) => decimal(number, 4),
    name: ({ row, column }) =>
      `${lanes[row].name}, ${areKeys ? named(keys, column) : `dimension ${column}`}`,
    number: (cell) =>
      Number.isNaN(value(cell))
        ? `hidden: ${hiddenReason(now, cell.column)}`
        : written(lanes[cell.row], value(cell)),
    tokens: ({ column }) => ({ query: now.query, key: areKeys ? column : now.key }),
    ...(areKeys && { choose: ({ column }) => ({ key: column }) }),
  };
}

/** @param {Lane} lane @param {number} value */
function written({ format = (number) => decimal(number) }, value) {
  return format(value);
}

/** @param {number} value */
function finite(value) {
  return Number.isFinite(value) ? value : NaN;
}

/** @param {number} lane @param {number} pixels from its top @returns {number} the place on the axis of lanes */
function below(lane, pixels) {
  return lane - 0.5 + pixels / LANE;
}

/**
 * Return the bars of all lanes, each on its base; those of the chosen key stand out.
 * @param {Step} step
 * @param {Subject} subject
 * @param {Palette} palette
 * @returns {Mark<any>[]}
 */
function barsOf({ lanes, over }, { now }, palette) {
  const chosen = over === 'keys' ? now.key : -1;
  const bars = lanes.flatMap((lane, row) => {
    const [low, high] = reachOf(
      lane.scale ? lanes.filter(({ scale }) => scale === lane.scale) : [lane],
    );
    const unit = BARS / (high - low || 1);
    const base = HEAD + NUMBER + BARS + low * unit;
    const colour = colourOf(lane, palette) ?? css(sequential(palette.theme), 118);
    return Array.from(lane.values, (value, column) => ({
      column,
      base: below(row, base),
      end: below(row, base - value * unit),
      colour: column === chosen ? palette.key : colour,
    }));
  });
  const bases = lanes.map(({ values }, row) => ({
    base: bars[row * values.length].base,
    last: Array.from(values).findLastIndex(Number.isFinite),
  }));
  return [
    bar(
      bars.filter(({ end }) => Number.isFinite(end)),
      {
        isUpright: true,
        at: ({ column }) => column,
        base: ({ base }) => base,
        length: ({ base, end }) => end - base,
        fill: ({ colour }) => colour,
      },
    ),
    rule(bases, {
      from: ({ base }) => ({ x: -0.5, y: base }),
      to: ({ base, last }) => ({ x: last + 0.5, y: base }),
      stroke: palette.line,
    }),
  ];
}

/** Return the range of the numbers, 0 included. @param {Lane[]} lanes */
function reachOf(lanes) {
  const known = lanes.flatMap(({ values }) => Array.from(values)).filter(Number.isFinite);
  return [Math.min(0, ...known), Math.max(0, ...known)];
}

/** @param {Lane} lane @param {Palette} palette */
function colourOf({ side, isPast }, palette) {
  if (side) return palette[side];
  return isPast ? palette.muted : undefined;
}

/**
 * Return the name of a lane on the left, its range on the right, and the number of the chosen key
 * above its bar.
 * @param {Step} step
 * @param {Subject} subject
 * @param {number} count of columns
 * @param {Palette} palette
 * @returns {Mark<any>[]}
 */
function writingOf({ lanes, over }, { now: { key } }, count, palette) {
  const numbers = over === 'keys' ? lanes.map((lane, row) => ({ lane, row })) : [];
  const place = count > 1 ? key / (count - 1) : 0.5;
  const edge = place < 0.04 ? -0.5 : place > 0.96 ? 0.5 : 0;
  return [
    text(lanes, {
      x: () => -0.5,
      y: (_, row) => below(row, 0),
      text: ({ name }) => name,
      ink: (lane) => colourOf(lane, palette) ?? palette.ink,
      size: 13,
      at: 'bottom right',
    }),
    text(lanes, {
      x: () => count - 0.5,
      y: (_, row) => below(row, 0),
      text: (lane) =>
        reachOf([lane])
          .map((value) => written(lane, value))
          .join(' … '),
      ink: palette.muted,
      at: 'bottom left',
    }),
    text(
      numbers.filter(({ lane }) => Number.isFinite(lane.values[key])),
      {
        // A number at the edge is aligned inwards.
        x: () => key + edge,
        y: ({ row }) => below(row, HEAD + NUMBER - 4),
        text: ({ lane }) => written(lane, lane.values[key]),
        ink: palette.key,
        size: 13,
        at: `top ${edge === 0 ? 'center' : edge < 0 ? 'right' : 'left'}`,
      },
    ),
  ];
}

/**
 * Return the keys that a causal mask hides, named in the lanes that have no bars there.
 * @param {Step} step
 * @param {Subject} subject
 * @param {number} count of columns
 * @returns {Mark<any>[]}
 */
function hiddenPart({ lanes, over, hiddenLabel = '' }, { now }, count) {
  const first = now.query + 1;
  if (over !== 'keys' || !now.terms.isCausal || first >= count) return [];
  return [
    shade(
      lanes.map(({ values }, row) => ({ row, later: Array.from(values).slice(first) })),
      {
        from: ({ row }) => ({ x: first - 0.5, y: below(row, 0) }),
        to: ({ row }) => ({ x: count - 0.5, y: below(row, LANE) }),
        text: ({ later }) => (later.some(Number.isFinite) ? '' : hiddenLabel),
      },
    ),
  ];
}

/** @param {Subject} subject @returns {Partial<SentenceLink>} */
function sentenceOf(subject) {
  const { now, place, pass, plain, path, queries, keys, name } = subject;
  return {
    sides: { rows: place.rows, columns: place.columns },
    ceiling: 1,
    tint: () => now.row.weights,
    ofToken(index) {
      const tint = rowOf(matrixAt((pass ?? plain).tensors[`${path}.weights`], 0), index);
      const strongest = highestIn(tint);
      const readout = `${named(queries, index)} attends most to ${named(keys, strongest)} with weight ${share(tint[strongest])} (${name})`;
      return { tint, readout };
    },
    rest: { tint: now.row.weights, readout: readoutOf(subject) },
  };
}

/** @param {Step} step @param {Subject} subject @returns {Partial<CellCursor>} */
function cursorOf({ lanes, over }, { now }) {
  const areKeys = over === 'keys';
  return {
    ...(areKeys && {
      chooseHint: 'Enter derives the key under the cursor',
      note: 'Choose a bar to derive that key.',
    }),
    start: { row: lanes.length - 1, column: areKeys ? now.key : 0 },
  };
}

/** @param {Subject} subject */
function readoutOf({ now, queries, keys, place, name }) {
  const { query, key, row, isHidden } = now;
  if (isHidden)
    return `${named(queries, query)} cannot attend to ${named(keys, key)}, which ${hiddenReason(now, key)}: its weight is 0 (${name})`;
  const target = query === key && place.rows === place.columns ? 'itself' : named(keys, key);
  return `${named(queries, query)} attends to ${target} with weight ${share(row.weights[key])} (${name})`;
}
