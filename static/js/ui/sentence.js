/**
 * The sentence: one chip per token, for the source and the target, tinted and marked by what is
 * pointed at, and a line that says it in words.
 */

import { hasTwoSides, tokensOf } from '../data/attention.js';
import { diverging, sequential } from '../plot/colour.js';
import { createChips } from './chips.js';
import { partOf } from './dom.js';

/**
 * @import { Side } from '../data/attention.js'
 * @import { Trace } from '../data/trace.js'
 * @import { Cell, Grid } from '../plot/grid.js'
 */

/** @type {Side[]} */
const SIDES = ['source', 'target'];
const MASK_HINT =
  'Click a word, or press Enter on it, to mask it; do the same on a mask to restore the word.';

/**
 * @param {HTMLElement} host
 * @param {Object} handlers
 * @param {(side: Side, index: number) => void} handlers.onChoose walked to
 * @param {(side: Side, index: number) => void} handlers.onPress
 * @param {() => void} handlers.onPoint what is to be shown may be different now
 */
export function createSentence(host, { onChoose, onPress, onPoint }) {
  /** @param {string} name @returns {HTMLElement} */
  const find = (name) => partOf(host, `#${name}`, HTMLElement);
  const rows = { source: find('source'), target: find('target-row') };
  /** @type {{side: Side, index: number}|null} */
  let pointed = null;
  /** @param {Side} side @returns {Parameters<typeof createChips>[2]} */
  const handlersFor = (side) => ({
    onChoose: (index) => onChoose(side, index),
    onPress: (index) => onPress(side, index),
    onPoint: (index) => {
      pointed = index === null ? null : { side, index };
      onPoint();
    },
  });
  const strips = {
    source: createChips(
      find('chips'),
      'Tokens; the chosen one is the query',
      handlersFor('source'),
    ),
    target: createChips(
      find('target-chips'),
      'Tokens of the target; the chosen one is the query',
      handlersFor('target'),
    ),
  };

  return {
    /** @param {Trace} trace */
    show(trace) {
      pointed = null;
      const isPair = hasTwoSides(trace);
      host.classList.toggle('is-pair', isPair);
      rows.target.hidden = !isPair;
      find('mask-hint').textContent = trace.card?.has_mask ? MASK_HINT : '';
      strips.source.show(trace.tokens, trace.text);
      if (isPair) strips.target.show(tokensOf(trace, 'target'), trace.target ?? '');
      else strips.target.show([], '');
    },

    /**
     * @param {Side} side of the query
     * @param {number|null} query
     */
    choose(side, query) {
      for (const name of SIDES) strips[name].choose(name === side ? query : null);
    },

    /** @param {string} words on what the drawing shows; they give way to what is pointed at */
    explain(words) {
      find('insight').textContent = words.replaceAll(' %', '\u00a0%');
    },

    /**
     * @param {Grid|null} grid of the open view
     * @param {PointedCell|null} cell a cell of a drawing that is pointed at
     * @param {{theme: 'light'|'dark'}} palette
     */
    mark(grid, cell, { theme }) {
      const shown = highlightOf(grid, cell ?? pointed);
      host.classList.toggle('is-told', !cell && !pointed && find('insight').textContent !== '');
      for (const side of SIDES) {
        strips[side].mark(shown.marks[side]);
        strips[side].tint(
          shown.tints[side],
          (shown.isSigned ? diverging : sequential)(theme),
          shown.ceiling,
        );
      }
      find('readout').textContent = shown.readout;
    },
  };
}

/**
 * @typedef {Object} Shown
 * @property {Partial<Record<Side, {query?: number|number[], key?: number|number[]}>>} marks
 * @property {Partial<Record<Side, Float64Array|null>>} tints
 * @property {string} readout
 * @property {number} [ceiling]
 * @property {boolean} [isSigned]
 */

/**
 * @typedef {{cell: Cell, grid: Grid, side?: undefined, index?: undefined}} PointedCell
 * @typedef {{side: Side, index: number, cell?: undefined, grid?: undefined}} PointedToken
 */

/** @type {{rows: Side, columns: Side}} */
const ONE_SIDE = { rows: 'source', columns: 'source' };

/**
 * @param {Grid|null} grid of the open view
 * @param {PointedCell|PointedToken|null} pointed
 * @returns {Shown}
 */
export function highlightOf(grid, pointed) {
  if (pointed?.cell) return ofCell(pointed.grid, pointed.cell);
  return (pointed && grid && ofToken(grid, /** @type {PointedToken} */ (pointed))) ?? atRest(grid);
}

/** @param {Grid} grid @param {Cell} cell @returns {Shown} */
function ofCell(grid, { row, column }) {
  const sides = grid.sides ?? ONE_SIDE;
  const { query, key } = grid.tokens(row, column);
  return {
    marks:
      sides.rows === sides.columns
        ? { [sides.rows]: { query, key } }
        : { [sides.rows]: { query }, [sides.columns]: { key } },
    tints: {
      [sides.columns]: (grid.tint ? grid.tint(row, column) : grid.ofRow?.(row).tint) ?? null,
    },
    readout: grid.describe(row, column),
    ...scaleOf(grid),
  };
}

/**
 * A token of the rows shows its row, one of other columns its column; of other tokens there is nothing to show.
 * @param {Grid} grid
 * @param {PointedToken} pointedToken
 */
function ofToken(grid, { side, index }) {
  const sides = grid.sides ?? ONE_SIDE;
  if (side === sides.rows && grid.ofToken) {
    const { tint, readout } = grid.ofToken(index);
    return {
      marks: { [side]: { query: index } },
      tints: { [sides.columns]: tint },
      readout,
      ...scaleOf(grid),
    };
  }
  const [row, column] = [grid.rowOf, grid.columnOf].map((placeOf) =>
    placeOf ? placeOf(index) : index,
  );
  if (side === sides.rows && grid.ofRow && row >= 0) {
    const { tint, readout } = grid.ofRow(row);
    return {
      marks: { [side]: { query: grid.rowOf ? grid.tokens(row, 0).query : index } },
      tints: { [sides.columns]: tint },
      readout,
      ...scaleOf(grid),
    };
  }
  if (side === sides.columns && grid.ofColumn && column >= 0) {
    const { tint, readout } = grid.ofColumn(column);
    return {
      marks: { [side]: { key: grid.columnOf ? grid.tokens(0, column).key : index } },
      tints: { [sides.rows]: tint },
      readout,
      ...scaleOf(grid),
    };
  }
  return null;
}

/** @param {Grid|null} grid */
function scaleOf(grid) {
  return { ceiling: grid?.ceiling ?? 1, isSigned: Boolean(grid?.isSigned) };
}

/** @param {Grid|null} grid @returns {Shown} */
function atRest(grid) {
  return {
    marks: {},
    tints: grid?.rest?.tint ? { [(grid.sides ?? ONE_SIDE).columns]: grid.rest.tint } : {},
    readout: grid?.rest?.readout ?? '',
    ...scaleOf(grid),
  };
}
