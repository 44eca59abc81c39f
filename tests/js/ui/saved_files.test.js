/** The files of a view: their bytes, their facts, and what is told of them. */

import { deepEqual, equal, match } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { blank, saved } from '../browser.js';
import { written } from '../../../static/js/rules/presentation.js';
import { saveImage, saveWhole, standaloneOf } from '../../../static/js/ui/exports.js';
import { attention } from '../../../static/js/views/attention/attention.js';
import { figuresOf, FRAME, sampleTrace } from '../sample.js';

const [figure] = figuresOf(attention, sampleTrace());
const subject = (trace = {}, grid = {}) => ({
  trace: { ...sampleTrace(), asked: { model: 'tiny', text: 'it' }, ...trace },
  figure: { ...figure, grid: { ...figure.grid, ...grid } },
  cards: [],
  name: 'headlight-figure',
});
const contentOf = (blob, how) =>
  new Promise((resolve) => {
    const reader = new window.FileReader();
    reader.addEventListener('load', () => resolve(reader.result));
    reader[how](blob);
  });

let asked;
globalThis.fetch = async (url, { body } = {}) => {
  asked.push([String(url), body && JSON.parse(body)]);
  return new Response('<body><p>page</p></body>', { headers: { 'content-type': 'text/html' } });
};
beforeEach(() => {
  blank();
  asked = [];
  saved.length = 0;
  localStorage.clear();
  location.hash = '#view=attention';
});

test('a picture is saved with the bytes and the type that the drawing has', async () => {
  const bytes = [137, 80, 0, 255, 10];
  const url = `data:image/png;base64,${btoa(String.fromCharCode(...bytes))}`;
  await saveImage({ ...subject(), plot: { image: async () => url } }, 'png');
  const [{ blob, name }] = saved;
  deepEqual([name, blob.type], ['headlight-figure.png', 'image/png']);
  deepEqual([...new Uint8Array(await contentOf(blob, 'readAsArrayBuffer'))], bytes);
  const svg = '<svg>é,</svg>';
  const image = async () => `data:image/svg+xml,${encodeURIComponent(svg)}`;
  await saveImage({ ...subject(), plot: { image } }, 'svg');
  equal(await contentOf(saved[1].blob, 'readAsText'), svg);
  equal(saved[1].blob.type, 'image/svg+xml');
});

test('the whole page is told with its size, and with its views to present if there are some', async () => {
  const plain = await saveWhole(subject());
  match(plain, /headlight-tiny-it-saw-b-it\.html, [\d.]+ MB$/);
  deepEqual(asked[0][1].model, 'tiny');
  const [{ blob }] = saved;
  match(await contentOf(blob, 'readAsText'), /^<body><p>page<\/p><script .*<\/script>\n<\/body>$/s);
  const slide = (name) => ({ name, link: '#view=attention', covers: [] });
  localStorage.setItem('headlight.presentation', written([slide('One')]));
  match(await saveWhole(subject()), / MB, with 1 view to present$/);
  localStorage.setItem('headlight.presentation', written([slide('One'), slide('Two')]));
  match(await saveWhole(subject()), / MB, with 2 views to present$/);
});

test('a file names the revision of its model if there is one', () => {
  const model = (revision) => {
    const page = standaloneOf({
      ...subject({ revision, asked: { model: 'tiny', text: sampleTrace().text } }),
      palette: FRAME.palette,
      help: '',
      address: 'http://x/',
      date: new Date(0),
      script: '',
    });
    return page.match(/<dt>Model<\/dt><dd>(.*?)<\/dd>/)[1];
  };
  deepEqual(['r7', '', undefined].map(model), ['tiny, revision r7', 'tiny', 'tiny']);
});
