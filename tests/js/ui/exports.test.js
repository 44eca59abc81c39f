import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { csv, standaloneOf } from '../../../static/js/ui/exports.js';
import { attention } from '../../../static/js/views/attention/attention.js';
import { nextToken } from '../../../static/js/views/next_token/next_token.js';
import { figuresOf, FRAME, longTrace, sampleTrace } from '../sample.js';

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
