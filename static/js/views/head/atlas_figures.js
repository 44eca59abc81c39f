/**
 * A head over a corpus: its commonest pairs of words, the distances of its weights
 * and the parts of speech, from the model's atlas.
 */

import { noticeOf } from '../../api/answers.js';
import { atlasPath } from '../../api/calls.js';
import { tagInWords } from '../../trace/atlas.js';
import { range } from '../../trace/trace.js';
import { grouped, percent } from '../../words/numbers.js';
import { visible } from '../../words/text.js';
import { chart } from '../../plot/chart.js';
import { css, sequential } from '../../plot/colour.js';
import { bar } from '../../plot/marks/bar.js';
import { isNarrow, band, linear } from '../../plot/scales.js';

/**
 * @import { AtlasAsk, AtlasHead } from '../../trace/atlas.js'
 * @import { Place, Side } from '../../trace/attention.js'
 * @import { Ask, Trace } from '../../trace/trace.js'
 * @import { Figure, Frame, ViewState } from '../../plot/figure.js'
 */

/** @typedef {'pairs'|'distances'|'tags'} AtlasPart */

export const ATLAS_PARTS = /** @type {const} */ (['pairs', 'distances', 'tags']);

const MOST_ROWS = 14;
const ROW_HEIGHT = 24;
const WIDEST = 620;
const SHADE = 215;
const LETTERING = { size: 13, letters: 30, space: 1 };
const FARTHEST = 24;

/** @type {Record<AtlasPart, string>} */
const TITLES = {
  pairs: 'Commonest pairs in the corpus',
  distances: 'Distances in the corpus',
  tags: 'Parts of speech in the corpus',
};

/**
 * Return what is asked of the atlas for a head.
 * @param {Trace} trace
 * @param {Place} place
 * @param {{layer: number, head: number}} state
 * @returns {AtlasAsk}
 */
function askFor({ model }, { stack, ending }, { layer, head }) {
  return { model, part: 'head', query: { attention: `${stack}.layers.${layer}.${ending}`, head } };
}

/**
 * Return the request for a head of the atlas, if the model has one.
 * @param {Trace} trace
 * @param {Place|null} place
 * @param {{layer: number, head: number}} state
 * @returns {Record<string, Ask>}
 */
export function asksForAtlas(trace, place, state) {
  return place && trace.card?.has_atlas ? { atlas: { atlas: askFor(trace, place, state) } } : {};
}

/**
 * @param {AtlasPart} which
 * @param {Trace} trace
 * @param {Place} place
 * @param {ViewState} state
 * @returns {Figure}
 */
export function atlasFigure(which, trace, place, state) {
  const title = TITLES[which];
  const answer = state.answers?.atlas;
  /** @type {AtlasHead|undefined} */
  const head = answer?.trace?.atlas;
  if (!head) return { title, notice: noticeOf(answer), isWaiting: true };
  if (head.edges === 0) return { title, notice: 'The head has no strong weight in the corpus.' };
  const of = {
    edges: head.edges,
    sides: { rows: place.rows, columns: place.columns },
    call: { path: atlasPath(askFor(trace, place, state)) },
  };
  if (which === 'distances') return { title, ...distances(head, of, state) };
  const rows = (which === 'pairs' ? head.pairs : head.tags).slice(0, MOST_ROWS);
  if (rows.length === 0)
    return { title, notice: 'All strong weights of the head are of a token on itself.' };
  const inWords = which === 'pairs' ? visible : tagInWords;
  const bars = rows.map(({ query, key, count }) => ({
    name: `${inWords(query)} → ${inWords(key)}`,
    count,
  }));
  return {
    title,
    help:
      which === 'pairs'
        ? 'How often the head attends from the first word to the second, with a strong weight.'
        : 'How often it attends from the first part of speech to the second; rules tag the words.',
    summary: `${rows.length} pairs, the commonest ${bars[0].name} with ${grouped(bars[0].count)} of ${grouped(head.edges)} weights.`,
    ...countChart(bars, { ...of, column: 'pair' }, state),
  };
}

/** @typedef {{edges: number, sides: {rows: Side, columns: Side}, call: {path: string}}} Counted the weights of the head, and the sentences and the call that its numbers are of */

/** @param {AtlasHead} head @param {Counted} of @param {Frame} state */
function distances({ distances: found, edges }, of, state) {
  const counts = new Map(found.map(({ distance, count }) => [distance, count]));
  const first = Math.min(0, ...counts.keys());
  const last = Math.max(1, ...counts.keys());
  const bars = range(last - first + 1).map((at) => ({
    name: distanceInWords(first + at),
    count: counts.get(first + at) ?? 0,
  }));
  const greatest = bars.reduce((best, row) => (row.count > best.count ? row : best));
  return {
    help: 'How many tokens the key is before the query; a negative distance is after it.',
    summary: `${grouped(edges)} weights by distance; most at ${greatest.name}.`,
    ...countChart(bars, { ...of, column: 'distance' }, state),
  };
}

/** @param {number} distance */
function distanceInWords(distance) {
  if (Math.abs(distance) < FARTHEST) return String(distance).replace('-', '−');
  return distance < 0 ? `≤ −${FARTHEST}` : `≥ ${FARTHEST}`;
}

/**
 * Draw how often something occurs: pairs as rows, distances as columns.
 * @param {{name: string, count: number}[]} rows
 * @param {Counted & {column: 'pair'|'distance'}} of
 * @param {Frame} state
 */
function countChart(rows, { edges, sides, call, column }, state) {
  const { palette, width } = state;
  const isUpright = column === 'distance';
  const names = rows.map(({ name }) => name);
  const count = linear('weights', { hasGrid: true, hasZero: true });
  const label = isUpright
    ? band(names, { size: 13, letters: 6, space: 18 })
    : band(names, { ...LETTERING, letters: isNarrow(width) ? 18 : LETTERING.letters });
  /** @param {{name: string, count: number}} row */
  const say = (row) =>
    `${isUpright ? 'Distance ' : ''}${row.name}: ${grouped(row.count)} weights, ${percent(row.count / edges, 1)} of the head’s.`;
  const weights = { title: '', labels: ['weights'] };
  return chart(
    {
      ...(isUpright ? { x: label, y: count } : { x: count, y: label }),
      marks: [
        bar(rows, {
          length: (row) => row.count,
          fill: css(sequential(palette.theme), SHADE),
          ...(isUpright ? { isUpright } : { text: (row) => grouped(row.count), isPast: true }),
          format: (value) => grouped(value),
          name: ({ name }) => name,
          say,
        }),
      ],
      size: { widest: WIDEST, ...(isUpright ? { height: 200 } : { row: ROW_HEIGHT }) },
      table: {
        ...(isUpright
          ? { rows: weights, columns: { title: column } }
          : { rows: { title: column }, columns: weights }),
        quantity: `strong weights of a head over the corpus${isUpright ? ' by distance' : ''}`,
        call,
      },
      sentence: {
        sides,
        rest: { readout: say(rows.reduce((best, row) => (row.count > best.count ? row : best))) },
      },
    },
    state,
  );
}
