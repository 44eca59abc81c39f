/** Numbers without ink: what is read where the numbers of the table are not those of a mark. */

/** @import { Hits, Mark, Meaning, Plan } from './mark.js' */

/**
 * @param {number} rows
 * @param {number} columns
 * @param {Meaning<{row: number, column: number}> & {kind?: string, hits?: (plan: Plan) => Hits|undefined}} channels
 * @returns {Mark<{row: number, column: number}>}
 */
export function reader(rows, columns, { kind, hits, ...meaning }) {
  return {
    kind: 'reader',
    reach: { x: [], y: [] },
    meaning,
    table: { rows, columns, kind, datum: (row, column) => ({ row, column }) },
    draw: () => ({}),
    ...(hits && { hits }),
  };
}
