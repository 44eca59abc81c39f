/** The corpus in the view of a head: its drawings, its sentences, the search and the comparison. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, blank, find, settled } from '../../browser.js';
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
const stateOf = (changes = {}) => ({
  ...FRAME,
  layer: 0,
  head: 0,
  head_from: '',
  head_to: '',
  head_same: false,
  answers: { atlas: { trace: { atlas: ATLAS } } },
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

/** Answer every path of the API by its last part; keep the paths. */
function serve(answers) {
  const paths = [];
  globalThis.fetch = async (path) => {
    paths.push(String(path));
    const part = String(path).match(/\/atlas\/?([a-z]*)/)[1];
    const { status = 200, ...body } = answers[part] ?? {};
    return new Response(JSON.stringify(body), {
      status,
      headers: { 'Content-Type': status === 200 ? 'application/json' : 'application/problem+json' },
    });
  };
  return paths;
}

function opened(answers = {}, state = stateOf(), of = trace()) {
  const patches = [];
  const paths = serve({ '': FACTS, search: FOUND, ...answers });
  const atlas = createAtlas({ onState: (patch) => patches.push(patch), announce: () => {} });
  globalThis.document.body.append(atlas.element);
  atlas.show(of, state);
  return { atlas, patches, paths };
}

beforeEach(blank);

test('a model without an atlas shows nothing and asks nothing', async () => {
  const { paths } = opened({}, stateOf(), trace({ has_atlas: false }));
  await settled();
  ok(find('.atlas').hidden);
  deepEqual(paths, []);
});

test('sentences have their pair marked in place, as text', async () => {
  opened();
  await settled();
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

test('a sentence opens on the page at its pair', async () => {
  const { patches } = opened();
  find('.atlas-sentence').click();
  const [{ text, view, layer, head: number, query }] = patches;
  deepEqual([text, view, layer, number, query], [PLACE.text, 'attention', 0, 0, 5]);
});

test('a search goes into the address and ranks heads with sentences', async () => {
  const { atlas, patches, paths } = opened();
  find('#atlas-from').value = 'pronoun';
  find('#atlas-to').value = 'king';
  find('form').dispatchEvent(new Event('submit', { cancelable: true }));
  deepEqual(patches.pop(), { head_from: 'pronoun', head_to: 'king', head_same: false });
  atlas.show(trace(), stateOf({ head_from: 'pronoun', head_to: 'king' }));
  await settled();
  match(paths.at(-1), /atlas\/search\?from_tag=pronoun&to_word=king&/);
  const rows = [...all('.atlas-heads tbody tr')].map((row) => row.textContent);
  match(rows[0], /head 1.*40 of 80.*2.*1\.5 to 2\.6.*1\.8/);
  match(rows[1], /too few/);
  find('.atlas-heads button').click();
  const { view, layer, head: number } = patches.pop();
  deepEqual([view, layer, number], ['head', 0, 1]);
  const n = paths.length;
  atlas.show(trace(), stateOf({ head_from: 'pronoun', head_to: 'king' }));
  equal(paths.length, n, 'the same search is not asked again');
});

test('the sentences of a head are divided in tenths once they are asked for', async () => {
  const nothing = { query_word: '', key_word: '', query_span: [], key_span: [], weight: 0 };
  const deciles = [
    { low: 0, high: 0.2, sentence: { ...PLACE, ...nothing } },
    { low: 0.2, high: 1, sentence: PLACE },
  ];
  const keys = [{ word: 'king', tag: 'NOUN', share: 0.4, base: 0.05 }];
  const spread = { sentences: 20, silent: 3, deciles, queries: [], keys };
  const { atlas, paths } = opened({ spread });
  await settled();
  ok(!paths.some((path) => path.includes('spread')));
  find('.atlas-spread').open = true;
  atlas.show(trace(), stateOf());
  await settled();
  match(paths.at(-1), /atlas\/spread\?attention=decoder\.layers\.0\.self_attention&head=0$/);
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
  const n = paths.length;
  atlas.show(trace(), stateOf());
  equal(paths.length, n, 'the same head is not asked again');
});

test('what the head does here becomes a search for the same elsewhere', async () => {
  const { patches, paths } = opened(
    { like: { query: 'pronoun', key: 'noun' } },
    stateOf({ query: 2 }),
  );
  await settled();
  const like = [...all('.atlas button')].find(({ textContent }) => /^As from/.test(textContent));
  match(like.textContent, /^As from “.+” to “.+” here$/);
  like.click();
  await settled();
  match(paths.at(-1), /atlas\/like\?text=.+&query=\d+&key=\d+$/);
  deepEqual(patches.pop(), { head_from: 'pronoun', head_to: 'noun', head_same: false });
});

test('a search that fails, and one that cannot be asked, say why', async () => {
  const problem = { status: 504, type: 'urn:x', title: 'Too slow', detail: 'it took too long' };
  opened({ search: problem }, stateOf({ head_from: 'a' }));
  await settled();
  match(find('.atlas .panel-notice').textContent, /it took too long/);
  blank();
  opened({ '': { ...FACTS, no_search: 'install DuckDB' } });
  await settled();
  ok(find('.atlas-search').hidden);
  match(find('.atlas .panel-notice').textContent, /install DuckDB/);
});
