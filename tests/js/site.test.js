import { deepEqual, equal, match, rejects } from 'node:assert/strict';
import { test } from 'node:test';

import { createCalls, openFolder } from '../../static/js/site.js';
import { archiveOf, CARD, fileOf, WEIGHTS } from './archive.js';

const HASH = '#text=a';
globalThis.location ??= { hash: HASH };
globalThis.document ??= { querySelector: () => null, getElementById: () => null };

const texts = [
  { model: 'tiny', text: 'a cat', target: null, file: 'first' },
  { model: 'tiny', text: 'a dog', target: null, file: 'second' },
];
const catalogue = { default: 'tiny', models: [{ ...CARD, id: 'tiny', examples: ['all of them'] }] };
const index = {
  catalogue,
  texts,
  chapters: { chapters: [{ id: 'mine' }], unavailable: {} },
  files: { '/api/v1/chapters/mine': 'chapter', '/api/v1/experiments/scaling': 'scaling' },
  server: '',
};
const chapter = {
  chapter: { id: 'mine', steps: [] },
  outcomes: [{ opens: { layer: 1 }, answer: { of: 'weight' }, outcome: { right: 3 } }],
};
const scaling = {
  description: { id: 'scaling', parameters: { properties: { width: { default: 1024 } } } },
  runs: [
    { values: {}, start: { experiment: 'scaling' }, frames: [{ a: 1 }, { a: 2 }] },
    { values: { width: 512 }, start: {}, frames: [] },
  ],
};

const MAP = { axes: ['head', 'query', 'key'], shape: [2, 1, 2], data: [0, 1, 2, 3] };
const textFile = (text) => archiveOf(CARD, fileOf({ [WEIGHTS]: MAP }, { text }), []);

/** Return the files of a site, and the names of those that were loaded. */
function filesOf() {
  const asked = [];
  const contents = {
    first: () => textFile('a cat'),
    second: () => textFile('a dog'),
    chapter: () => JSON.stringify(chapter),
    scaling: () => JSON.stringify(scaling),
  };
  const load = async (name) => {
    asked.push(name);
    return new Response(contents[name]());
  };
  return { load, asked };
}

test('a text is answered from its own file, which is loaded once', async () => {
  const { load, asked } = filesOf();
  const folder = openFolder(index, load);
  deepEqual(asked, []);
  const ask = (text) => folder.answer({ model: 'tiny', text, capture: [] });
  equal((await ask('a dog')).text, 'a dog');
  equal((await ask('a cat')).text, 'a cat');
  const { card } = await ask('a dog');
  deepEqual(asked, ['second', 'first']);
  deepEqual(card.examples, ['all of them']);
});

test('a text, a pass or a model that is not there is told with the command and the server', async () => {
  const { load } = filesOf();
  const folder = openFolder({ ...index, server: 'https://example.org/lit' }, load);
  await rejects(folder.answer({ model: 'tiny', text: 'a bird' }), (problem) => {
    match(problem.title, /sentence is not on this site/);
    match(problem.detail, /headlight serve/);
    equal(problem.elsewhere.href, `https://example.org/lit/${HASH}`);
    return true;
  });
  const edits = [{ kind: 'heads_off', layer: 0, heads: [0] }];
  await rejects(folder.answer({ model: 'tiny', text: 'a cat', edits }), /pass is not on this site/);
  await rejects(folder.answer({ model: 'other', text: 'a cat' }), /sentence is not on this site/);
});

test('texts that are asked for at one time do not disturb each other', async () => {
  const { load } = filesOf();
  const folder = openFolder(index, load);
  const ask = (text) => folder.answer({ model: 'tiny', text, capture: [WEIGHTS] });
  const [first, second] = await Promise.all([ask('a cat'), ask('a dog')]);
  deepEqual([first.text, second.text], ['a cat', 'a dog']);
});

test('cards and the names of held analyses need no file', async () => {
  const { load, asked } = filesOf();
  const folder = openFolder(index, load);
  equal((await folder.answer({ card: 'tiny' })).card.id, 'tiny');
  equal(folder.holds({ card: 'none' }), false);
  equal(folder.holds({ capture: [] }), false);
  deepEqual(asked, []);
});

test('chapters and what is right are those of the files', async () => {
  const { load } = filesOf();
  const call = createCalls(index, load);
  const json = async (path, body) => (await call(path, body)).json();
  deepEqual(await json('/api/v1/chapters'), index.chapters);
  deepEqual(await json('/api/v1/chapters/mine'), chapter.chapter);
  const { opens, answer } = chapter.outcomes[0];
  deepEqual(await json('/api/v1/chapters/answer', { opens, answer }), { right: 3 });
  const other = { opens, answer: { of: 'other' } };
  await rejects(call('/api/v1/chapters/answer', other), /not on this site/);
  await rejects(call('/api/v1/chapters/read', { text: '' }), /not on this site/);
});

test('a run of an experiment is sent as the events of a server', async () => {
  const { load } = filesOf();
  const call = createCalls(index, load);
  const path = '/api/v1/experiments/scaling';
  deepEqual(await (await call(path)).json(), scaling.description);
  const events = (await (await call(path, {})).text()).trim().split('\n\n');
  deepEqual(
    events.map((event) => event.split('\n')[0]),
    ['event: start', 'event: frame', 'event: frame', 'event: end'],
  );
  deepEqual(JSON.parse(events[2].split('data: ')[1]), { index: 1, arrays: { a: 2 } });
  await rejects(call(path, { width: 3 }), /which holds 1024 and 512 for width/);
});
