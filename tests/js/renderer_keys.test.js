/** Only plot/ knows how Plotly wants its figures: no other module names a key or a trace of its. */

import { deepEqual, ok } from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'acorn';

const SCRIPTS = resolve(dirname(fileURLToPath(import.meta.url)), '../../static/js');

/** Keys that mean nothing but Plotly: `size`, `line` or `domain` may be anybody's. */
const KEYS = new Set([
  ...['annotations', 'automargin', 'autorange', 'cliponaxis', 'colorbar', 'colorscale'],
  ...['customdata', 'displayModeBar', 'dragmode', 'fillcolor', 'fixedrange', 'gridcolor'],
  ...['hoverinfo', 'hoverlabel', 'hovermode', 'hovertemplate', 'hovertext', 'insidetextanchor'],
  ...['lenmode', 'overlaying', 'paper_bgcolor', 'plot_bgcolor', 'scaleanchor', 'shapes'],
  ...['showarrow', 'showgrid', 'showlegend', 'showline', 'showscale', 'textangle', 'textfont'],
  ...['textposition', 'tickangle', 'tickfont', 'tickmode', 'ticktext', 'tickvals', 'uirevision'],
  ...['xanchor', 'xaxis', 'xgap', 'xref', 'xshift', 'yanchor', 'yaxis', 'ygap', 'yref', 'yshift'],
  ...['zeroline', 'zmax', 'zmid', 'zmin'],
]);
const TRACES = new Set(['bar', 'contour', 'heatmap', 'image', 'rect', 'sankey', 'scatter']);

/** The keys of object literals, and `type: 'heatmap'`, that only a drawing of Plotly's has. */
function drawingKeysIn(code) {
  const keys = [];
  const visit = (node) => {
    if (Array.isArray(node)) node.forEach(visit);
    if (typeof node?.type !== 'string') return;
    if (node.type === 'ObjectExpression')
      for (const { type, key, value, computed } of node.properties) {
        const name = type === 'Property' && (computed ? key.value : (key.name ?? key.value));
        if (KEYS.has(name)) keys.push(name);
        else if (name === 'type' && TRACES.has(value.value)) keys.push(`type: ${value.value}`);
      }
    Object.values(node).forEach((child) => typeof child === 'object' && visit(child));
  };
  visit(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }));
  return keys;
}

test('keys of literals are seen, and words of comments or other keys are not', () => {
  deepEqual(drawingKeysIn("// xaxis\nconst a = { 'xaxis': { zmin: 1 }, y: { type: 'bar' } };"), [
    'xaxis',
    'zmin',
    'type: bar',
  ]);
  deepEqual(drawingKeysIn("const { layout } = a; f({ size: 1, line: 2, type: 'text' });"), []);
});

test('no module outside plot/ names a key or a trace of Plotly', () => {
  const modules = globSync('**/*.js', { cwd: SCRIPTS });
  const namesIn = (module) => drawingKeysIn(readFileSync(join(SCRIPTS, module), 'utf8'));
  const isOfPlot = (module) => module.startsWith('plot/');
  ok(modules.filter(isOfPlot).some((module) => namesIn(module).length > 0));
  const strangers = modules.filter((module) => !isOfPlot(module) && namesIn(module).length > 0);
  deepEqual(
    strangers.map((module) => `${module}: ${namesIn(module).join(', ')}`),
    [],
  );
});

test('no view types or builds a grid: chart() makes it', () => {
  for (const module of globSync('views/**/*.js', { cwd: SCRIPTS })) {
    const code = readFileSync(join(SCRIPTS, module), 'utf8');
    deepEqual(code.match(/@import \{[^}]*\bGrid\b[^}]*\}|\bgrid: \{/), null, module);
  }
});
