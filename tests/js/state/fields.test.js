import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  choice,
  count,
  counts,
  flag,
  number,
  ofText,
  standardsOf,
  standardsOfText,
  text,
} from '../../../static/js/state/fields.js';
import { fieldsOf, readFragment, writeFragment } from '../../../static/js/state/state.js';

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
