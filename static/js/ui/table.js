/**
 * The numbers behind a drawing as a table, a page at a time. Loaded when the first one is opened. A
 * table whose rows have other numbers too is sorted by the heading that is pressed.
 */

import { range } from '../trace/trace.js';
import { button, element } from './dom.js';

/** @import { Cell } from '../plot/grid.js' */

/** @typedef {{label: string, value: (row: number) => number, isChosen: boolean, cell: (row: number) => HTMLElement}} Column */

const CELLS_A_PAGE = 4096;

/** @param {HTMLElement} host @param {(cell: Cell, grid: Grid) => void} [onChoose] a row of a sorted table */
export function createPages(host, onChoose = () => {}) {
  let page = 0;
  /** The heading that is sorted by, the greatest number first. */
  const sorted = { label: '', isDown: true };

  /** @param {Grid} grid */
  function show(grid) {
    const columns = columnsOf(grid);
    const by = columns.find(({ label }) => label === sorted.label);
    const rows = [...(grid.only ?? range(grid.rows))];
    if (by) rows.sort((a, b) => (sorted.isDown ? -1 : 1) * compare(by.value(a), by.value(b)));
    const rowsAPage = Math.max(1, Math.floor(CELLS_A_PAGE / columns.length));
    const pages = Math.max(1, Math.ceil(rows.length / rowsAPage));
    page = Math.min(page, pages - 1);
    const shown = rows.slice(page * rowsAPage, (page + 1) * rowsAPage);
    const focused = host.contains(document.activeElement) && document.activeElement?.textContent;
    host.replaceChildren(tableOf(grid, columns, shown));
    if (pages > 1) host.append(pager(grid, pages));
    if (focused)
      [...host.querySelectorAll('button')].find((each) => each.textContent === focused)?.focus();
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

  /** @param {Grid} grid @param {Column[]} columns @param {number[]} rows */
  function tableOf(grid, columns, rows) {
    const { rowTitle, columnTitle, quantity, chosen, picked, ofRows } = grid;
    const corner = columnTitle ? `${rowTitle} \\ ${columnTitle}` : rowTitle;
    return element(
      'div.table-scroll',
      { tabindex: 0, role: 'region', 'aria-label': `Table: ${quantity}` },
      element(
        'table',
        element('caption', captionOf(grid)),
        element(
          'thead',
          element(
            'tr',
            element('th', { scope: 'col' }, corner),
            columns.map(({ label, isChosen }) =>
              ofRows ? sorter(grid, label) : header(label, 'col', isChosen),
            ),
          ),
        ),
        element(
          'tbody',
          rows.map((row) =>
            element(
              'tr',
              { class: (picked ?? chosen)?.row === row ? 'is-chosen' : null },
              grid.isOpen
                ? element('th', { scope: 'row' }, opener(grid, row))
                : header(grid.rowLabels[row], 'row', false),
              columns.map(({ cell }) => cell(row)),
            ),
          ),
        ),
      ),
    );
  }

  /** Return a heading that sorts by its column. @param {Grid} grid @param {string} label */
  function sorter(grid, label) {
    const isBy = label === sorted.label;
    const sort = () => {
      Object.assign(sorted, { label, isDown: !(isBy && sorted.isDown) });
      page = 0;
      show(grid);
    };
    return element(
      'th',
      { scope: 'col', 'aria-sort': isBy ? (sorted.isDown ? 'descending' : 'ascending') : null },
      button(label, sort, { class: 'link' }),
    );
  }

  /** Return a button that chooses the first cell of a row. @param {Grid} grid @param {number} row */
  function opener(grid, row) {
    return button(grid.rowLabels[row], () => onChoose({ row, column: 0 }, grid), { class: 'link' });
  }

  return { show };
}

/** Nothing is less than any number. @param {number} a @param {number} b */
function compare(a, b) {
  return (Number.isNaN(a) ? -Infinity : a) - (Number.isNaN(b) ? -Infinity : b) || 0;
}

/** Return the columns of a table: other numbers of each row, and those of the cells. @param {Grid} grid @returns {Column[]} */
function columnsOf(grid) {
  const others = (grid.ofRows ?? []).map(({ label, value, format }) => ({
    ...{ label, value, isChosen: false },
    cell: (/** @type {number} */ row) => numberCell(value(row), format),
  }));
  const cells = range(grid.columns).map((column) => ({
    label: grid.columnLabels[column],
    isChosen: grid.chosen?.column === column,
    value: (/** @type {number} */ row) => grid.value(row, column),
    cell: (/** @type {number} */ row) => cellOf(grid, row, column),
  }));
  return grid.isOpen ? [...cells, ...others] : [...others, ...cells];
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

/** @param {number} value @param {(value: number) => string} format */
function numberCell(value, format) {
  return Number.isNaN(value)
    ? element('td', { 'aria-label': 'empty' }, '')
    : element('td', format(value));
}

/** @param {Grid} grid @param {number} row @param {number} column */
function cellOf(grid, row, column) {
  const value = grid.value(row, column);
  if (Number.isNaN(value)) return numberCell(value, String);
  const weight = grid.chosenWeight?.(row, column);
  if (weight === undefined)
    return element('td', element('bdi', grid.written?.(row, column) ?? grid.format(value)));
  return element('td.is-marked', `${grid.format(value)} ✓ ${grid.format(weight)}`);
}
