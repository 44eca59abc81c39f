/** Numbers of tokens as a strip of cells, in as many lines as the width asks for. */

import { visible } from '../words/text.js';
import { sequential } from './colour.js';
import { mapChart, pictureOf } from './map.js';

/** Pixels beside the cells, and of a letter. */
const [EDGE, LETTER] = [110, 8];

/**
 * @param {{rows: {name: string, tokens: string[], values: number[]}[]} & Pick<import('./map.js').Mapped, 'scale'|'quantity'|'format'> & {say?: (row: number, at: number) => string}} told
 *   `say` adds to the name of a cell
 * @param {import('./map.js').Size} size
 */
export function stripChart({ rows, say, ...told }, size) {
  const names = rows.map(({ tokens }) => tokens.map(visible));
  const letters = Math.max(...names.flat().map((name) => [...name].length));
  const { length } = names[0];
  const fitting = Math.floor((size.width - EDGE) / (14 + LETTER * letters));
  const wide = Math.min(length, Math.max(3, fitting));
  const lines = Array.from({ length: Math.ceil(length / wide) }, (_, line) =>
    rows.map((row, number) => ({ ...row, number, from: line * wide })),
  ).flat();
  const columns = Array.from({ length: wide }, (_, column) => column);
  return mapChart(
    {
      ...told,
      values: lines.map(({ values, from }) =>
        columns.map((column) => values[from + column] ?? NaN),
      ),
      rows: lines.map(({ name, from }) => `${from + 1} ${name}`),
      columns: columns.map((column) => `+${column}`),
      titles: { rows: '', columns: '' },
      text: (row, column) => names[lines[row].number][lines[row].from + column] ?? '',
      say: (row, column) => {
        const { name, number, from } = lines[row];
        const at = from + column;
        return names[number][at]
          ? `${name}, “${names[number][at]}”${say?.(number, at) ?? ''}`
          : 'no token';
      },
      cell: 28,
      hasColumnLabels: false,
    },
    size,
  );
}

/**
 * Return the picture of an experiment that is one strip of tokens.
 * @param {{id: string, title: string, summary: string, help: string, range?: [number, number], colours?: typeof sequential} & Omit<Parameters<typeof stripChart>[0], 'scale'>} told `range`: 0 to 1 unless it is given
 * @returns {import('../rules/experiment.js').Picture}
 */
export function stripPicture({ range: [bottom, top] = [0, 1], colours = sequential, ...told }) {
  return pictureOf({ ...told, isWide: true }, (size) =>
    stripChart({ ...told, scale: { bottom, top, colours: colours(size.palette.theme) } }, size),
  );
}
