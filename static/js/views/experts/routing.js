/**
 * What the router of one layer decides: a probability for every expert and token, and its choices.
 */

import { transposedGrid } from '../../plot/transpose.js';
import { percent, share, signed } from '../../data/number.js';
import { sharedWay } from '../../data/routes.js';
import { capitalised, named, tokenLabels } from '../../data/text.js';
import { drawing, isDown } from './drawing.js';
import { choicesInWords, tintOf } from './words.js';

/**
 * @param {import('../../data/trace.js').Trace} trace
 * @param {import('../../plot/figure.js').Frame & {drawn?: number}} state
 * @param {import('./experts.js').Scene} scene
 * @returns {import('../../plot/figure.js').Figure}
 */
export function routingFigure(trace, state, scene) {
  const stage = scene.stages.find(({ layer }) => layer === state.drawn) ?? scene.stage;
  const { layer, routing } = stage;
  const grid = gridOf(scene, stage);
  return {
    title: capitalised(scene.nameOf(layer)),
    summary: `Routing of ${scene.nameOf(layer)}: ${routing.probabilities.rows} experts by ${scene.tokens.length} tokens, ${routing.topK} chosen for each.`,
    facts: factsOf(routing),
    ...drawing(scene.tokens, state, routing),
    grid: isDown(state.width) ? transposedGrid(grid) : grid,
  };
}

function factsOf({ meanEntropy, mostEntropy, balanceLoss }) {
  return [
    ['mean router entropy', `${nats(meanEntropy)} of at most ${nats(mostEntropy)} nats`],
    ['balance loss', signed(balanceLoss)],
  ];
}

function nats(entropy) {
  return signed(entropy, 2);
}

function gridOf({ side, tokens, query, stage: looked, nameOf, choose }, stage) {
  const { layer, routing } = stage;
  const { probabilities, load, entropies, weightOf } = routing;
  const name = nameOf(layer);
  const value = (row, column) => probabilities.data[row * probabilities.columns + column];
  const inWords = (token, { layer: at, routing: of }) =>
    `${choicesInWords(tokens, token, of, nameOf(at))}; router entropy ${nats(of.entropies[token])} of at most ${nats(of.mostEntropy)} nats`;
  return {
    rows: probabilities.rows,
    columns: probabilities.columns,
    sides: { rows: side, columns: side },
    rowTitle: 'expert',
    columnTitle: 'token',
    rowLabels: load.map((part, expert) => `${expert} (load ${percent(part)})`),
    columnLabels: tokenLabels(tokens).map(
      (label, token) => `${label} (entropy ${nats(entropies[token])})`,
    ),
    quantity: `router probability, ${name}`,
    request: { capture: [`${routing.stem}*`] },
    value,
    format: (probability) => share(probability, 4),
    describe: (row, column) =>
      sentence(named(tokens, column), row, value(row, column), weightOf(row, column), name),
    tip: (row, column) => [
      `${named(tokens, column)} → expert ${row}`,
      tipNumber(value(row, column), weightOf(row, column)),
    ],
    tokens: (_, column) => ({ query: column }),
    tint: (row) => tintOf(routing, row),
    ofToken: (token) => ({ readout: inWords(token, looked), tint: sharedWay([looked], token) }),
    choose: (_, column) => ({ ...choose(column), layer }),
    chosen: { column: query },
    start: { row: 0, column: query },
    rest: { readout: inWords(query, looked) },
    ceiling: 1,
    chosenWeight: weightOf,
  };
}

function tipNumber(probability, weight) {
  return share(probability, 4) + (weight === undefined ? '' : `, chosen: weight ${share(weight)}`);
}

function sentence(name, expert, probability, weight, where) {
  const verdict = weight === undefined ? 'not chosen' : `chosen, with weight ${share(weight)}`;
  return `The router gives expert ${expert} probability ${share(probability)} for ${name}: ${verdict} (${where})`;
}
