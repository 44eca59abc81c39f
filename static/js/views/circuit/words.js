/**
 * A circuit in words: what its edges do, each with the cut that backs it, and how the next word moves
 * once edges are cut.
 */

import { noticeOf } from '../../api/answers.js';
import { capitalised, counted } from '../../words/lists.js';
import { percent, signed } from '../../words/numbers.js';
import { guessInWords } from '../../words/tokens.js';
import { withSign } from '../../plot/bars.js';
import {
  chanceOf,
  circuitIn,
  cutsIn,
  figuresOf,
  guessesOf,
  isCut,
  named,
  taskOf,
  chooseWords,
} from './request.js';

/**
 * @import { FaithfulnessAnswer } from '../../api/schemas'
 * @import { Circuit } from './request.js'
 */

const MOST_CLAIMS = 4;

/**
 * Return what the circuit does, each claim with the cut that backs it.
 * @param {Trace} trace
 * @param {ViewState} state
 */
export function wording(trace, state) {
  const found = circuitIn(state);
  if (!found) return {};
  const figures = figuresOf(found);
  const words = chooseWords(trace, state);
  const what =
    words && taskOf(state) === ''
      ? `${named(words.right)} rather than ${named(words.wrong)}`
      : `the answers of “${taskOf(state).replaceAll('_', ' ')}”`;
  const pairs = figures.n_pairs > 1 ? `, on ${counted(figures.n_pairs, 'pair')} held out` : '';
  return {
    answer: [
      `${counted(found.edges.length, 'edge')} of ${found.n_edges} keep ${percent(figures.value)} of the difference in logits that leads to ${what}${pairs}: ${withSign(figures.circuit)}, against ${withSign(figures.clean)} with all edges and ${withSign(figures.corrupted)} with none.`,
      ...claims(found),
      ...consequences(trace, state),
    ],
  };
}

/**
 * Return what the strongest edges do, each with the cut that backs it.
 * @param {Circuit} found
 * @returns {string[]}
 */
function claims(found) {
  const strongest = [...found.edges]
    .filter(({ loss }) => loss > 0)
    .sort((a, b) => b.loss - a.loss)
    .slice(0, MOST_CLAIMS)
    .map(
      (edge) =>
        `${describeEdge(found, edge)} (cut: ${signed(-edge.loss * 100, 0)} % of faithfulness)`,
    );
  return strongest.length > 0 ? [`${capitalised(strongest.join('; '))}.`] : [];
}

/**
 * Return what an edge does, in words: `head 3.3 takes from “dogs” what the experts of layer 2 wrote
 * there`.
 * @param {Circuit} found
 * @param {EdgeAnswer} edge
 */
export function describeEdge({ writers, readers, tokens }, { writer, reader, position }) {
  const [from, to] = [partName(writers[writer]), readers[reader]];
  const token = position === null ? '' : `“${guessInWords(tokens[position] ?? '')}”`;
  const role = ROLES[to.kind];
  const what = from === 'the tokens' ? 'the embedding' : `what ${from} wrote`;
  if (role)
    return `the ${role} of head ${to.layer}.${to.heads.join('–')} reads ${what}${token && ` at ${token}`}`;
  if (to.kind === 'logits') return `the prediction reads ${from}`;
  return `${partName(to)} reads ${from}${token && ` at ${token}`}`;
}

/** @type {Record<string, string>} */
const ROLES = { query: 'query', key: 'key', value: 'value' };

/** Return how the prediction moves once edges are cut. @param {Trace} trace @param {ViewState} state @returns {string[]} */
function consequences(trace, state) {
  const cuts = cutsIn(state);
  if (cuts.length === 0) return ['Choose an edge to cut it.'];
  const edges = cuts.join(', ');
  if (taskOf(state) !== '') {
    const [rest, whole] = [state.answers?.rest, state.answers?.whole].map(
      (answer) => /** @type {any} */ (answer?.trace)?.circuit?.chosen,
    );
    if (!rest || !whole) return [`Without ${edges}: ${noticeOf(state.answers?.rest)}`];
    return [
      `On all ${counted(rest.n_pairs, 'pair')} the circuit keeps ${rangeOf(whole)} and is right in ${percent(whole.circuit_right)}; without ${edges} it keeps ${rangeOf(rest)} and is right in ${percent(rest.circuit_right)}.`,
    ];
  }
  const words = chooseWords(trace, state);
  const cut = state.answers?.cut;
  if (!cut?.trace || !words) return [`Without ${edges}: ${noticeOf(cut)}`];
  const after = cut.trace;
  const chances = [words.right, words.wrong]
    .map((word) => `${named(word)} ${chanceOf(trace, word)} → ${chanceOf(after, word)}`)
    .join(', ');
  return [
    `With ${edges} cut in the whole model, the likeliest next word is ${named(guessesOf(after)[0].text)}: ${chances}.`,
  ];
}

/** @param {FaithfulnessAnswer} figures @returns {string} `61.7 % (50.1 % to 70 %)` */
function rangeOf({ value, interval: [low, high] }) {
  return `${percent(value)} (${percent(low)} to ${percent(high)})`;
}

/** @param {NodeAnswer} node */
export function partName({ name, kind, layer, heads }) {
  if (kind === 'tokens') return 'the tokens';
  if (kind === 'head') return `head ${layer}.${heads[0]}`;
  if (kind === 'expert') return `expert ${name.split('e').at(-1)} of layer ${layer}`;
  if (kind === 'logits') return 'the prediction';
  if (kind === 'feed_forward') return `the network of layer ${layer}`;
  return name;
}

/** Return how strongly an edge works for the right word. @param {EdgeAnswer} edge */
export function effectOf({ score, loss }) {
  return score === null ? loss : -score;
}

/** @param {EdgeAnswer} edge */
export function sizeOf(edge) {
  return Math.abs(effectOf(edge));
}

/**
 * Return a sentence for each edge.
 * @param {Circuit} found
 * @param {Set<string>} cuts
 * @returns {(row: number) => string}
 */
export function sayIn(found, cuts) {
  return (row) => {
    const { name, score, loss } = found.edges[row];
    const effect = score === null ? '' : `, ${withSign(-score)} logits for the right word`;
    const state = isCut(cuts, name) ? '; it is cut' : '';
    return `${capitalised(describeEdge(found, found.edges[row]))} (${name})${effect}; without it the circuit loses ${signed(loss * 100, 1)} % of faithfulness${state}`;
  };
}
