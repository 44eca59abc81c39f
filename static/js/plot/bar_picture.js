/** Bars of an experiment: a number each, over columns or from left to right. */

import { chart } from './chart.js';
import { pictureOf } from './map.js';
import { bar } from './marks/bar.js';
import { ruleAt } from './marks/decorations.js';
import { band, linear } from './scales.js';

/**
 * @typedef {Object} Bars
 * @property {string} id
 * @property {boolean} [isWide]
 * @property {string} title
 * @property {string} summary
 * @property {string} help
 * @property {string[]} labels
 * @property {number[]} values
 * @property {string} of the title of the labels
 * @property {(value: number) => number} [length] of a bar; the number itself unless given
 * @property {{title: string, domain?: [number, number], ticks?: number[], write?: (value: number) => string}} axis of the values
 * @property {string} quantity
 * @property {(value: number) => string} format
 * @property {(at: number, palette: Palette) => string} fill
 * @property {(at: number) => string} [name] as it is said; its label unless given
 * @property {boolean} [isUpright] over columns
 * @property {boolean} [hasText] the number is at the end of its bar
 * @property {(value: number) => string} [write] at the end of a bar; `format` unless given
 * @property {number} [row] pixels of a row, of the whole if bars are upright
 * @property {number} [marker] the place that a line marks, between columns
 */

/** @param {Bars} told @returns {import('../rules/experiment.js').Picture} */
export function barPicture({ labels, values, of, ...told }) {
  const { axis, quantity, format, fill, isUpright = false, hasText = !isUpright, row = 22 } = told;
  const { name = (at) => labels[at], length = (value) => value, write = format, marker } = told;
  const data = values.map((value, at) => ({ value, at }));
  const [names, lengths] = [band(labels, { title: of }), linear(axis.title, axis)];
  const [listed, only] = [
    { title: of, labels },
    { title: '', labels: [axis.title] },
  ];
  return pictureOf(told, (size) => {
    const bars = bar(data, {
      length: ({ value }) => length(value),
      value: ({ value }) => value,
      isUpright,
      fill: ({ at }) => fill(at, size.palette),
      ...(hasText && { text: ({ value }) => write(value), isPast: true }),
      name: ({ at }) => name(at),
      format,
    });
    return chart(
      {
        ...(isUpright ? { x: names, y: lengths } : { x: lengths, y: names }),
        marks: [bars, ...(marker === undefined ? [] : [ruleAt(marker)])],
        size: isUpright ? { height: row } : { row },
        table: {
          quantity,
          ...(isUpright ? { rows: only, columns: listed } : { rows: listed, columns: only }),
        },
      },
      size,
    );
  });
}
