/**
 * Bars on both sides of zero, one row each: logits that speak for a token, and those against it.
 */

import { signed } from '../data/format.js';
import { escapeForPlotly } from '../data/text.js';
import { css, diverging } from './colour.js';
import { baseLayout, downwards, isNarrow, labelAxis, labelWidth } from './figure.js';

/** @import { Drawing, Frame } from './figure.js' */

const ROW_HEIGHT = 26;
const LEAST_ROW_HEIGHT = 18;
const WIDEST = 720;
const LETTERS = { wide: 48, narrow: 18 };
const NUMBER = { size: 12, letters: 24 };
const GAP = 8;
/** The share of the room that bars have at least, beside their numbers. */
const LEAST_BARS = 0.3;
const LEVELS = { against: 40, quiet: 128, for: 215 };

/**
 * @typedef {Object} Bar
 * @property {string} label
 * @property {string} [short] the label on a phone
 * @property {string} name in a sentence
 * @property {number} value
 * @property {string} [written] in place of the number
 */

/**
 * @param {Bar[]} bars
 * @param {{title: string, ends: [string, string]}} axis what is measured, and what its two ends mean
 * @param {Frame} state
 * @returns {Drawing}
 */
export function signedBars(bars, { title, ends }, { palette, width, height: room }) {
  const scale = diverging(palette.theme);
  const lettering = {
    size: 13,
    letters: isNarrow(width) ? LETTERS.narrow : LETTERS.wide,
    space: 1,
  };
  const labels = bars.map(({ label, short }) => (isNarrow(width) ? (short ?? label) : label));
  const margin = { l: labelWidth(labels, lettering) + 14, r: 12, t: 22, b: 44 };
  const height = Math.min(
    bars.length * ROW_HEIGHT,
    Math.max(room - margin.t - margin.b, bars.length * LEAST_ROW_HEIGHT),
  );
  const total = Math.min(width, WIDEST);
  const range = rangeOf(bars, total - margin.l - margin.r);
  return {
    data: [
      {
        type: 'bar',
        orientation: 'h',
        x: bars.map(({ value }) => value),
        y: bars.map((_, row) => row),
        width: 0.66,
        text: bars.map((bar) => escapeForPlotly(writtenOf(bar))),
        textposition: 'outside',
        textfont: { size: 12, color: palette.ink },
        cliponaxis: false,
        hoverinfo: 'none',
        marker: {
          color: bars.map(({ value }) => css(scale, value < 0 ? LEVELS.against : LEVELS.for)),
          line: { width: 0 },
        },
      },
    ],
    layout: {
      ...baseLayout(palette, { width: total, height: height + margin.t + margin.b, margin }),
      xaxis: {
        range,
        nticks: isNarrow(width) ? 4 : 6,
        tickformat: '~g',
        tickfont: { size: 11, color: palette.muted },
        title: { text: title, font: { size: 12, color: palette.muted }, standoff: 8 },
        gridcolor: palette.line,
        zeroline: true,
        zerolinecolor: palette.muted,
        zerolinewidth: 1,
      },
      yaxis: downwards(labelAxis({ labels, pixels: height, title: '', palette, lettering })),
      annotations: endsOf(ends, palette),
    },
  };
}

/** @param {Bar} bar */
export function writtenOf({ value, written }) {
  return written ?? withSign(value);
}

/**
 * @param {number} value
 * @returns {string} `+0.42`, `−0.31`
 */
export function withSign(value) {
  const text = signed(value, 2);
  return value > 0 && !text.startsWith('<') ? `+${text}` : text;
}

/**
 * The ends of the axis leave room for what is written beside the bars of either side.
 * @param {Bar[]} bars
 * @param {number} pixels
 * @returns {[number, number]}
 */
export function rangeOf(bars, pixels) {
  const values = bars.map(({ value }) => value);
  const least = Math.min(0, ...values);
  const most = Math.max(0, ...values);
  const [left, right] = [
    (/** @type {Bar} */ { value }) => value < 0,
    (/** @type {Bar} */ { value }) => value >= 0,
  ].map((isOfSide) => {
    const written = bars.filter(isOfSide).map(writtenOf);
    return written.length > 0 ? labelWidth(written, NUMBER) + GAP : 0;
  });
  const scale = Math.max(LEAST_BARS * pixels, pixels - left - right) / (most - least || 1);
  return [least - left / scale, most + right / scale];
}

/**
 * @param {[string, string]} ends
 * @param {{muted: string}} palette
 */
function endsOf([left, right], { muted }) {
  const shared = { showarrow: false, xref: 'paper', yref: 'paper', y: 1, yanchor: 'bottom' };
  const font = { size: 12, color: muted };
  return [
    { ...shared, x: 0, xanchor: 'left', text: escapeForPlotly(left && `← ${left}`), font },
    { ...shared, x: 1, xanchor: 'right', text: escapeForPlotly(right && `${right} →`), font },
  ].filter(({ text }) => text);
}
