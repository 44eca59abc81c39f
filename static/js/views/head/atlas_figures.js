/**
 * A head over a corpus: its commonest pairs of words as bars, the commonest distances of its weights
 * and parts of speech as facts, from the model's atlas.
 */

import { noticeOf } from '../../api/answers.js';
import { atlasPath } from '../../api/calls.js';
import { tagInWords } from '../../trace/atlas.js';
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
export function asksForAtlas({ model, card }, place, { layer, head, head_space: kind }) {
  const query = { attention: `${place?.stack}.layers.${layer}.${place?.ending}`, head };
  /** @type {Record<string, {atlas: AtlasAsk}>} */
  const asks = {};
  if (place && card?.has_atlas) asks.atlas = { atlas: { model, part: 'head', query } };
  if (place && kind) asks.space = { atlas: { model, part: 'space', query: { ...query, kind } } };
  return asks;
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
        sentence: {
          sides: { rows: place.rows, columns: place.columns },
          rest: { readout: say(rows[0]) },
        },
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
