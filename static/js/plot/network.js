/**
 * The network of a flow: the tokens at the left, then a column of experts for each layer that routes,
 * and where each of them stands.
 */

import { choicesAt, flowBetween, takenBy } from '../data/routes.js';

/**
 * @typedef {{column: number, expert: number|null, value: number, isChosen: boolean}} Node column 0 has the tokens, the chosen one first
 * @typedef {{source: number, target: number, value: number, isChosen: boolean}} Link between nodes by index; the chosen token's are last
 */

/**
 * @param {import('../data/routes.js').Stage[]} stages
 * @param {number} query the chosen token
 * @param {number} nTokens
 * @param {number} [emphasis] as how many tokens the chosen one counts, to be seen among very many
 * @returns {{nodes: Node[], links: Link[]}}
 */
export function networkOf(stages, query, nTokens, emphasis = 1) {
  const nodes = [
    { column: 0, expert: null, value: emphasis, isChosen: true },
    ...(nTokens > 1 ? [{ column: 0, expert: null, value: nTokens - 1, isChosen: false }] : []),
    ...stages.flatMap(({ routing }, index) => nodesOf(routing, index + 1, query, emphasis)),
  ];
  const find = (column, expert) =>
    nodes.findIndex((node) => node.column === column && node.expert === expert);
  return {
    nodes,
    links: [...linksOfOthers(stages, query, find), ...linksOfChosen(stages, query, emphasis, find)],
  };
}

function nodesOf(routing, column, query, emphasis) {
  const valueOf = (taken, expert) =>
    taken + (emphasis - 1) * (routing.weightOf(expert, query) ?? 0);
  return Array.from(takenBy(routing), (taken, expert) => ({
    column,
    expert,
    value: valueOf(taken, expert),
    isChosen: false,
  })).filter(({ value }) => value > 0);
}

function linksOfOthers(stages, query, find) {
  const isOther = (token) => token !== query;
  const links = [];
  stages.forEach(({ routing }, index) => {
    const flow =
      index === 0
        ? entering(routing, query)
        : flowBetween(stages[index - 1].routing, routing, isOther);
    for (let from = 0; from < flow.rows; from += 1) {
      for (let to = 0; to < flow.columns; to += 1) {
        const value = flow.data[from * flow.columns + to];
        if (value > 0)
          links.push({
            source: index === 0 ? 1 : find(index, from),
            target: find(index + 1, to),
            value,
            isChosen: false,
          });
      }
    }
  });
  return links;
}

/** What the first layer takes of all tokens but the chosen one. */
function entering(routing, query) {
  const data = takenBy(routing);
  for (const { expert, weight } of choicesAt(routing, query)) data[expert] -= weight;
  return { rows: 1, columns: data.length, data: data.map((value) => (value < 1e-9 ? 0 : value)) };
}

function linksOfChosen(stages, query, emphasis, find) {
  const steps = stages.map(({ routing }) => choicesAt(routing, query));
  return steps.flatMap((to, index) => {
    const from = index === 0 ? [{ expert: null, weight: 1 }] : steps[index - 1];
    return from.flatMap((first) =>
      to.map((second) => ({
        source: find(index, first.expert),
        target: find(index + 1, second.expert),
        value: emphasis * first.weight * second.weight,
        isChosen: true,
      })),
    );
  });
}

/**
 * Where nodes stand: columns at equal distances, nodes as high as their value, spread over the height.
 * @param {Node[]} nodes
 * @param {{across: number, down: number, thickness: number, pad: number}} box
 * @returns {{x0: number, x1: number, y0: number, y1: number}[]} in the order of the nodes
 */
export function placed(nodes, { across, down, thickness, pad }) {
  const columns = Array.from(
    { length: Math.max(...nodes.map(({ column }) => column)) + 1 },
    (_, column) => nodes.filter((node) => node.column === column),
  );
  const total = (column) => column.reduce((sum, { value }) => sum + value, 0);
  const unit = Math.min(
    ...columns.map((column) => (down - (column.length - 1) * pad) / total(column)),
  );
  const boxes = new Map();
  columns.forEach((column, index) => {
    const x0 = (index / (columns.length - 1)) * (across - thickness);
    const gap = index === 0 ? pad : (down - total(column) * unit) / Math.max(1, column.length - 1);
    let y0 = 0;
    for (const node of column) {
      boxes.set(node, { x0, x1: x0 + thickness, y0, y1: y0 + node.value * unit });
      y0 += node.value * unit + gap;
    }
  });
  return nodes.map((node) => boxes.get(node));
}
