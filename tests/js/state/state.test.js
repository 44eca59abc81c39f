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
  elsewhere,
  fieldsOf,
  flag,
  INITIAL,
  normalized,
  NOTHING_CHOSEN,
  number,
  ofText,
  opened,
  queryOf,
  readFragment,
  standardsOf,
  standardsOfText,
  text,
  withoutStale,
  writeFragment,
} from '../../../static/js/state/state.js';
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

test('the query is the last token, or the mask, by default', () => {
  const trace = { tokens: ['a', 'b', 'c'] };
  const found = [null, 0, 7].map((query) => queryOf({ query }, trace));
  assert.deepEqual(found, [2, 0, 2]);
  assert.deepEqual(
    [queryOf({ query: null }, fillTrace()), queryOf({ query: 0 }, fillTrace())],
    [2, 0],
  );
});

test('before a full stop the query is the last word, or predicts it', () => {
  const words = ['It', ' ra', 'ins', '.'];
  const tokens = words.map((text, at) => ({ text, word: [0, 1, 1, 2][at], start: at }));
  const query = (trace) => queryOf({ query: null }, trace);
  assert.equal(query({ tokens, card: { kind: 'encoder' } }), 2);
  assert.equal(query({ tokens, card: { kind: 'decoder' } }), 3);
  assert.equal(query({ tokens, target_tokens: tokens }), 0);
  assert.equal(query({ tokens, target_tokens: tokens.slice(0, 3) }), 2);
});

test('of two sentences each has its own chosen token', () => {
  const trace = pairTrace();
  const state = { query: 1, source: 3 };
  assert.deepEqual([queryOf(state, trace), queryOf(state, trace, 'source')], [1, 3]);
  assert.deepEqual(choosing(trace, 'target', 1), { query: 1 });
  assert.deepEqual(choosing(trace, 'source', 1), { source: 1 });
  assert.deepEqual(choosing(fillTrace(), 'source', 1), { query: 1 });
});

test('a place that this model does not have is left to the page', () => {
  const places = ['encoder', 'cross'];
  const bounds = { layers: 4, heads: 6, tokens: 5, sources: 3, views: ['attention'], places };
  const clamped = (more) => clamp({ ...INITIAL, ...more }, bounds);
  assert.equal(clamped({ where: 'encoder' }).where, 'encoder');
  assert.equal(clamped({ where: 'decoder', source: 3 }).where, '');
  assert.deepEqual([clamped({ source: 2 }).source, clamped({ source: 3 }).source], [2, null]);
});

test('an example opens its own view, if it names one', () => {
  const opens = { view: 'attention', layer: 1, head: 3 };
  assert.deepEqual(opened(opens), { ...NOTHING_CHOSEN, where: '', ...opens });
  assert.deepEqual(opened({ where: 'cross' }).where, 'cross');
  assert.deepEqual(opened({}), {});
});

test('a change of the cell takes the weight that was set for it, and no other change does', () => {
  const state = { ...INITIAL, layer: 1, head: 0, query: 3, key: 2, weight: 0.5, token: 7 };
  for (const patch of [{ head: 1 }, { layer: 0 }, { key: 1 }, { where: 'cross' }, { source: 2 }])
    assert.deepEqual(withoutStale(patch, state), { weight: null, ...patch });
  for (const patch of [{ query: 4 }, { text: 'b' }, { model: 'm' }, { target: 'c' }])
    assert.deepEqual(withoutStale(patch, state), { weight: null, token: null, ...patch });
  for (const patch of [{}, { off: 'head decoder 0 0' }, { view: 'word' }, { weight_fixed: true }])
    assert.deepEqual(withoutStale(patch, state), patch);
  const same = { layer: 1, head: 0, query: 3, key: 2 };
  assert.deepEqual(withoutStale(same, state), same, 'it is the same cell');
});

test('a change that sets another cell may set its weight and its prediction with it', () => {
  const state = { ...INITIAL, key: 2, weight: 0.5, token: 7 };
  const patch = { key: 1, query: 4, weight: 0.9, token: 3 };
  assert.deepEqual(withoutStale(patch, state), patch);
});

test('edits are in the link, and a wrong one is not read', () => {
  const edited = { ...INITIAL, token: 7, off: 'head decoder 1 0', weight: 0.5, weight_fixed: true };
  assert.deepEqual({ ...INITIAL, ...readFragment(writeFragment(edited)) }, edited);
  assert.deepEqual(readFragment('#weight=0'), { weight: 0 });
  for (const wrong of ['weight=1.1', 'weight=-1', 'weight=', 'token=-1', 'token=a', 'map=size'])
    assert.deepEqual(readFragment(`#${wrong}`), {}, wrong);
  assert.deepEqual(readFragment('#map=writes'), { map: 'writes' });
});

test('the first example opens if the link has no text, and the link’s other fields stay', () => {
  const opens = { view: 'experts', layer: 1, head: 3 };
  const example = { text: 'it saw', opens };
  assert.deepEqual(beginning(INITIAL, example), { ...INITIAL, text: 'it saw', ...opens });
  assert.equal(beginning({ ...INITIAL, head: 0 }, example).head, 0);
  assert.equal(beginning(INITIAL, undefined).text, '');
});

test('choosing another model resets the choices', () => {
  const chosen = {
    target: 'Un chat',
    where: 'cross',
    layer: 2,
    head: 1,
    query: 4,
    source: 3,
    key: 0,
  };
  const looked = { ...INITIAL, model: 'stories', view: 'why', ...chosen };
  const wanted = { ...INITIAL, model: 'fill', view: 'why' };
  assert.deepEqual({ ...looked, ...choosingModel('fill') }, wanted);
});

const VIEWS = ['attention', 'experts'];

test('a choice outside the trace is dropped', () => {
  const wild = {
    view: 'lost',
    where: 'cross',
    layer: 99,
    head: 99,
    query: 99,
    source: 99,
    key: 99,
  };
  const found = normalized({ ...INITIAL, ...wild }, sampleTrace(), VIEWS);
  const known = { view: 'attention', where: '', layer: 1, head: 1 };
  assert.deepEqual(found, { ...found, ...known, query: null, source: null, key: null });
});

test('a head is chosen by default, and an explicit choice stays', () => {
  const { layer, head } = normalized(INITIAL, sampleTrace(), VIEWS);
  assert.ok(Number.isInteger(layer) && Number.isInteger(head));
  assert.equal(normalized({ ...INITIAL, layer: 0 }, sampleTrace(), VIEWS).layer, 0);
  assert.equal(normalized({ ...INITIAL, head: 1 }, sampleTrace(), VIEWS).head, 1);
});

test('a key is one of the sentence that is attended to', () => {
  const trace = pairTrace();
  const [source, target] = [trace.tokens.length - 1, trace.target_tokens.length - 1];
  for (const [where, key] of Object.entries({ encoder: source, cross: source, decoder: target })) {
    assert.equal(normalized({ ...INITIAL, where, key }, trace, VIEWS).key, key);
    assert.equal(normalized({ ...INITIAL, where, key: key + 1 }, trace, VIEWS).key, null, where);
  }
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

const drawing = () => ({
  z: [
    [1, null, NaN],
    [0.5, 2, 3],
  ],
  axis: { title: { text: 'a' }, range: [0, 1] },
  bytes: Uint8Array.of(1, 2),
  is: true,
});

test('a difference at any depth makes values unequal', () => {
  const without = ({ is: _, ...rest }) => rest;
  for (const change of [
    (d) => ({ ...d, z: [d.z[0], [0.5, 2, 4]] }),
    (d) => ({ ...d, z: [[1, 0, NaN], d.z[1]] }),
    (d) => ({ ...d, z: [[...d.z[0], 1], d.z[1]] }),
    (d) => ({ ...d, axis: { ...d.axis, title: { text: 'b' } } }),
    (d) => ({ ...d, axis: { ...d.axis, range: { 0: 0, 1: 1 } } }),
    (d) => ({ ...d, axis: null }),
    (d) => ({ ...d, bytes: Uint8Array.of(1, 3) }),
    (d) => ({ ...d, bytes: [1, 2] }),
    (d) => ({ ...d, more: undefined }),
    without,
    (d) => ({ ...without(d), other: true }),
  ]) {
    assert.ok(!deepEqual(drawing(), change(drawing())), change.toString());
    assert.ok(!deepEqual(change(drawing()), drawing()), change.toString());
  }
});

const FIELDS = {
  what: choice(['weights', 'scores']),
  is_merged: flag(),
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

test('a link holds what its view shows, and nothing that another view alone shows', () => {
  const fields = fieldsOf([
    { id: 'one', fields: { one_show: choice(['a', 'b']) } },
    { id: 'two', fields: { two_show: choice(['a', 'b']) } },
  ]);
  const state = { ...standardsOf(fields), view: 'two', layer: 1, one_show: 'b', two_show: 'b' };
  assert.equal(writeFragment(state, fields), '#view=two&layer=1&two_show=b');
  assert.deepEqual(elsewhere(state, 'two', fields), { one_show: 'b' });
});

test('invalid values are ignored', () => {
  assert.deepEqual(
    readFragment('#what=all&is_merged=yes&heads=1,2&path=.&dimension=-1&temperature=0', FIELDS),
    {},
  );
  assert.deepEqual(readFragment('#temperature=NaN&heads=&is_merged=', FIELDS), {});
  assert.deepEqual(readFragment(`#path=${'1.'.repeat(2000)}1`, FIELDS), {});
});

test('two views cannot share a field name', () => {
  const [a, b] = ['a', 'b'].map((id) => ({ id, fields: { what: flag() } }));
  assert.throws(() => fieldsOf([a, b]), /b names a field what/);
  assert.throws(() => fieldsOf([{ id: 'a', fields: { layer: count() } }]), /layer/);
  assert.ok('what' in fieldsOf([a, { id: 'b' }]));
});

test('another text resets only the fields that depend on the text', () => {
  const fields = {
    path: ofText(counts()),
    step: ofText(count()),
    temperature: number({ least: 0, most: 2, standard: 1 }),
  };
  assert.deepEqual(standardsOfText(fields), { path: [], step: null });
  assert.deepEqual(fields.path.read('3.1'), [3, 1]);
});
