/** An experiment on the page, from its parameters to its pictures. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, blank, find, labelled, press, recorder, settled, texts, type } from '../browser.js';
import { Experiment } from '../../../static/js/ui/experiment.js';

const integer = (standard) => ({
  type: 'integer',
  default: standard,
  minimum: 0,
  maximum: 100,
  description: 'h',
});
const DESCRIPTION = {
  id: 'e',
  title: 'An experiment',
  is_streamed: true,
  see: 'what to see',
  field: 'research',
  sources: [{ title: 'paper', url: 'https://example.org/' }],
  parameters: {
    properties: {
      n: integer(4),
      steps: integer(2),
      seed: integer(1),
      extra: integer(7),
      example: { enum: ['x', 'y'], default: 'x', description: '' },
    },
  },
  arrays: {},
  growing: ['step'],
};
const LAYOUT = {
  width: 100,
  height: 50,
  margin: { l: 0, r: 0, t: 0, b: 0 },
  xaxis: { range: [-0.5, 1.5] },
  yaxis: { range: [0.5, -0.5] },
};
const GRID = {
  rows: 1,
  columns: 2,
  rowTitle: 'r',
  columnTitle: 'c',
  rowLabels: ['a'],
  columnLabels: ['x', 'y'],
  quantity: 'q',
  value: () => 1,
  format: String,
  describe: () => 'a cell',
  tip: () => ['a', 'b'],
  tokens: () => ({}),
  choose: (row, column) => ({ picked: `${row}.${column}` }),
};
const seen = [];
const VIEW = {
  id: 'e',
  main: ['n', 'example'],
  hidden: ['extra', 'seed'],
  finding: ({ values, at, picked, beside, isPreview }) =>
    `n ${values.n}, frame ${at}, ${picked ? `${picked.row}.${picked.column}` : 'none'}, ${beside ? beside.name : 'single'}, ${isPreview}`,
  steps: ({ step }) => step?.data ?? [],
  pickable: () => [2, 3],
  pictures: (result) => {
    seen.push(result);
    return [
      { id: 'p', draw: () => ({ title: 'Picture', data: [{}], layout: LAYOUT, grid: GRID }) },
    ];
  },
};
/** The requests of the page; each is answered with its frames, or with a problem. */
const asked = [];
let answer = {};
globalThis.fetch = async (url, { body, signal }) => {
  const values = JSON.parse(body);
  asked.push({ url: String(url), values, signal });
  const {
    status = 200,
    frames = [1, 2],
    isHeld = false,
    errors = [],
  } = typeof answer === 'function' ? answer(values) : answer;
  if (status !== 200)
    return new Response(JSON.stringify({ title: 'Refused', detail: 'no', status, errors }), {
      status,
      headers: { 'content-type': 'application/problem+json' },
    });
  const events = [
    ['start', { parameters: { n: 4, steps: 2, seed: 1, extra: 7, example: 'x', ...values } }],
    ...frames.map((step) => [
      'frame',
      { arrays: { step: { axes: ['step'], shape: [1], dtype: 'int64', data: [step] } } },
    ]),
  ];
  if (!isHeld) events.push(['end', {}]);
  return new Response(
    new ReadableStream({
      start(controller) {
        signal.addEventListener('abort', () =>
          controller.error(new DOMException('gone', 'AbortError')),
        );
        for (const [event, data] of events)
          controller.enqueue(
            new TextEncoder().encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
          );
        if (!isHeld) controller.close();
      },
    }),
    { headers: { 'content-type': 'text/event-stream' } },
  );
};
const { calls, handlers, take } = recorder('onLink', 'announce');
let experiment;
function make(view = {}) {
  experiment?.leave();
  blank();
  asked.length = seen.length = 0;
  experiment = new Experiment(DESCRIPTION, { ...VIEW, ...view }, handlers);
  document.body.append(experiment.element);
  take();
}
beforeEach(() => {
  answer = {};
  make();
});
/** Waits until nothing is asked for or drawn any more. */
async function rest() {
  for (const pause of [180, 40]) {
    await settled(pause);
    while (find('.is-drawing')) await settled(10);
  }
}
const finding = () => find('.finding').textContent;
const link = () => {
  const written = new URLSearchParams();
  experiment.write(written);
  return written.toString();
};
async function opened(view) {
  if (view) make(view);
  experiment.open();
  await rest();
}

test('an experiment runs when it is first opened, and tells what it found', async () => {
  deepEqual(
    [find('.view-title').textContent, find('.help').textContent],
    ['An experiment', 'what to see'],
  );
  deepEqual(texts('.reading a'), ['paper']);
  equal(asked.length, 0);
  experiment.open();
  ok(find('.finding').textContent !== '' && !find('.finding').hidden);
  equal(find('.view').getAttribute('aria-busy'), 'true');
  await rest();
  equal(asked.length, 1);
  deepEqual(asked[0].values, {});
  match(asked[0].url, /experiments\/e$/);
  equal(finding(), 'n 4, frame 1, none, single, false');
  equal(find('.view').getAttribute('aria-busy'), 'false');
  deepEqual(texts('.panel h2'), ['Picture']);
  deepEqual([seen.at(-1).total, seen.at(-1).values.n], [2, 4]);
  ok(
    !find('.view').classList.contains('is-drawing') &&
      !find('.view').classList.contains('is-waiting'),
  );
  await settled(500);
  deepEqual(calls, [['announce', 'n 4, frame 1, none, single, false']]);
  experiment.leave();
  experiment.open();
  await rest();
  equal(asked.length, 1);
});

test('a value that is set runs again, and is in the link', async () => {
  await opened();
  take();
  type(find('#e-n'), '5');
  equal(link(), 'n=5');
  ok(calls.some(([name]) => name === 'onLink'));
  equal(asked.length, 1);
  await rest();
  deepEqual(asked.at(-1).values, { n: 5 });
  match(finding(), /^n 5/);
  labelled('Reset').click();
  equal(link(), '');
  await rest();
  deepEqual(asked.at(-1).values, {});
});

test('a frame is shown, kept in the link, and left for a new value', async () => {
  await opened();
  const slider = find('.scrubber input');
  ok(!find('.scrubber').hidden);
  type(slider, '0');
  await rest();
  match(finding(), /frame 0/);
  equal(link(), 'frame=0');
  type(slider, '1');
  equal(link(), '');
  type(slider, '0');
  type(find('#e-n'), '6');
  equal(link(), 'n=6');
  await rest();
  match(finding(), /frame 1/);
});

test('a cell is picked, announced and kept in the link', async () => {
  await opened();
  take();
  press(find('.plot'), 'ArrowRight');
  press(find('.plot'), 'Enter');
  await rest();
  match(finding(), /0\.1/);
  equal(link(), 'picked=0.1');
  ok(calls.some(([name, words]) => name === 'announce' && /0\.1/.test(words)));
  const [, other] = all('.controls input[type="radio"]');
  other.click();
  equal(link(), 'example=y');
  await rest();
  match(finding(), /none/);
});

test('a link restores values, frame and cell, and says what it cannot', async () => {
  experiment.restore(new URLSearchParams('n=9&frame=0&picked=1.2'));
  equal(asked.length, 0);
  equal(link(), 'n=9&frame=0&picked=1.2');
  equal(find('.link-notice').textContent, '');
  await opened();
  deepEqual(asked.at(-1).values, { n: 9 });
  match(finding(), /n 9, frame 0, 1\.2/);
  take();
  experiment.restore(new URLSearchParams('n=999&frame=7&picked=1.3'));
  match(find('.link-notice').textContent, /N/);
  await rest();
  match(find('.link-notice').textContent, /7.*1/);
  match(find('.link-notice').textContent, /1\.3/);
  equal(link(), '');
  ok(find('#e-n').getAttribute('aria-invalid') === 'true');
  ok(calls.some(([name]) => name === 'onLink'));
  type(find('#e-n'), '5');
  equal(find('.link-notice').textContent, '');
  await rest();
  equal(find('#e-n').getAttribute('aria-invalid'), 'false');
  experiment.restore(new URLSearchParams('picked=2.0'));
  await rest();
  match(find('.link-notice').textContent, /2\.0/);
});

test('a problem is told with a button that asks again', async () => {
  answer = { status: 500 };
  await opened();
  ok(!find('.notice').hidden && find('.finding').hidden);
  answer = {};
  labelled('Try again').click();
  await rest();
  ok(find('.notice').hidden);
  match(finding(), /n 4/);
});

test('an experiment that throws says so', async () => {
  const { warn } = console;
  console.warn = () => {};
  await opened({
    finding: () => {
      throw new Error('no words');
    },
  });
  match(finding(), /no words/);
  await opened({
    pictures: () => {
      throw new Error('no pictures');
    },
  });
  match(finding(), /no pictures/);
  const draw = () => {
    throw new Error('no numbers');
  };
  await opened({ pictures: () => [{ id: 'p', draw }] });
  match(find('.panel-notice').textContent, /no numbers/);
  console.warn = warn;
});

const LONG = { preview: { steps: 0 } };
const status = () => find('.run-status').textContent;

test('a long run is stopped and run again', async () => {
  answer = { isHeld: true };
  await opened(LONG);
  ok(labelled('Stop'));
  match(status(), /2 of 2/);
  labelled('Stop').click();
  await rest();
  ok(asked[0].signal.aborted && labelled('Run'));
  match(status(), /topped.*2/);
  answer = {};
  labelled('Run').click();
  await rest();
  equal(asked.length, 2);
  match(status(), /2/);
  answer = { isHeld: true, frames: [] };
  labelled('Run').click();
  await rest();
  match(status(), /./);
  ok(find('.view').classList.contains('is-waiting'));
  experiment.leave();
  ok(asked.at(-1).signal.aborted);
});

test('a busy server gives a preview, but not to who asked for the run', async () => {
  answer = ({ steps }) => (steps === 0 ? { frames: [0] } : { status: 503 });
  await opened(LONG);
  deepEqual(
    asked.map(({ values }) => values),
    [{}, { steps: 0 }],
  );
  match(finding(), /frame 0.*true/);
  equal(seen.at(-1).values.steps, 2);
  match(status(), /busy/);
  ok(find('.scrubber').hidden && find('.notice').hidden && labelled('Run'));
  labelled('Run').click();
  await rest();
  equal(asked.length, 3);
  ok(!find('.notice').hidden);
  type(find('#e-n'), '5');
  await rest();
  equal(asked.length, 5);
  answer = {};
  make();
  answer = { status: 503 };
  await opened();
  equal(asked.length, 1);
});

test('a second run is drawn beside the first', async () => {
  const besides = [{ id: 'twin', title: 'Twin', values: { n: 1 } }];
  await opened({ ...LONG, besides });
  const select = find('#e-beside');
  type(select, 'twin', 'change');
  equal(link(), 'beside=twin');
  await rest();
  deepEqual(asked.at(-1).values, { n: 1 });
  match(finding(), /Twin/);
  deepEqual([seen.at(-1).beside.name, seen.at(-1).beside.at], ['Twin', 1]);
  type(find('.scrubber input'), '0');
  await rest();
  equal(seen.at(-1).beside.at, 0);
  type(select, '', 'change');
  await rest();
  match(finding(), /single/);
  equal(asked.length, 2);
  answer = ({ n }) => (n === 1 ? { status: 500 } : {});
  type(select, 'twin', 'change');
  await rest();
  match(status(), /econd run failed/);
  answer = ({ n }) => ({ isHeld: n === 1, frames: [1] });
  type(select, 'twin', 'change');
  await rest();
  match(status(), /omparison.*1 of 2/);
  ok(labelled('Stop'));
  labelled('Reset').click();
  equal(link(), '');
  experiment.restore(new URLSearchParams('beside=none'));
  match(find('.link-notice').textContent, /./);
  experiment.restore(new URLSearchParams('beside=twin'));
  equal(link(), 'beside=twin');
});

test('what changes while pictures are drawn is drawn after them', async () => {
  let onDraw = () => {};
  const drawing = (id) => ({
    id,
    draw: () => {
      onDraw();
      return { title: id, data: [{}], layout: LAYOUT, grid: GRID };
    },
  });
  const pictures = (result) => {
    seen.push(result);
    return [drawing('p'), drawing('q')];
  };
  await opened({ pictures });
  const slider = find('.scrubber input');
  onDraw = () => {
    onDraw = () => {};
    type(slider, '1');
  };
  type(slider, '0');
  await rest();
  deepEqual(
    seen.slice(-2).map(({ at }) => at),
    [0, 1],
  );
  match(finding(), /frame 1/);
  const count = seen.length;
  await rest();
  equal(seen.length, count);
});

test('an experiment that is left draws and asks for nothing', async () => {
  await opened();
  const count = seen.length;
  take();
  experiment.leave();
  experiment.draw();
  experiment.restore(new URLSearchParams('n=9'));
  await rest();
  deepEqual([seen.length, asked.length], [count, 1]);
  deepEqual(
    calls.filter(([name]) => name === 'announce'),
    [],
  );
  equal(link(), 'n=9');
});

test('the second run is in the address as soon as it is chosen', async () => {
  await opened({ besides: [{ id: 'twin', title: 'Twin', values: { n: 1 } }] });
  take();
  type(find('#e-beside'), 'twin', 'change');
  deepEqual(take(), [['onLink']]);
  await rest();
  type(find('#e-beside'), '', 'change');
  deepEqual(take(), [['onLink']]);
});

test('a link that is followed after a run was asked for may be answered by a preview', async () => {
  answer = ({ steps }) => (steps === 0 ? { frames: [0] } : { status: 503 });
  await opened(LONG);
  labelled('Run').click();
  await rest();
  ok(!find('.notice').hidden);
  experiment.restore(new URLSearchParams('n=9'));
  await rest();
  deepEqual(
    asked.slice(-2).map(({ values }) => values),
    [{ n: 9 }, { n: 9, steps: 0 }],
  );
  ok(find('.notice').hidden);
  match(finding(), /true$/);
});

test('before anything arrived an experiment computes, and a failure is a notice', async () => {
  answer = { isHeld: true, frames: [] };
  await opened();
  ok(finding() !== '' && !/failed/.test(finding()) && !find('.finding').hidden);
  experiment.leave();
  answer = { status: 500 };
  experiment.open();
  await rest();
  ok(find('.finding').hidden && !find('.notice').hidden);
  experiment.leave();
  answer = {};
  experiment.open();
  await rest();
  equal(asked.length, 3);
  match(finding(), /n 4, frame 1/);
});

test('a run that was left before its end is run again, but a long one that has a frame', async () => {
  for (const [view, frames, count] of [
    [{}, [1], 2],
    [LONG, [1], 1],
    [LONG, [], 2],
  ]) {
    answer = { isHeld: true, frames };
    await opened(view);
    experiment.leave();
    experiment.open();
    await rest();
    equal(asked.length, count);
  }
});

test('a link that is followed while another is open is computed when it is opened', async () => {
  await opened();
  experiment.leave();
  experiment.restore(new URLSearchParams('n=7'));
  experiment.open();
  await rest();
  match(finding(), /^n 7/);
});

test('each parameter has a switch, by its kind; some are behind “More settings”', async () => {
  const properties = {
    n: integer(4),
    flag: { type: 'boolean', default: true },
    given: { anyOf: [{ type: 'boolean' }, { type: 'null' }], default: null },
    few: { enum: ['a', 'b_c'], default: 'a' },
    many: { enum: ['1', '2', '3', '4', '5'], default: '1' },
    text: { type: 'string', maxLength: 5, default: 'abc' },
    list: { type: 'array', items: { type: 'number' }, default: [1, 2] },
  };
  experiment.leave();
  const main = ['many', 'n', 'flag', 'given', 'few', 'text'];
  const view = { ...VIEW, main, hidden: [], titles: { few: { a: 'long', b_c: 'x'.repeat(24) } } };
  const description = { ...DESCRIPTION, parameters: { properties } };
  experiment = new Experiment(description, view, handlers);
  blank();
  document.body.append(experiment.element);
  experiment.open();
  await rest();
  deepEqual(
    ['many', 'flag', 'few', 'text', 'list', 'n'].map((name) => find(`#e-${name}`).tagName),
    ['SELECT', 'INPUT', 'SELECT', 'TEXTAREA', 'INPUT', 'INPUT'],
  );
  equal(find('.controls-row .control').textContent.includes('Many'), true);
  ok(find('.controls-rest').contains(find('#e-list')));
  find('.controls-row input[value="true"]').click();
  type(find('#e-list'), '3, 4');
  await rest();
  deepEqual(asked.at(-1).values, { given: true, list: [3, 4] });
  match(find('summary').textContent, /1/);
});

test('an error is at its switch, or a notice', async () => {
  const of = (errors) => ({ status: 422, errors });
  answer = of([{ field: 'n.0', message: 'too large' }]);
  await opened();
  match(find('#e-n-problem').textContent, /too large/);
  ok(find('.notice').hidden);
  answer = of([{ field: 'other', message: 'no such' }]);
  labelled('Reset').disabled = false;
  labelled('Reset').click();
  await rest();
  match(find('.notice').textContent, /o such/);
  equal(labelled('Try again'), undefined);
});
