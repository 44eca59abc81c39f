/**
 * The caption of a saved picture: its title, model and text.
 */

import { originOf } from '../data/request_code.js';
import { escapeForPlotly, quotedLine, shortened } from '../data/text.js';

/**
 * @import { Card, Trace } from '../data/trace.js'
 * @import { Figure, Layout } from './figure.js'
 * @import { Grid } from './grid.js'
 */

const EDGE = 16;
/** A narrow drawing is padded on the right so that its caption stays readable. */
const LEAST_WIDTH = 480;
const TITLE = { size: 15, line: 20, letters: 7.6 };
const LINE = { size: 12, line: 17, letters: 6.4 };

/**
 * @param {Trace} trace
 * @param {Pick<Figure, 'title'> & {grid: Grid}} figure
 * @param {Card[]} cards of all models
 * @returns {string[]} the title, then a line or two below it
 */
export function captionOf(trace, { title, grid }, cards) {
  const { model, text, target, edits, experiment } = originOf(trace, grid, cards);
  if (experiment) return [title, text];
  const texts = [text, target].flatMap((each) => (each ? [quotedLine(each)] : [])).join(' → ');
  return [title, ...(edits ? [grid.quantity] : []), [model, texts].filter(Boolean).join(' · ')];
}

/**
 * Add the caption above a layout without shrinking its plot area.
 * @param {Layout} layout of Plotly, with its margin
 * @param {string[]} caption
 * @param {{width: number, height: number}} size of the drawing
 * @param {{ink: string, muted: string}} palette
 * @returns {Layout} a layout with its size
 */
export function captioned(layout, [title, ...lines], { width, height }, palette) {
  const across = Math.max(width, LEAST_WIDTH);
  const room = EDGE + TITLE.line + lines.length * LINE.line;
  /**
   * @param {string} text
   * @param {{size: number, line: number, letters: number}} of
   */
  const fitted = (text, { letters }) =>
    escapeForPlotly(shortened(text, Math.floor((across - 2 * EDGE) / letters)));
  const text = [
    `<b>${fitted(title, TITLE)}</b>`,
    ...lines.map(
      (line) =>
        `<span style="font-size:${LINE.size}px;color:${palette.muted}">${fitted(line, LINE)}</span>`,
    ),
  ].join('<br>');
  return {
    ...layout,
    width: across,
    height: height + room,
    margin: { ...layout.margin, t: layout.margin.t + room, r: layout.margin.r + across - width },
    title: {
      text,
      font: { size: TITLE.size, color: palette.ink },
      xref: 'container',
      yref: 'container',
      x: 0,
      xanchor: 'left',
      y: 1,
      yanchor: 'top',
      pad: { l: EDGE, t: EDGE },
    },
  };
}
