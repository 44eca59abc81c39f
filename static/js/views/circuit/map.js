/**
 * The picture of a circuit: its edges on a map of the model's parts, or of its parts at each token.
 */

import { counted } from '../../words/lists.js';
import { percent } from '../../words/numbers.js';
import { guessInWords } from '../../words/tokens.js';
import { withSign } from '../../plot/bars.js';
import { chart } from '../../plot/chart.js';
import { css, diverging } from '../../plot/colour.js';
import { network } from '../../plot/marks/network.js';
import { pixels } from '../../plot/scales.js';
import {
  STANDARD_EDGES,
  asks,
  circuitAsk,
  circuitIn,
  cutsIn,
  cutting,
  figuresOf,
  isCut,
  named,
  taskOf,
  chooseWords,
} from './request.js';
import { effectOf, sayIn, sizeOf } from './words.js';

/** @import { Node } from '../../plot/marks/network.js' @import { Circuit } from './request.js' */

const LEVELS = { for: 215, against: 40 };
const WIDTH = { least: 0.7, most: 7 };
const HEIGHT = 460;
const UNFOLDED_HEIGHT = 560;
const COLOURS = 'Wide: a large effect; orange: for the right word, blue: against it.';
const HELP = `Tokens are at the bottom, the prediction at the top; heads are in rows by layer, networks at the right. ${COLOURS}`;
const UNFOLDED_HELP = `A column for each token; layers from the bottom to the prediction at the top. A dotted line is what a head carries from one token to another. ${COLOURS}`;
const FILES = [
  {
    label: 'Edges as CSV',
    help: 'every edge with its effect, loss and the figures of the circuit',
    type: 'text/csv',
    ending: 'edges.csv',
  },
];

/**
 * Draw a circuit on the parts of the model, or on its parts at each token.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Circuit} found
 * @returns {Figure}
 */
export function mapFigure(trace, state, found) {
  const cuts = new Set(cutsIn(state));
  const isUnfolded = found.edges.some(({ position }) => position !== null);
  const { nodes, links } = isUnfolded
    ? unfoldedNodes(found)
    : { nodes: listNodes(found), links: [] };
  const places = new Map(nodes.map(({ id }, at) => [id, at]));
  const most = Math.max(...found.edges.map(sizeOf), 1e-9);
  const curves = found.edges.map((edge) => ({
    from: places.get(placed(found.writers[edge.writer].name, edge)) ?? 0,
    to: places.get(placed(nodeName(found.readers[edge.reader]), edge)) ?? 0,
    width: WIDTH.least + ((WIDTH.most - WIDTH.least) * sizeOf(edge)) / most,
    isCut: isCut(cuts, edge.name),
  }));
  const colours = diverging(state.palette.theme);
  const say = sayIn(found, cuts);
  return {
    title: isUnfolded ? 'The edges at each token' : 'The edges on a map of the model',
    help: isUnfolded ? UNFOLDED_HELP : HELP,
    summary: `${counted(found.edges.length, 'edge')} between ${counted(nodes.filter(({ isUsed }) => isUsed).length, 'part')} of the model${isUnfolded ? ' at the tokens' : ''}.`,
    facts: factsOf(found, state),
    ...chart(
      {
        x: pixels([-0.08, 1.08]),
        y: pixels([1.05, -0.05]),
        marks: [
          network(
            { nodes, curves, links },
            {
              stroke: (_, row) =>
                css(colours, (found.edges[row].score ?? 0) <= 0 ? LEVELS.for : LEVELS.against),
              idle: isUnfolded ? state.palette.muted : state.palette.line,
              value: ({ row }) => effectOf(found.edges[row]),
              format: (value) => withSign(value),
              name: ({ row }) => found.edges[row].name,
              say: ({ row }) => say(row),
              choose: ({ row }) => cutting(state, found.edges[row].name),
            },
          ),
        ],
        size: { height: isUnfolded ? UNFOLDED_HEIGHT : HEIGHT },
        table: tableOf(trace, state, found),
        sentence: { rest: { readout: say(0) } },
        cursor: {
          start: { row: 0, column: 0 },
          chooseHint: 'Enter cuts the edge, or joins it again',
          note: 'Choose an edge to cut it.',
        },
      },
      state,
    ),
  };
}

/** @param {Trace} trace @param {ViewState} state @param {Circuit} found */
export function tableOf(trace, state, { edges }) {
  const ask = circuitAsk(trace, state);
  const path = `/api/v1/models/${encodeURIComponent(trace.model)}/circuit`;
  return {
    rows: { title: 'edge', labels: edges.map(({ name }) => name) },
    columns: { title: '', labels: ['effect in logits'] },
    quantity: 'effect of an edge on the logit difference, by EAP-IG with 5 steps',
    about: aboutOf(trace, state),
    call: {
      path,
      body: /** @type {any} */ (ask?.circuit ?? {}),
      files: FILES,
      ...changedCall(trace, state, path),
    },
  };
}

/** Return the call behind what is said of the edges that are cut. @param {Trace} trace @param {ViewState} state @param {string} path */
function changedCall(trace, state, path) {
  const { cut, rest } = asks(trace, state);
  if (rest) return { changed: { path, body: rest.circuit } };
  const body = cut && { ...cut, text: trace.text };
  return body ? { changed: { path: '/api/v1/trace', body: { model: trace.model, ...body } } } : {};
}

/**
 * Return what a caption needs so that the circuit can be made again.
 * @param {Trace} trace
 * @param {ViewState} state
 */
function aboutOf(trace, state) {
  const found = circuitIn(state);
  if (!found) return '';
  const { value, interval, n_pairs: pairs } = figuresOf(found);
  const words = chooseWords(trace, state);
  const of =
    taskOf(state) !== ''
      ? `Task “${taskOf(state).replaceAll('_', ' ')}”, ${pairs} pairs held out`
      : `Second sentence “${state.circuit_text ?? ''}”${words ? `, ${named(words.right)} against ${named(words.wrong)}` : ''}`;
  const range =
    pairs > 1 ? ` (95 % interval ${percent(interval[0])} to ${percent(interval[1])})` : '';
  const cuts = cutsIn(state);
  return `${of}. ${found.edges.length} of ${found.n_edges} edges, faithfulness ${percent(value)}${range}${cuts.length > 0 ? `; cut and dotted: ${cuts.join(', ')}` : ''}. ${COLOURS}`;
}

/** @param {Circuit} found @param {ViewState} state */
function factsOf(found, state) {
  const {
    value,
    interval,
    n_pairs: pairs,
    clean_right: clean,
    circuit_right: kept,
  } = figuresOf(found);
  const range =
    pairs > 1 ? [['95 % interval', `${percent(interval[0])} to ${percent(interval[1])}`]] : [];
  const chosen = state.circuit_edges ?? STANDARD_EDGES;
  return [
    ['Edges', `${chosen} strongest, ${found.edges.length} on paths`],
    ['Faithfulness', percent(value)],
    ...range,
    ['All other edges', percent(found.complement)],
    ...(pairs > 1 ? [['Right', `${percent(kept)}, the model ${percent(clean)}`]] : []),
    ...found.reasons.map((reason) => ['Note', reason]),
  ];
}

/**
 * Return the nodes of the model: tokens below, the prediction above, a row of heads for each layer.
 * @param {Circuit} found
 * @returns {(Node & {id: string})[]}
 */
export function listNodes({ writers, readers, edges }) {
  const used = new Set(
    edges.flatMap(({ writer, reader }) => [writers[writer].name, nodeName(readers[reader])]),
  );
  const rows = [...new Set(writers.map(rowName))];
  const logits = readers.find(({ kind }) => kind === 'logits');
  const levels = rows.length;
  const heads = writers.filter(({ kind }) => kind === 'head');
  const most = Math.max(1, ...heads.map((head) => head.heads[0] + 1));
  /** @param {NodeAnswer} node */
  const across = ({ kind, heads: [head = 0] }) =>
    kind === 'head'
      ? most === 1
        ? 0.4
        : (0.86 * head) / (most - 1)
      : kind === 'tokens'
        ? 0.43
        : 1;
  const nodes = writers.map((writer) => ({
    id: writer.name,
    name: writer.name,
    x: across(writer),
    y: rows.indexOf(rowName(writer)) / levels,
    isUsed: used.has(writer.name),
  }));
  return logits ? [...nodes, { id: 'logits', name: 'logits', x: 0.43, y: 1, isUsed: true }] : nodes;
}

/**
 * Return the nodes of a circuit by position: a column for each token, a row for each layer's heads and
 * one for its network; and what attention carries from one token to another.
 * @param {Circuit} found
 * @returns {{nodes: (Node & {id: string})[], links: {from: number, to: number}[]}}
 */
export function unfoldedNodes({ writers, readers, edges, tokens, target_tokens: target }) {
  const titles = target ?? tokens;
  const column = columnsOf(
    titles.length,
    edges.map(({ position }) => position ?? 0),
  );
  const rows = [...new Set(writers.map(rowName))];
  const most = Math.max(1, ...writers.map(({ heads: [head = 0] }) => head + 1));
  const byName = new Map(writers.map((writer) => [writer.name, writer]));
  /** @type {Map<string, Node & {id: string}>} */
  const nodes = new Map();
  /** @param {string} name @param {number} position */
  const add = (name, position) => {
    const id = `${name}@${position}`;
    if (nodes.has(id)) return;
    const part = byName.get(name);
    const isTokens = part?.kind === 'tokens';
    const shift = part?.kind === 'head' ? 0.6 * ((part.heads[0] + 0.5) / most - 0.5) : 0;
    const isNetwork = part?.kind === 'feed_forward' || part?.kind === 'expert';
    nodes.set(id, {
      id,
      name: isTokens ? '' : name,
      x: column(position, shift + (isNetwork ? 0.3 : 0)),
      y: part ? rows.indexOf(rowName(part)) / rows.length : 1,
      isUsed: true,
    });
  };
  /** @type {Map<string, Set<number>>} */
  const reads = new Map();
  for (const { writer, reader, position } of edges) {
    const at = position ?? 0;
    const node = readers[reader];
    add(writers[writer].name, at);
    add(nodeName(node), at);
    if (node.kind === 'key' || node.kind === 'value')
      for (const of of writers)
        if (of.path === node.path && of.heads.some((head) => node.heads.includes(head)))
          reads.set(of.name, (reads.get(of.name) ?? new Set()).add(at));
  }
  const shown = titles.map((token, position) => ({
    id: `token ${position}`,
    name: guessInWords(token),
    x: column(position, 0),
    y: -0.02,
    isUsed: true,
    isColumn: true,
  }));
  const listed = [...nodes.values(), ...shown];
  const places = new Map(listed.map(({ id }, at) => [id, at]));
  const written = edges.map(({ writer, position }) => [writers[writer].name, position ?? 0]);
  const links = new Map();
  for (const [name, position] of written)
    for (const from of reads.get(String(name)) ?? []) {
      const [first, last] = [`${name}@${from}`, `${name}@${position}`].map((id) => places.get(id));
      if (first !== undefined && last !== undefined && from !== position)
        links.set(`${first} ${last}`, { from: first, to: last });
    }
  return { nodes: listed, links: [...links.values()] };
}

/** How much wider a column is that has edges. */
const USED = 3;

/**
 * Return the place of a column of some, of which those with edges are wider.
 * @param {number} count
 * @param {number[]} used
 * @returns {(position: number, shift: number) => number} of its middle, moved by a share of its width
 */
function columnsOf(count, used) {
  const widths = Array.from({ length: count }, (_, at) => (used.includes(at) ? USED : 1));
  const total = widths.reduce((sum, width) => sum + width, 0);
  return (position, shift) => {
    const before = widths.slice(0, position).reduce((sum, width) => sum + width, 0);
    return (before + (0.5 + shift) * (widths[position] ?? 1)) / total;
  };
}

/** Return the id of a node at the position of an edge. @param {string} name @param {EdgeAnswer} edge */
function placed(name, { position }) {
  return position === null ? name : `${name}@${position}`;
}

/** Return the row of a part: heads before the network of their layer. @param {NodeAnswer} node */
function rowName({ stack, layer, kind, path }) {
  return kind === 'tokens' ? `${stack} tokens` : `${stack} ${layer} ${path}`;
}

/** Return the node that a reader is drawn at. @param {NodeAnswer} reader */
export function nodeName({ name, kind }) {
  if (!['query', 'key', 'value'].includes(kind)) return name;
  const whole = name.slice(0, name.lastIndexOf('.'));
  return whole.replace(/-\d+$/, ''); // of heads that share keys, the first
}
