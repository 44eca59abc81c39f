/**
 * Experts: which feed-forward networks of a mixture each token was sent through.
 */

import { turned } from '../core/grid.js';
import { percent, share } from '../core/number.js';
import { hasTwoSides, sideOf, stackOf, stacksOf, tokensOf } from '../core/places.js';
import { routingOf } from '../core/routing.js';
import { layersWith } from '../core/sites.js';
import { choosing, queryOf } from '../core/state.js';
import { named, tokenLabels } from '../core/text.js';
import { drawing, isDown } from './experts_drawing.js';

export const experts = {
  id: 'experts',
  title: 'Experts',
  help: 'In a mixture of experts a router sends each token through a few of several small networks; the marked ones were chosen, each with the weight its answer gets.',
  terms: [
    ['expert', 'one of the feed-forward networks of a layer'],
    ['load', 'share of all choices that fell on an expert; the line marks an even share'],
  ],
  needs: ['*.experts.router_probs', '*.experts.expert_indices', '*.experts.expert_weights'],
  places: (trace) => (routersOf(trace).length > 0 ? stacksOf(trace) : []),
  place: (trace, state) => stackOf(state, trace),
  panels,
  figure,
};

/** One panel for each layer of the stack that routes; a dense model keeps one, to say so. */
function panels(trace, state) {
  const stack = stackOf(state, trace);
  const layers = routersOf(trace, stack);
  if (layers.length === 0) return [{ id: 'dense', state: {} }];
  return layers.map(({ layer }) => ({ id: `layer-${layer}`, state: { layer, stack } }));
}

function routersOf({ tensors }, stack) {
  return layersWith(tensors, 'experts.router_probs', stack);
}

/**
 * @param {import('../core/trace.js').Trace} trace
 * @param {import('../core/state.js').State & import('../core/figure.js').Frame & {stack?: 'encoder'|'decoder'}} state
 * @returns {import('../core/figure.js').Figure}
 */
function figure(trace, state) {
  const routing = routingOf(trace.tensors, state.layer, state.stack);
  if (!routing) return dense(trace, state);
  const side = sideOf(state.stack, trace);
  const tokens = tokensOf(trace, side);
  const name = hasTwoSides(trace) ? `${state.stack}, layer ${state.layer}` : `layer ${state.layer}`;
  const grid = gridOf(trace, state, { routing, side, tokens, name });
  return {
    title: name[0].toUpperCase() + name.slice(1),
    summary: `Routing of ${name}: ${routing.probabilities.rows} experts by ${tokens.length} tokens, ${routing.topK} chosen for each.`,
    ...drawing(tokens, state, routing),
    grid: isDown(state.width) ? turned(grid) : grid,
  };
}

function dense({ tensors, model }, { layer }) {
  if (layersWith(tensors, 'experts.router_probs').length > 0) {
    return { title: `Layer ${layer}`, notice: `Layer ${layer} is dense: no routing.` };
  }
  return {
    title: 'Dense',
    notice: `${model} is dense: no routing. Every token goes through the same feed-forward network in each layer, so there are no experts to show.`,
  };
}

function gridOf(trace, state, { routing, side, tokens, name }) {
  const { probabilities, load, weightOf } = routing;
  const query = queryOf(state, trace, side);
  const value = (row, column) => probabilities.data[row * probabilities.columns + column];
  return {
    rows: probabilities.rows,
    columns: probabilities.columns,
    sides: { rows: side, columns: side },
    rowTitle: 'expert',
    columnTitle: 'token',
    rowLabels: load.map((part, expert) => `${expert} (load ${percent(part)})`),
    columnLabels: tokenLabels(tokens),
    quantity: `router probability, ${name}`,
    request: { capture: [`${routing.stem}*`] },
    value,
    format: (probability) => share(probability, 4),
    describe: (row, column) => sentence(named(tokens, column), row, value(row, column), weightOf(row, column), name),
    tip: (row, column) => [`${named(tokens, column)} → expert ${row}`, tipNumber(value(row, column), weightOf(row, column))],
    tokens: (_, column) => ({ query: column }),
    choose: (_, column) => choosing(trace, side, column),
    chosen: { column: query },
    start: { row: 0, column: query },
    rest: { readout: choicesInWords(named(tokens, query), query, name, routing) },
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

function choicesInWords(name, query, where, { choices }) {
  const parts = choices
    .filter(({ token }) => token === query)
    .map(({ expert, weight }) => `expert ${expert} with weight ${share(weight)}`);
  return `${name} goes through ${parts.join(' and ')} (${where})`;
}
