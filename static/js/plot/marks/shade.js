/** Shaded areas behind all other marks, each with words if it has room for them. */

import { escapeForPlotly } from '../../words/text.js';
import { labelWidth } from '../scales.js';

const TYPE = { size: 13, letters: 40 };
const LINE = 14;

/**
 * @template D
 * @param {D[]} data
 * @param {{from: (datum: D) => {x: number, y: number}, to: (datum: D) => {x: number, y: number}, text?: (datum: D) => string}} channels two corners, and words over the area
 * @returns {Mark<D>}
 */
export function shade(data, { from, to, text = () => '' }) {
  return {
    kind: 'shade',
    meaning: {},
    reach: { x: [], y: [] },
    draw({ x, y, inner, palette }) {
      const areas = data.map((datum) => ({
        x0: x.at(from(datum).x),
        x1: x.at(to(datum).x),
        y0: y.at(from(datum).y),
        y1: y.at(to(datum).y),
      }));
      const look = { fillcolor: palette.line, opacity: 0.45, line: { width: 0 }, layer: 'below' };
      const font = { size: TYPE.size, color: palette.muted };
      return {
        shapes: areas.map((area) => ({ type: 'rect', xref: 'x', yref: 'y', ...area, ...look })),
        notes: areas.flatMap(({ x0, x1, y0, y1 }, at) =>
          wordsIn(text(data[at]), {
            width: (Math.abs(x1 - x0) * inner.width) / lengthOf(x.range),
            height: (Math.abs(y1 - y0) * inner.height) / lengthOf(y.range),
          }).map((words) => ({
            ...{ showarrow: false, xref: 'x', yref: 'y', font },
            ...{ x: (x0 + x1) / 2, y: (y0 + y1) / 2, xanchor: 'center', yanchor: 'middle' },
            ...words,
          })),
        ),
      };
    },
  };
}

/** @param {[number, number]} range */
function lengthOf([from, to]) {
  return Math.abs(to - from);
}

/**
 * Lay words out in a line, word below word, or upright.
 * @param {string} text
 * @param {{width: number, height: number}} room in pixels
 * @returns {{text: string, textangle: number}[]} none: there is no room
 */
function wordsIn(text, { width, height }) {
  if (!text) return [];
  const words = text.split(' ');
  const long = labelWidth([text], TYPE);
  if (long <= width && LINE <= height) return [{ text: escapeForPlotly(text), textangle: 0 }];
  if (labelWidth(words, TYPE) <= width && words.length * LINE <= height)
    return [{ text: words.map(escapeForPlotly).join('<br>'), textangle: 0 }];
  return TYPE.size <= width && long <= height
    ? [{ text: escapeForPlotly(text), textangle: -90 }]
    : [];
}
