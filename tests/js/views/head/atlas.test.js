/** The corpus in the view of a head: its drawings, its sentences, the search and the comparison. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, blank, find } from '../../browser.js';
import { createAtlas } from '../../../../static/js/views/head/atlas.js';
import { head } from '../../../../static/js/views/head/head.js';
import { FRAME, sampleTrace } from '../../sample.js';

const PLACE = {
  text: 'The <b> king saw him.',
  target: '',
  query: 5,
  key: 3,
  query_word: 'him',
  key_word: 'king',
  query_span: [17, 20],
  key_span: [8, 12],
  weight: 0.87,
};
const ATLAS = {
  edges: 100,
  pairs: [
    { query: 'him', key: 'king', count: 30 },
    { query: '<b>', key: 'it', count: 10 },
  ],
  distances: [
    { distance: 0, count: 5 },
    { distance: 2, count: 80 },
    { distance: 24, count: 15 },
  ],
  tags: [{ query: 'PRON', key: 'NOUN', count: 60 }],
  sentences: Array.from({ length: 10 }, () => PLACE),
};
const FACTS = { tokens: 1234, sentences: 99, edges: 567, threshold: 0.3, no_search: null };
const PATH = 'decoder.layers.0.self_attention';
const FOUND = {
  heads: [
    {
      attention: PATH,
      head: 1,
      count: 40,
      of: 80,
      share: 0.5,
      lift: 2,
      lift_low: 1.5,
      lift_high: 2.6,
      held_out: 1.8,
    },
    {
      attention: PATH,
      head: 0,
      count: 2,
      of: 9,
      share: 0.2,
      lift: null,
      lift_low: null,
      lift_high: null,
      held_out: null,
    },
  ],
  sentences: [{ ...PLACE, attention: PATH, head: 1, file: 'a.txt', offset: 0 }],
};

const trace = (card = {}) => {
  const sample = sampleTrace();
  return { ...sample, card: { ...sample.card, analyses: [], has_atlas: true, ...card } };
};
const ANSWERS = { atlas: { trace: { atlas: ATLAS } }, corpus: { trace: { atlas: FACTS } } };
const stateOf = (changes = {}) => ({
  ...FRAME,
  layer: 0,
  head: 0,
  head_from: '',
  head_to: '',
  head_same: false,
  answers: ANSWERS,
  ...changes,
});

// --- drawings ------------------------------------------------------------------------------------

test('pairs are drawn, and distances and parts of speech told, as they were counted', () => {
  const { data, grid, summary, facts } = head.figure(trace(), stateOf({ chart: 'pairs' }));
  deepEqual(data[0].x, [30, 10]);
  match(summary, /30 of 100/);
  match(grid.describe(0, 0), /him → king: 30 weights, 30\.0/);
  deepEqual(JSON.parse(JSON.stringify(Object.fromEntries(facts)).replace(/\s%/g, '%')), {
    'Distances in the corpus': '2 (80%), ≥ 24 (15%), 0 (5%)',
    'Parts of speech in the corpus': 'pronoun → noun (60%)',
  });
});

test('only a model with an atlas is asked for it, and has the drawings', () => {
  const without = trace({ has_atlas: false });
  equal(head.asks(without, stateOf()).atlas, undefined);
  deepEqual(head.asks(trace(), stateOf({ head: 1 })).atlas, {
    atlas: { model: trace().model, part: 'head', query: { attention: PATH, head: 1 } },
  });
  equal(head.panels(trace(), stateOf()).length - head.panels(without, stateOf()).length, 1);
});

test('a head without weights, and one of a token on itself only, say so', () => {
  const none = { atlas: { trace: { atlas: { ...ATLAS, edges: 0 } } } };
  match(
    head.figure(trace(), stateOf({ chart: 'pairs', answers: none })).notice,
    /no strong weight/,
  );
  const itself = { atlas: { trace: { atlas: { ...ATLAS, pairs: [] } } } };
  match(head.figure(trace(), stateOf({ chart: 'pairs', answers: itself })).notice, /on itself/);
  ok(head.figure(trace(), stateOf({ chart: 'pairs', answers: {} })).isWaiting);
});

// --- the block -----------------------------------------------------------------------------------

const answered = (atlas) => ({ trace: { atlas } });

function opened(state = stateOf(), of = trace()) {
  const patches = [];
  const atlas = createAtlas({ onState: (patch) => patches.push(patch), announce: () => {} });
  globalThis.document.body.append(atlas.element);
  atlas.show(of, state);
  return { atlas, patches };
}

beforeEach(blank);

test('a model without an atlas shows nothing', () => {
  opened(stateOf(), trace({ has_atlas: false }));
  ok(find('.atlas').hidden);
});

test('sentences have their pair marked in place, as text', () => {
  opened();
  equal(all('.atlas-sentence').length, 8, 'the rest waits');
  const marks = [...find('.atlas-sentence').querySelectorAll('mark')];
  deepEqual(
    marks.map((mark) => [mark.className, mark.textContent]),
    [
      ['is-key', 'king'],
      ['is-query', 'him'],
    ],
  );
  equal(find('.atlas-sentence b'), null);
  match(find('.atlas').textContent, /1,234 tokens/);
  [...all('.atlas button')].find(({ textContent }) => /more/.test(textContent)).click();
  equal(all('.atlas-sentence').length, 10);
});

test('a sentence opens on the page at its pair', () => {
  const { patches } = opened();
  find('.atlas-sentence').click();
  const [{ text, view, layer, head: number, query }] = patches;
  deepEqual([text, view, layer, number, query], [PLACE.text, 'attention', 0, 0, 5]);
});

test('a search goes into the address and ranks heads with sentences', () => {
  const { atlas, patches } = opened();
  find('#atlas-from').value = 'pronoun';
  find('#atlas-to').value = 'king';
  find('form').dispatchEvent(new Event('submit', { cancelable: true }));
  const searched = { head_from: 'pronoun', head_to: 'king', head_same: false };
  deepEqual(patches.pop(), searched);
  const { query } = head.asks(trace(), stateOf(searched)).found.atlas;
  deepEqual([query.from_tag, query.to_word], ['pronoun', 'king']);
  const found = stateOf({ answers: { ...ANSWERS, found: answered(FOUND) } });
  const of = trace();
  atlas.show(of, found);
  const rows = [...all('.atlas-heads tbody tr')].map((row) => row.textContent);
  match(rows[0], /head 1.*40 of 80.*2.*1\.5 to 2\.6.*1\.8/);
  match(rows[1], /too few/);
  const opens = find('.atlas-heads button');
  opens.click();
  const { view, layer, head: number } = patches.pop();
  deepEqual([view, layer, number], ['head', 0, 1]);
  atlas.show(of, found);
  equal(find('.atlas-heads button'), opens, 'the same answer is not written again');
});

test('the sentences of a head are divided in tenths once they are asked for', () => {
  const nothing = { query_word: '', key_word: '', query_span: [], key_span: [], weight: 0 };
  const deciles = [
    { low: 0, high: 0.2, sentence: { ...PLACE, ...nothing } },
    { low: 0.2, high: 1, sentence: PLACE },
  ];
  const keys = [{ word: 'king', tag: 'NOUN', share: 0.4, base: 0.05 }];
  const spread = answered({ sentences: 20, silent: 3, deciles, queries: [], keys });
  equal(head.asks(trace(), stateOf()).spread, undefined);
  deepEqual(head.asks(trace(), stateOf({ head_tenths: true })).spread.atlas.query, {
    attention: PATH,
    head: 0,
  });
  opened(stateOf({ head_tenths: true, answers: { ...ANSWERS, spread } }));
  ok(find('.atlas-spread').open);
  const weights = trace().tensors[`${PATH}.weights`];
  const [, rows, columns] = weights.shape;
  const here =
    weights.scale *
    Math.max(...[...weights.data.slice(0, rows * columns)].filter((_, at) => at % columns > 0));
  const text = find('.atlas-spread').textContent.replace(/\s/g, ' ');
  match(
    text,
    new RegExp(`of 20 sentences.*in 3 the head.*is ${Math.round(here * 100)}.*as in tenth`),
  );
  match(text, /from no word; and to “.king.” \(noun, 40.%, 5.% of all tokens\)/);
  const [least, most] = [...all('.atlas-spread li')];
  match(least.textContent, /none kept to 20/);
  equal(least.querySelector('mark'), null);
  equal(most.querySelectorAll('mark').length, 2);
});

test('what the head does here becomes a search for the same elsewhere', () => {
  const like = answered({ query: 'pronoun', key: 'noun' });
  const state = stateOf({ query: 2, answers: { ...ANSWERS, like } });
  const { query } = head.asks(trace(), state).like.atlas;
  deepEqual([query.text, query.query > query.key], [trace().text, true]);
  const { patches } = opened(state);
  const press = [...all('.atlas button')].find(({ textContent }) => /^As from/.test(textContent));
  match(press.textContent, /^As from “.+” to “.+” here$/);
  press.click();
  deepEqual(patches.pop(), { head_from: 'pronoun', head_to: 'noun', head_same: false });
});

test('a search that fails, and one that cannot be asked, say why', () => {
  const found = { problem: { title: 'Too slow', detail: 'it took too long' } };
  opened(stateOf({ answers: { ...ANSWERS, found } }));
  match(find('.atlas').textContent, /it took too long/i);
  blank();
  const corpus = answered({ ...FACTS, no_search: 'install DuckDB' });
  opened(stateOf({ answers: { ...ANSWERS, corpus } }));
  ok(find('.atlas-search').hidden);
  match(find('.atlas').textContent, /install DuckDB/);
});
