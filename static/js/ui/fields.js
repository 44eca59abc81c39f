/**
 * The parameters of an experiment as fields of a form, and the tables of numbers that can be edited.
 */

import { readTyped, slideOf, written } from '../data/experiment.js';
import { decimal } from '../data/format.js';
import { css, diverging, levelOf } from '../plot/colour.js';
import { element, withSymbols } from './dom.js';

/**
 * @import { Parameter, Table } from '../data/experiment.js'
 * @import { Theme } from '../plot/colour.js'
 */

/**
 * @typedef {Object} Field
 * @property {HTMLElement} element
 * @property {(value: any) => void} update
 * @property {(message: string) => void} fail an empty message: nothing is wrong
 */

/** @typedef {(value: any, isTyped: boolean) => void} OnValue */

/** More options than this, or longer ones, are a menu. */
const SEGMENTS = 4;
const LETTERS = 24;

/**
 * @param {Parameter} parameter
 * @param {string} prefix of its ids
 * @param {OnValue} onValue a value that may be sent
 * @returns {Field}
 */
export function createField(parameter, prefix, onValue) {
  const id = `${prefix}-${parameter.name}`;
  const problem = element('p', {
    class: 'field-problem',
    id: `${id}-problem`,
    'aria-live': 'polite',
  });
  const help = element(
    'p',
    { class: 'field-help', id: `${id}-help` },
    ...withSymbols(parameter.help),
  );
  const described = `${id}-help ${id}-problem`;
  /** @type {HTMLElement[]} */
  let inputs = [];
  /** @param {string} message */
  const fail = (message) => {
    problem.textContent = message;
    for (const input of inputs) input.setAttribute('aria-invalid', String(message !== ''));
  };
  /** @type {OnValue} */
  const send = (value, isTyped) => {
    fail('');
    onValue(value, isTyped);
  };
  const make = isChoice(parameter) ? choice : KINDS[parameter.kind];
  const { parts, update } = make(parameter, { id, described, send, fail });
  inputs = parts
    .flatMap((part) => [part, ...part.querySelectorAll('input')])
    .filter((part) => part.matches('input, textarea, select'));
  return {
    element: element('div', { class: `field is-${parameter.kind}` }, ...parts, help, problem),
    update,
    fail,
  };
}

/** @param {Parameter} parameter */
function isChoice({ kind, isOptional }) {
  return kind === 'choice' || (kind === 'flag' && isOptional);
}

/** @typedef {{id: string, described: string, send: OnValue, fail: (message: string) => void}} Wiring */
/** @typedef {{parts: HTMLElement[], update: (value: any) => void}} Made */

/** @type {Record<string, (parameter: Parameter, wiring: Wiring) => Made>} */
const KINDS = { integer: number, number, flag, text, list: text };

/**
 * A slider beside a box; both hold the number.
 * @param {Parameter} parameter
 * @param {Wiring} wiring
 * @returns {Made}
 */
function number(parameter, { id, described, send, fail }) {
  const slide = slideOf(parameter);
  const label = element('label', { for: id, id: `${id}-label` }, parameter.label);
  const box = element('input', {
    id,
    type: 'text',
    inputmode: 'decimal',
    autocomplete: 'off',
    'aria-describedby': described,
  });
  const slider =
    slide &&
    element('input', {
      type: 'range',
      min: slide.least,
      max: slide.most,
      step: slide.step,
      'aria-labelledby': `${id}-label`,
    });
  const limits = slide ? `${written(parameter.least)} to ${written(parameter.most)}` : '';
  if (slider) slider.title = limits;
  slider?.addEventListener('input', () => {
    const value = slide?.value(Number(slider.value)) ?? NaN;
    show(value);
    send(value, true);
  });
  box.addEventListener('input', () => {
    const { value, problem } = readTyped(parameter, box.value);
    if (problem) {
      fail(problem);
      return;
    }
    if (slider && slide) slider.value = String(slide.at(value));
    send(value, true);
  });

  /** @param {number} value */
  function show(value) {
    if (document.activeElement !== box || readTyped(parameter, box.value).value !== value)
      box.value = String(value);
    if (slider && slide) {
      if (document.activeElement !== slider) slider.value = String(slide.at(value));
      slider.setAttribute('aria-valuetext', written(value));
    }
  }

  return {
    parts: [element('div', { class: 'field-head' }, label, box), ...(slider ? [slider] : [])],
    update: show,
  };
}

/**
 * @param {Parameter} parameter
 * @param {Wiring} wiring
 * @returns {Made}
 */
function choice(parameter, { id, described, send }) {
  const options =
    parameter.kind === 'flag'
      ? [
          { value: null, title: 'as given' },
          { value: true, title: 'yes' },
          { value: false, title: 'no' },
        ]
      : parameter.options.map((value) => ({ value, title: value.replaceAll('_', ' ') }));
  const letters = options.reduce((sum, { title }) => sum + title.length, 0);
  if (options.length > SEGMENTS || letters > LETTERS) {
    const select = element(
      'select',
      { id, 'aria-describedby': described },
      ...options.map(({ value, title }) => element('option', { value: String(value) }, title)),
    );
    select.addEventListener('change', () => send(options[select.selectedIndex].value, false));
    return {
      parts: [
        element(
          'div',
          { class: 'field-head' },
          element('label', { for: id }, parameter.label),
          select,
        ),
      ],
      update: (value) => {
        select.value = String(value);
      },
    };
  }
  const radios = options.map(({ value, title }) =>
    element(
      'label',
      {},
      element('input', { type: 'radio', name: id, value: String(value) }),
      element('span', {}, title),
    ),
  );
  const box = element(
    'fieldset',
    { class: 'field-head', 'aria-describedby': described },
    element('legend', { class: 'unseen' }, parameter.label),
    element('span', { 'aria-hidden': 'true' }, parameter.label),
    element('div', { class: 'segmented' }, ...radios),
  );
  box.addEventListener('change', ({ target }) => {
    const chosen = /** @type {HTMLInputElement} */ (target).value;
    send(options.find(({ value }) => String(value) === chosen)?.value, false);
  });
  return {
    parts: [box],
    update: (value) => {
      for (const radio of box.querySelectorAll('input'))
        radio.checked = radio.value === String(value);
    },
  };
}

/**
 * @param {Parameter} parameter
 * @param {Wiring} wiring
 * @returns {Made}
 */
function flag({ label }, { id, described, send }) {
  const box = element('input', { type: 'checkbox', id, 'aria-describedby': described });
  box.addEventListener('change', () => send(box.checked, false));
  return {
    parts: [element('div', { class: 'field-head' }, element('label', { for: id }, label), box)],
    update: (value) => {
      box.checked = Boolean(value);
    },
  };
}

/**
 * A text, or numbers with commas between them.
 * @param {Parameter} parameter
 * @param {Wiring} wiring
 * @returns {Made}
 */
function text(parameter, { id, described, send, fail }) {
  const isList = parameter.kind === 'list';
  const attributes = {
    id,
    spellcheck: 'false',
    autocomplete: 'off',
    'aria-describedby': described,
  };
  const box = isList
    ? element('input', { ...attributes, type: 'text', inputmode: 'decimal' })
    : element('textarea', { ...attributes, rows: 3, dir: 'auto' });
  box.addEventListener('input', () => {
    const { value, problem } = readTyped(parameter, box.value);
    if (problem) fail(problem);
    else send(value, true);
  });
  return {
    parts: [element('label', { for: id }, parameter.label), box],
    update: (value) => {
      if (document.activeElement !== box) box.value = isList ? value.join(', ') : value;
    },
  };
}

/**
 * Tables of numbers, by step; those that are given can be edited.
 * @param {Object} handlers
 * @param {(name: string, rows: number[][]|null) => void} handlers.onRows null: as they were
 */
export function createTables({ onRows }) {
  const host = element('div', { class: 'worked', hidden: true });
  /** @type {{table: Table, cells: HTMLElement[][]}[]} */
  let drawn = [];
  let layout = '';

  /** @param {Table} table */
  function build(table) {
    const { name, title, rows, columns, note, isGiven, isEdited } = table;
    const cells = rows.map((row, at) =>
      columns.map((column, place) =>
        isGiven ? inputCell(table, at, place, `${title}, ${row}, ${column}`) : element('span', {}),
      ),
    );
    const block = element(
      'div',
      {
        class: isGiven ? 'worked-table is-given' : 'worked-table',
        ...(!isGiven && { role: 'region', 'aria-label': title, tabindex: 0 }),
      },
      element(
        'table',
        {},
        element(
          'caption',
          {},
          element('b', {}, ...withSymbols(title)),
          ' ',
          ...withSymbols(isEdited && table.isOverride ? 'as you typed' : note),
          isEdited
            ? element(
                'button',
                { type: 'button', class: 'worked-reset', onclick: () => onRows(name, null) },
                'Reset',
              )
            : null,
        ),
        element(
          'thead',
          {},
          element(
            'tr',
            {},
            element('td', {}),
            ...columns.map((column) => element('th', { scope: 'col' }, column)),
          ),
        ),
        element(
          'tbody',
          {},
          ...rows.map((row, at) =>
            element(
              'tr',
              {},
              element('th', { scope: 'row' }, row),
              ...cells[at].map((cell) => element('td', {}, cell)),
            ),
          ),
        ),
      ),
    );
    return { table, cells, block };
  }

  /**
   * @param {Table} table
   * @param {number} row
   * @param {number} column
   * @param {string} label
   */
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
        input.value.trim() !== '' && Number.isFinite(value) && Math.abs(value) <= 1e6;
      input.setAttribute('aria-invalid', String(!isNumber));
      const found = mine();
      if (!isNumber || !found) return;
      onRows(
        name,
        found.table.values.map((line, at) =>
          line.map((each, place) => (at === row && place === column ? value : each)),
        ),
      );
    });
    input.addEventListener('focus', () => {
      for (const each of mine()?.cells.flat() ?? [])
        /** @type {HTMLElement} */ (each).tabIndex = each === input ? 0 : -1;
      const { table } = mine() ?? {};
      if (table && input.getAttribute('aria-invalid') !== 'true')
        input.value = String(table.values[row][column]);
      input.select();
    });
    input.addEventListener('blur', () => {
      const { table } = mine() ?? {};
      if (table && input.getAttribute('aria-invalid') !== 'true')
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

    /**
     * @param {Table[]} tables
     * @param {Theme} theme
     */
    show(tables, theme) {
      host.hidden = tables.length === 0;
      const wanted = JSON.stringify(
        tables.map(({ name, rows, columns, isGiven, isEdited, note }) => [
          name,
          rows,
          columns,
          isGiven,
          isEdited,
          note,
        ]),
      );
      if (wanted !== layout) {
        const focused = document.activeElement?.getAttribute('aria-label');
        layout = wanted;
        const blocks = tables.map(build);
        drawn = blocks;
        const steps = [...new Set(tables.map(({ step }) => step))];
        host.replaceChildren(
          ...steps.map((step) =>
            element(
              'div',
              { class: 'worked-step' },
              element('h3', {}, step),
              element(
                'div',
                { class: 'worked-row' },
                ...blocks.flatMap(({ table, block }) => (table.step === step ? [block] : [])),
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
      });
    },
  };
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
 * Numbers, a tint by their size, and the number that a text prints where it differs.
 * @param {Table} table
 * @param {HTMLElement[][]} cells
 * @param {Theme} theme
 */
function fill({ values, printed }, cells, theme) {
  const most = Math.max(1e-9, ...values.flat().filter(Number.isFinite).map(Math.abs));
  const scale = diverging(theme);
  const digits = Math.max(0, ...(printed ?? []).flat().map(digitsOf));
  values.forEach((line, row) =>
    line.forEach((value, column) => {
      const cell = cells[row][column];
      const isFinite = Number.isFinite(value);
      const shown = isFinite ? decimal(value, 3) : 'masked';
      if (cell instanceof HTMLInputElement) {
        if (document.activeElement !== cell || cell.getAttribute('aria-invalid') !== 'true')
          cell.value = document.activeElement === cell ? String(value) : shown;
      } else {
        cell.textContent = shown;
        const other = printed?.[row]?.[column];
        if (other !== undefined && Math.abs(other - value) >= 0.5 * 10 ** -digits)
          cell.append(element('small', {}, `printed ${other.toFixed(digits)}`));
      }
      const strength = isFinite ? (0.42 * value) / most : 0;
      cell.parentElement?.style.setProperty('--tint', css(scale, levelOf(strength + 1, 2)));
    }),
  );
}

/** @param {number} value @returns {number} digits after the point, as it is printed */
function digitsOf(value) {
  return (String(value).split('.')[1] ?? '').length;
}
