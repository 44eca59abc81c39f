/**
 * The entropy of the router for each token: a strip of bars along the tokens of a router map, full
 * height at the entropy of the uniform distribution.
 */

import { signed } from '../../data/format.js';
import { css, sequential } from '../../plot/colour.js';

export const STRIP = { across: 34, down: 40, gap: 10 };

/**
 * @param {import('./routing.js').Routing} routing
 * @param {import('../../plot/figure.js').Frame['palette']} palette
 * @param {{isDown: boolean, at: (token: number, value: number) => {x: number, y: number}}} box
 */
export function entropyBars({ entropies }, palette, { isDown, at }) {
  const places = Array.from(entropies, (entropy, token) => at(token, entropy));
  return {
    type: 'bar',
    orientation: isDown ? 'h' : 'v',
    ...(isDown ? { xaxis: 'x3' } : { yaxis: 'y3' }),
    x: places.map(({ x }) => x),
    y: places.map(({ y }) => y),
    width: 0.7,
    marker: { color: css(sequential(palette.theme), 128), line: { width: 0 } },
    hoverinfo: 'none',
  };
}

/**
 * The axis of the strip, from 0 to ln n_experts.
 * @param {import('./routing.js').Routing} routing
 * @param {import('../../plot/figure.js').Frame['palette']} palette
 * @param {{isDown: boolean, strip: number[]}} box
 */
export function entropyAxis({ mostEntropy }, palette, { isDown, strip }) {
  const axis = {
    domain: strip,
    range: [0, mostEntropy],
    tickvals: isDown ? [] : [0, mostEntropy],
    ticktext: ['0', signed(mostEntropy, 2)],
    tickfont: { size: 10, color: palette.muted },
    ticks: '',
    showgrid: false,
    zeroline: true,
    zerolinecolor: palette.line,
    fixedrange: true,
  };
  return isDown
    ? { xaxis3: { ...axis, anchor: 'y', side: 'top' } }
    : { yaxis3: { ...axis, anchor: 'x' } };
}

/** A dotted line at the entropy of the uniform distribution. */
export function mostEntropyLine({ mostEntropy, entropies }, palette, { isDown, at }) {
  const from = at(-0.5, mostEntropy);
  const to = at(entropies.length - 0.5, mostEntropy);
  return {
    type: 'line',
    xref: isDown ? 'x3' : 'x',
    yref: isDown ? 'y' : 'y3',
    x0: from.x,
    x1: to.x,
    y0: from.y,
    y1: to.y,
    line: { color: palette.ink, width: 1, dash: 'dot' },
  };
}

/**
 * The title of the strip: beside it, or above it on a phone.
 * @param {import('../../plot/figure.js').Frame['palette']} palette
 * @param {{isDown: boolean, loadFrom?: number, along: number, room: number}} box
 */
export function entropyTitle(palette, { isDown, loadFrom, along, room }) {
  const shared = {
    showarrow: false,
    xref: 'paper',
    yref: 'paper',
    font: { size: 12, color: palette.muted },
  };
  if (isDown)
    return {
      ...shared,
      text: 'entropy',
      x: 1,
      xanchor: 'right',
      y: along / room,
      yanchor: 'bottom',
      yshift: 2,
      font: { size: 10, color: palette.muted },
    };
  return {
    ...shared,
    text: 'router entropy',
    x: loadFrom,
    xanchor: 'left',
    y: 0,
    yanchor: 'bottom',
    yshift: -4,
  };
}
