/**
 * A head over a corpus: its commonest pairs of words as bars, the commonest distances of its weights
 * and parts of speech as facts, from the model's atlas.
 */

import { noticeOf } from '../../api/answers.js';
import { atlasPath } from '../../api/calls.js';
import { searchQuery, tagInWords } from '../../trace/atlas.js';
import { choosePlace } from '../../trace/attention.js';
import { matrixAt, rowOf } from '../../trace/trace.js';
import { rowShown } from '../../state/written_rows.js';
import { grouped, percent } from '../../words/numbers.js';
import { visible } from '../../words/text.js';
import { chart } from '../../plot/chart.js';
import { css, sequential } from '../../plot/colour.js';
import { bar } from '../../plot/marks/bar.js';
import { isNarrow, band, linear } from '../../plot/scales.js';

/** @import { Place } from '../../trace/attention.js' */

/** The panel of a model with an atlas. */
export const ATLAS = 'pairs';

const TITLE = 'Commonest pairs in the corpus';
const MOST_ROWS = 14;
const MOST_FACTS = 5;
const ROW_HEIGHT = 24;
const WIDEST = 620;
const SHADE = 215;
const LETTERING = { size: 13, letters: 30, space: 1 };
/** The server counts distances from here on together. */
const FARTHEST = 24;

/** Return the requests for a head: of the atlas, if the model has one, and of the vectors that are chosen. @param {Trace} trace @param {Place|null} place @param {ViewState} state @returns {Record<string, {atlas: AtlasAsk}>} */
export function asksForAtlas(trace, place, state) {
  const { head, head_from: from, head_to: to, head_same: isSame } = state;
  const of = { attention: pathOf(trace, state), head };
  /** @param {AtlasAsk['part']} [part] @param {AtlasAsk['query']} [query] */
  const ask = (part, query) => ({ atlas: { model: trace.model, part, query } });
  const [query, key] = exampleIn(trace, state);
  /** @param {Token} token */
  const start = (token) => [...trace.text.slice(0, token.start)].length; // the server counts code points
  return {
    ...(place &&
      trace.card?.has_atlas && {
        corpus: ask(),
        atlas: ask('head', of),
        ...(state.head_tenths && { spread: ask('spread', of) }),
        ...(query && {
          like: ask('like', { text: trace.text, query: start(query), key: start(key) }),
        }),
        ...((from || to || isSame) && { found: ask('search', searchQuery({ from, to, isSame })) }),
      }),
    ...(place && state.head_space && { space: ask('space', { ...of, kind: state.head_space }) }),
  };
}

/**
 * Return the token of the chosen row and the one that the head reads most in it, off the first; empty:
 * the weights are not held, or are of two texts.
 * @param {Trace} trace
 * @param {ViewState} state
 */
export function exampleIn(trace, state) {
  const weights = trace.tensors[`${pathOf(trace, state)}.weights`];
  const place = choosePlace(state, trace);
  if (!weights || !place || place.columns !== 'source' || place.rows !== 'source') return [];
  const query = rowShown(trace, place, state);
  if (query === null || query < 2) return [];
  const row = rowOf(matrixAt(weights, state.head), query);
  const key = row.indexOf(Math.max(...row.subarray(1, query)), 1);
  return [trace.tokens[query], trace.tokens[key]];
}

/** Return the path of the attention that is shown. @param {Trace} trace @param {ViewState} state */
export function pathOf(trace, state) {
  const place = choosePlace(state, trace);
  return place ? `${place.stack}.layers.${state.layer}.${place.ending}` : '';
}

/** @param {Trace} trace @param {Place} place @param {ViewState} state @returns {Figure} */
export function atlasFigure(trace, place, state) {
  const answer = state.answers?.atlas;
  /** @type {AtlasHead|undefined} */
  const head = answer?.trace?.atlas;
  if (!head) return { title: TITLE, notice: noticeOf(answer), isWaiting: true };
  const { edges } = head;
  if (edges === 0) return { title: TITLE, notice: 'The head has no strong weight in the corpus.' };
  const rows = head.pairs
    .slice(0, MOST_ROWS)
    .map(({ query, key, count }) => ({ name: `${visible(query)} → ${visible(key)}`, count }));
  if (rows.length === 0)
    return { title: TITLE, notice: 'All strong weights of the head are of a token on itself.' };
  /** @param {{name: string, count: number}} row */
  const say = ({ name, count }) =>
    `${name}: ${grouped(count)} weights, ${percent(count / edges, 1)} of the head’s.`;
  const [{ name, count }] = rows;
  return {
    title: TITLE,
    help: 'How often the head attends from the first word to the second, with a strong weight. A distance is how many tokens the key is before the query; rules tag the parts of speech.',
    summary: `${rows.length} pairs, the commonest ${name} with ${grouped(count)} of ${grouped(edges)} weights.`,
    facts: factsOf(head),
    ...chart(
      {
        x: linear('weights', { hasGrid: true, hasZero: true }),
        y: band(
          rows.map((row) => row.name),
          { ...LETTERING, letters: isNarrow(state.width) ? 18 : LETTERING.letters },
        ),
        marks: [
          bar(rows, {
            length: (row) => row.count,
            fill: css(sequential(state.palette.theme), SHADE),
            text: (row) => grouped(row.count),
            isPast: true,
            format: (value) => grouped(value),
            name: (row) => row.name,
            say,
          }),
        ],
        size: { widest: WIDEST, row: ROW_HEIGHT },
        table: {
          rows: { title: 'pair' },
          columns: { title: '', labels: ['weights'] },
          quantity: 'strong weights of a head over the corpus',
          call: { path: atlasPath(asksForAtlas(trace, place, state).atlas.atlas) },
        },
        sentence: { sides: place, rest: { readout: say(rows[0]) } },
      },
      state,
    ),
  };
}

/** @param {AtlasHead} head @returns {[string, string][]} shares of its strong weights, the largest first */
function factsOf({ edges, distances, tags }) {
  /** @param {{count: number}[]} counts @param {(row: any) => string} inWords */
  const listed = (counts, inWords) =>
    [...counts]
      .sort((a, b) => b.count - a.count)
      .slice(0, MOST_FACTS)
      .map((row) => `${inWords(row)} (${percent(row.count / edges, 0)})`)
      .join(', ');
  return [
    ['Distances in the corpus', listed(distances, ({ distance }) => distanceInWords(distance))],
    [
      'Parts of speech in the corpus',
      listed(tags, ({ query, key }) => `${tagInWords(query)} → ${tagInWords(key)}`),
    ],
  ].flatMap(([name, words]) => (words ? [[name, words]] : []));
}

/** @param {number} distance */
function distanceInWords(distance) {
  if (Math.abs(distance) < FARTHEST) return String(distance).replace('-', '−');
  return distance < 0 ? `≤ −${FARTHEST}` : `≥ ${FARTHEST}`;
}
