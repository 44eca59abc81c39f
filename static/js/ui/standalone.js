/**
 * A drawing as one HTML file that opens without a server: its drawing, its numbers as a table and as
 * JSON, and what they are of. Loaded when it is asked for.
 */

import { callsOf, commandsOf, originOf } from '../api/request_code.js';
import { selfTelling } from '../plot/picture.js';
import { plotlyAddress } from '../plot/renderer.js';
import { counted } from '../words/lists.js';
import { escapeForPlotly, shortened, visibleLine } from '../words/text.js';
import { palette, save } from './dom.js';
import { cornerOf, numbersOf } from './exports.js';

/**
 * @import { Card } from '../trace/card.js'
 * @import { Trace } from '../trace/trace.js'
 * @import { DrawnFigure, Palette } from '../plot/figure.js'
 * @import { Grid } from '../plot/grid.js'
 * @import { Subject } from './panel.js'
 */

/** @param {Subject} of */
export async function saveStandalone({ trace, figure, cards, name, help }) {
  const script = await plotlySource();
  const page = standaloneOf({
    trace,
    figure,
    cards,
    help,
    script,
    palette: palette(),
    address: location.href,
    date: new Date(),
  });
  return save([page], `${name}.html`);
}

/**
 * @returns {Promise<string>} the script itself, for a file that shall need no server
 * @throws {Error} which says what to do
 */
export async function plotlySource() {
  const answer = await fetch(plotlyAddress()).catch(() => null);
  if (!answer?.ok)
    throw new Error('the server does not respond; check that it is running, then save again');
  return answer.text();
}

/** More cells than this are in the file only as JSON. */
const MOST_IN_TABLE = 4096;
/** Longer than this, a text or a request that holds it is folded. */
const MOST_LETTERS = 2000;
const POLICY =
  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:";

/** Draws what the file holds next to it. */
const DRAW = `
  const { data, layout } = JSON.parse(document.getElementById('figure').textContent);
  Plotly.newPlot('drawing', data, layout, { displaylogo: false, displayModeBar: false, showTips: false, doubleClick: 'reset' });
`;

/**
 * @param {Object} of
 * @param {Trace} of.trace
 * @param {DrawnFigure} of.figure
 * @param {Card[]} of.cards of all models
 * @param {Palette} of.palette
 * @param {string} of.help what there is to see, in a sentence
 * @param {string} of.address that restores the view
 * @param {Date} of.date
 * @param {string} of.script the whole of Plotly
 * @returns {string} an HTML document
 */
export function standaloneOf({ trace, figure, cards, palette, help, address, date, script }) {
  const { title, summary, grid } = figure;
  const origin = originOf(trace, grid, cards);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="generator" content="Headlight">
<title>${escaped(`${title}: ${shortened(visibleLine(origin.text), 80)}`)}</title>
<link rel="icon" href="data:,">
<style>${styles(palette)}</style>
</head>
<body>
<main>
<h1>${escaped(title)}</h1>
<div class="text" dir="auto">${folded(visibleLine(origin.text))}</div>
${origin.target === undefined || origin.target === null ? '' : `<p class="text" dir="auto">${escaped(visibleLine(origin.target))}</p>\n`}<p>${escaped(help).replaceAll('W_O', '<i>W</i><sub>O</sub>')}</p>
<div class="drawing" id="drawing" role="img" aria-label="${escaped(summary)}"></div>
<dl>
${factsOf({ trace, grid, origin, address, date })
  .map(([term, value]) => `<div><dt>${term}</dt><dd>${folded(value)}</dd></div>`)
  .join('\n')}
</dl>
${tableOf(grid)}
</main>
<script type="application/json" id="numbers">${embedded(numbersOf(trace, grid, cards))}</script>
<script type="application/json" id="figure">${embedded(selfTelling(figure))}</script>
<script>${harmless(script)}</script>
<script>${DRAW}</script>
</body>
</html>
`;
}

/**
 * @param {{trace: Trace, grid: Grid, origin: ReturnType<typeof originOf>, address: string, date: Date}} of
 * @returns {string[][]}
 */
function factsOf({ trace, grid, origin, address, date }) {
  const base = address.split('#')[0].replace(/\/$/, '');
  return [
    ['Numbers', grid.quantity],
    ...(origin.model
      ? [['Model', origin.revision ? `${origin.model}, revision ${origin.revision}` : origin.model]]
      : []),
    ...(origin.edits ? [['Changed', JSON.stringify(origin.edits)]] : []),
    ['Saved', date.toISOString().slice(0, 10)],
    ['The view', address],
    ['The same numbers', commandsOf(base, callsOf(trace, grid), grid.made)],
  ];
}

/** @param {Grid} grid */
function tableOf(grid) {
  const { rows, columns, rowLabels, columnLabels, quantity } = grid;
  if (rows * columns > MOST_IN_TABLE)
    return `<p>${rows} × ${columns} numbers are too many for a table. The file holds them as JSON, in the element “numbers”.</p>`;
  /** @param {string} scope @param {string} label */
  const header = (scope, label) => `<th scope="${scope}"><bdi>${escaped(label)}</bdi></th>`;
  /** @param {number} row @param {number} column */
  const cell = (row, column) => {
    const value = grid.value(row, column);
    return `<td>${Number.isNaN(value) || value === undefined ? '' : escaped(grid.format(value))}</td>`;
  };
  const body = rowLabels.map(
    (label, row) =>
      `<tr>${header('row', label)}${columnLabels.map((_, column) => cell(row, column)).join('')}</tr>`,
  );
  return `<details><summary>The numbers as a table</summary><div class="scroll" tabindex="0" role="region" aria-label="Table"><table>
<caption>${escaped(quantity)}</caption>
<thead><tr>${[cornerOf(grid), ...columnLabels].map((label) => header('col', label)).join('')}</tr></thead>
<tbody>
${body.join('\n')}
</tbody></table></div></details>`;
}

/** @param {Palette} palette */
function styles({ surface, ink, muted, line, font, theme }) {
  return `
:root { color-scheme: ${theme}; }
body { margin: 0; background: ${surface}; color: ${ink}; font: 15px/1.5 ${font.replace(/</g, '')}; font-variant-numeric: tabular-nums; }
main { max-width: 72rem; margin-inline: auto; padding: 2rem clamp(1rem, 4vw, 2.5rem); }
h1 { margin: 0; font-size: 1.375rem; font-weight: 650; }
p, .text { margin: 0.25rem 0 0; max-width: 44rem; }
.text { font-size: 1.125rem; overflow-wrap: anywhere; }
.drawing, .scroll { margin-block-start: 1.5rem; max-width: 100%; overflow: auto; }
dl { margin: 1.5rem 0; font-size: 13px; }
dl div { display: grid; grid-template-columns: 9rem minmax(0, 1fr); gap: 0 1rem; }
dt, caption, summary, th { color: ${muted}; font-weight: 400; }
dd { margin: 0; white-space: pre-line; overflow-wrap: anywhere; }
details { font-size: 13px; }
table { border-collapse: collapse; }
caption { text-align: start; }
th, td { padding: 2px 0.5rem; text-align: end; white-space: nowrap; border-block-end: 1px solid ${line}; }
tbody th { text-align: start; }
:focus-visible { outline: 2px solid ${ink}; outline-offset: 2px; }
@media (max-width: 40rem) { dl div { grid-template-columns: minmax(0, 1fr); } }
.plotly .heatmaplayer image { image-rendering: pixelated; }
`;
}

/** @param {string} text */
function folded(text) {
  if (text.length <= MOST_LETTERS) return escaped(text);
  const count = counted(text.length, 'character');
  return `<details><summary>${count}</summary>${escaped(text)}</details>`;
}

/** @param {string} [text] */
function escaped(text = '') {
  return escapeForPlotly(text).replace(/"/g, '&quot;');
}

/**
 * Within a script element only its end, and the beginning of a comment, mean anything.
 * @param {Record<string, unknown>} value
 */
function embedded(value) {
  return JSON.stringify(value, plain).replace(/</g, '\\u003c');
}

/** @param {string} _ @param {unknown} value */
function plain(_, value) {
  return ArrayBuffer.isView(value)
    ? Array.from(/** @type {ArrayLike<unknown>} */ (/** @type {unknown} */ (value)))
    : value;
}

/** @param {string} script */
function harmless(script) {
  return script.replace(/<(?=\/script|!--)/gi, '\\x3c');
}
