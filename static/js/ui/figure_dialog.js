/**
 * The dialog that makes a figure for a paper: a drawing or all heads as SVG, as PNG or printed, at a
 * width in millimetres, with text of a size in points, or its numbers. Loaded when it is asked for.
 */

import { messageOf } from '../api/calls.js';
import { choosePlace, tokensOf, heldWeightsAt } from '../trace/attention.js';
import { isCausal, matrixAt, range } from '../trace/trace.js';
import { positionLabels } from '../words/tokens.js';
import {
  allHeads,
  DPI,
  FORMATS,
  headLines,
  LIMITS,
  paperPicture,
  pixelsAcross,
  withResolution,
} from '../plot/picture.js';
import { plotly } from '../plot/renderer.js';
import { button, element, palette, printAlone, save, segment } from './dom.js';
import { blobOf, captionOf, csv, csvOf } from './exports.js';

/** @import { HeadMap } from '../plot/picture.js' @import { Subject } from './panel.js' */

/** The form's fields as they were filled in last; the next figure begins with them. */
const STANDARD = { mm: '85', points: '8', format: 'svg', caption: 'on', what: 'drawing' };
/** @type {Record<string, string|undefined>} */
let wish = STANDARD;

/** @param {Subject} of @param {(message: string) => void} tell */
export function openFigureDialog(of, tell) {
  const heads = headsOf(of.trace);
  wish = { ...wish, what: 'drawing' };
  const preview = element('div.paper-preview');
  const said = element('p.queue-said', { role: 'status' });
  const name = () => (wish.what === 'heads' ? `headlight-${of.trace.model}-heads` : of.name);

  /** @param {() => Promise<unknown>} act */
  const acting = (act) => async () => {
    if (!form.reportValidity()) return;
    try {
      await act();
    } catch (error) {
      said.textContent = messageOf(error);
    }
  };
  const show = acting(async () => {
    wish = Object.fromEntries(/** @type {any} */ (new FormData(form)));
    const { url, width, height } = await pictureNow('svg');
    const alt = `Preview of the figure: ${of.figure.summary ?? of.figure.title}`;
    preview.replaceChildren(imageOf({ url, width }, alt));
    said.textContent = `${width} × ${Math.round(height)} mm`;
  });
  /** @param {string} format */
  const pictureNow = (format) => pictureOf(of, heads, format);
  /** Say what was saved, here and on the page. The dialog stays for the next file. @param {string} message */
  const say = (message) => {
    said.textContent = message;
    tell(message);
  };
  const saveFigure = acting(async () => {
    const { format = '' } = wish;
    const file = blobOf((await pictureNow(format)).url);
    say(save(format === 'png' ? withResolution(file) : file, `${name()}.${format}`));
  });
  const print = acting(async () => {
    const { url, width, height } = await pictureNow('svg');
    const image = imageOf({ url, width }, '');
    await image.decode();
    printAlone(image, `size: ${width}mm ${Math.ceil(height)}mm; margin: 0`);
  });
  const saveNumbers = () => {
    const text =
      wish.what === 'heads' ? csv(headLines(heads.maps, heads.labels)) : csvOf(of.figure.grid);
    say(save([text], `${name()}.csv`));
  };

  const form = element(
    'form.paper-form',
    { onchange: show, onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    heads.maps.length > 0
      ? choices('Show', 'what', { drawing: 'This drawing', heads: heads.title })
      : null,
    element(
      'div.paper-line',
      number('Width', 'mm', 'mm: 85 is one column, 180 two'),
      number('Text', 'points', 'pt'),
    ),
    element(
      'label',
      element('input', { type: 'checkbox', name: 'caption', checked: wish.caption === 'on' }),
      ' Caption: model, revision and text',
    ),
    choices(
      'Format',
      'format',
      Object.fromEntries(
        FORMATS.map((format) => [format, format === 'png' ? `PNG, ${DPI} dpi` : 'SVG']),
      ),
    ),
  );
  const dialog = element(
    'dialog.keys.paper',
    { 'aria-labelledby': 'paper-title', onclose: () => dialog.remove() },
    element('h2', { id: 'paper-title' }, 'Figure for a paper'),
    form,
    preview,
    said,
    element(
      'div.queue-actions',
      button('Numbers as CSV', saveNumbers),
      button('Print or PDF', print, { title: 'The print dialog of the browser also saves as PDF' }),
      element('span.queue-gap'),
      button('Close', () => dialog.close()),
      button('Save figure', saveFigure, { class: 'button is-primary' }),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
  show();
}

/** @param {Subject} of @param {ReturnType<typeof headsOf>} heads @param {string} format */
async function pictureOf(of, heads, format) {
  const size = { mm: Number(wish.mm), points: Number(wish.points) };
  const width = pixelsAcross(size);
  const colours = palette('light');
  const isHeads = wish.what === 'heads';
  const figure = isHeads ? allHeads(heads.maps, width, colours) : redrawn(of, width);
  const named = isHeads ? { title: heads.title, grid: {} } : of.figure;
  const said = [captionOf(of.trace, named, of.cards), isHeads ? '' : figure.labelled];
  const caption = wish.caption ? said.filter(Boolean).join(' ') : '';
  return paperPicture(await plotly(), figure, caption, { ...size, format }, colours);
}

/** @param {{url: string, width: number}} picture @param {string} alt */
function imageOf({ url, width }, alt) {
  return element('img', { src: url, alt, style: `width: ${width}mm` });
}

/** Draw the view again at the width of the paper, in light colours. @param {Subject} of @param {number} width */
function redrawn({ figure, redraw }, width) {
  const made = redraw?.({ width, palette: palette('light') });
  return made?.data && made.layout ? /** @type {DrawnFigure} */ (made) : figure;
}

/** Return the weights of all heads of the attention that is looked at. @param {Trace} trace */
function headsOf(trace) {
  const place = choosePlace({ where: '' }, trace);
  /** @type {HeadMap[]} */
  const maps = heldWeightsAt(place, trace).flatMap(({ layer, site }) => {
    const weights = trace.tensors[site];
    return range(weights.shape[0]).map((head) => ({
      layer,
      head,
      isCausal: isCausal(site),
      ...matrixAt(weights, head),
    }));
  });
  const labels = (/** @type {'source'|'target'} */ side) => positionLabels(tokensOf(trace, side));
  return {
    maps,
    title: `All ${maps.length} heads`,
    labels: place
      ? { rows: labels(place.rows), columns: labels(place.columns) }
      : { rows: [], columns: [] },
  };
}

/** @param {string} label @param {'mm'|'points'} name @param {string} unit */
function number(label, name, unit) {
  const [min, max] = LIMITS[name];
  const step = name === 'mm' ? 1 : 0.5;
  const value = wish[name];
  const input = element('input', { type: 'number', name, min, max, step, value, required: true });
  return element('label', `${label} `, input, ` ${unit}`);
}

/** @param {string} legend @param {string} name @param {Record<string, string>} options */
function choices(legend, name, options) {
  const radios = Object.entries(options).map(([value, title]) =>
    segment(name, value, title, {}, { checked: wish[name] === value }),
  );
  return element(
    'fieldset.paper-line',
    element('legend.unseen', legend),
    element('div.segmented', radios),
  );
}
