/**
 * A circuit in words: what its edges do, each with the cut that backs it, and how the next word moves
 * once edges are cut.
 */

import { noticeOf } from '../../api/answers.js';
import { capitalised, counted, percent, signed, visibleLine } from '../../data/format.js';
import { withSign } from '../../plot/bars.js';
import {
  chanceOf,
  circuitIn,
  cutsIn,
  figuresOf,
  guessesOf,
  isOfBoth,
  named,
  taskOf,
  wordsOf,
} from './subject.js';

/**
 * @import { Trace } from '../../data/trace.js'
 * @import { ViewState } from '../../plot/figure.js'
 * @import { Circuit, Edge, NodeOf } from './subject.js'
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
      (edge) => `${claimOf(found, edge)} (cut: ${signed(-edge.loss * 100, 0)} % of faithfulness)`,
    );
  return strongest.length > 0 ? [`${capitalised(strongest.join('; '))}.`] : [];
}

/**
 * Return what an edge does, in words: `head 3.3 takes from “dogs” what the experts of layer 2 wrote
 * there`.
 * @param {Circuit} found
 * @param {Edge} edge
 */
export function claimOf({ writers, readers, tokens }, { writer, reader, position }) {
  const [from, to] = [partName(writers[writer]), readers[reader]];
  const token = position === null ? '' : `“${visibleLine(tokens[position] ?? '').trim()}”`;
  const head = `head ${to.layer}.${to.heads.join('–')}`;
  const what = from === 'the tokens' ? 'the token itself' : `what ${from} wrote`;
  const there = token && from !== 'the tokens' ? ' there' : '';
  if (to.kind === 'query') return `${head} searches${token && `, at ${token},`} by ${what}${there}`;
  if (to.kind === 'key') return `${head} finds ${token || 'tokens'} by ${what}${there}`;
  if (to.kind === 'value') return `${head} takes${token && ` from ${token}`} ${what}${there}`;
  if (to.kind === 'logits') return `the prediction reads ${from}`;
  return `${partName(to)} reads ${from}${token && ` at ${token}`}`;
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
  const words = wordsOf(trace, state);
  const { cut, cut_other: cutOther, other } = state.answers ?? {};
  /** @param {Trace|undefined} before @param {any} after @param {string} where */
  const moved = (before, after, where) => {
    if (!after?.trace || !words) return `Without ${edges}${where}: ${noticeOf(after)}`;
    const [first] = guessesOf(after.trace);
    const chances = [words.right, words.wrong]
      .map((word) => `${named(word)} ${chanceOf(before, word)} → ${chanceOf(after.trace, word)}`)
      .join(', ');
    return `With ${edges} cut in the whole model, the likeliest next word${where} is ${named(first.text)}: ${chances}.`;
  };
  return [
    moved(trace, cut, ''),
    ...(isOfBoth(state) ? [moved(other?.trace, cutOther, ' after the second sentence')] : []),
  ];
}

/** @param {NodeOf} node */
export function partName({ name, kind, layer, heads }) {
  if (kind === 'tokens') return 'the tokens';
  if (kind === 'head') return `head ${layer}.${heads[0]}`;
  if (kind === 'expert') return `expert ${name.split('e').at(-1)} of layer ${layer}`;
  if (kind === 'logits') return 'the prediction';
  if (kind === 'feed_forward') return `the network of layer ${layer}`;
  return name;
}

/** Return how strongly an edge works for the right word. @param {Edge} edge */
export function effectOf({ score, loss }) {
  return score === null ? loss : -score;
}

/** @param {Edge} edge */
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
    const state = cuts.has(name) ? '; it is cut' : '';
    return `${capitalised(claimOf(found, found.edges[row]))} (${name})${effect}; without it the circuit loses ${signed(loss * 100, 1)} % of faithfulness${state}`;
  };
}
