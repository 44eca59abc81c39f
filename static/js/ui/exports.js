/**
 * Exports of a drawing: a picture, its numbers, code that requests the same numbers, and the whole
 * page as one file. Loaded when the first export is asked for.
 */

import { arrived, BASE, call, fetchSafetensors } from '../api/calls.js';
import { capitalised, counted } from '../words/lists.js';
import { inBytes } from '../words/numbers.js';
import { openingElement, openingOf, tileElement } from '../rules/presentation.js';
import { callsOf, curlOf, madeOf, originOf, pythonOf } from '../api/request_code.js';
import { serverAddress } from '../api/root.js';
import { withoutNulls } from '../trace/trace.js';
import { save, element } from './dom.js';

/** @import { Subject } from './panel.js' */

/** Save a file of the API under the name of its model. @param {string} path */
export async function saveFile(path) {
  const answer = await call(path, { accept: '*/*' });
  return save(await answer.blob(), path.split('/').slice(-2).join('-'));
}

/** @param {Subject} of @param {'png'|'svg'} format */
export async function saveImage({ trace, figure, cards, plot, name }, format) {
  // A picture for slides carries the finding; the revision is in the figure for a paper.
  const finding = document.querySelector('#finding:not([hidden]) #says')?.textContent ?? '';
  const caption = `${captionOf({ ...trace, revision: '' }, figure, cards)} ${finding}`.trim();
  return save(blobOf(await plot.image(format, caption)), `${name}.${format}`);
}

/**
 * Return the caption of a picture: what it shows, and the model and text it is of.
 * @param {Trace} trace
 * @param {{title: string, grid: Partial<Grid>}} figure
 * @param {Card[]} cards of all models
 */
export function captionOf(trace, { title, grid }, cards) {
  const { quantity = '' } = grid;
  const isNamed = quantity.toLowerCase().includes(title.toLowerCase());
  const what = isNamed ? capitalised(quantity) : [title, quantity].filter(Boolean).join(': ');
  const facts = [what, ...madeOf(trace, grid, cards)];
  return facts.map((fact) => `${fact.replace(/\.$/, '')}.`).join(' ');
}

/**
 * Return a data URL as a blob, decoded here: `fetch` of a data URL is not allowed by the page's
 * policy.
 * @param {string} url
 */
export function blobOf(url) {
  const [head, body] = [url.slice(0, url.indexOf(',')), url.slice(url.indexOf(',') + 1)];
  const type = head.match(/^data:([^;,]+)/)?.[1];
  if (!head.endsWith(';base64')) return new Blob([decodeURIComponent(body)], { type });
  return new Blob([Uint8Array.from(atob(body), (character) => character.charCodeAt(0))], { type });
}

/**
 * Return every view of the text as one file, which opens on the current view. The server computes
 * what is not on the screen yet; of a long text the file holds what is: the maps, the curves once
 * they are read, and the current part.
 * @param {{trace: Trace, figure: {held?: any[], grid: Pick<Grid, 'request'|'call'>}}} of
 * @param {Object} [way]
 * @param {AbortSignal} [way.signal] cancels it
 * @param {(share: number|null) => void} [way.onProgress] called with the share of the file that arrived; null: not known
 * @returns {Promise<string>} the name and the size of the file
 */
export async function saveWhole(
  { trace, figure: { grid, held = [] } },
  { signal, onProgress } = {},
) {
  const { model, text, target, asked, resolution } = trace;
  if (asked?.messages)
    throw new Error('A conversation cannot be saved as a page; its link, by Share, opens it');
  const isPartial = resolution && held.length === 0;
  const { kept } = await import('./present.js');
  const opening = openingOf(location.hash, kept());
  // A prediction that was chosen to be explained is explained in the file too.
  const { logit_difference } = grid.request ?? {};
  const body = withoutNulls({ model: asked?.model ?? model, text, target, logit_difference });
  const page = resolution
    ? await (await import('./long_page.js')).longPageOf(trace, held)
    : await textOf(await call(`${BASE}/page`, { accept: 'text/html', body, signal }), onProgress);
  signal?.throwIfAborted();
  const end = page.lastIndexOf('</body>');
  const path = grid.call?.path ?? '';
  const tile = resolution && path.startsWith(`${BASE}/traces/`) ? await tileOf(path) : '';
  const parts = [page.slice(0, end), openingElement(opening), tile, page.slice(end)];
  const file = new Blob(parts, { type: 'text/html' });
  const name = ['headlight', model, slugOf(text)].filter(Boolean).join('-');
  const { length } = opening.slides;
  const queue = length > 0 ? `, with ${counted(length, 'view')} to present` : '';
  const lack = isPartial ? ', without the curves, which are not read yet' : '';
  return `${save(file, `${name}.html`)}, ${inBytes(file.size)}${queue}${lack}`;
}

/**
 * Return the text of an answer, and tell how much of it arrived.
 * @param {Response} answer
 * @param {(share: number|null) => void} [onProgress]
 */
async function textOf(answer, onProgress) {
  // A compressed answer has the length of what is sent, not of what is read.
  const length = answer.headers.get('Content-Encoding')
    ? 0
    : Number(answer.headers.get('Content-Length'));
  if (!onProgress || !answer.body || !length) return arrived(answer.text());
  const reader = answer.body.getReader();
  const parts = [];
  let count = 0;
  for (;;) {
    const { done, value } = await arrived(reader.read());
    if (done) return new Blob(parts).text();
    parts.push(value);
    count += value.length;
    onProgress(count / length);
  }
}

/** @param {string} path of the part of a map that is looked at */
async function tileOf(path) {
  return tileElement(path, await fetchSafetensors(path));
}

/** @param {Subject} of */
export async function saveCsv({ figure, name }) {
  return save([csvOf(figure.grid)], `${name}.csv`);
}

/** @param {Subject} of */
export async function saveNumbers({ trace, figure, cards, name }) {
  return save([JSON.stringify(numbersOf(trace, figure.grid, cards), null, 1)], `${name}.json`);
}

/** @param {Subject} of */
export async function copyCurl({ trace, figure }) {
  const { made } = figure.grid;
  const calls = callsOf(trace, figure.grid).map((call) => curlOf(serverAddress(), call));
  await copy([...calls, ...(made ? [`# ${made}`] : [])].join('\n'));
  return 'Command copied';
}

/** @param {Subject} of */
export async function copyPython({ trace, figure }) {
  await copy(pythonOf(serverAddress(), callsOf(trace, figure.grid), figure.grid));
  return 'Script copied';
}

/**
 * Return the values of a function of row and column, cell by cell; missing ones are null.
 * @param {Grid} grid
 * @param {(row: number, column: number) => number|undefined} value
 */
function cellsOf({ rows, columns }, value) {
  /** @param {number} row @param {number} column */
  const cell = (row, column) => {
    const number = value(row, column);
    return number === undefined || Number.isNaN(number) ? null : Number(exact(number));
  };
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_, column) => cell(row, column)),
  );
}

/**
 * If cells are marked as chosen, their weights follow in other rows.
 * @param {Grid} grid
 * @returns {string}
 */
export function csvOf(grid) {
  const ofRows = grid.ofRows ?? [];
  const header = [cornerOf(grid), ...grid.columnLabels, ...ofRows.map(({ label }) => label)];
  /** @param {(row: number, column: number) => number|undefined} value @param {string} suffix */
  const body = (value, suffix) =>
    cellsOf(grid, value).map((cells, row) => [
      grid.rowLabels[row] + suffix,
      ...cells.map((cell) => (cell === null ? '' : String(cell))),
      ...(suffix ? [] : ofRows.map(({ value: ofRow }) => filled(ofRow(row)))),
    ]);
  const weights = grid.chosenWeight ? body(grid.chosenWeight, ': weight where chosen') : [];
  return csv([header, ...body(grid.value, ''), ...weights]);
}

/** @param {number} value @returns {string} empty for none */
function filled(value) {
  return Number.isNaN(value) ? '' : exact(value);
}

/** @param {Grid} grid what rows and columns are */
export function cornerOf({ rowTitle, columnTitle }) {
  return columnTitle ? `${rowTitle} \\ ${columnTitle}` : rowTitle;
}

/**
 * @param {Trace} trace
 * @param {Grid} grid
 * @param {Card[]} cards of all models
 * @returns {Record<string, unknown>} ready for JSON
 */
export function numbersOf(trace, grid, cards) {
  return {
    ...originOf(trace, grid, cards),
    quantity: grid.quantity,
    axes: [grid.rowTitle, grid.columnTitle],
    rows: grid.rowLabels,
    columns: grid.columnLabels,
    values: cellsOf(grid, grid.value),
    ...(grid.ofRows && {
      of_rows: Object.fromEntries(
        grid.ofRows.map(({ label, value }) => [
          label,
          grid.rowLabels.map((_, row) => (Number.isNaN(value(row)) ? null : value(row))),
        ]),
      ),
    }),
    ...(grid.chosenWeight && { weights_where_chosen: cellsOf(grid, grid.chosenWeight) }),
  };
}

/** @param {string[][]} rows @returns {string} */
export function csv(rows) {
  return rows.map((row) => row.map(field).join(',')).join('\r\n') + '\r\n';
}

/**
 * Write a field of a CSV file. A leading = + - @, tab or carriage return may run as a formula in a
 * spreadsheet; a tab before it keeps it text. One tab at the beginning of a cell is therefore never
 * part of its text. https://owasp.org/www-community/attacks/CSV_Injection
 * @param {string} text
 */
function field(text) {
  const isNumber = text.trim() !== '' && Number.isFinite(Number(text));
  const safe = /^[=+\-@\t\r]/.test(text) && !isNumber ? `\t${text}` : text;
  return /[",\r\n\t]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

/** @param {string} text @throws {Error} which says what to do */
export async function copy(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return;
    } catch {
      // The older way may still be open.
    }
  }
  if (!copyBySelection(text))
    throw new Error(
      'the browser does not let this page copy; open it over HTTPS or at localhost, or save a file instead',
    );
}

/** @param {string} text */
function copyBySelection(text) {
  const focused = /** @type {HTMLElement} */ (document.activeElement);
  const box = element('textarea.unseen', { 'aria-hidden': 'true', readonly: true });
  box.value = text;
  document.body.append(box);
  box.select();
  const isDone = document.execCommand('copy');
  box.remove();
  focused?.focus();
  return isDone;
}

/**
 * Return the first words of a text as a part of a file's name: `doctor-mouse-sat-down`.
 * @param {string} text
 * @returns {string} empty if the text has no letters
 */
export function slugOf(text) {
  const words = text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  return words.slice(0, SLUG_WORDS).join('-').slice(0, LONGEST_SLUG).replace(/-$/, '');
}

const LONGEST_SLUG = 60;
const SLUG_WORDS = 6;

/**
 * Return a number as it is, in as few digits as give it back: nine are enough for any float32.
 * @param {number} value
 * @returns {string} `0.1` for the float32 next to it, which is 0.10000000149011612
 */
export function exact(value) {
  if (Math.fround(value) !== value) return String(value);
  for (let digits = 1; digits < 9; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(Number(value.toPrecision(9)));
}
