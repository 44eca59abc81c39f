/**
 * Circuit: the few edges of the model that do what it does here, on a map of its parts; each can be
 * cut.
 */

import { noticeOf } from '../../api/answers.js';
import { counted, percent, signed } from '../../data/format.js';
import { signedBars, withSign } from '../../plot/bars.js';
import { curvesChart, warm } from '../../plot/curves.js';
import { chart } from '../../plot/chart.js';
import { css, diverging } from '../../plot/colour.js';
import { network } from '../../plot/marks/network.js';
import { pixels } from '../../plot/scales.js';
import {
  asks,
  chanceOf,
  circuitAsk,
  circuitIn,
  controls,
  cutsIn,
  cutting,
  figuresOf,
  guessesOf,
  isLacking,
  named,
  taskOf,
  wordsOf,
} from './subject.js';

/**
 * @import { Trace } from '../../data/trace.js'
 * @import { Figure, ViewCode, ViewState } from '../../plot/figure.js'
 * @import { Node } from '../../plot/marks/network.js'
 * @import { Circuit, Edge, NodeOf } from './subject.js'
 */

const LEVELS = { for: 215, against: 40 };
const WIDTH = { least: 0.7, most: 7 };
const HEIGHT = 460;
const MOST_CLAIMS = 3;

/** @type {ViewCode} */
export const circuit = {
  help: 'The edges are chosen by how much the prediction depends on each; then the model is run with only them of this sentence, and with all others as the second sentence has them. Faithfulness is the share of the difference in logits that this run keeps.',
  terms: [
    ['edge', 'what one part of the model writes and a later part reads'],
    ['circuit', 'a few edges that do most of what the model does here'],
    ['faithfulness', '(circuit − second sentence) / (this sentence − second sentence), in logits'],
    ['cut', 'the reader is given what the writer wrote for the second sentence'],
    ['q, k, v', 'the query, key or value of a head'],
    ['ff', 'the feed-forward network, or the experts, of a layer'],
  ],
  arrangement: 'led',
  asks,
  controls,
  wording,
  route,
  panels,
  figure,
};

/**
 * Return the strongest path of the circuit on the map of the page, from the tokens to the prediction:
 * back from the prediction, the strongest edge into each part.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {string[][]}
 */
function route(trace, state) {
  const found = circuitIn(state);
  if (!found) return [];
  const { edges, writers, readers } = found;
  /** @type {string[][]} */
  const stops = [['logits']];
  let name = 'logits';
  while (name !== 'tokens') {
    const into = edges.filter(({ reader }) => nodeName(readers[reader]) === name);
    if (into.length === 0) return [];
    const strongest = into.reduce((best, edge) => (sizeOf(edge) > sizeOf(best) ? edge : best));
    const writer = writers[strongest.writer];
    stops.unshift(stopOf(writer));
    name = writer.name;
  }
  return stops;
}

/** Return the ids of a part on the map, and of what replaces it there. @param {NodeOf} part */
function stopOf({ kind, stack, layer, heads }) {
  if (kind === 'tokens') return [`embedding ${stack}`];
  const ofLayer = `layer ${stack} ${layer}`;
  return kind === 'head' ? [`head ${stack} ${layer} ${heads[0]}`, ofLayer] : [ofLayer];
}

/** @param {Trace} trace @param {ViewState} state */
function panels(trace, state) {
  const found = circuitIn(state);
  if (!found || found.edges.length === 0) return [{ id: '', state: {} }];
  return [
    { id: 'map', state: { part: 'map' } },
    { id: 'edges', state: { part: 'edges' } },
    ...(found.curve.length > 0 ? [{ id: 'curve', state: { part: 'curve' } }] : []),
  ];
}

/**
 * Return what the circuit does, each claim with the cut that backs it.
 * @param {Trace} trace
 * @param {ViewState} state
 */
function wording(trace, state) {
  const found = circuitIn(state);
  if (!found) return {};
  const figures = figuresOf(found);
  const words = wordsOf(trace, state);
  const what =
    words && taskOf(state) === ''
      ? `${named(words.right)} rather than ${named(words.wrong)}`
      : `the answers of “${taskOf(state).replaceAll('_', ' ')}”`;
  const pairs = figures.n_pairs > 1 ? ` of ${counted(figures.n_pairs, 'pair')} held out` : '';
  return {
    answer: [
      `${counted(found.edges.length, 'edge')} of ${found.n_edges} keep ${percent(figures.value)}${pairs} of the difference in logits that leads to ${what}: ${withSign(figures.circuit)}, against ${withSign(figures.clean)} with all edges and ${withSign(figures.corrupted)} with none.`,
      ...claims(found),
      ...consequences(trace, state, found),
    ],
  };
}

/** Return what the strongest edges do. @param {Circuit} circuit @returns {string[]} */
function claims({ edges, writers, readers }) {
  const strongest = [...edges].sort((a, b) => b.loss - a.loss).slice(0, MOST_CLAIMS);
  const said = strongest
    .filter(({ loss }) => loss > 0)
    .map(
      ({ writer, reader, loss }) =>
        `${readerName(readers[reader])} reads ${partName(writers[writer])} (cut: ${signed(-loss * 100, 0)} % of faithfulness)`,
    );
  return said.length > 0 ? [`Most is lost where an edge is cut: ${said.join('; ')}.`] : [];
}

/** Return how the prediction moves once edges are cut. @param {Trace} trace @param {ViewState} state @param {Circuit} found @returns {string[]} */
function consequences(trace, state, found) {
  const cuts = cutsIn(state);
  if (cuts.length === 0) return ['Choose an edge to cut it.'];
  const edges = cuts.join(', ');
  if (taskOf(state) !== '') {
    const rest = /** @type {any} */ (state.answers?.rest?.trace)?.circuit;
    if (!rest) return [`Without ${edges}: ${noticeOf(state.answers?.rest)}`];
    return [
      `Without ${edges} the circuit keeps ${percent(rest.chosen.value)}, and is right in ${percent(rest.chosen.circuit_right)} of the pairs, not ${percent(found.chosen.circuit_right)}.`,
    ];
  }
  const cut = state.answers?.cut;
  const words = wordsOf(trace, state);
  if (!cut?.trace || !words) return [`Without ${edges}: ${noticeOf(cut)}`];
  const [first] = guessesOf(cut.trace);
  const chances = [words.right, words.wrong]
    .map((word) => `${named(word)} ${chanceOf(trace, word)} → ${chanceOf(cut.trace, word)}`)
    .join(', ');
  return [
    `With ${edges} cut in the whole model, the likeliest next word is ${named(first.text)}: ${chances}.`,
  ];
}

/** @param {NodeOf} node */
function partName({ name, kind, layer, heads }) {
  if (kind === 'tokens') return 'the tokens';
  if (kind === 'head') return `head ${layer}.${heads[0]}`;
  if (kind === 'logits') return 'the prediction';
  if (kind === 'feed_forward') return `the network of layer ${layer}`;
  return name;
}

/** @param {NodeOf} node */
function readerName(node) {
  const { kind, layer, heads } = node;
  return ['query', 'key', 'value'].includes(kind)
    ? `the ${kind} of head ${layer}.${heads.join('–')}`
    : partName(node);
}

/**
 * @param {Trace} trace
 * @param {ViewState} state with the panel’s `part`
 * @returns {Figure}
 */
function figure(trace, state) {
  if (isLacking(trace, state))
    return {
      title: 'Circuit',
      notice:
        'Type a second sentence with the same number of tokens, such as this one with a word changed so that another word follows; or choose a task.',
      actions: [
        { label: 'Copy the sentence and change a word', patch: { circuit_text: trace.text } },
        { label: 'Agreement across a noun', patch: { circuit_task: 'agreement' } },
      ],
    };
  const found = circuitIn(state);
  if (!found) {
    const { other, circuit: answer } = state.answers ?? {};
    if (taskOf(state) === '' && other?.trace && !wordsOf(trace, state))
      return {
        title: 'Circuit',
        notice: 'No word is likelier after one sentence than after the other; change another word.',
      };
    const failed = other?.problem ? other : answer;
    return { title: 'Circuit', notice: noticeOf(failed), isWaiting: !failed?.problem };
  }
  if (found.edges.length === 0)
    return {
      title: 'Circuit',
      notice: 'None of these edges leads from a token to the prediction; take more edges.',
    };
  if (state.part === 'edges') return edgesFigure(trace, state, found);
  if (state.part === 'curve') return curveFigure(trace, state, found);
  return mapFigure(trace, state, found);
}

/** @param {Trace} trace @param {ViewState} state @param {Circuit} found @returns {Figure} */
function mapFigure(trace, state, found) {
  const cuts = new Set(cutsIn(state));
  const nodes = nodesOf(found);
  const places = new Map(nodes.map(({ id }, at) => [id, at]));
  const most = Math.max(...found.edges.map(sizeOf), 1e-9);
  const curves = found.edges.map((edge) => ({
    from: places.get(found.writers[edge.writer].name) ?? 0,
    to: places.get(nodeName(found.readers[edge.reader])) ?? 0,
    width: WIDTH.least + ((WIDTH.most - WIDTH.least) * sizeOf(edge)) / most,
    isCut: cuts.has(edge.name),
  }));
  const colours = diverging(state.palette.theme);
  const say = sayIn(found, cuts);
  return {
    title: 'The edges on a map of the model',
    help: 'Tokens are at the bottom, the prediction at the top; heads are in rows by layer, networks at the right. Wide: a large effect; orange: for the first word, blue: against it.',
    summary: `${counted(found.edges.length, 'edge')} between ${counted(nodes.filter(({ isUsed }) => isUsed).length, 'part')} of the model.`,
    facts: factsOf(found),
    ...chart(
      {
        x: pixels([-0.08, 1.08]),
        y: pixels([1.05, -0.05]),
        marks: [
          network(
            { nodes, curves },
            {
              stroke: (_, row) =>
                css(colours, (found.edges[row].score ?? 0) <= 0 ? LEVELS.for : LEVELS.against),
              idle: state.palette.line,
              value: ({ row }) => effectOf(found.edges[row]),
              format: (value) => withSign(value),
              name: ({ row }) => found.edges[row].name,
              say: ({ row }) => say(row),
              choose: ({ row }) => cutting(state, found.edges[row].name),
            },
          ),
        ],
        size: { height: HEIGHT },
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

/** Return how strongly an edge works for the right word. @param {Edge} edge */
function effectOf({ score, loss }) {
  return score === null ? loss : -score;
}

/** @param {Edge} edge */
function sizeOf(edge) {
  return Math.abs(effectOf(edge));
}

/** @param {Circuit} found @param {Set<string>} cuts @returns {(row: number) => string} */
function sayIn({ edges, writers, readers }, cuts) {
  return (row) => {
    const { name, writer, reader, score, loss } = edges[row];
    const effect = score === null ? '' : `, ${withSign(-score)} logits for the right word`;
    const state = cuts.has(name) ? '; it is cut' : '';
    return `${readerName(readers[reader])} reads ${partName(writers[writer])} (${name})${effect}; without it the circuit loses ${signed(loss * 100, 1)} % of faithfulness${state}`;
  };
}

/** @param {Trace} trace @param {ViewState} state @param {Circuit} found */
function tableOf(trace, state, { edges }) {
  const ask = circuitAsk(trace, state);
  return {
    rows: { title: 'edge', labels: edges.map(({ name }) => name) },
    columns: { title: '', labels: ['logits for the right word'] },
    quantity: 'effect of an edge on the logit difference, by EAP-IG with 5 steps',
    call: {
      path: `/api/v1/models/${encodeURIComponent(trace.model)}/circuit`,
      body: /** @type {any} */ (ask?.circuit ?? {}),
    },
  };
}

/** @param {Circuit} found */
function factsOf(found) {
  const {
    value,
    interval,
    n_pairs: pairs,
    clean_right: clean,
    circuit_right: kept,
  } = figuresOf(found);
  const range =
    pairs > 1 ? [['95 % of draws', `${percent(interval[0])} to ${percent(interval[1])}`]] : [];
  return [
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
export function nodesOf({ writers, readers, edges }) {
  const used = new Set(
    edges.flatMap(({ writer, reader }) => [writers[writer].name, nodeName(readers[reader])]),
  );
  const rows = [...new Set(writers.map(rowName))];
  const logits = readers.find(({ kind }) => kind === 'logits');
  const levels = rows.length;
  const heads = writers.filter(({ kind }) => kind === 'head');
  const most = Math.max(1, ...heads.map((head) => head.heads[0] + 1));
  /** @param {NodeOf} node */
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

/** Return the row of a part: heads before the network of their layer. @param {NodeOf} node */
function rowName({ stack, layer, kind, path }) {
  return kind === 'tokens' ? `${stack} tokens` : `${stack} ${layer} ${path}`;
}

/** Return the node that a reader is drawn at. @param {NodeOf} reader */
function nodeName({ name, kind }) {
  if (!['query', 'key', 'value'].includes(kind)) return name;
  const whole = name.slice(0, name.lastIndexOf('.'));
  return whole.replace(/-\d+$/, ''); // of heads that share keys, the first
}

/** @param {Trace} trace @param {ViewState} state @param {Circuit} found @returns {Figure} */
function edgesFigure(trace, state, found) {
  const cuts = new Set(cutsIn(state));
  const say = sayIn(found, cuts);
  const bars = found.edges.map((edge, row) => ({
    label: cuts.has(edge.name) ? `✂ ${edge.name}` : edge.name,
    name: edge.name,
    value: effectOf(edge),
    row,
  }));
  return {
    title: 'By edge',
    help: 'The estimated change of the difference in logits as the edge is cut by itself.',
    summary: `${counted(bars.length, 'edge')}, the strongest first.`,
    ...signedBars(
      bars,
      {
        title: 'logits',
        ends: ['against the right word', 'for it'],
        say: ({ row }) => say(row),
        choose: ({ name }) => cutting(state, name),
        table: tableOf(trace, state, found),
        sentence: { rest: { readout: say(0) } },
        cursor: { start: { row: 0, column: 0 }, chooseHint: 'Enter cuts the edge, or joins it' },
      },
      state,
    ),
  };
}

/** @param {Trace} trace @param {ViewState} state @param {Circuit} found @returns {Figure} */
function curveFigure(trace, state, { curve }) {
  const points = curve.filter(({ n_edges: count }) => count > 0);
  const colours = diverging(state.palette.theme);
  const at = points.findIndex(({ n_edges: count }) => count >= (state.circuit_edges ?? 0));
  const drawn = curvesChart(
    {
      x: points.map(({ n_edges: count }) => count),
      across: { title: 'edges', isLog: true },
      up: { title: 'share' },
      curves: [
        {
          name: 'right',
          values: points.map(({ right }) => right),
          colour: css(colours, LEVELS.for),
          dash: 'dot',
        },
        {
          name: 'faithfulness',
          values: points.map(({ faithfulness }) => faithfulness),
          colour: warm(state.palette),
          hasDots: true,
        },
      ],
      marker: at < 0 ? undefined : at,
      quantity: 'share of the logit difference, and of the pairs that are right',
      height: 300,
    },
    state,
  );
  return {
    title: 'The more edges, the more faithful',
    help: 'The strongest edges of the graph, without leaving any out; the line marks the number chosen above.',
    summary: `Faithfulness with 1 to ${points[points.length - 1].n_edges} edges.`,
    ...drawn,
  };
}
