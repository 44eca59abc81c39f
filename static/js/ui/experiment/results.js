/**
 * The results of a run: pictures with their exports, a slider over its frames, tables of its numbers,
 * and its errors.
 */

import { experimentPath } from '../../api/experiments.js';
import { advice, isWorthRetrying, messageOf } from '../../api/calls.js';
import { plotHeight, button, element, palette, withSymbols } from '../dom.js';
import { createPanel } from '../panel.js';
import { written } from '../../data/experiment.js';
import { decimal, asSentence } from '../../data/format.js';
import { css, diverging, levelOf } from '../../plot/colour.js';

/**
 * @import { RunState } from '../../api/experiments.js'
 * @import { Description, Picture, Table, Values } from '../../data/experiment.js'
 * @import { Trace } from '../../data/trace.js'
 * @import { Theme } from '../../plot/colour.js'
 * @import { Patch } from '../../state/state.js'
 * @import { Field } from './form.js'
 */

/**
 * @param {Description} description
 * @param {Object} handlers
 * @param {(patch: Patch) => void} handlers.onChoose
 * @param {() => void} handlers.onRedraw
 * @param {(message: string) => void} handlers.announce
 */
export function createPictures(description, { onChoose, onRedraw, announce }) {
  const { id } = description;
  const host = element('div', { class: 'panels is-bench' });
  /** @type {{id: string, panel: ReturnType<typeof createPanel>}[]} */
  let panels = [];

  function makePanel() {
    return createPanel(id, {
      onCell: (cell, grid, isKeyboard) => {
        if (cell && isKeyboard) announce(grid.describe(cell.row, cell.column));
      },
      onChoose: (cell, grid) => onChoose(grid.choose?.(cell.row, cell.column) ?? {}),
      onState: onChoose,
      onGoingOn: onChoose,
      onRedraw,
      announce,
    });
  }

  /** @param {Picture[]} pictures @returns {boolean} are their panels there already? */
  function areArranged(pictures) {
    return (
      panels.length === pictures.length && panels.every((each, at) => each.id === pictures[at].id)
    );
  }

  /** Keeps the panels of pictures that stay. @param {Picture[]} pictures */
  function arrange(pictures) {
    if (areArranged(pictures)) return;
    const kept = new Map(panels.map((each) => [each.id, each]));
    panels = pictures.map(
      (picture) => kept.get(picture.id) ?? { id: picture.id, panel: makePanel() },
    );
    for (const [known, { panel }] of kept)
      if (!panels.some((each) => each.id === known)) {
        panel.destroy();
        panel.element.remove();
      }
    panels.forEach(({ panel }, at) => {
      panel.element.classList.toggle('is-wide', Boolean(pictures[at].isWide));
      if (host.children[at] !== panel.element)
        host.insertBefore(panel.element, host.children[at] ?? null);
    });
  }

  return {
    element: host,

    /**
     * Draws the pictures in turn, so that the page answers between two of them; those of a run that
     * goes on are drawn at once, so that all are of one step.
     * @param {Picture[]} pictures
     * @param {string} text the experiment and its parameters in words
     * @param {Values} body of the request that gives these numbers
     * @param {boolean} isGoingOn
     */
    async show(pictures, text, body, isGoingOn) {
      const isAtOnce = isGoingOn && areArranged(pictures);
      arrange(pictures);
      const size = { height: plotHeight(window.innerHeight), palette: palette() };
      for (const [at, picture] of pictures.entries()) {
        const { panel } = panels[at];
        if (at > 0 && !isAtOnce) await pause();
        try {
          const figure = picture.draw({ ...size, width: Math.max(220, panel.width()) });
          const grid = { ...figure.grid, call: { path: experimentPath(id), body } };
          panel.show(subject(text), { ...figure, grid }, { cards: [], help: description.see });
        } catch (error) {
          console.warn(error);
          panel.fail(`This picture failed: ${messageOf(error)}`);
        }
      }
    },
  };
}

/**
 * The stand-in for a trace that captions and exports read their text from.
 * @param {string} text
 * @returns {Trace}
 */
function subject(text) {
  return {
    id: '',
    model: '',
    revision: '',
    text,
    tokens: [],
    target: null,
    target_tokens: null,
    tensors: {},
    analyses: {},
    timings: {},
  };
}

/** Lets the page answer what has happened meanwhile. @returns {Promise<void>} */
function pause() {
  return new Promise((resolve) => {
    setTimeout(resolve);
  });
}

/** Milliseconds of a frame that is played. */
const PLAYED = 140;

/**
 * Makes a slider over the frames of a run, and a button that plays them.
 * @param {string} id of the experiment
 * @param {Object} handlers
 * @param {(at: number|null, isPlayed: boolean) => void} handlers.onFrame null: the last there is
 */
export function createScrubber(id, { onFrame }) {
  const slider = element('input', { type: 'range', min: 0, max: 0, step: 1, id: `${id}-frame` });
  const label = element('output', { for: `${id}-frame` });
  const play = element('button', { type: 'button', class: 'button' }, 'Play');
  const host = element(
    'div',
    { class: 'scrubber', hidden: true },
    play,
    element('label', { class: 'unseen', for: `${id}-frame` }, 'Training step that is shown'),
    slider,
    label,
  );
  let playing = 0;
  /** @param {number} at */
  const frameAt = (at) => (at >= Number(slider.max) ? null : at);

  slider.addEventListener('input', () => {
    stop();
    onFrame(frameAt(Number(slider.value)), false);
  });
  play.addEventListener('click', () => {
    if (playing !== 0) {
      stop();
      onFrame(frameAt(Number(slider.value)), false);
      return;
    }
    let at = frameAt(Number(slider.value)) ?? 0;
    playing = setInterval(() => {
      at += 1;
      const shown = frameAt(at);
      if (shown === null) stop();
      onFrame(shown, shown !== null);
    }, PLAYED);
    onFrame(at, true);
  });

  function stop() {
    clearInterval(playing);
    playing = 0;
  }

  return {
    element: host,
    stop,

    /**
     * @param {number[]} steps of the frames
     * @param {number} at
     * @param {number} total
     */
    show(steps, at, total) {
      host.hidden = steps.length < 2;
      slider.max = String(steps.length - 1);
      slider.value = String(at);
      const words = `step ${steps[at]} of ${total}`;
      label.textContent = words;
      slider.setAttribute('aria-valuetext', words);
      play.textContent = playing === 0 ? 'Play' : 'Pause';
    },
  };
}

/**
 * Shows the errors of a run: at the field of a wrong parameter, or as a notice with a button.
 * @param {Map<string, Field>} fields by parameter
 * @param {() => void} onRetry
 */
export function createProblem(fields, onRetry) {
  const host = element('div', { class: 'notice', role: 'alert', hidden: true });
  return {
    element: host,

    /** @param {RunState} state */
    show({ problem, isBroken }) {
      host.hidden = !problem;
      if (!problem) {
        host.replaceChildren();
        return;
      }
      const unplaced = problem.errors.filter(({ field, message }) => {
        const input = fields.get(field.split('.')[0]);
        input?.fail(message);
        return !input;
      });
      host.hidden = problem.errors.length > 0 && unplaced.length === 0;
      const lines = isBroken
        ? [
            'The run broke off',
            `${asSentence(problem.detail || problem.message)} The pictures show how far it came.`,
          ]
        : [
            problem.message,
            asSentence(unplaced.map(({ message }) => message).join('; ') || problem.detail),
          ];
      host.replaceChildren(
        element('p', { class: 'notice-title' }, lines[0]),
        element('p', {}, lines[1]),
        ...(isBroken || isWorthRetrying(problem)
          ? [
              element('p', { class: 'notice-advice' }, advice(problem)),
              button('Try again', onRetry),
            ]
          : []),
      );
    },
  };
}

/** The largest number that can be entered, as the API has it; the least is its negative. */
const MOST = 1e6;

/**
 * Tables of numbers, by step; those that are given can be edited.
 * @param {Object} handlers
 * @param {(name: string, rows: number[][]|null) => void} handlers.onRows null: as they were
 */
export function createTables({ onRows }) {
  const host = element('div', { class: 'worked', hidden: true });
  /** @type {{table: Table, cells: HTMLElement[][], problem: HTMLElement}[]} */
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
    const problem = element('p', { class: 'field-problem', role: 'alert' });
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
          isEdited ? button('Reset', () => onRows(name, null), { class: 'worked-reset' }) : null,
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
              ...cells[at].map((cell) => element('td', {}, cell, element('small', {}))),
            ),
          ),
        ),
      ),
      problem,
    );
    return { table, cells, problem, block };
  }

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
      const found = mine();
      if (found) tell(found);
      if (!isNumber || !found) return;
      onRows(
        name,
        found.table.values.map((line, at) =>
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
        tell(drawn[index]);
      });
    },
  };
}

/** A number that is sent with one that was typed; 6 decimals keep a link short. @param {number} value */
function rounded(value) {
  return Number.isFinite(value) ? Number(value.toFixed(6)) : 0;
}

/**
 * Says below a table what is wrong with a cell, if one is.
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
      cell.parentElement?.style.setProperty('--tint', css(scale, levelOf(strength + 1, 2)));
    }),
  );
}

/** @param {number} value @returns {number} digits after the point, as it is printed */
function digitsOf(value) {
  return (String(value).split('.')[1] ?? '').length;
}
