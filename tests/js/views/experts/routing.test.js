import { deepEqual, ok } from 'node:assert/strict';
import { test } from 'node:test';
import {
  flowBetween,
  routingOf,
  pathOverlap,
  stagesOf,
  weightByExpert,
} from '../../../../static/js/views/experts/routing.js';
import { sampleTrace } from '../../sample.js';
import { CHOSEN, routedTrace, WEIGHTS } from './sample.js';

const near = (value, expected) =>
  ok(Math.abs(value - expected) < 1e-9, `${value} is not ${expected}`);

test('the balance loss is n times the sum of load and mean probability, by hand', () => {
  const { balanceLoss, load, entropies, mostEntropy, meanEntropy } = routingOf(
    sampleTrace().tensors,
    1,
  );
  deepEqual(load, [0.5, 0.5, 0, 0]);
  ok(Math.abs(balanceLoss - 4 * (0.5 * 0.5 + 0.5 * 0.3)) < 1e-6);
  near(mostEntropy, 2);
  for (const entropy of entropies)
    ok(Math.abs(entropy - meanEntropy) < 1e-12 && entropy > 1 && entropy < mostEntropy);
});

test('the balance loss is 1 for even load, and the number of experts if one takes all', () => {
  const named = (axes, columns, data) => ({ axes, shape: [4, columns], scale: 1, data });
  const routed = (probs, indices) =>
    routingOf(
      {
        'decoder.layers.0.experts.router_probs': named(['query', 'expert'], 4, probs),
        'decoder.layers.0.experts.expert_indices': named(['query', 'top_k'], 1, indices),
        'decoder.layers.0.experts.expert_weights': named(['query', 'top_k'], 1, [1, 1, 1, 1]),
      },
      0,
    ).balanceLoss;
  near(routed(new Float64Array(16).fill(0.25), [0, 1, 2, 3]), 1);
  near(
    routed(
      Float64Array.from({ length: 16 }, (_, at) => (at % 4 === 2 ? 1 : 0)),
      [2, 2, 2, 2],
    ),
    4,
  );
});

test('the flow between layers is weight times weight and conserves each expert’s total', () => {
  const [{ routing: from }, { routing: to }] = stagesOf(routedTrace());
  const { data, columns } = flowBetween(from, to, () => true);
  const share = (layer, token, expert) => {
    const rank = CHOSEN[layer][token].indexOf(expert);
    return rank < 0 ? 0 : [WEIGHTS[layer][token], 1 - WEIGHTS[layer][token]][rank];
  };
  const total = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
  near(data[1], total(CHOSEN[0].map((_, token) => share(0, token, 0) * share(1, token, 1))));
  const experts = [0, 1, 2, 3];
  for (const expert of experts) {
    const row = data.slice(expert * columns, (expert + 1) * columns);
    near(total(row), weightByExpert(from)[expert]);
    const column = experts.map((other) => data[other * columns + expert]);
    near(total(column), weightByExpert(to)[expert]);
  }
});

test('the path of a token overlaps fully with itself, and with another by the smaller weights', () => {
  const stages = stagesOf(routedTrace());
  const shared = pathOverlap(stages, 1);
  near(shared[1], 1);
  near(shared[0], (0.6 + 0.25 + 0) / 2);
  near(shared[2], (0 + 0.625 + 0.05) / 2);
  near(pathOverlap(stages, 0)[1], shared[0]);
});
