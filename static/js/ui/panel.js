/**
 * A panel: one figure with its heading, exports and table.
 */

import { messageOf } from '../api/calls.js';
import { READING } from '../api/answers.js';
import { createControls } from './controls.js';
import { button, element, keepBeside, withSymbols } from './dom.js';
import { createPlot } from './plot.js';

/** @import { Term } from './formula.js' */

/**
 * @param {string} name for saved files: `attention`, `experts-layer-1`
 * @param {Handlers} handlers
 */
export function createPanel(name, handlers) {
  /** @type {Trace|null} */
  let trace = null;
  /** @type {DrawnFigure|null} */
  let figure = null;
  /** @type {Pick<Subject, 'cards'|'help'|'redraw'>} */
  let around = { cards: [], help: '' };
  const heading = element('h2');
  const formula = element('div.panel-formula', { hidden: true });
  const help = element('p.panel-help', { hidden: true });
  const facts = element('dl.panel-facts', { hidden: true });
  const actions = element('div.panel-actions', { hidden: true });
  const controls = createControls(`${name}-drawing`, handlers.onState);
  const notice = element('p.panel-notice', { hidden: true });
  const plot = createPlot(handlers);
  const table = createTable(handlers.onChoose);
  const exports = createExports(
    () =>
      trace && figure && { trace, figure, plot, name: fileName(name, figure, trace), ...around },
    handlers.announce,
  );
  const head = element('div.panel-head', heading, exports.element);
  const words = element('div.panel-words', formula, help, facts);
  const body = element(
    'div.panel-body',
    notice,
    plot.element,
    actions,
    controls.element,
    table.element,
  );
  const panel = element('section.panel', head, words, body);
  const parts = { formula, help, facts, actions, controls };

  /** @param {string} message @param {boolean} isFailure */
  function tell(message, isFailure) {
    notice.textContent = message;
    notice.hidden = message === '';
    notice.classList.toggle('is-failure', isFailure);
    for (const part of [exports.element, plot.element, table.element]) part.hidden = message !== '';
  }

  return {
    element: panel,
    width: () => body.clientWidth,

    /**
     * @param {Trace} of
     * @param {Figure} wanted
     * @param {Pick<Subject, 'cards'|'help'|'redraw'>} setting of all models, and what the view shows in a sentence
     * @returns {Promise<void>|undefined} ends when it is drawn
     */
    show(of, wanted, setting) {
      const isPaled = Boolean((wanted.isWaiting || wanted.notice === READING) && figure?.grid);
      panel.classList.toggle('is-stale', isPaled);
      if (isPaled) return undefined;
      exports.quiet();
      trace = of;
      figure = isDrawn(wanted) ? wanted : null;
      around = { cards: setting.cards, help: wanted.help ?? setting.help, redraw: setting.redraw };
      heading.textContent = wanted.title;
      panel.setAttribute('aria-label', wanted.title);
      surround(parts, wanted, handlers.onState);
      tell(wanted.notice ?? '', false);
      if (wanted.notice || !figure) return undefined;
      table.show(figure.grid);
      return plot.draw(figure).catch((error) => {
        tell(error.message, true);
        table.element.hidden = false;
      });
    },

    /** @param {string} message */
    fail(message) {
      panel.classList.remove('is-stale');
      surround(parts, {}, handlers.onState);
      tell(message, true);
    },

    destroy: plot.destroy,
  };
}

/** @typedef {Record<'formula'|'help'|'facts'|'actions', HTMLElement> & {controls: ReturnType<typeof createControls>}} Parts around a drawing */

/**
 * Show the formula, help, facts, switches and actions of a figure.
 * @param {Parts} parts
 * @param {Partial<Figure>} figure
 * @param {Handlers['onState']} onState
 */
function surround(parts, { formula = [], help = '', facts = [], actions = [], ...more }, onState) {
  showFormula(parts.formula, formula);
  parts.help.replaceChildren(...withSymbols(help));
  parts.help.hidden = help === '';
  parts.facts.replaceChildren(
    ...facts.map(([term, value]) => element('div', element('dt', term), element('dd', value))),
  );
  parts.facts.hidden = facts.length === 0;
  parts.facts.setAttribute('aria-live', more.grid?.move ? 'polite' : 'off');
  parts.controls.show(more.controls ?? []);
  showActions(parts.actions, actions, onState);
}

/** @param {HTMLElement} host @param {Term[]} lines */
async function showFormula(host, lines) {
  host.hidden = lines.length === 0;
  host.replaceChildren();
  if (lines.length === 0) return;
  const { formulaLines } = await import('./formula.js');
  if (!host.hidden) host.replaceChildren(...formulaLines(lines));
}

/**
 * Show actions; an unchanged one keeps its button, and its focus.
 * @param {HTMLElement} host
 * @param {NonNullable<Figure['actions']>} offered
 * @param {Handlers['onState']} onState
 */
function showActions(host, offered, onState) {
  host.hidden = offered.length === 0;
  while (host.children.length > offered.length) host.lastElementChild?.remove();
  offered.forEach(({ label, patch = {}, href, file }, index) => {
    let shown = host.children[index];
    const fits = href ? shown?.getAttribute('href') === href : shown instanceof HTMLButtonElement;
    if (!shown || !fits) {
      const fresh = href ? element('a.button', { href }) : button('', () => {});
      if (shown) shown.replaceWith(fresh);
      else host.append(fresh);
      shown = fresh;
    }
    shown.textContent = label;
    if (shown instanceof HTMLButtonElement)
      shown.onclick = ({ currentTarget }) =>
        file ? saveFile(file, /** @type {HTMLElement} */ (currentTarget)) : onState(patch);
  });
}

/** Save a file of the API, as a link would carry no key. @param {string} path @param {HTMLElement} told */
async function saveFile(path, told) {
  try {
    told.textContent = await (await loadExports()).saveFile(path);
  } catch (error) {
    told.textContent = messageOf(error);
  }
}

/** @param {Figure} figure @returns {figure is DrawnFigure} */
function isDrawn(figure) {
  return Boolean(figure.data && figure.layout && figure.grid);
}

/** Create the numbers behind a drawing as a table, built when it is opened. @param {Handlers['onChoose']} onChoose */
function createTable(onChoose) {
  const body = element('div');
  const details = element(
    'details.table-block',
    element('summary', 'The numbers as a table'),
    body,
  );
  /** @type {Grid|null} */
  let grid = null;
  /** @type {{show: (grid: Grid) => void}|null} */
  let table = null;
  details.addEventListener('toggle', async () => {
    if (!details.open || table || !grid) return;
    const { createPages } = await import('./table.js');
    table = createPages(body, onChoose);
    table.show(grid);
  });

  return {
    element: details,
    /** @param {Grid} wanted */
    show(wanted) {
      if (wanted.isOpen && !grid) details.open = true;
      grid = wanted;
      if (details.open) table?.show(grid);
    },
  };
}

/** Letters of a text that a file is named by. */
const NAME_LETTERS = 24;

/** Name a file by model, view, drawing, and text or task. @param {string} name @param {Figure} figure @param {Trace} trace */
function fileName(name, { title, grid }, { model, text }) {
  const task = grid?.call?.body?.task;
  const of = model === '' ? '' : (task ?? text.slice(0, NAME_LETTERS));
  const words = `${model} ${name} ${title} ${of}`
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
  return `headlight-${words}`;
}

const TELLING = 8000;
/** A page that was saved has no server that a link or code could ask, and is saved already. */
const isSaved = () => document.body.classList.contains('is-saved');

/**
 * @typedef {Object} Subject
 * @property {Trace} trace
 * @property {DrawnFigure} figure
 * @property {Card[]} cards of all models
 * @property {{image: (format: 'png'|'svg', caption: string) => Promise<string>}} plot
 * @property {string} name of a file, without its ending
 * @property {string} help what there is to see, in a sentence
 * @property {(patch: {width: number, palette: Palette}) => Figure} [redraw] the figure with another width or other colours
 */

/** @typedef {typeof import('./exports.js')} Exports */

/**
 * @param {() => Subject|null} subject null: there is no drawing yet
 * @param {(message: string) => void} announce
 * @returns {{element: HTMLElement, quiet: () => void}} `quiet`: what was said last is of a drawing that is gone
 */
function createExports(subject, announce) {
  const said = element('span.exports-said', { 'aria-hidden': 'true' });
  let timer = 0;
  const quiet = () => {
    clearTimeout(timer);
    said.textContent = '';
  };
  /** @param {string} message @param {number} [time] for which it stays */
  const tell = (message, time = TELLING) => {
    quiet();
    announce(message);
    said.textContent = message;
    if (time < Infinity) timer = setTimeout(quiet, time);
  };
  /** @param {(exports: Exports, of: Subject) => Promise<string>} act */
  const acting = (act) => async () => {
    const of = subject();
    if (!of) return;
    try {
      tell(await act(await loadExports(), of));
    } catch (error) {
      tell(`Export failed: ${messageOf(error)}.`);
    }
  };
  /**
   * @param {string} label
   * @param {string} help
   * @param {(exports: Exports, of: Subject) => Promise<string>} act
   */
  const item = (label, help, act) => ({ label, help, act: acting(act) });
  const bar = element(
    'div.exports',
    { role: 'group', 'aria-label': 'Export' },
    said,
    createMenu('Save', 'Save the drawing, its numbers or code', [
      item('PNG', 'a picture', (exports, of) => exports.saveImage(of, 'png')),
      item('SVG', 'vector graphics', (exports, of) => exports.saveImage(of, 'svg')),
      item('Figure…', 'SVG, PNG or print for a paper', async (_, of) => {
        const { openFigureDialog } = await import('./figure_dialog.js');
        openFigureDialog(of, tell);
        return '';
      }),
      item('CSV', 'numbers for a spreadsheet', (exports, of) => exports.saveCsv(of)),
      item('JSON', 'numbers for a program', (exports, of) => exports.saveNumbers(of)),
      ...(isSaved()
        ? []
        : [
            item('Copy curl', 'a command that asks the API for these numbers', (exports, of) =>
              exports.copyCurl(of),
            ),
            item(
              'Copy Python',
              'a script that does so and prints them, without dependencies',
              (exports, of) => exports.copyPython(of),
            ),
          ]),
    ]),
  );
  return { element: bar, quiet };
}

/** Return the exports, loaded when the first one is asked for. */
async function loadExports() {
  try {
    return await import('./exports.js');
  } catch {
    throw new Error('the server does not respond; check that it is running, then try again');
  }
}

let count = 0;

/** @typedef {{label: string, help: string, act: () => void}} Item */

/** @param {string} label @param {string} title what it is for @param {Item[]} items */
function createMenu(label, title, items) {
  count += 1;
  const id = `menu-${count}`;
  const entries = items.map(({ label: name, help, act }) =>
    element(
      'button',
      { type: 'button', popovertarget: id, popovertargetaction: 'hide', onclick: act },
      element('span.menu-name', name),
      element('span.menu-help', help),
    ),
  );
  const list = element(
    'div.menu-list',
    { id, popover: 'auto', role: 'group', 'aria-label': title },
    entries,
  );
  const opener = element('button.menu-button', { type: 'button', title, popovertarget: id }, label);
  keepBeside(opener, list);
  return element('div.menu', opener, list);
}
