/** The tables of an experiment’s numbers, in which some can be typed. */

import { css, computeLevel, diverging } from '../plot/colour.js';
import { button, element, tableParts, withSymbols } from './dom.js';
import { decimal } from '../words/numbers.js';
import { written } from '../rules/experiment.js';

/** @import { Table } from '../rules/experiment.js' */

/** The largest number that can be entered, as the API has it; the least is its negative. */
const MOST = 1e6;

/**
 * Create tables of numbers, by step; given tables can be edited.
 * @param {Object} handlers
 * @param {(name: string, rows: number[][]|null) => void} handlers.onRows null: as they were
 */
export function createTables({ onRows }) {
  const host = element('div.worked', { hidden: true });
  /** @type {{table: Table, cells: HTMLElement[][], problem: HTMLElement}[]} */
  let drawn = [];
  let layout = '';

  /** @param {Table} table @param {number} row @param {number} column @param {string} label */
  function inputCell({ name }, row, column, label) {
    const input = element('input', {
      type: 'text',
      inputmode: 'decimal',
      autocomplete: 'off',
      'aria-label': label,
      tabindex: row === 0 && column === 0 ? 0 : -1,
    });
    const mine = () => drawn.find(({ table }) => table.name === name);
    input.addEventListener('change', () => {
      const value = Number(input.value.trim().replace(/^−/, '-'));
      const isNumber =
        input.value.trim() !== '' && Number.isFinite(value) && Math.abs(value) <= MOST;
      input.setAttribute('aria-invalid', String(!isNumber));
      const edited = mine();
      if (edited) tell(edited);
      if (!isNumber || !edited) return;
      onRows(
        name,
        edited.table.values.map((line, at) =>
          line.map((each, place) => (at === row && place === column ? value : rounded(each))),
        ),
      );
    });
    input.addEventListener('focus', () => {
      for (const each of mine()?.cells.flat() ?? [])
        /** @type {HTMLElement} */ (each).tabIndex = each === input ? 0 : -1;
      const { table } = mine() ?? {};
      if (table && input.getAttribute('aria-invalid') !== 'true' && !input.readOnly)
        input.value = String(rounded(table.values[row][column]));
      input.select();
    });
    input.addEventListener('blur', () => {
      const { table } = mine() ?? {};
      if (table && input.getAttribute('aria-invalid') !== 'true' && !input.readOnly)
        input.value = decimal(table.values[row][column], 3);
    });
    input.addEventListener('keydown', (event) => {
      const step = stepOf(event, input);
      const next = step && mine()?.cells[row + step[0]]?.[column + step[1]];
      if (!next) return;
      event.preventDefault();
      /** @type {HTMLElement} */ (next).focus();
    });
    return input;
  }

  return {
    element: host,

    /** @param {Table[]} tables @param {Theme} theme */
    show(tables, theme) {
      host.hidden = tables.length === 0;
      const wanted = JSON.stringify(
        tables.map((of) => [of.name, of.rows, of.columns, of.isGiven, of.isEdited, of.note]),
      );
      if (wanted !== layout) {
        const focused = document.activeElement?.getAttribute('aria-label');
        layout = wanted;
        const blocks = tables.map((table) => build(table, inputCell, onRows));
        drawn = blocks;
        const steps = [...new Set(tables.map(({ step }) => step))];
        host.replaceChildren(
          ...steps.map((step) =>
            element(
              'div.worked-step',
              element('h3', step),
              element(
                'div.worked-row',
                blocks.flatMap(({ table, block }) => (table.step === step ? [block] : [])),
              ),
            ),
          ),
        );
        const again =
          focused &&
          [...host.querySelectorAll('input')].find(
            (each) => each.getAttribute('aria-label') === focused,
          );
        if (again) again.focus();
      }
      tables.forEach((table, index) => {
        drawn[index].table = table;
        fill(table, drawn[index].cells, theme);
        tell(drawn[index]);
      });
    },
  };
}

/**
 * @param {Table} table
 * @param {(table: Table, row: number, column: number, label: string) => HTMLElement} inputCell
 * @param {(name: string, rows: null) => void} onRows
 */
function build(table, inputCell, onRows) {
  const { name, title, rows, columns, note, isGiven, isEdited } = table;
  const cells = rows.map((row, at) =>
    columns.map((column, place) =>
      isGiven ? inputCell(table, at, place, `${title}, ${row}, ${column}`) : element('span'),
    ),
  );
  const problem = element('p.field-problem', { role: 'alert' });
  const block = element(
    'div',
    {
      class: isGiven ? 'worked-table is-given' : 'worked-table',
      ...(!isGiven && { role: 'region', 'aria-label': title, tabindex: 0 }),
    },
    element(
      'table',
      element(
        'caption',
        element('b', withSymbols(title)),
        ' ',
        withSymbols(isEdited && table.isOverride ? 'as you typed' : note),
        isEdited ? button('Reset', () => onRows(name, null), { class: 'worked-reset' }) : null,
      ),
      tableParts(
        [element('td'), columns.map((column) => element('th', { scope: 'col' }, column))],
        rows.map((row, at) => [
          element('th', { scope: 'row' }, row),
          cells[at].map((cell) => element('td', cell, element('small'))),
        ]),
      ),
    ),
    problem,
  );
  return { table, cells, problem, block };
}

/** Return a number that is sent with one that was typed; 6 decimals keep a link short. @param {number} value */
function rounded(value) {
  return Number.isFinite(value) ? Number(value.toFixed(6)) : 0;
}

/**
 * Say below a table what is wrong with a cell, if one is.
 * @param {{cells: HTMLElement[][], problem: HTMLElement}} drawn
 */
function tell({ cells, problem }) {
  const wrong = cells.flat().find((cell) => cell.getAttribute('aria-invalid') === 'true');
  const entry = wrong instanceof HTMLInputElement ? wrong.value.trim().slice(0, 40) : '';
  const said = entry === '' ? 'An empty cell is ignored' : `“${entry}” is ignored`;
  const limits = `from ${written(-MOST)} to ${written(MOST)}`;
  const words = wrong ? `${said}: a number is needed, ${limits}.` : '';
  if (problem.textContent !== words) problem.textContent = words;
}

/**
 * @param {KeyboardEvent} event
 * @param {HTMLInputElement} input
 * @returns {[number, number]|null} rows down and columns right
 */
function stepOf({ key }, input) {
  const { selectionStart: start, selectionEnd: end, value } = input;
  const isWhole = start === 0 && end === value.length;
  if (key === 'ArrowUp') return [-1, 0];
  if (key === 'ArrowDown' || key === 'Enter') return [1, 0];
  if (key === 'ArrowLeft' && (isWhole || end === 0)) return [0, -1];
  if (key === 'ArrowRight' && (isWhole || start === value.length)) return [0, 1];
  return null;
}

/**
 * Numbers, a tint by their size, and below them those of a text or of the formula if they differ.
 * @param {Table} table
 * @param {HTMLElement[][]} cells
 * @param {Theme} theme
 */
function fill({ values, other }, cells, theme) {
  const most = Math.max(1e-9, ...values.flat().filter(Number.isFinite).map(Math.abs));
  const scale = diverging(theme);
  const digits = Math.min(3, Math.max(0, ...(other?.values ?? []).flat().map(digitsOf)));
  values.forEach((line, row) =>
    line.forEach((value, column) => {
      const cell = cells[row][column];
      const isFinite = Number.isFinite(value);
      const shown = isFinite ? decimal(value, 3) : 'masked';
      if (cell instanceof HTMLInputElement) {
        cell.readOnly = !isFinite;
        if (!isFinite) cell.value = shown;
        else if (document.activeElement !== cell || cell.getAttribute('aria-invalid') !== 'true') {
          cell.value = document.activeElement === cell ? String(rounded(value)) : shown;
          cell.setAttribute('aria-invalid', 'false');
        }
      } else cell.textContent = shown;
      const second = other?.values[row]?.[column];
      const differs = second !== undefined && Math.abs(second - value) >= 0.5 * 10 ** -digits;
      const words = differs ? `${other?.words} ${second.toFixed(digits)}` : '';
      const note = cell.parentElement?.querySelector('small');
      if (note && note.textContent !== words) note.textContent = words;
      const strength = isFinite ? (0.42 * value) / most : 0;
      cell.parentElement?.style.setProperty('--tint', css(scale, computeLevel(strength + 1, 2)));
    }),
  );
}

/** @param {number} value @returns {number} digits after the point, as it is printed */
function digitsOf(value) {
  return (String(value).split('.')[1] ?? '').length;
}
