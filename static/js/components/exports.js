/**
 * Taking a drawing along: as a picture, as its numbers, or as a link that restores it.
 */

import { csv } from '../core/csv.js';
import { curlOf } from '../core/curl.js';
import { exact } from '../core/number.js';
import { element } from './element.js';

/**
 * @param {() => {trace: import('../core/trace.js').Trace, grid: import('../core/figure.js').Grid, plot: {image: (format: string) => Promise<string>}, name: string}} subject
 * @param {(message: string) => void} announce
 */
export function createExports(subject, announce) {
  const button = (label, title, act) => element('button', {
    type: 'button',
    title,
    onclick: () => act().then(announce, (error) => announce(`That did not work: ${error.message}`)),
  }, label);
  return element('div', { class: 'exports', role: 'group', 'aria-label': 'Save' },
    button('PNG', 'Save the drawing as a picture', () => saveImage(subject(), 'png')),
    button('SVG', 'Save the drawing as vector graphics', () => saveImage(subject(), 'svg')),
    button('CSV', 'Save the numbers for a spreadsheet', () => saveText(subject(), 'csv', 'text/csv', csvOf)),
    button('JSON', 'Save the numbers for a program', () => saveText(subject(), 'json', 'application/json', jsonOf)),
    button('Copy link', 'Copy a link that restores this view', copyLink),
    button('curl', 'Copy a command that asks the API for these numbers', () => copyCurl(subject())),
  );
}

async function saveImage({ plot, name }, format) {
  const answer = await (await blobOf(await plot.image(format)));
  return save(answer, `${name}.${format}`);
}

/** A data URL as a blob, decoded here: `fetch` of a data URL is not allowed by the page's policy. */
async function blobOf(url) {
  const [head, body] = [url.slice(0, url.indexOf(',')), url.slice(url.indexOf(',') + 1)];
  const type = head.match(/^data:([^;,]+)/)[1];
  if (!head.endsWith(';base64')) return new Blob([decodeURIComponent(body)], { type });
  return new Blob([Uint8Array.from(atob(body), (character) => character.charCodeAt(0))], { type });
}

async function saveText(subject, ending, type, write) {
  return save(new Blob([write(subject)], { type }), `${subject.name}.${ending}`);
}

function save(blob, name) {
  const link = element('a', { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  return `Saved ${name}`;
}

async function copyLink() {
  await navigator.clipboard.writeText(location.href);
  return 'Link copied';
}

async function copyCurl({ trace, grid }) {
  await navigator.clipboard.writeText(curlOf(location.origin, { ...trace.asked, ...grid.request }));
  return 'Command copied';
}

/** What a function of row and column gives, cell by cell; nothing is null. */
function cellsOf({ rows, columns }, value) {
  const cell = (row, column) => {
    const found = value(row, column);
    return found === undefined || Number.isNaN(found) ? null : Number(exact(found));
  };
  return Array.from({ length: rows }, (_, row) => Array.from({ length: columns }, (_, column) => cell(row, column)));
}

/** Where cells were chosen, their weights follow in rows of their own. */
function csvOf({ grid }) {
  const header = [grid.columnTitle ? `${grid.rowTitle} \\ ${grid.columnTitle}` : grid.rowTitle, ...grid.columnLabels];
  const body = (value, suffix) => cellsOf(grid, value).map((cells, row) => [grid.rowLabels[row] + suffix, ...cells.map((cell) => (cell === null ? '' : String(cell)))]);
  const weights = grid.chosenWeight ? body(grid.chosenWeight, ': weight where chosen') : [];
  return csv([header, ...body(grid.value, ''), ...weights]);
}

function jsonOf({ trace, grid }) {
  return JSON.stringify({
    model: trace.model,
    revision: trace.revision,
    text: trace.text,
    ...(trace.target_tokens && { target: trace.target }),
    quantity: grid.quantity,
    axes: [grid.rowTitle, grid.columnTitle],
    rows: grid.rowLabels,
    columns: grid.columnLabels,
    values: cellsOf(grid, grid.value),
    ...(grid.chosenWeight && { weights_where_chosen: cellsOf(grid, grid.chosenWeight) }),
  }, null, 1);
}
