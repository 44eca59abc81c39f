/** The roles of a conversation: bands along the maps, and each head's share of attention on one. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { buildAnatomy, readParts } from '../../../static/js/ui/model_map/parts.js';
import { markRoles, ROLE_COLOURS } from '../../../static/js/plot/colour.js';
import { readRoleShares, roleBands, rolesIn } from '../../../static/js/plot/roles.js';
import { pageAsks } from '../../../static/js/ui/looking.js';
import { picturesOf } from '../../../static/js/ui/heads.js';
import { compare } from '../../../static/js/views/compare/compare.js';
import { standardsOf } from '../../../static/js/state/state.js';
import { VIEWS } from '../../../static/js/views/view_registry.js';
import { array, FRAME, near, sampleTrace, tensor } from '../sample.js';

const ROLES = ['template', 'system', 'user', 'user', 'template'];
const PLACE = { rows: 'source', columns: 'source' };
const PATH = 'decoder.layers.1.self_attention';
const CARD = { id: 'tiny', kind: 'decoder', n_layers: 2, n_heads: 2 };

function conversation() {
  const trace = { ...sampleTrace(), card: CARD };
  return { ...trace, tokens: trace.tokens.map((token, at) => ({ ...token, role: ROLES[at] })) };
}

const units = Array.from({ length: 5 }, (_, first) => ({ first }));

test('both axes have bands of the roles; a text has none', () => {
  const trace = conversation();
  deepEqual(rolesIn(trace), ['template', 'system', 'user']);
  const [mark] = roleBands(trace, PLACE, { rows: units, columns: units });
  const scale = { at: (/** @type {number} */ place) => place };
  const { shapes } = mark.draw({ x: scale, y: scale });
  const { template, system, user } = ROLE_COLOURS;
  const colours = [template, system, user, template];
  deepEqual(
    shapes.map(({ fillcolor }) => fillcolor),
    [...colours, ...colours],
  );
  deepEqual(roleBands(sampleTrace(), PLACE, { rows: units, columns: units }), []);
});

test('so have the small maps, each along its upper and its left edge', () => {
  const trace = conversation();
  const place = { ...PLACE, stack: 'decoder', ending: 'self_attention' };
  const [picture] = picturesOf(trace, place, {}).values();
  /** @type {any[]} */
  const filled = [];
  const context = { fillStyle: '', fillRect: (...box) => filled.push([context.fillStyle, ...box]) };
  markRoles(/** @type {any} */ (context), { left: 0, top: 0, size: 50, picture }, 2);
  const { system, user } = ROLE_COLOURS;
  deepEqual(filled[1], [system, 10, 0, 10, 2]);
  deepEqual(filled[7], [user, 0, 20, 2, 10]);
  equal(
    [...picturesOf(sampleTrace(), PLACE, {}).values()].some(({ roles }) => roles),
    false,
  );
});

test('Compare has them on A, on B and on the difference', () => {
  const fields = standardsOf(VIEWS.find(({ id }) => id === 'compare').fields);
  const logits = tensor(['query', 'vocab'], [5, 10], (at) => at % 10);
  const trace = { ...conversation(), asked: { model: 'tiny', text: 'a' } };
  trace.tensors = { ...trace.tensors, logits };
  const answers = { before: { trace: { tensors: { logits } } }, after: { trace } };
  const state = { ...FRAME, ...fields, cards: [CARD], answers };
  for (const part of ['a', 'b', 'difference']) {
    const { layout } = compare.figure(trace, { ...state, part });
    const found = (layout?.shapes ?? []).map(({ fillcolor }) => fillcolor);
    ok(found.includes(ROLE_COLOURS.user), part);
  }
});

test('the share of a role is the mean over all tokens, and the colour of the map', () => {
  const trace = conversation();
  const axes = ['head', 'query_role', 'key_role'];
  const shares = array(axes, [2, 3, 3], [1, 0, 0, 0.5, 0.5, 0, 0.2, 0.2, 0.6, ...Array(9).fill(0)]);
  const answer = {
    analyses: { role_shares: { [PATH]: shares, roles: ['template', 'system', 'user'] } },
  };
  const state = { map: 'user', answers: { map_roles: { trace: answer } } };
  const found = readRoleShares(trace, state);
  near(found.heads.get('decoder 1 0'), (2 * 0 + 1 * 0 + 2 * 0.6) / 5);
  const [, layer] = buildAnatomy(CARD).stacks[0].layers;
  const { level, words } = readParts(CARD, trace, () => false, null, 0, found)(layer.heads[0]);
  near(level, 0.24);
  ok(words.includes('gives 24'), words);
  equal(readRoleShares(trace, { ...state, map: 'effect' }), null);
});

test('they are asked for only while the map shows a role of this conversation', () => {
  const asked = (/** @type {string} */ map, trace = conversation()) =>
    pageAsks(trace, { state: { ...FRAME, map }, position: 4 }).map_roles?.analyses;
  deepEqual(asked('user'), ['role_shares']);
  equal(asked('tool'), undefined);
  equal(asked('user', { ...sampleTrace(), card: CARD }), undefined);
});
