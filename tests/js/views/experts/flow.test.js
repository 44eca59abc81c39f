import { deepEqual, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { networkOf, placed } from '../../../../static/js/views/experts/flow.js';
import { stagesOf } from '../../../../static/js/views/experts/routing.js';
import { routedTrace } from './sample.js';

const BOX = { across: 600, down: 300, thickness: 20, pad: 10 };
const near = (value, expected) =>
  ok(Math.abs(value - expected) < 1e-9, `${value} is not ${expected}`);
const sum = (links) => links.reduce((total, { value }) => total + value, 0);

for (const emphasis of [1, 3]) {
  test(`inflow, value and outflow of a node agree, with the chosen token counted ${emphasis} times`, () => {
    const { nodes, links } = networkOf(stagesOf(routedTrace()), 2, 5, emphasis);
    deepEqual(
      nodes.filter(({ column }) => column === 0).map(({ value }) => value),
      [emphasis, 4],
    );
    nodes.forEach(({ column, value }, index) => {
      if (column > 0) near(sum(links.filter(({ target }) => target === index)), value);
      if (column < 2) near(sum(links.filter(({ source }) => source === index)), value);
    });
  });
}

test('the chosen token’s own links lead along its experts, weight by weight', () => {
  const { nodes, links } = networkOf(stagesOf(routedTrace()), 2, 5);
  const own = links
    .filter(({ isChosen }) => isChosen)
    .map(({ source, target, value }) => [
      nodes[source].expert,
      nodes[target].expert,
      Number(value.toFixed(4)),
    ]);
  deepEqual(own, [
    [null, 2, 0.9],
    [null, 3, 0.1],
    [2, 1, 0.855],
    [2, 0, 0.045],
    [3, 1, 0.095],
    [3, 0, 0.005],
  ]);
});

test('the height of nodes is their value; they do not overlap and fill the height', () => {
  const { nodes } = networkOf(stagesOf(routedTrace()), 2, 5);
  const boxes = placed(nodes, BOX);
  const unit = (boxes[0].y1 - boxes[0].y0) / nodes[0].value;
  boxes.forEach(({ y0, y1 }, index) => near(y1 - y0, nodes[index].value * unit));
  for (const column of [1, 2]) {
    const stack = boxes.filter((_, index) => nodes[index].column === column);
    near(stack[0].y0, 0);
    near(stack.at(-1).y1, BOX.down);
    stack.slice(1).forEach(({ y0 }, index) => ok(y0 - stack[index].y1 >= BOX.pad - 1e-9));
  }
  deepEqual([boxes[0].x0, boxes.at(-1).x1], [0, 600]);
});
