/** The roles of a conversation in drawings: bands along axes, and the share of a head that one has. */

import { tokensOf } from '../trace/attention.js';
import { matrixAt } from '../trace/trace.js';
import { ROLE_COLOURS } from './colour.js';
import { bands } from './marks/decorations.js';

/** @import { Place, Side } from '../trace/attention.js' */

/** Return the roles that tokens of a trace have; none: it is of no conversation. @param {Trace} trace */
export const rolesIn = ({ tokens }) =>
  Object.keys(ROLE_COLOURS).filter((role) => tokens.some((token) => token.role === role));

/** Return the colour of the role of each row or column. @param {Trace} trace @param {Side} side @param {{first: number}[]} units */
export function roleColours(trace, side, units) {
  const tokens = tokensOf(trace, side);
  return units.map(({ first }) => ROLE_COLOURS[tokens[first]?.role ?? ''] ?? null);
}

/** Return the bands of a map; of a text there are none. @param {Trace} trace @param {Place} place @param {{rows: {first: number}[], columns: {first: number}[]}} units */
export function roleBands(trace, place, { rows, columns }) {
  if (rolesIn(trace).length === 0) return [];
  const [x, y] = [roleColours(trace, place.columns, columns), roleColours(trace, place.rows, rows)];
  return [bands({ x, y })];
}

/** @typedef {{role: string, heads: Map<string, number>}} RoleShares by place, layer and head */

/** Return the share of each head's attention on the role that the map shows, a mean over all tokens. @param {Trace} trace @param {Record<string, any>} state @returns {RoleShares|null} null: not known */
export function readRoleShares(trace, { map: role, answers }) {
  const found = answers?.map_roles?.trace?.analyses.role_shares;
  const key = found?.roles.indexOf(role) ?? -1;
  if (key < 0) return null;
  const counts = found.roles.map(
    (/** @type {string} */ each) => trace.tokens.filter((token) => token.role === each).length,
  );
  const heads = new Map();
  for (const [path, array] of Object.entries(found)) {
    const [, stack, layer] = /^(\w+)\.layers\.(\d+)\.self_attention$/.exec(path) ?? [];
    if (layer === undefined) continue;
    for (let head = 0; head < array.shape[0]; head += 1) {
      const { data, columns } = matrixAt(array, head);
      const sum = counts.reduce(
        (/** @type {number} */ total, /** @type {number} */ count, /** @type {number} */ row) =>
          total + count * data[row * columns + key],
        0,
      );
      heads.set(`${stack} ${layer} ${head}`, sum / trace.tokens.length);
    }
  }
  return { role, heads };
}
