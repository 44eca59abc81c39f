import { deepEqual, match } from 'node:assert/strict';
import { test } from 'node:test';
import { asksRoles, rolesOf } from '../../../static/js/data/telling.js';

const heads = {
  multiplier: { layer: 1, head: 0, weight: 0.6, evenly: 0.1 },
  carry: { layer: 1, head: 2, weight: 0.3, evenly: 0.07 },
};
const answers = { roles: { trace: { card: { metrics: { sample: { heads } } } } } };

test('only a calculation asks for the card', () => {
  deepEqual(asksRoles({ text: '47*23=47*20', model: 'sums' }), { roles: { card: 'sums' } });
  deepEqual(asksRoles({ text: 'A cat = 3', model: 'sums' }), {});
});

test('a head has the roles that were measured for it, with its weight', () => {
  const [[title, words], ...others] = rolesOf({ answers, layer: 1, head: 0 });
  deepEqual([title, others.length], ['Role', 0]);
  match(words, /multiplier’s digit.*60.*10/u);
  deepEqual(rolesOf({ answers, layer: 0, head: 0 }), []);
  deepEqual(rolesOf({ answers: {}, layer: 1, head: 0 }), []);
});
