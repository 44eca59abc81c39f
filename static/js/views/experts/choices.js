/**
 * The chosen experts of each token in every layer: one cell per choice, its number the expert, its
 * colour the weight.
 */

import { transposed } from '../../data/arithmetic.js';
import { share } from '../../data/format.js';
import { named, tokenLabels } from '../../data/text.js';
import { inkOn, levelOf, plotlyScale, sequential } from '../../plot/colour.js';
import {
  baseLayout,
  downwards,
  isNarrow,
  labelAxis,
  labelWidth,
  letteringFor,
  nested,
  shortBar,
  shortBarTitle,
} from '../../plot/figure.js';
import { transposedGrid } from '../../plot/grid.js';
import { choicesAt, pathOverlap, pathInWords } from './routing.js';

const ROW_HEIGHT = 22;
const TOKEN_HEIGHT = { most: 20, least: 4 };
const LONGEST = 1280;
const ROOM_FOR_NUMBERS = { width: 14, height: 12 };
const ROOM_FOR_GAPS = 12;

/**
 * @param {import('../../data/trace.js').Trace} trace
 * @param {import('../../plot/figure.js').Frame} state
 * @param {import('./experts.js').Scene} scene
 * @returns {import('../../plot/figure.js').Figure}
 */
export function choicesFigure(trace, state, scene) {
  const { stages, tokens } = scene;
  const choices = choicesOf(stages, tokens.length);
  const grid = gridOf(scene, choices);
  return {
    title: 'Token by token',
    help: 'The number is the expert, the colour its weight; within a layer the largest weight comes first.',
    summary: `The experts that ${tokens.length} tokens go through in each of ${stages.length} layers.`,
    ...drawing(tokens, choices, state),
    grid: isNarrow(state.width) ? transposedGrid(grid) : grid,
  };
}

/** @typedef {{stage: import('./routing.js').Stage, rank: number, label: string, shares: import('./routing.js').Share[]}} Choices of one rank in one layer, by token */

/** @returns {Choices[]} */
function choicesOf(stages, nTokens) {
  return stages.flatMap((stage) => {
    const byToken = Array.from({ length: nTokens }, (_, token) => choicesAt(stage.routing, token));
    return Array.from({ length: stage.routing.topK }, (_, rank) => ({
      stage,
      rank,
      label: `layer ${stage.layer}, choice ${rank + 1}`,
      shares: byToken.map((found) => found[rank]),
    }));
  });
}

function drawing(tokens, choices, { palette, width }) {
  const box = boxOf(tokens, choices, width);
  const weights = {
    rows: choices.length,
    columns: tokens.length,
    data: Float64Array.from(choices.flatMap(({ shares }) => shares.map(({ weight }) => weight))),
  };
  return {
    data: [heatmap(weights, palette, box), ...numbers(choices, palette, box)],
    layout: {
      ...baseLayout(palette, box),
      ...axesOf(tokens, choices, palette, box),
      shapes: bounds(choices, palette, box),
      annotations: [shortBarTitle('weight', palette)],
    },
  };
}

function boxOf(tokens, choices, width) {
  const lettering = letteringFor(width);
  const labels = tokenLabels(tokens);
  const isDown = isNarrow(width);
  const names = choices.map(({ label }) => label);
  const forNames = { ...lettering, letters: Math.max(...names.map(({ length }) => length)) };
  const nameWidth = labelWidth(names, forNames) + 14;
  const margin = isDown
    ? { l: labelWidth(labels, lettering) + 14, r: 4, t: nameWidth, b: 40 }
    : { l: nameWidth, r: 8, t: Math.ceil(labelWidth(labels, lettering) * 0.72) + 14, b: 40 };
  const perToken = Math.max(
    TOKEN_HEIGHT.least,
    Math.min(TOKEN_HEIGHT.most, LONGEST / tokens.length),
  );
  const down = isDown ? tokens.length * perToken : choices.length * ROW_HEIGHT;
  const across = width - margin.l - margin.r;
  const cell = isDown
    ? { width: across / choices.length, height: perToken }
    : { width: across / tokens.length, height: ROW_HEIGHT };
  return {
    width,
    height: down + margin.t + margin.b,
    margin,
    lettering,
    forNames,
    isDown,
    across,
    down,
    cell,
    at: (token, row) => (isDown ? { x: row, y: token } : { x: token, y: row }),
  };
}

function heatmap(weights, palette, { isDown, cell }) {
  return {
    type: 'heatmap',
    z: nested(isDown ? transposed(weights) : weights),
    zmin: 0,
    zmax: 1,
    colorscale: plotlyScale(sequential(palette.theme)),
    colorbar: shortBar(palette),
    hoverinfo: 'none',
    xgap: cell.width >= ROOM_FOR_GAPS ? 1 : 0,
    ygap: cell.height >= ROOM_FOR_GAPS ? 1 : 0,
  };
}

/** Without room for numbers only the colours are drawn; the cursor reads out the rest. */
function numbers(choices, palette, { cell, at }) {
  if (cell.width < ROOM_FOR_NUMBERS.width || cell.height < ROOM_FOR_NUMBERS.height) return [];
  const scale = sequential(palette.theme);
  const cells = choices.flatMap(({ shares }, row) =>
    shares.map(({ expert, weight }, token) => ({ ...at(token, row), expert, weight })),
  );
  return [
    {
      type: 'scatter',
      mode: 'text',
      x: cells.map(({ x }) => x),
      y: cells.map(({ y }) => y),
      text: cells.map(({ expert }) => String(expert)),
      textfont: { size: 11, color: cells.map(({ weight }) => inkOn(scale, levelOf(weight, 1))) },
      hoverinfo: 'none',
    },
  ];
}

function axesOf(tokens, choices, palette, { isDown, across, down, lettering, forNames }) {
  const labels = choices.map(({ label }) => label);
  const tokenAxis = labelAxis({
    labels: tokenLabels(tokens),
    pixels: isDown ? down : across,
    title: '',
    palette,
    lettering,
  });
  const choiceAxis = labelAxis({
    labels,
    pixels: labels.length * ROW_HEIGHT,
    title: '',
    palette,
    lettering: forNames,
  });
  if (isDown)
    return { xaxis: { ...choiceAxis, side: 'top', tickangle: -90 }, yaxis: downwards(tokenAxis) };
  return { xaxis: { ...tokenAxis, side: 'top', tickangle: -45 }, yaxis: downwards(choiceAxis) };
}

/** Lines between layers. */
function bounds(choices, palette, { at, isDown }) {
  const length = { xref: isDown ? 'x' : 'paper', yref: isDown ? 'paper' : 'y' };
  return choices.flatMap(({ rank }, row) => {
    if (rank !== 0 || row === 0) return [];
    const { x, y } = at(0, row - 0.5);
    const ends = isDown ? { x0: x, x1: x, y0: 0, y1: 1 } : { x0: 0, x1: 1, y0: y, y1: y };
    return [{ type: 'line', ...length, ...ends, line: { color: palette.ink, width: 1 } }];
  });
}

/** @returns {import('../../plot/grid.js').Grid} */
function gridOf({ stages, tokens, query, side, stage, nameOf, choose }, choices) {
  const found = (row, column) => choices[row].shares[column];
  const isExpert = Number.isInteger;
  return {
    rows: choices.length,
    columns: tokens.length,
    sides: { rows: side, columns: side },
    rowTitle: 'layer, choice',
    columnTitle: 'token',
    rowLabels: choices.map(({ label }) => label),
    columnLabels: tokenLabels(tokens),
    quantity: 'expert that a token goes through',
    request: { capture: stages.map(({ routing }) => `${routing.stem}*`) },
    value: (row, column) => found(row, column).expert,
    format: (number) => (isExpert(number) ? String(number) : share(number, 4)),
    describe: (row, column) =>
      `${pathInWords(tokens, column, [choices[row].stage])}; choice ${choices[row].rank + 1} is expert ${found(row, column).expert}`,
    tip: (row, column) => [
      `${named(tokens, column)}, ${nameOf(choices[row].stage.layer)}`,
      `expert ${found(row, column).expert}, weight ${share(found(row, column).weight)}`,
    ],
    tokens: (_, column) => ({ query: column }),
    tint: (_, column) => pathOverlap(stages, column),
    ofToken: (token) => ({
      readout: pathInWords(tokens, token, stages),
      tint: pathOverlap(stages, token),
    }),
    choose: (row, column) => ({ ...choose(column), layer: choices[row].stage.layer }),
    chosen: { column: query },
    start: { row: choices.findIndex((choice) => choice.stage === stage), column: query },
    rest: { readout: pathInWords(tokens, query, stages) },
    ceiling: 1,
    chosenWeight: (row, column) => found(row, column).weight,
  };
}
