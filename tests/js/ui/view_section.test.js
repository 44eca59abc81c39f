/** A view on the page: its words, switches and panels, and their exports. */

import { painted } from '../../../static/js/plot/renderer.js';
import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, mock, test } from 'node:test';
import {
  all,
  blank,
  drawn,
  find,
  layOut,
  match as matchMedia,
  recorder,
  saved,
  scrolled,
  send,
  settled,
  texts,
} from '../browser.js';
import { READING } from '../../../static/js/api/answers.js';
import { keepKey } from '../../../static/js/api/calls.js';
import { createViewSection } from '../../../static/js/ui/view_section.js';
import { name, row } from '../../../static/js/ui/formula.js';
import { FRAME, sampleTrace } from '../sample.js';

const { calls, handlers, take } = recorder(
  'onCell',
  'onChoose',
  'onState',
  'onGoingOn',
  'onRedraw',
  'announce',
);
const GRID = {
  rows: 1,
  columns: 2,
  rowTitle: 'query',
  columnTitle: 'key',
  rowLabels: ['a'],
  columnLabels: ['x', 'y'],
  quantity: 'weight',
  value: (_, column) => column,
  format: String,
  describe: () => 'a cell',
  tip: () => ['a', 'b'],
  tokens: () => ({}),
  request: { capture: ['*.weights'] },
};
const LAYOUT = {
  width: 100,
  height: 50,
  margin: { l: 0, r: 0, t: 0, b: 0 },
  xaxis: { range: [-0.5, 1.5] },
  yaxis: { range: [0.5, -0.5] },
};
const figureOf = (more = {}) => ({
  title: 'The drawing',
  summary: 's',
  data: [{}],
  layout: LAYOUT,
  grid: GRID,
  ...more,
});
const TRACE = { ...sampleTrace(), card: { kind: 'decoder' } };
const viewOf = (more = {}) => ({
  id: 'v',
  title: 'View',
  help: 'helps',
  terms: {},
  figure: () => figureOf(),
  ...more,
});
let section;

function make(entry = {}) {
  blank('<div id="sentence"></div>');
  section = createViewSection({ id: 'v', title: 'View', ...entry }, handlers);
  document.body.append(section.element);
  section.element.hidden = false;
  take();
}
beforeEach(() => make());
async function show(view = viewOf(), trace = TRACE, state = {}) {
  const grid = section.show(view, trace, { ...FRAME, ...state });
  await settled(2);
  return grid;
}

test('a view has its words, its drawing and its grid', async () => {
  equal(await show(), GRID);
  equal(find('.view-title').textContent, 'View');
  equal(find('.help').textContent, 'helps');
  deepEqual(texts('.panel h2'), ['The drawing']);
  equal(find('.panel').getAttribute('aria-label'), 'The drawing');
  ok(
    find('.answer').hidden &&
      find('.terms-block').hidden &&
      find('.where').hidden &&
      find('.panel-notice').hidden,
  );
  ok(drawn.at(-1)[0] === 'react');
  equal(find('.panels').className, 'panels');
});

test('terms have a meaning, and some a formula', async () => {
  await show(viewOf({ terms: { softmax: 'makes shares', 'what it writes': 'b', 'odd one': 'c' } }));
  deepEqual(texts('dt'), ['softmax', 'what it writes', 'odd one']);
  equal(all('.terms a').length, 2);
  ok(all('.terms a').every(({ href, title }) => href.startsWith('https://') && title));
  ok(find('dt.is-odd-one') && find('dd').textContent.startsWith('makes shares'));
  ok(!find('.terms-block').hidden && find('.terms-block').open);
  matchMedia('(max-width: 40rem)', true);
  ok(!find('.terms-block').open);
  matchMedia('(max-width: 40rem)', false);
});

test('a view may word itself by the model, and answer above its drawings', async () => {
  const wording = () => ({ help: 'other', answer: ['Headline', 'one.', 'two.'] });
  await show(viewOf({ wording, titleFor: () => 'Named' }));
  equal(find('.view-title').textContent, 'Named');
  equal(find('.help').textContent, 'other');
  ok(!find('.answer').hidden);
  deepEqual(texts('.answer p'), ['Headline', 'one. two.']);
  const [headline] = all('.answer p');
  await show(viewOf({ wording, titleFor: () => 'Named' }));
  equal(all('.answer p')[0], headline);
  await show(viewOf({ wording: () => ({ answer: ['Headline'] }) }));
  equal(all('.answer p').length, 1);
  await show();
  ok(find('.answer').hidden);
  make();
  await show(viewOf({ titleFor: () => 'Named' }), { ...TRACE, card: undefined });
  equal(find('.view-title').textContent, 'View');
});

test('a place in the model is chosen, and with it no head', async () => {
  const places = () => [
    { id: 'a', title: 'A' },
    { id: 'b', title: 'B' },
  ];
  await show(viewOf({ places, place: () => 'b' }));
  ok(!find('.where').hidden);
  deepEqual(
    all('.where input').map(({ checked }) => checked),
    [false, true],
  );
  const [first] = all('.where input');
  first.click();
  deepEqual(calls, [['onState', { where: 'a', layer: null, head: null, key: null }]]);
  await show(viewOf({ places, place: () => 'a' }));
  equal(all('.where input')[0], first);
  ok(first.checked);
  await show();
  ok(find('.where').hidden);
});

test('panels are kept while they stay the same', async () => {
  const panels =
    (...ids) =>
    () =>
      ids.map((id) => ({ id, state: { mark: id } }));
  const seen = [];
  const figure = (_, { mark, width }) => {
    seen.push([mark, width]);
    return figureOf({ title: `of ${mark}` });
  };
  await show(viewOf({ panels: panels('a', 'b'), figure, arrangement: 'pair' }));
  deepEqual(texts('.panel h2'), ['of a', 'of b']);
  equal(find('.panels').className, 'panels is-pair');
  const [first] = all('.panel');
  layOut(find('.panel-body', first), { width: 321 });
  await show(viewOf({ panels: panels('a', 'b'), figure, arrangement: () => 'many' }));
  equal(all('.panel')[0], first);
  deepEqual(seen.slice(2), [
    ['a', 321],
    ['b', 0],
  ]);
  equal(find('.panels').className, 'panels is-many');
  const purged = () => drawn.filter(([what]) => what === 'purge').length;
  const before = purged();
  await show(viewOf({ panels: panels('c', 'a'), figure }));
  equal(all('.panel')[1], first);
  deepEqual(texts('.panel h2'), ['of c', 'of a']);
  equal(purged(), before + 1);
  await show(viewOf({ panels: panels('a'), figure }));
  deepEqual(all('.panel'), [first]);
});

const { warn } = console;

test('a figure that fails says so in its own place, and the others are drawn', async () => {
  console.warn = () => {};
  const figure = (_, { mark }) => {
    if (mark) throw new Error('no numbers');
    return figureOf();
  };
  const panels = () => [
    { id: 'a', state: { mark: 1 } },
    { id: 'b', state: {} },
  ];
  equal(await show(viewOf({ panels, figure })), GRID);
  const [failed, fine] = all('.panel-notice');
  ok(failed.classList.contains('is-failure') && !failed.hidden && fine.hidden);
  match(failed.textContent, /View.*no numbers/);
  equal(
    await show(
      viewOf({
        panels: () => {
          throw new Error('no panels');
        },
      }),
    ),
    null,
  );
  match(find('.panels > .is-failure').textContent, /no panels/);
  section.fail(new Error('not loaded'));
  match(find('.panels > .is-failure').textContent, /not loaded/);
  await show(viewOf({ panels }));
  equal(find('.panels > .is-failure'), null);
  equal(all('.panel').length, 2);
  make();
  await show(viewOf({ prepare: () => Promise.reject(new Error('not prepared')) }));
  match(find('.panel-notice').textContent, /not prepared/);
  await show(viewOf({ prepare: () => Promise.resolve() }));
  equal(calls.filter(([what]) => what === 'onRedraw').length, 1);
  console.warn = warn;
});

test('a view that the model lacks says why', async () => {
  await show();
  section.lacks('no experts');
  equal(find('.panels').textContent, 'no experts');
  await show();
  equal(all('.panel').length, 1);
});

test('an overview is built once, shown, asked and left', async () => {
  const log = [];
  const createOverview = (of) => {
    log.push(['create', typeof of.onSight]);
    const element = document.createElement('aside');
    return {
      element,
      show: () => log.push(['show']),
      state: () => ({ extra: 7 }),
      leave: () => log.push(['leave']),
    };
  };
  const seen = [];
  const view = viewOf({
    createOverview,
    figure: (_, { extra }) => {
      seen.push(extra);
      return figureOf();
    },
  });
  make({ overview: 'heads' });
  section.leave();
  await show(view);
  await show(view);
  section.leave();
  deepEqual(log, [['create', 'function'], ['show'], ['show'], ['leave']]);
  deepEqual(seen, [7, 7]);
  equal(find('.view-body').className, 'view-body has-overview is-heads');
  equal(find('.view-body').lastElementChild.tagName, 'ASIDE');
  make({ overview: 'generation' });
  await show(view);
  equal(find('.view-body').firstElementChild.tagName, 'ASIDE');
});

test('an overview whose code is loaded later is built once, after the drawing', async () => {
  const log = [];
  const loadOverview = async () => {
    log.push('load');
    return () => ({ element: document.createElement('aside'), show: () => log.push('show') });
  };
  calls.length = 0;
  make({ overview: 'heads' });
  const view = viewOf({ loadOverview });
  await show(view);
  await show(view);
  await painted();
  await show(view);
  deepEqual(log, ['load', 'show']);
  equal(calls.filter(([what]) => what === 'onRedraw').length, 1);
  equal(find('.view-body').lastElementChild.tagName, 'ASIDE');
});

test('a view is brought into sight below what covers it, unless it is there', async () => {
  scrolled.length = 0;
  const at = (top) => {
    layOut(section.element, { top });
    section.reveal(50);
    return scrolled.pop();
  };
  deepEqual([at(49), at(50), at(400), at(401)], [[0, -9], undefined, undefined, [0, 343]]);
  equal(document.activeElement, find('.view-title'));
  layOut(find('#sentence'), { height: 30 });
  layOut(find('.panels'), { top: 20 });
  section.bringDrawing();
  deepEqual(scrolled.pop(), [0, -18]);
});

test('a file of the API is saved with the key of the page', async () => {
  keepKey('sesame');
  const asked = [];
  globalThis.fetch = async (path, { headers }) => {
    asked.push([path, headers.Authorization]);
    return new Response('PAR1');
  };
  const actions = [{ label: 'Save', file: '/api/v1/models/tiny/heads.parquet' }];
  await show(viewOf({ figure: () => figureOf({ actions }) }));
  find('.panel-actions button').click();
  await settled(20);
  deepEqual(asked, [['/api/v1/models/tiny/heads.parquet', 'Bearer sesame']]);
  equal(find('.panel-actions button').textContent, 'Saved tiny-heads.parquet');
  keepKey('');
});

test('what surrounds a drawing is that of the figure', async () => {
  const actions = [
    { label: 'Why?', patch: { view: 'why' } },
    { label: 'More', patch: { view: 'b' } },
  ];
  await show(
    viewOf({
      figure: () =>
        figureOf({
          help: 'about W_O',
          facts: [['one', '1']],
          actions,
          formula: [row(name('a'), '=', name('b'))],
        }),
    }),
  );
  await settled(20);
  const areHidden = () =>
    ['help', 'facts', 'actions', 'formula'].map((part) => find(`.panel-${part}`).hidden);
  deepEqual(areHidden(), [false, false, false, false]);
  deepEqual([texts('.panel-facts dt'), texts('.panel-facts dd')], [['one'], ['1']]);
  ok(find('.panel-help sub') && find('.panel-formula math'));
  equal(find('.panel-facts').getAttribute('aria-live'), 'off');
  const [why] = all('.panel-actions button');
  why.click();
  deepEqual(calls.at(-1), ['onState', { view: 'why' }]);
  await show(
    viewOf({
      figure: () =>
        figureOf({
          grid: { ...GRID, move: () => null },
          facts: [['one', '1']],
          actions: [{ label: 'Then', patch: { view: 'c' } }],
        }),
    }),
  );
  deepEqual(all('.panel-actions button'), [why]);
  equal(why.textContent, 'Then');
  take();
  why.click();
  deepEqual(calls, [['onState', { view: 'c' }]]);
  equal(find('.panel-facts').getAttribute('aria-live'), 'polite');
  equal(find('.panel-formula').childElementCount, 0);
  await show();
  deepEqual(areHidden(), [true, true, true, true]);
});

test('a notice takes the place of a drawing, and a waiting one pales it', async () => {
  await show(viewOf({ figure: () => ({ title: 'T', notice: 'none' }) }));
  deepEqual([find('.panel-notice').hidden, find('.panel-notice').textContent], [false, 'none']);
  ok(!find('.panel-notice').classList.contains('is-failure'));
  const hidden = () =>
    ['.exports', '.table-block']
      .map((part) => find(part).hidden)
      .concat(find('.plot').parentElement.hidden);
  deepEqual(hidden(), [true, true, true]);
  await show(viewOf({ figure: () => ({ title: 'T', notice: READING }) }));
  ok(!find('.panel').classList.contains('is-stale'));
  await show();
  deepEqual(hidden(), [false, false, false]);
  for (const waiting of [{ notice: READING }, { notice: 'wait', isWaiting: true }]) {
    await show(viewOf({ figure: () => ({ title: 'T', ...waiting }) }));
    ok(find('.panel').classList.contains('is-stale') && find('.panel-notice').hidden);
    await show();
    ok(!find('.panel').classList.contains('is-stale'));
  }
  const { react } = window.Plotly;
  window.Plotly.react = () => Promise.reject(new Error('no Plotly'));
  await show(viewOf({ figure: () => figureOf({ data: [{ other: 1 }] }) }));
  deepEqual(hidden(), [true, false, true]);
  ok(
    find('.panel-notice').classList.contains('is-failure') &&
      find('.panel-notice').textContent.includes('no Plotly'),
  );
  window.Plotly.react = react;
});

test('the switches of a drawing are below it, keep the focus, and go with it', async () => {
  const weight = (value) => ({
    ...{ kind: 'number', name: 'weight', label: 'W', least: 0, most: 1, step: 0.1 },
    ...{ value, isTyped: true },
  });
  const withSwitch = (value) => viewOf({ figure: () => figureOf({ controls: [weight(value)] }) });
  await show(withSwitch(0.2));
  const [slider, box] = all('.panel-body .controls input');
  const drawing = find('.panel-body .plot');
  ok(drawing.compareDocumentPosition(slider) & Node.DOCUMENT_POSITION_FOLLOWING);
  slider.focus();
  slider.value = '0.4';
  send(slider, 'input');
  equal(calls.find(([what]) => what === 'onState')[1].weight, 0.4);
  await show(withSwitch(0.4));
  deepEqual([document.activeElement, box.value], [slider, '0.4']);
  await show(viewOf());
  ok(find('.panel-body .controls').hidden);
  equal(all('.panel-body .controls input').length, 0);
});

test('the table is built when it is opened, and follows the drawing', async () => {
  await show();
  const table = find('.table-block');
  equal(all('table').length, 0);
  table.open = true;
  send(table, 'toggle');
  await settled(30);
  deepEqual(texts('tbody td'), ['0', '1']);
  const other = { ...GRID, format: (value) => `f${value}` };
  await show(viewOf({ figure: () => figureOf({ grid: other }) }));
  deepEqual(texts('tbody td'), ['f0', 'f1']);
  table.open = false;
  await show();
  deepEqual(texts('tbody td'), ['f0', 'f1']);
});

test('files and code are one menu, which a choice closes', async () => {
  await show();
  const [opener, ...others] = all('.menu-button');
  equal(others.length, 0);
  const list = find(`#${opener.getAttribute('popovertarget')}`);
  ok(all('button', list).every((entry) => entry.getAttribute('popovertargetaction') === 'hide'));
});

const choose = async (label) => {
  const entry = all('.menu-list button').find(
    (node) => find('.menu-name', node).textContent === label,
  );
  entry.click();
  await settled(60);
};

test('an export is named after the view and its drawing, and is told for a while', async () => {
  await show();
  await choose('CSV');
  equal(saved.at(-1).name, 'headlight-tiny-v-the-drawing-it-saw-b-it.csv');
  equal(calls.at(-1)[0], 'announce');
  equal(find('.exports-said').textContent, calls.at(-1)[1]);
  mock.timers.enable({ apis: ['setTimeout'] });
  section.show(viewOf(), TRACE, FRAME);
  equal(find('.exports-said').textContent, '');
  mock.timers.reset();
  await choose('JSON');
  equal(saved.at(-1).name, 'headlight-tiny-v-the-drawing-it-saw-b-it.json');
  await choose('SVG');
  equal(saved.at(-1).name, 'headlight-tiny-v-the-drawing-it-saw-b-it.svg');
  await choose('PNG');
  equal(saved.at(-1).name, 'headlight-tiny-v-the-drawing-it-saw-b-it.png');
});

test('a figure for paper is drawn with the width that its drawing has on the page', async () => {
  const states = [];
  const figure = (_, state) => {
    states.push(state);
    return figureOf();
  };
  await show(viewOf({ figure }));
  const { width } = states.at(-1);
  equal(states.at(-1).pageWidth, undefined);
  await choose('Figure…');
  const paper = states.at(-1);
  deepEqual([paper.pageWidth, paper.palette.theme], [width, 'light']);
  ok(paper.width !== width);
  find('dialog.paper').close();
});

test('code is copied', async () => {
  const copied = [];
  Object.defineProperty(navigator, 'clipboard', {
    value: { writeText: async (text) => void copied.push(text) },
    configurable: true,
  });
  await show();
  await choose('Copy curl');
  match(copied.at(-1), /^curl/);
  await choose('Copy Python');
  match(copied.at(-1), /import/);
  equal(calls.filter(([what]) => what === 'announce').length, 2);
});

test('an export that fails says why, and without a drawing there is none', async () => {
  Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true });
  document.execCommand = () => false;
  await show(viewOf({ figure: () => ({ title: 'T', notice: 'none' }) }));
  await choose('Copy curl');
  equal(calls.length, 0);
  await show();
  await choose('Copy curl');
  match(find('.exports-said').textContent, /failed.*does not let/);
});

test('a saved page has no exports that ask a server', async () => {
  await show();
  document.body.className = 'is-saved';
  section = createViewSection({ id: 'v', title: 'View' }, handlers);
  document.body.append(section.element);
  const last = all('.view').at(-1);
  section.show(viewOf(), TRACE, FRAME);
  equal(all('.menu-button', last).length, 1);
  const names = texts('.menu-name', last);
  ok(names.includes('CSV') && !names.includes('Copy curl'));
  ok(texts('.menu-name', all('.view')[0]).includes('Copy curl'));
});
