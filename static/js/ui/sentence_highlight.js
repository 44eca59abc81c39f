/**
 * What the sentences show beside a drawing: which tokens are marked, how strongly each is tinted,
 * and a line in words. It follows whatever is pointed at; at rest it shows the chosen token.
 */

/** @typedef {import('../data/places.js').Side} Side */

/**
 * @typedef {Object} Shown
 * @property {Record<Side, {query?: number|number[], key?: number|number[]}>} marks
 * @property {Record<Side, Float64Array|null>} tints
 * @property {string} readout
 * @property {number} [ceiling]
 * @property {boolean} [isSigned]
 */

/**
 * @typedef {{cell: import('../plot/grid.js').Cell, grid: import('../plot/grid.js').Grid}} PointedCell
 * @typedef {{side: Side, index: number}} PointedToken
 */

const ONE_SIDE = { rows: 'source', columns: 'source' };

/**
 * @param {import('../plot/grid.js').Grid|null} grid of the open view
 * @param {PointedCell|PointedToken|null} pointed
 * @returns {Shown}
 */
export function highlightOf(grid, pointed) {
  if (pointed?.cell) return ofCell(pointed.grid, pointed.cell);
  return (pointed && grid && ofToken(grid, pointed)) ?? atRest(grid);
}

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

/** A token of the rows shows its row, one of other columns its column; of other tokens there is nothing to show. */
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

function scaleOf(grid) {
  return { ceiling: grid?.ceiling ?? 1, isSigned: Boolean(grid?.isSigned) };
}

function atRest(grid) {
  return {
    marks: {},
    tints: grid?.rest?.tint ? { [(grid.sides ?? ONE_SIDE).columns]: grid.rest.tint } : {},
    readout: grid?.rest?.readout ?? '',
    ...scaleOf(grid),
  };
}
