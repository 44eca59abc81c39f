/**
 * Experts: which feed-forward networks of a mixture each token was sent through.
 */

import { turned } from '../core/grid.js';
import { percent, share } from '../core/number.js';
import { routingOf } from '../core/routing.js';
import { layersWith } from '../core/sites.js';
import { queryOf } from '../core/state.js';
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
  panels,
  figure,
};

/** One panel for each layer that routes; a dense model keeps one, to say so. */
function panels({ tensors }) {
  const layers = layersWith(tensors, 'experts.router_probs');
  if (layers.length === 0) return [{ id: 'dense', state: {} }];
  return layers.map(({ layer }) => ({ id: `layer-${layer}`, state: { layer } }));
}

/**
 * @param {import('../core/trace.js').Trace} trace
 * @param {import('../core/state.js').State & import('../core/figure.js').Frame} state
 * @returns {import('../core/figure.js').Figure}
 */
function figure(trace, state) {
  const routing = routingOf(trace.tensors, state.layer);
  if (!routing) return dense(trace, state);
  const grid = gridOf(trace, state, routing);
  return {
    title: `Layer ${state.layer}`,
    summary: `Routing of layer ${state.layer}: ${routing.probabilities.rows} experts by ${trace.tokens.length} tokens, ${routing.topK} chosen for each.`,
    ...drawing(trace, state, routing),
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

function gridOf({ tokens }, state, routing) {
  const { probabilities, load, weightOf } = routing;
  const query = queryOf(state, { tokens });
  const value = (row, column) => probabilities.data[row * probabilities.columns + column];
  return {
    rows: probabilities.rows,
    columns: probabilities.columns,
    rowTitle: 'expert',
    columnTitle: 'token',
    rowLabels: load.map((part, expert) => `${expert} (load ${percent(part)})`),
    columnLabels: tokenLabels(tokens),
    quantity: `router probability, layer ${state.layer}`,
    value,
    format: (probability) => share(probability, 4),
    describe: (row, column) => sentence(named(tokens, column), row, value(row, column), weightOf(row, column), state.layer),
    tip: (row, column) => [`${named(tokens, column)} → expert ${row}`, tipNumber(value(row, column), weightOf(row, column))],
    tokens: (_, column) => ({ query: column }),
    choose: (_, column) => ({ query: column }),
    chosen: { column: query },
    start: { row: 0, column: query },
    rest: { readout: choicesInWords(named(tokens, query), query, state.layer, routing) },
    chosenWeight: weightOf,
  };
}

function tipNumber(probability, weight) {
  return share(probability, 4) + (weight === undefined ? '' : `, chosen: weight ${share(weight)}`);
}

function sentence(name, expert, probability, weight, layer) {
  const verdict = weight === undefined ? 'not chosen' : `chosen, with weight ${share(weight)}`;
  return `The router gives expert ${expert} probability ${share(probability)} for ${name}: ${verdict} (layer ${layer})`;
}

function choicesInWords(name, query, layer, { choices }) {
  const parts = choices
    .filter(({ token }) => token === query)
    .map(({ expert, weight }) => `expert ${expert} with weight ${share(weight)}`);
  return `${name} goes through ${parts.join(' and ')} (layer ${layer})`;
}
