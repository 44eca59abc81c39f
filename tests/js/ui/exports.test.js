/** What leaves the page: files of a drawing, and the page itself. */

import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import { test } from 'node:test';
import { saved } from '../browser.js';
import { element } from '../../../static/js/ui/dom.js';
import { openingIn, tileIn, written } from '../../../static/js/rules/presentation.js';
import { csv, csvOf, numbersOf, saveImage, saveWhole } from '../../../static/js/ui/exports.js';
import { plotlySource, standaloneOf } from '../../../static/js/ui/standalone.js';
import { attention } from '../../../static/js/views/attention/attention.js';
import { nextToken } from '../../../static/js/views/next_token/next_token.js';
import { figuresOf, FRAME, longTrace, pairTrace, sampleTrace, TEXT } from '../sample.js';

const SETTING = {
  cards: [],
  palette: { ...FRAME.palette, font: 'system-ui' },
  help: 'A row sums to 1.',
  address: 'http://127.0.0.1:8000/#layer=1',
  date: new Date(Date.UTC(2024, 1, 29)),
  script: 'window.Plotly = {};',
};
const ASKED = { model: 'tiny', text: 'it' };

function pageOf(view, trace = sampleTrace(), setting = {}) {
  const [figure] = figuresOf(view, trace);
  return standaloneOf({ ...SETTING, ...setting, trace: { ...trace, asked: ASKED }, figure });
}

function jsonIn(page, id) {
  return JSON.parse(page.match(new RegExp(`id="${id}">(.*?)</script>`, 's'))[1]);
}

test('the file names its content, its model, its source and its date', () => {
  const page = pageOf(attention);
  for (const said of [
    'A row sums to 1.',
    'tiny, revision r',
    '2024-02-29',
    'http://127.0.0.1:8000/#layer=1',
    'curl --silent &#39;',
    '/api/v1/trace',
  ]) {
    ok(page.includes(said) || page.includes(said.replace('&#39;', "'")), said);
  }
});

test('a file names the revision of its model if there is one', () => {
  const model = (revision) => {
    const page = pageOf(attention, { ...sampleTrace(), revision });
    return page.match(/<dt>Model<\/dt><dd>(.*?)<\/dd>/)[1];
  };
  deepEqual(['r7', '', undefined].map(model), ['tiny, revision r7', 'tiny', 'tiny']);
});

test('a long link is folded, and so is a long text', () => {
  const page = pageOf(attention, sampleTrace(), { address: `http://x/#text=${'a'.repeat(3000)}` });
  match(page, /<dd><details><summary>3,015 characters<\/summary>http:\/\/x\/#text=aaa/);
  ok(!/<div class="text" dir="auto"><details>/.test(page));
});

test('W_O is set with a subscript, as in the formulas', () => {
  const page = pageOf(attention, sampleTrace(), { help: 'After W_O.' });
  ok(page.includes('<p>After <i>W</i><sub>O</sub>.</p>'));
});

test('the numbers inside are those of the grid', () => {
  const trace = sampleTrace();
  const [{ grid }] = figuresOf(attention, trace);
  const { values, rows } = jsonIn(pageOf(attention, trace), 'numbers');
  deepEqual(rows, grid.rowLabels);
  ok(Math.abs(values[2][1] - grid.value(2, 1)) < 1e-8);
});

test('the drawing inside is the drawing, with typed arrays as lists', () => {
  const [figure] = figuresOf(nextToken, sampleTrace());
  const wanted = { ...figure, data: [{ type: 'bar', x: Float64Array.from([1, 2]) }] };
  const page = standaloneOf({
    ...SETTING,
    trace: { ...sampleTrace(), asked: ASKED },
    figure: wanted,
  });
  deepEqual(jsonIn(page, 'figure').data[0].x, [1, 2]);
});

test('a map shows its numbers at the pointer, a huge one does not', () => {
  match(jsonIn(pageOf(attention), 'figure').data[0].hovertext[1][0], /<br>/);
  const huge = jsonIn(pageOf(attention, longTrace(256), {}), 'figure');
  equal(huge.data[0].hovertext, undefined);
});

test('a token never becomes markup, in the table, at the pointer or in JSON', () => {
  const page = pageOf(attention);
  ok(!/<b>|<s>/.test(page.replace(/id="figure">.*?<\/script>/s, '')));
  const { data } = jsonIn(page, 'figure');
  ok(!/<[bs]>/.test(JSON.stringify(data).replace(/<br>/g, '')));
});

test('a script that names its own element’s end, or a comment’s beginning, stays whole', () => {
  const page = pageOf(attention, sampleTrace(), { script: 'const a = "</SCRIPT><!--";' });
  const [, script] = page.match(/<script>(const a.*?)<\/script>/s);
  equal(new Function(`${script} return a;`)(), '</SCRIPT><!--');
});

test('it loads nothing and names no address to load from', () => {
  const page = pageOf(attention);
  ok(page.includes("default-src 'none'"));
  ok(!/<[^>]+\b(src|href)="(?!data:)/.test(page));
});

test('commas, quotes and line breaks stay inside their field', () => {
  equal(csv([['a,b', 'say "hi"', '1\n2']]), '"a,b","say ""hi""","1\n2"\r\n');
});

test('a token that looks like a formula stays text, a number stays a number', () => {
  equal(csv([['=1+1', '-0.5', '-', '+x']]), '"\t=1+1",-0.5,"\t-","\t+x"\r\n');
  equal(csv([['\t=1', '\r@x']]), '"\t\t=1","\t\r@x"\r\n');
});

test('the text and its translation stand above the drawing', () => {
  const trace = { ...pairTrace(), target: 'il <vit>' };
  const [figure] = figuresOf(attention, trace);
  const page = (asked) =>
    standaloneOf({ ...SETTING, trace: { ...trace, asked: { model: 'tiny', ...asked } }, figure });
  const target = /<p class="text" dir="auto">(.*?)<\/p>/;
  const [, words] = page({ text: trace.text, target: trace.target }).match(target);
  ok(words.includes('il') && words.includes('&lt;vit'));
  ok(!target.test(pageOf(attention)));
  const none = { ...sampleTrace(), asked: { ...ASKED, target: null } };
  const [unnamed] = figuresOf(attention, none);
  ok(!target.test(standaloneOf({ ...SETTING, trace: none, figure: unnamed })));
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

test('a table in the file has the same numbers and no word for a missing one', () => {
  const figure = { title: 'T', summary: 's', data: [], layout: {}, grid: GRID };
  const page = standaloneOf({ ...SETTING, trace: sampleTrace(), figure });
  deepEqual(
    [...page.matchAll(/<td>(.*?)<\/td>/g)].map(([, cell]) => cell),
    ['0', '', '1', '1.25'],
  );
  equal([...page.matchAll(/<th scope="col">/g)].length, 3);
  const many = { ...GRID, rows: 100, columns: 100, rowLabels: [], columnLabels: [] };
  const long = standaloneOf({
    ...SETTING,
    trace: sampleTrace(),
    figure: { ...figure, grid: many },
  });
  ok(!long.includes('<table>') && long.includes('100 × 100'));
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
  const patching = { site: 'a' };
  equal(tileIn(await page({}, { call: { path }, request: { patching } })), null);
  deepEqual(posted, [['/api/v1/page', { ...ASKED, text: TEXT, patching }]]);
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

test('the script of Plotly can be read, or the way out is told', async () => {
  document.body.append(element('link', { id: 'plotly', href: 'http://localhost/plotly.js' }));
  const asked = [];
  globalThis.fetch = async (url) => {
    asked.push(url);
    return { ok: true, text: async () => 'code' };
  };
  equal(await plotlySource(), 'code');
  deepEqual(asked, ['http://localhost/plotly.js']);
  globalThis.fetch = async () => ({ ok: false, text: async () => 'code' });
  await rejects(plotlySource(), /does not respond/);
  globalThis.fetch = () => Promise.reject(new TypeError('no'));
  await rejects(plotlySource(), /does not respond/);
});
