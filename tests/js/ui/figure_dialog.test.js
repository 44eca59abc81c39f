/** The dialog that makes a figure for a paper. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, blank, drawn, find, labelled, saved, send, settled, type } from '../browser.js';
import { openFigureDialog } from '../../../static/js/ui/figure_dialog.js';
import { attention } from '../../../static/js/views/attention/attention.js';
import { figuresOf, sampleTrace } from '../sample.js';

const redrawn = [];
let told;
function open(trace = sampleTrace(), more = {}) {
  const [figure] = figuresOf(attention, sampleTrace());
  const of = {
    trace: { ...trace, asked: { model: 'tiny', text: 'it' } },
    figure,
    cards: [],
    name: 'headlight-figure',
    help: '',
    redraw: (patch) => {
      redrawn.push(patch);
      return figure;
    },
    ...more,
  };
  told = [];
  openFigureDialog(of, (message) => told.push(message));
}
const dialog = () => find('dialog.paper');
const said = () => find('.queue-said', dialog()).textContent;
const field = (name, value) => find(`input[name="${name}"]${value ? `[value="${value}"]` : ''}`);
const later = () => settled(30);
const set = async (name, value) => {
  type(field(name), value);
  send(field(name), 'change');
  await later();
};
const choose = async (name, value) => {
  field(name, value).checked = true;
  send(field(name, value), 'change');
  await later();
};
const press = async (label) => {
  labelled(label, dialog()).click();
  await later();
};
/** The title of the picture that was drawn last. */
const captionNow = () =>
  drawn.findLast(([name]) => name === 'toImage')[1].layout.title?.text.replaceAll('<br>', ' ');
const content = () =>
  new Promise((resolve) => {
    const reader = new window.FileReader();
    reader.addEventListener('load', () => resolve(reader.result));
    reader.readAsText(saved.at(-1).blob);
  });
window.HTMLImageElement.prototype.decode = async () => {};
beforeEach(() => {
  blank();
  redrawn.length = 0;
});

test('the dialog opens on a preview, one column wide, in light colours', async () => {
  open();
  await later();
  ok(dialog().open);
  match(said(), /^85 × \d+ mm$/);
  const image = find('.paper-preview img');
  ok(image.alt && image.style.width === '85mm' && image.src.startsWith('data:image/svg+xml'));
  deepEqual(
    all('input:checked', dialog()).map(({ value }) => value),
    ['drawing', 'on', 'svg'],
  );
  equal(redrawn.at(-1).palette.theme, 'light');
  await press('Close');
  equal(dialog(), null);
});

test('width and text are set within limits', async () => {
  open();
  await later();
  const { width } = redrawn.at(-1);
  await set('mm', '180');
  match(said(), /^180 × /);
  ok(redrawn.at(-1).width > width);
  await set('mm', '85');
  const { length } = redrawn;
  await set('points', '100');
  await press('Save figure');
  await set('points', '8');
  await set('mm', '9999');
  await press('Save figure');
  equal(redrawn.length, length + 1, 'nothing is drawn outside them');
  await set('mm', '85');
  await set('points', '16');
  ok(redrawn.at(-1).width < width);
  await set('points', '8');
});

test('a figure is saved as SVG or PNG, with or without its caption', async () => {
  open();
  await later();
  await press('Save figure');
  equal(saved.at(-1).name, 'headlight-figure.svg');
  match(await content(), /^<svg width="85mm"/);
  deepEqual(told, [said()]);
  ok(dialog().open, 'it stays for the next file');
  match(captionNow(), /tiny, revision r/);
  await choose('format', 'png');
  await press('Save figure');
  equal(saved.at(-1).name, 'headlight-figure.png');
  match(await content(), /pHYs/);
  field('caption').click();
  await later();
  equal(captionNow(), undefined);
  await press('Close');
  open();
  ok(field('format', 'png').checked && !field('caption').checked, 'the next one begins with it');
  field('caption').click();
  await choose('format', 'svg');
});

test('a figure is printed alone, on paper of its size', async () => {
  let seen;
  window.print = () => {
    const [{ cssRules }] = document.adoptedStyleSheets;
    const { style } = find('html.is-printed > body > img.on-paper');
    seen = [cssRules[0].cssText, style.width];
  };
  open();
  await later();
  await press('Print or PDF');
  equal(seen[1], '85mm');
  match(seen[0], /@page \{ size: 85mm \d+mm; margin: 0/);
  send(window, 'afterprint');
  equal(find('.on-paper'), null);
  deepEqual([document.documentElement.className, document.adoptedStyleSheets.length], ['', 0]);
});

test('all heads are a figure, and their numbers a file', async () => {
  open();
  await later();
  const { length } = redrawn;
  await choose('what', 'heads');
  await press('Save figure');
  equal(redrawn.length, length);
  equal(saved.at(-1).name, 'headlight-tiny-heads.svg');
  match(captionNow(), /All 4 heads/);
  await press('Numbers as CSV');
  equal(saved.at(-1).name, 'headlight-tiny-heads.csv');
  ok((await content()).trim().split('\r\n').length > 4 * 15 - 1);
  await press('Close');
  open();
  ok(field('what', 'drawing').checked, 'the next figure is a drawing again');
  await press('Numbers as CSV');
  equal(saved.at(-1).name, 'headlight-figure.csv');
});

test('without heads, or without a way to draw again, the drawing is taken as it is', async () => {
  open({ ...sampleTrace(), tensors: {} }, { redraw: undefined });
  equal(field('what'), null);
  await later();
  match(said(), /^85 × /);
});

test('a caption names a drawing and its numbers, each once', async () => {
  const captionOf = async (title, quantity) => {
    const [figure] = figuresOf(attention, sampleTrace());
    const named = { ...figure, title, grid: { ...figure.grid, quantity } };
    open(sampleTrace(), { figure: named, redraw: undefined });
    await later();
    return captionNow();
  };
  match(await captionOf('Rotation', 'angle of a pair'), /^Rotation: angle of a pair\. tiny/);
  match(await captionOf('Attention', 'attention weight'), /^Attention weight\. tiny/);
});
