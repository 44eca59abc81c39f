/** The share of a head's attention that each role of a conversation has, by the role that attends. */

import { noticeOf } from '../../api/answers.js';
import { share } from '../../words/numbers.js';
import { matrixAt, valueIn } from '../../trace/trace.js';
import { chart } from '../../plot/chart.js';
import { cell } from '../../plot/marks/mark.js';
import { band } from '../../plot/scales.js';

/** The panel of a conversation. */
export const ROLES = 'roles';

/** @param {string} path of the attention @param {ViewState} state @returns {Figure} */
export function rolesFigure(path, state) {
  const title = 'Attention by role';
  const answer = state.answers?.roles;
  const found = answer?.trace?.analyses.role_shares;
  const array = found?.[path];
  if (!array) return { title, notice: noticeOf(answer), isWaiting: !answer?.problem };
  const { roles } = found;
  const shares = matrixAt(array, state.head);
  const value = valueIn(shares);
  const quantity = 'share of attention';
  return {
    title,
    help: 'Each row: the mean over the tokens of a role; the shares of all roles that they read sum to 1. “template” is what the model’s template adds. Of a pair they are the first text and the second.',
    ...chart(
      {
        x: band(roles, { title: 'role that is read', ink: state.palette.key }),
        y: band(roles, { title: 'role that reads', ink: state.palette.query }),
        marks: [
          cell(shares, {
            ramp: { title: quantity, domain: [0, 1], write: (number) => share(number, 2) },
            value: ({ row, column }) => value(row, column),
            format: (number) => share(number, 2),
            say: ({ row, column }) =>
              `The tokens of ${roles[row]} give ${share(value(row, column), 2)} of their attention to those of ${roles[column]}`,
            name: ({ row, column }) => `${roles[row]} → ${roles[column]}`,
          }),
        ],
        size: { isSquare: true },
        table: {
          rows: { title: 'role that reads', labels: roles },
          columns: { title: 'role that is read', labels: roles },
          quantity,
        },
      },
      state,
    ),
  };
}
