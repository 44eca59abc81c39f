/** What leaves the page: files of a drawing, and the page itself. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { saved } from '../browser.js';
import { openingIn, tileIn, written } from '../../../static/js/rules/presentation.js';
import { csv, csvOf, numbersOf, saveImage, saveWhole } from '../../../static/js/ui/exports.js';
import { attention } from '../../../static/js/views/attention/attention.js';
import { figuresOf, sampleTrace, TEXT } from '../sample.js';

const ASKED = { model: 'tiny', text: 'it' };

test('commas, quotes and line breaks stay inside their field', () => {
  equal(csv([['a,b', 'say "hi"', '1\n2']]), '"a,b","say ""hi""","1\n2"\r\n');
});

test('a token that looks like a formula stays text, a number stays a number', () => {
  equal(csv([['=1+1', '-0.5', '-', '+x']]), '"\t=1+1",-0.5,"\t-","\t+x"\r\n');
  equal(csv([['\t=1', '\r@x']]), '"\t\t=1","\t\r@x"\r\n');
});

const GRID = {
  rows: 2,
  columns: 2,
  rowTitle: 'query',
  columnTitle: 'key',
  rowLabels: ['a', 'b'],
  columnLabels: ['x', 'y'],
  quantity: 'share',
  value: (row, column) => (row === 0 && column === 1 ? NaN : row + column / 4),
  format: String,
  tip: () => [],
  call: { path: '/api/v1/experiments/e', body: { n: 1 } },
};
const OF_ROWS = [{ label: 'sum', value: (row) => (row === 0 ? NaN : 1.25) }];

test('a spreadsheet has the labels, and an empty field where there is no number', () => {
  const lines = (more) =>
    csvOf({ ...GRID, ...more })
      .trimEnd()
      .split('\r\n');
  deepEqual(lines(), ['query \\ key,x,y', 'a,0,', 'b,1,1.25']);
  deepEqual(lines({ columnTitle: '' })[0], 'query,x,y');
  deepEqual(lines({ ofRows: OF_ROWS }), ['query \\ key,x,y,sum', 'a,0,,', 'b,1,1.25,1.25']);
  const chosenWeight = (row, column) => (row === column ? 0.5 : undefined);
  const chosen = lines({ ofRows: OF_ROWS, chosenWeight });
  deepEqual(
    chosen.slice(3).map((line) => line.split(',').slice(1)),
    [
      ['0.5', ''],
      ['', '0.5'],
    ],
  );
  ok(chosen[3].startsWith('a:') && chosen[4].startsWith('b:'));
});

test('numbers for a program are null where there are none', () => {
  const trace = { ...sampleTrace(), text: 'n 1' };
  const { axes, values, of_rows, weights_where_chosen, parameters } = numbersOf(
    trace,
    { ...GRID, ofRows: OF_ROWS, chosenWeight: (row) => (row === 1 ? 0.5 : undefined) },
    [],
  );
  deepEqual(axes, ['query', 'key']);
  deepEqual(parameters, { n: 1 });
  deepEqual(values, [
    [0, null],
    [1, 1.25],
  ]);
  deepEqual(of_rows, { sum: [null, 1.25] });
  deepEqual(weights_where_chosen, [
    [null, null],
    [0.5, 0.5],
  ]);
  const bare = numbersOf(trace, GRID, []);
  ok(!('of_rows' in bare) && !('weights_where_chosen' in bare));
});

/** The bytes that were saved last. */
async function bytesSaved() {
  const bytes = await new Promise((resolve) => {
    const reader = new window.FileReader();
    reader.addEventListener('load', () => resolve(reader.result));
    reader.readAsArrayBuffer(saved.at(-1).blob);
  });
  return Buffer.from(bytes);
}

test('a picture is saved as it was drawn, to the byte', async () => {
  const trace = { ...sampleTrace(), asked: ASKED };
  const [figure] = figuresOf(attention, sampleTrace());
  const asked = [];
  const of = (url) => ({
    trace,
    figure,
    cards: [],
    name: 'headlight-a',
    plot: {
      image: async (format, caption) => {
        asked.push([format, caption.length > 0]);
        return url;
      },
    },
  });
  const bytes = Buffer.from([137, 80, 78, 71, 0, 255, 128]);
  await saveImage(of(`data:image/png;base64,${bytes.toString('base64')}`), 'png');
  deepEqual(await bytesSaved(), bytes);
  deepEqual([saved.at(-1).name, saved.at(-1).blob.type], ['headlight-a.png', 'image/png']);
  const svg = '<svg><text>50 %, é</text></svg>';
  match(await saveImage(of(`data:image/svg+xml,${encodeURIComponent(svg)}`), 'svg'), /\.svg/);
  equal((await bytesSaved()).toString(), svg);
  deepEqual([saved.at(-1).name, saved.at(-1).blob.type], ['headlight-a.svg', 'image/svg+xml']);
  deepEqual(asked, [
    ['png', true],
    ['svg', true],
  ]);
});

test('the whole page is asked for, and opens on what is looked at', async () => {
  const posted = [];
  const tile = Uint8Array.of(1, 2, 255);
  const shell = '<title>x</title><script id="answers">[answers]</script>';
  const html = `<html>${shell}<body>the page</body></html>`;
  globalThis.fetch = async (path, { body }) => {
    posted.push([path, body && JSON.parse(body)]);
    if (path.startsWith('/api/v1/models/')) return Response.json({ id: 'tiny', analyses: [] });
    return new Response(path === '/api/v1/page' ? html : tile);
  };
  location.hash = '#model=tiny&layer=1';
  const page = async (trace, grid) => {
    posted.length = 0;
    await saveWhole({ trace: { ...sampleTrace(), asked: ASKED, ...trace }, figure: { grid } });
    const text = (await bytesSaved()).toString();
    ok(text.endsWith('</body></html>') && text.includes('the page'));
    return new window.DOMParser().parseFromString(text, 'text/html');
  };
  const path = '/api/v1/traces/x/tile?layer=1&head=0';
  const maps = { resolution: 64, file: new ArrayBuffer(8) };
  const long = await page(maps, { call: { path } });
  deepEqual(
    posted.map(([of]) => of),
    ['/api/v1/page', '/api/v1/models/tiny', path],
  );
  ok(
    posted.every(([, body]) => body === undefined),
    'no text is read again',
  );
  match(openingIn(long).link, /layer=1/);
  const { query, bytes } = tileIn(long);
  deepEqual(query, { layer: '1', head: '0' });
  deepEqual([...new Uint8Array(bytes)], [...tile]);
  equal(tileIn(await page(maps, {})), null);
  equal(tileIn(await page(maps, { call: { path: '/api/v1/positional' } })), null);
  const logit_difference = { token: 7 };
  equal(tileIn(await page({}, { call: { path }, request: { logit_difference } })), null);
  deepEqual(posted, [['/api/v1/page', { ...ASKED, text: TEXT, logit_difference }]]);
  location.hash = '';
});

test('the whole page is told with its size, and with its views to present if there are some', async () => {
  globalThis.fetch = async () => new Response('<body><p>page</p></body>');
  location.hash = '#view=attention';
  const slide = (name) => ({ name, link: '#view=attention', covers: [] });
  const [figure] = figuresOf(attention, sampleTrace());
  const toldWith = (...slides) => {
    localStorage.setItem('headlight.presentation', written(slides));
    return saveWhole({ trace: { ...sampleTrace(), asked: ASKED }, figure });
  };
  match(await toldWith(), /headlight-tiny-it-saw-b-it\.html, [\d.]+ MB$/);
  match(await toldWith(slide('One')), / MB, with 1 view to present$/);
  match(await toldWith(slide('One'), slide('Two')), / MB, with 2 views to present$/);
  localStorage.clear();
});
