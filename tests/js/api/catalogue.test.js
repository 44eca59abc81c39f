import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cardOf, NO_MODELS, refusalOf } from '../../../static/js/api/catalogue.js';

const CATALOGUE = {
  default: 'stories',
  models: [{ id: 'fill' }, { id: 'stories' }],
  unavailable: [{ id: 'broken', reason: 'its config is no JSON' }],
};

test('who names no model gets the default one', () => {
  assert.equal(cardOf(CATALOGUE, '').id, 'stories');
  assert.equal(cardOf(CATALOGUE, 'fill').id, 'fill');
  assert.equal(cardOf(CATALOGUE, 'broken'), undefined);
  assert.equal(cardOf(NO_MODELS, ''), undefined);
});

test('a model that cannot be had is refused with what there is', () => {
  assert.equal(
    refusalOf(CATALOGUE, 'x').detail,
    'There is no model “x” here; there are: fill, stories.',
  );
  assert.equal(
    refusalOf(CATALOGUE, 'broken').detail,
    'The model “broken” is damaged: its config is no JSON',
  );
  assert.equal(refusalOf(NO_MODELS, '').title, 'No model is here');
});

test('the default model is offered instead, where there is one', () => {
  const { offer } = refusalOf({ ...CATALOGUE, models: [{ id: 'stories', title: 'Stories' }] }, 'x');
  assert.deepEqual(
    [offer.label, offer.patch.model, offer.patch.layer],
    ['Read it with Stories', '', null],
  );
  assert.equal(refusalOf(NO_MODELS, 'x').offer, undefined);
});
