/**
 * Taking a drawing along: as a picture, as its numbers, as a page of its own, as code that asks for
 * the same numbers, or as a link that restores it.
 */

import { callsOf } from '../data/call.js';
import { captionOf } from '../plot/caption.js';
import { commandsOf } from '../data/curl.js';
import { pythonOf } from '../data/python.js';
import { csvOf, numbersOf } from '../data/export.js';
import { copy } from './clipboard.js';
import { save } from './download.js';
import { element } from './element.js';
import { createMenu } from './menu.js';
import { plotlySource } from './plotly.js';
import { standaloneOf } from './standalone.js';
import { palette } from './theme.js';

const TELLING = 4000;
/** A page that was saved has no server that a link or code could ask, and is saved already. */
const isSaved = () => location.protocol === 'file:';

/**
 * @typedef {Object} Subject
 * @property {import('../data/trace.js').Trace} trace
 * @property {import('../plot/figure.js').Figure} figure
 * @property {Object[]} cards of all models
 * @property {{image: (format: string, caption: string[]) => Promise<string>}} plot
 * @property {string} name of a file, without its ending
 * @property {string} help what there is to see, in a sentence
 */

/**
 * @param {() => Subject} subject
 * @param {(message: string) => void} announce
 * @returns {{element: HTMLElement, quiet: () => void}} `quiet`: what was said last is of a drawing that is gone
 */
export function createExports(subject, announce) {
  const said = element('span', { class: 'exports-said', 'aria-hidden': 'true' });
  let timer = 0;
  const quiet = () => {
    clearTimeout(timer);
    said.textContent = '';
  };
  const tell = (message) => {
    quiet();
    announce(message);
    said.textContent = message;
    timer = setTimeout(quiet, TELLING);
  };
  const acting = (act) => () =>
    act(subject()).then(tell, (error) => tell(`That did not work: ${error.message}.`));
  const item = (label, help, act) => ({ label, help, act: acting(act) });
  const link = element(
    'button',
    { type: 'button', title: 'Copy a link that restores this view', onclick: acting(copyLink) },
    'Copy link',
  );
  const bar = element(
    'div',
    { class: 'exports', role: 'group', 'aria-label': 'Take it along' },
    said,
    createMenu('Save', 'Save as a file', [
      item('PNG', 'a picture', (of) => saveImage(of, 'png')),
      item('SVG', 'vector graphics', (of) => saveImage(of, 'svg')),
      ...(isSaved() ? [] : [item('HTML', 'a page that opens offline', saveStandalone)]),
      item('CSV', 'numbers for a spreadsheet', ({ figure, name }) =>
        saveText(csvOf(figure.grid), 'text/csv', `${name}.csv`),
      ),
      item('JSON', 'numbers for a program', saveNumbers),
    ]),
    ...(isSaved()
      ? []
      : [
          createMenu('Code', 'Copy code that asks the API for these numbers', [
            item('curl', 'a command for a shell', copyCurl),
            item('Python', 'a script, nothing to install', copyPython),
          ]),
          link,
        ]),
  );
  return { element: bar, quiet };
}

async function saveImage({ trace, figure, cards, plot, name }, format) {
  return save(
    blobOf(await plot.image(format, captionOf(trace, figure, cards))),
    `${name}.${format}`,
  );
}

/** A data URL as a blob, decoded here: `fetch` of a data URL is not allowed by the page's policy. */
function blobOf(url) {
  const [head, body] = [url.slice(0, url.indexOf(',')), url.slice(url.indexOf(',') + 1)];
  const type = head.match(/^data:([^;,]+)/)[1];
  if (!head.endsWith(';base64')) return new Blob([decodeURIComponent(body)], { type });
  return new Blob([Uint8Array.from(atob(body), (character) => character.charCodeAt(0))], { type });
}

async function saveStandalone({ trace, figure, cards, name, help }) {
  const script = await plotlySource();
  const page = standaloneOf({
    trace,
    figure,
    cards,
    help,
    script,
    palette: palette(),
    address: location.href,
    date: new Date(),
  });
  return saveText(page, 'text/html', `${name}.html`);
}

async function saveNumbers({ trace, figure, cards, name }) {
  return saveText(
    JSON.stringify(numbersOf(trace, figure.grid, cards), null, 1),
    'application/json',
    `${name}.json`,
  );
}

async function saveText(text, type, name) {
  return save(new Blob([text], { type }), name);
}

async function copyLink() {
  await copy(location.href);
  return 'Link copied';
}

async function copyCurl({ trace, figure }) {
  await copy(commandsOf(location.origin, callsOf(trace, figure.grid), figure.grid.made));
  return 'Command copied';
}

async function copyPython({ trace, figure }) {
  await copy(pythonOf(location.origin, callsOf(trace, figure.grid), figure.grid));
  return 'Script copied';
}
