import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  beginning,
  choice,
  choosing,
  choosingModel,
  clamp,
  count,
  counts,
  createMemo,
  deepEqual,
  fieldsOf,
  flag,
  INITIAL,
  isQueryLookedAt,
  normalized,
  number,
  ofText,
  opened,
  queryOf,
  readFragment,
  standardsOf,
  standardsOfText,
  text,
  writeFragment,
} from '../../../static/js/state/state.js';
import { readInWords } from '../../../static/js/ui/page.js';
import { fillTrace, pairTrace, sampleTrace } from '../sample.js';

const STATES = {
  plain: {
    ...INITIAL,
    text: 'The cat sat.',
    model: 'stories',
    view: 'experts',
    layer: 2,
    head: 5,
    query: 3,
    range: 'head',
  },
  awkward: {
    ...INITIAL,
    text: 'a&b=c#d %41+ é 中文 👩‍🚀 مرحبا\n<s>\t"',
    model: 'x/y',
    view: 'attention',
    layer: 0,
    head: 0,
    query: 0,
    range: 'one',
  },
  empty: {
    ...INITIAL,
    text: '',
    model: '',
    view: 'positions',
    layer: null,
    head: null,
    query: null,
    range: 'one',
  },
  translated: {
    ...INITIAL,
    text: 'A man',
    target: 'Un & un = 2',
    where: 'encoder',
    query: 1,
    source: 2,
  },
  masked: { ...INITIAL, text: '[MASK] a [MASK]', words: ' été' },
};

for (const [name, state] of Object.entries(STATES)) {
  test(`a link restores a state that is ${name}`, () => {
    assert.deepEqual({ ...INITIAL, ...readFragment(writeFragment(state)) }, state);
  });
}

test('an emptied box stays empty, an untouched one does not', () => {
  assert.equal(readFragment(writeFragment({ ...INITIAL, text: '' })).text, '');
  assert.equal('text' in readFragment(writeFragment(INITIAL)), false);
});

test('nonsense in a link is left out', () => {
  assert.deepEqual(readFragment('#layer=-1&head=x&query=1e9&range=all'), {});
  assert.deepEqual(readFragment('#layer=03&query=%ZZ'), { layer: 3 });
  assert.deepEqual(readFragment(''), {});
  assert.deepEqual(readFragment('#target=+'), {}, 'a blank translation is none');
});

test('half a surrogate pair makes a link, not an exception', () => {
  assert.match(writeFragment({ ...INITIAL, text: 'a\ud800' }), /text=a%EF%BF%BD/);
});

test('indices from another model are brought back into what there is', () => {
  const bounds = { layers: 4, heads: 6, tokens: 5, views: ['attention', 'experts'] };
  const state = clamp({ ...INITIAL, view: 'nothing', layer: 11, head: 11, query: 9 }, bounds);
  assert.deepEqual([state.view, state.layer, state.head, state.query], ['attention', 3, 5, null]);
  assert.equal(clamp({ ...INITIAL, layer: null }, bounds).layer, null);
});

test('the query is the last token until somebody chooses', () => {
  const trace = { tokens: ['a', 'b', 'c'] };
  assert.equal(queryOf({ query: null }, trace), 2);
  assert.equal(queryOf({ query: 0 }, trace), 0);
  assert.equal(queryOf({ query: 7 }, trace), 2);
});

test('the query is a mask where there is one and nobody chose', () => {
  assert.equal(queryOf({ query: null }, fillTrace()), 2);
  assert.equal(queryOf({ query: 0 }, fillTrace()), 0);
});

test('the end of a text that was only just opened is not where somebody looks', () => {
  assert.equal(isQueryLookedAt({ query: null }, pairTrace()), false);
  assert.equal(isQueryLookedAt({ query: 0 }, pairTrace()), true);
  assert.equal(isQueryLookedAt({ query: null }, fillTrace()), true);
});

test('of two sentences each has its own chosen token', () => {
  const trace = pairTrace();
  assert.deepEqual(
    [queryOf({ query: 1, source: 3 }, trace), queryOf({ query: 1, source: 3 }, trace, 'source')],
    [1, 3],
  );
  assert.deepEqual(
    [choosing(trace, 'target', 1), choosing(trace, 'source', 1)],
    [{ query: 1 }, { source: 1 }],
  );
  assert.deepEqual(choosing(fillTrace(), 'source', 1), { query: 1 });
});

test('a place that this model does not have is left to the page', () => {
  const bounds = {
    layers: 4,
    heads: 6,
    tokens: 5,
    sources: 3,
    views: ['attention'],
    places: ['encoder', 'cross'],
  };
  assert.equal(clamp({ ...INITIAL, where: 'encoder' }, bounds).where, 'encoder');
  assert.equal(clamp({ ...INITIAL, where: 'decoder', source: 3 }, bounds).where, '');
  assert.deepEqual(
    [2, 3].map((source) => clamp({ ...INITIAL, source }, bounds).source),
    [2, null],
  );
});

test('an example opens where there is something to see; one that says nothing leaves the view as it is', () => {
  assert.deepEqual(opened({ view: 'attention', layer: 1, head: 3 }), {
    query: null,
    source: null,
    key: null,
    where: '',
    view: 'attention',
    layer: 1,
    head: 3,
  });
  assert.deepEqual(opened({ where: 'cross' }).where, 'cross');
  assert.deepEqual(opened({}), {});
});

test('who brings no text begins with the first example, and what a link says stays', () => {
  const example = { text: 'it saw', opens: { view: 'experts', layer: 1, head: 3 } };
  assert.deepEqual(beginning(INITIAL, example), {
    ...INITIAL,
    text: 'it saw',
    view: 'experts',
    layer: 1,
    head: 3,
  });
  assert.equal(beginning({ ...INITIAL, head: 0 }, example).head, 0);
  assert.equal(beginning(INITIAL, undefined).text, '');
});

test('another model starts afresh, whatever was chosen in this one', () => {
  const looked = {
    ...INITIAL,
    model: 'stories',
    target: 'Un chat',
    where: 'cross',
    layer: 2,
    head: 1,
    query: 4,
    source: 3,
    key: 0,
    view: 'why',
  };
  assert.deepEqual(
    { ...looked, ...choosingModel('fill') },
    { ...INITIAL, model: 'fill', view: 'why' },
  );
});

const VIEWS = ['attention', 'experts'];

test('what the trace does not hold is not chosen', () => {
  const state = normalized(
    {
      ...INITIAL,
      view: 'lost',
      where: 'cross',
      layer: 99,
      head: 99,
      query: 99,
      source: 99,
      key: 99,
    },
    sampleTrace(),
    VIEWS,
  );
  const { view, where, layer, head, query, source, key } = state;
  assert.deepEqual(
    { view, where, layer, head, query, source, key },
    { view: 'attention', where: '', layer: 1, head: 1, query: null, source: null, key: null },
  );
});

test('where nobody chose a head, one is chosen, and a choice that was made stays', () => {
  const { layer, head } = normalized(INITIAL, sampleTrace(), VIEWS);
  assert.ok(Number.isInteger(layer) && Number.isInteger(head));
  assert.equal(normalized({ ...INITIAL, layer: 0 }, sampleTrace(), VIEWS).layer, 0);
  assert.equal(normalized({ ...INITIAL, head: 1 }, sampleTrace(), VIEWS).head, 1);
});

test('a key is one of the sentence that is attended to', () => {
  const trace = pairTrace();
  const last = {
    encoder: trace.tokens.length - 1,
    cross: trace.tokens.length - 1,
    decoder: trace.target_tokens.length - 1,
  };
  for (const [where, key] of Object.entries(last)) {
    assert.equal(normalized({ ...INITIAL, where, key }, trace, VIEWS).key, key);
    assert.equal(normalized({ ...INITIAL, where, key: key + 1 }, trace, VIEWS).key, null, where);
  }
});

test('how much was read is said in words', () => {
  const trace = {
    tokens: [1, 2],
    target_tokens: null,
    card: { max_tokens: 64 },
    timings: { a_ms: 0.2, b_ms: 0.1 },
  };
  assert.equal(readInWords(trace), '2 tokens of at most 64, read in 1 ms');
  assert.equal(
    readInWords({ ...trace, target_tokens: [1], timings: {} }),
    '2 + 1 token of at most 64 each',
  );
});

test('the last result is given again while its parts are the same', () => {
  const memo = createMemo();
  const trace = {};
  let made = 0;
  const make = () => ({ number: (made += 1) });
  const first = memo([trace, 'a'], make);
  assert.equal(memo([trace, 'a'], make), first);
  assert.equal(made, 1);
  assert.notEqual(memo([trace, 'b'], make), first);
  assert.notEqual(memo([{}, 'b'], make), memo([trace, 'b'], make));
  assert.equal(made, 4, 'only the last one is kept');
});

test('what failed is tried again', () => {
  const memo = createMemo();
  assert.throws(
    () =>
      memo([1], () => {
        throw new Error('no');
      }),
    /no/,
  );
  assert.equal(
    memo([1], () => 'yes'),
    'yes',
  );
});

const drawing = () => ({
  z: [
    [1, null, NaN],
    [0.5, 2, 3],
  ],
  axis: { title: { text: 'a' }, range: [0, 1] },
  bytes: Uint8Array.of(1, 2),
  is: true,
});

test('what is made alike is the same', () => {
  assert.ok(deepEqual(drawing(), drawing()));
  assert.ok(deepEqual([undefined], [undefined]));
});

test('any difference is one, however deep', () => {
  const changes = [
    (d) => {
      d.z[1][2] = 4;
    },
    (d) => {
      d.z[0][1] = 0;
    },
    (d) => {
      d.z[0].push(1);
    },
    (d) => {
      d.axis.title.text = 'b';
    },
    (d) => {
      d.axis.range = { 0: 0, 1: 1 };
    },
    (d) => {
      d.bytes[1] = 3;
    },
    (d) => {
      d.bytes = [1, 2];
    },
    (d) => {
      delete d.is;
    },
    (d) => {
      d.more = undefined;
    },
    (d) => {
      delete d.is;
      d.other = true;
    },
    (d) => {
      d.axis = null;
    },
  ];
  for (const change of changes) {
    const changed = drawing();
    change(changed);
    assert.ok(!deepEqual(drawing(), changed), change.toString());
    assert.ok(!deepEqual(changed, drawing()), change.toString());
  }
});

test('what only looks alike is not the same', () => {
  for (const [a, b] of [
    [0, '0'],
    [null, {}],
    [[], {}],
    [undefined, null],
    [1, [1]],
  ])
    assert.ok(!deepEqual(a, b));
});

const FIELDS = {
  what: choice(['weights', 'scores']),
  is_merged: flag(),
  is_shown: flag(true),
  heads: counts(),
  path: counts(),
  dimension: count(),
  temperature: number({ least: 0.1, most: 10, standard: 1 }),
  note: text(),
};

test('every kind of field comes back as it was written', () => {
  const state = {
    what: 'scores',
    is_merged: true,
    is_shown: false,
    heads: [3, 0, 12],
    path: [],
    dimension: 0,
    temperature: 0.25,
    note: 'a.b=c&d',
  };
  assert.deepEqual(
    { ...standardsOf(FIELDS), ...readFragment(writeFragment(state, FIELDS), FIELDS) },
    state,
  );
});

test('what is as it would be anyway is not written', () => {
  assert.equal(writeFragment(standardsOf(FIELDS), FIELDS), '#');
  assert.equal(writeFragment({}, FIELDS), '#');
});

test('nonsense means nothing', () => {
  assert.deepEqual(
    readFragment('#what=all&is_merged=yes&heads=1,2&path=.&dimension=-1&temperature=0', FIELDS),
    {},
  );
  assert.deepEqual(readFragment('#temperature=NaN&heads=&is_shown=', FIELDS), {});
  assert.deepEqual(readFragment(`#path=${'1.'.repeat(2000)}1`, FIELDS), {});
});

test('two views cannot call their fields alike', () => {
  assert.throws(
    () =>
      fieldsOf([
        { id: 'a', fields: { what: flag() } },
        { id: 'b', fields: { what: flag() } },
      ]),
    /b names a field what/,
  );
  assert.throws(() => fieldsOf([{ id: 'a', fields: { layer: count() } }]), /layer/);
  assert.ok('what' in fieldsOf([{ id: 'a', fields: { what: flag() } }, { id: 'b' }]));
});

test('with another text only what says something of a text starts afresh', () => {
  const fields = {
    path: ofText(counts()),
    step: ofText(count()),
    temperature: number({ least: 0, most: 2, standard: 1 }),
  };
  assert.deepEqual(standardsOfText(fields), { path: [], step: null });
  assert.deepEqual(fields.path.read('3.1'), [3, 1]);
});
