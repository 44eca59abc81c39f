/**
 * The numbers behind a drawing as a table, a page at a time. Loaded when the first one is opened.
 */

import { range } from '../trace/trace.js';
import { button, element } from './dom.js';

/** @import { Grid } from '../plot/grid.js' */

const CELLS_A_PAGE = 4096;

/** @param {HTMLElement} host */
export function createPages(host) {
  let page = 0;

  /** @param {Grid} grid */
  function show(grid) {
    const rowsAPage = Math.max(1, Math.floor(CELLS_A_PAGE / grid.columns));
    const pages = Math.ceil(grid.rows / rowsAPage);
    page = Math.min(page, pages - 1);
    host.replaceChildren(tableOf(grid, page * rowsAPage, rowsAPage));
    if (pages > 1) host.append(pager(grid, pages));
  }

  /** @param {Grid} grid @param {number} pages */
  function pager(grid, pages) {
    /** @param {number} by */
    const turn = (by) => () => {
      page += by;
      show(grid);
    };
    return element(
      'p.table-pages',
      button('Previous rows', turn(-1), { disabled: page === 0 }),
      `Page ${page + 1} of ${pages}`,
      button('Next rows', turn(1), { disabled: page === pages - 1 }),
    );
  }

  return { show };
}

/** @param {Grid} grid @param {number} first @param {number} count */
function tableOf(grid, first, count) {
  const columns = range(grid.columns);
  const rows = Array.from({ length: Math.min(count, grid.rows - first) }, (_, row) => first + row);
  const corner = element(
    'th',
    { scope: 'col' },
    grid.columnTitle ? `${grid.rowTitle} \\ ${grid.columnTitle}` : grid.rowTitle,
  );
  return element(
    'div.table-scroll',
    { tabindex: 0, role: 'region', 'aria-label': `Table: ${grid.quantity}` },
    element(
      'table',
      element('caption', captionOf(grid)),
      element(
        'thead',
        element(
          'tr',
          corner,
          (grid.ofRows ?? []).map(({ label }) => header(label, 'col', false)),
          columns.map((column) =>
            header(grid.columnLabels[column], 'col', grid.chosen?.column === column),
          ),
        ),
      ),
      element(
        'tbody',
        rows.map((row) =>
          element(
            'tr',
            { class: grid.chosen?.row === row ? 'is-chosen' : null },
            header(grid.rowLabels[row], 'row', false),
            (grid.ofRows ?? []).map(({ value, format }) => ofRow(value(row), format)),
            columns.map((column) => cellOf(grid, row, column)),
          ),
        ),
      ),
    ),
  );
}

/** @param {Grid} grid */
function captionOf({ quantity, chosenWeight }) {
  const name = quantity[0].toUpperCase() + quantity.slice(1);
  return chosenWeight ? `${name}; ✓ marks the chosen experts, with their weights` : name;
}

/** @param {string} label @param {string} scope @param {boolean} isChosen */
function header(label, scope, isChosen) {
  return element('th', { scope, class: isChosen ? 'is-chosen' : null }, element('bdi', label));
}

/**
 * Return another number of a row.
 * @param {number} value
 * @param {(value: number) => string} format
 */
function ofRow(value, format) {
  return Number.isNaN(value)
    ? element('td', { 'aria-label': 'empty' }, '')
    : element('td', format(value));
}

/** @param {Grid} grid @param {number} row @param {number} column */
function cellOf(grid, row, column) {
  const value = grid.value(row, column);
  if (Number.isNaN(value)) return element('td', { 'aria-label': 'empty' }, '');
  const weight = grid.chosenWeight?.(row, column);
  if (weight === undefined)
    return element('td', element('bdi', grid.written?.(row, column) ?? grid.format(value)));
  return element('td.is-marked', `${grid.format(value)} ✓ ${grid.format(weight)}`);
}
