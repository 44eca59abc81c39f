/** The dialog that saves a figure for a paper. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import {
  all,
  blank,
  drawn,
  find,
  labelled,
  painted,
  saved,
  send,
  settled,
  type,
} from '../browser.js';
import { openPublicationDialog } from '../../../static/js/ui/publication_dialog.js';
import { DPI, withResolution } from '../../../static/js/plot/publication.js';
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
  openPublicationDialog(of, (message) => told.push(message));
  return of;
}
const dialog = () => find('dialog.paper');
const said = () => find('.queue-said', dialog()).textContent;
const radio = (value) => find(`input[value="${value}"]`, dialog());
const choose = (value) => {
  radio(value).checked = true;
  send(radio(value), 'change');
};
const numbers = () => all('input[type="number"]', dialog());
const later = () => settled(300);
const before = document.createElement.bind(document);
document.createElement = (tag) => {
  const node = before(tag);
  if (tag === 'img') node.decode = async () => {};
  return node;
};
window.Image = globalThis.Image = function Image(width, height) {
  const image = document.createElement('img');
  Object.assign(image, { width, height });
  return image;
};
beforeEach(() => {
  blank();
  redrawn.length = 0;
});
const newest = () => saved.findLast(({ name }) => name);
const content = async (way = 'readAsText') => {
  const { blob } = newest();
  return new Promise((resolve) => {
    const reader = new window.FileReader();
    reader.addEventListener('load', () => resolve(reader.result));
    reader[way](blob);
  });
};

test('the dialog opens on a preview, one column wide', async () => {
  open();
  await later();
  ok(dialog().open);
  match(said(), /^85 × \d+ mm$/);
  equal(all('.paper-preview img').length, 1);
  ok(find('.paper-preview img').alt && find('.paper-preview img').style.width === '85mm');
  deepEqual(
    all('input:checked', dialog()).map(({ value }) => value),
    ['drawing', 'on', 'pdf'],
  );
  deepEqual(
    numbers().map(({ value, min, step }) => [value, Number(min) > 0, step]),
    [
      ['85', true, '1'],
      ['8', true, '0.5'],
    ],
  );
  equal(redrawn.at(-1).palette.theme, 'light');
  const [, figure, options] = drawn.findLast(([name]) => name === 'toImage');
  deepEqual([options.format, options.scale], ['svg', 1]);
  ok(figure.layout);
  labelled('Close').click();
  equal(dialog(), null);
});

test('width and type are set, within limits', async () => {
  open();
  await later();
  const width = redrawn.at(-1).width;
  labelled('180 mm, two columns').click();
  equal(numbers()[0].value, '180');
  await later();
  match(said(), /^180 × /);
  ok(redrawn.at(-1).width > width);
  type(numbers()[0], '1');
  await later();
  match(said(), /mm/);
  ok(!said().includes('×'));
  type(numbers()[0], '9999');
  await later();
  ok(!said().includes('×'));
  labelled('Save figure').click();
  await later();
  match(said(), /Not saved/);
  type(numbers()[0], '85');
  type(numbers()[1], '100');
  await later();
  ok(!said().includes('×') && said().includes('points'));
  type(numbers()[1], '8');
  await later();
  match(said(), /^85 × /);
});

test('changes in quick succession are drawn once', async () => {
  open();
  await later();
  const count = redrawn.length;
  type(numbers()[0], '90');
  type(numbers()[0], '95');
  await later();
  equal(redrawn.length, count + 1);
  type(numbers()[0], '85');
  await later();
});

test('a figure is saved as SVG, with or without its caption', async () => {
  open();
  choose('svg');
  labelled('Save figure').click();
  equal(said(), 'Saving…');
  await later();
  equal(newest().name, 'headlight-figure.svg');
  deepEqual(told, [said()]);
  ok(dialog().open, 'it stays for the next file');
  match(await content(), /tiny, revision r/);
  labelled('Close').click();
  equal(dialog(), null);
  open();
  await later();
  ok(radio('svg').checked);
  const caption = find('input[type="checkbox"]');
  caption.click();
  labelled('Save figure').click();
  await later();
  ok(!(await content()).includes('revision r'));
  labelled('Close').click();
  open();
  await later();
  ok(!find('input[type="checkbox"]').checked);
  find('input[type="checkbox"]').click();
  await later();
});

test('a figure is saved as PNG at the resolution of print', async () => {
  open();
  choose('png');
  const { toBlob } = window.HTMLCanvasElement.prototype;
  window.HTMLCanvasElement.prototype.toBlob = (done) => done(null);
  await later();
  labelled('Save figure').click();
  await settled(30);
  match(said(), /Not saved.*too large/);
  const bytes = new Uint8Array(64);
  bytes.set([137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82]);
  window.HTMLCanvasElement.prototype.toBlob = (done) =>
    done({ arrayBuffer: async () => bytes.buffer });
  labelled('Save figure').click();
  await later();
  window.HTMLCanvasElement.prototype.toBlob = toBlob;
  equal(newest().name, 'headlight-figure.png');
  equal(newest().blob.type, 'image/png');
  const file = await content('readAsArrayBuffer');
  deepEqual(Buffer.from(file), Buffer.from(withResolution(bytes)));
  const [canvas, calls] = [...painted].at(-1);
  equal(canvas.width, Math.round((85 / 25.4) * DPI));
  deepEqual(calls[0].slice(2), [0, 0, canvas.width, canvas.height]);
  ok(canvas.height > 100);
});

test('all heads are a figure, and their numbers a file', async () => {
  open();
  choose('heads');
  await later();
  match(said(), /^85 × /);
  const count = redrawn.length;
  choose('svg');
  labelled('Save figure').click();
  await later();
  equal(redrawn.length, count);
  equal(newest().name, 'headlight-tiny-heads.svg');
  match(await content(), /All 4 heads/);
  labelled('Numbers as CSV').click();
  equal(newest().name, 'headlight-tiny-heads.csv');
  const lines = (await content()).trim().split('\r\n');
  ok(lines.length > 4 * 15 - 1);
  labelled('Close').click();
  open();
  ok(radio('drawing').checked, 'the next figure is a drawing again');
  labelled('Numbers as CSV').click();
  equal(newest().name, 'headlight-figure.csv');
});

test('without heads only the drawing is offered, and a saved page makes no PDF', async () => {
  open();
  choose('heads');
  labelled('Close').click();
  document.body.className = 'is-saved';
  open({ ...sampleTrace(), tensors: {} });
  equal(radio('heads'), null);
  equal(radio('pdf'), null);
  ok(radio('svg') && radio('png'));
  labelled('Numbers as CSV').click();
  equal(newest().name, 'headlight-figure.csv');
});

test('a view that is not drawn again is taken as it is', async () => {
  open(sampleTrace(), { redraw: undefined });
  await later();
  match(said(), /×/);
});

test('a PDF needs its library, and says so if that does not come', async () => {
  open();
  choose('pdf');
  await later();
  labelled('Save figure').click();
  await settled(30);
  const script = find('script[src*="jspdf"]');
  send(script, 'error');
  await settled(30);
  match(said(), /Not saved.*does not respond/);
  labelled('Save figure').click();
  await settled(30);
  const log = [];
  const letters = Uint8Array.from({ length: 20_000 }, (_, at) => at % 251);
  let fontFile;
  window.jspdf = {
    jsPDF: class {
      constructor(options) {
        log.push(options);
      }
      addFileToVFS(name, font) {
        fontFile = Buffer.from(font, 'base64');
      }
      addFont(_, font, style) {
        log.push([font, style]);
      }
      async svg(node, options) {
        log.push([
          node.isConnected,
          options,
          all('[font-family]', node).map((each) => each.getAttribute('font-family')),
        ]);
      }
      output() {
        return new window.Blob(['pdf']);
      }
    },
  };
  globalThis.fetch = async () => ({ ok: true, arrayBuffer: async () => letters.buffer });
  send(all('script[src*="jspdf"]').at(-1), 'load');
  await settled(10);
  send(find('script[src*="svg2pdf"]'), 'load');
  await later();
  equal(newest().name, 'headlight-figure.pdf');
  deepEqual(fontFile, Buffer.from(letters));
  const [options, ...rest] = log;
  equal(options.orientation, options.format[0] > options.format[1] ? 'landscape' : 'portrait');
  deepEqual([options.unit, options.compress, options.putOnlyUsedFonts], ['mm', true, true]);
  equal(rest.filter(([font]) => typeof font === 'string').length, 3);
  const [isConnected, size, fonts] = rest.at(-1);
  ok(isConnected && size.width === 85 && size.height > 10);
  equal(new Set(fonts).size <= 1, true);
  equal(find('body > .unseen'), null);
});

test('a caption names a drawing and its numbers, each once', async () => {
  const captionOf = async (title, quantity) => {
    const [figure] = figuresOf(attention, sampleTrace());
    const named = { ...figure, title, grid: { ...figure.grid, quantity } };
    open(sampleTrace(), { figure: named, redraw: undefined });
    choose('svg');
    labelled('Save figure').click();
    await settled(30);
    labelled('Close').click();
    return content();
  };
  const svg = await captionOf('Rotation', 'angle of a pair');
  match(svg, /Rotation: angle of a pair/);
  const once = await captionOf('Attention', 'attention weight');
  match(once, /Attention weight/);
  ok(!/Attention:/.test(once));
});
