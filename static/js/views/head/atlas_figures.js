/**
 * A head over a corpus: its commonest pairs of words, the distances of its weights
 * and the parts of speech, from the model's atlas.
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

/**
 * @import { AtlasAsk, AtlasHead, AtlasPair } from '../../trace/atlas.js'
 * @import { Place } from '../../trace/attention.js'
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
  const call = { path: atlasPath(askFor(trace, place, state)) };
  if (which === 'distances') return { title, ...distancesOf(head, place, call, state) };
  const rows = (which === 'pairs' ? head.pairs : head.tags).slice(0, MOST_ROWS);
  if (rows.length === 0)
    return { title, notice: 'All strong weights of the head are of a token on itself.' };
  const named = which === 'pairs' ? wordsOf : tagsOf;
  return {
    title,
    help:
      which === 'pairs'
        ? 'How often the head attends from the first word to the second, with a strong weight.'
        : 'How often it attends from the first part of speech to the second; rules tag the words.',
    summary: `${rows.length} pairs, the commonest ${named(rows[0])} with ${grouped(rows[0].count)} of ${grouped(head.edges)} weights.`,
    ...pairBars(rows, { named, total: head.edges, place, call }, state),
  };
}

/** @param {AtlasPair} pair */
function wordsOf({ query, key }) {
  return `${visible(query)} → ${visible(key)}`;
}

/** @param {AtlasPair} pair */
function tagsOf({ query, key }) {
  return `${tagInWords(query)} → ${tagInWords(key)}`;
}

/**
 * @param {AtlasPair[]} rows
 * @param {{named: (pair: AtlasPair) => string, total: number, place: Place, call: {path: string}}} of
 * @param {Frame} state
 */
function pairBars(rows, { named, total, place, call }, state) {
  const { palette, width } = state;
  /** @param {AtlasPair} pair */
  const say = (pair) =>
    `${named(pair)}: ${grouped(pair.count)} weights, ${percent(pair.count / total, 1)} of the head’s.`;
  return chart(
    {
      x: linear('weights', { hasGrid: true, hasZero: true }),
      y: band(rows.map(named), { ...LETTERING, letters: isNarrow(width) ? 18 : LETTERING.letters }),
      marks: [
        bar(rows, {
          length: ({ count }) => count,
          fill: css(sequential(palette.theme), SHADE),
          text: ({ count }) => grouped(count),
          isPast: true,
          format: (value) => grouped(value),
          name: named,
          say,
        }),
      ],
      size: { widest: WIDEST, row: ROW_HEIGHT },
      table: {
        rows: { title: 'pair' },
        columns: { title: '', labels: ['weights'] },
        quantity: 'strong weights of a head over the corpus',
        call,
      },
      sentence: {
        sides: { rows: place.rows, columns: place.columns },
        rest: { readout: say(rows[0]) },
      },
    },
    state,
  );
}

/**
 * @param {AtlasHead} head
 * @param {Place} place
 * @param {{path: string}} call
 * @param {Frame} state
 */
function distancesOf({ distances, edges }, place, call, state) {
  const counts = new Map(distances.map(({ distance, count }) => [distance, count]));
  const [first, last] = [
    Math.min(0, ...distances.map(({ distance }) => distance)),
    Math.max(1, ...distances.map(({ distance }) => distance)),
  ];
  const rows = Array.from({ length: last - first + 1 }, (_, at) => ({
    distance: first + at,
    count: counts.get(first + at) ?? 0,
  }));
  /** @param {{distance: number}} row */
  const label = ({ distance }) => {
    if (Math.abs(distance) < FARTHEST) return String(distance).replace('-', '−');
    return distance < 0 ? `≤ −${FARTHEST}` : `≥ ${FARTHEST}`;
  };
  /** @param {{distance: number, count: number}} row */
  const say = (row) =>
    `Distance ${label(row)}: ${grouped(row.count)} weights, ${percent(row.count / edges, 1)} of the head’s.`;
  const greatest = rows.reduce((best, row) => (row.count > best.count ? row : best));
  return {
    help: 'How many tokens the key is before the query; a negative distance is after it.',
    summary: `${grouped(edges)} weights by distance; most at ${label(greatest)}.`,
    ...chart(
      {
        x: band(rows.map(label), { size: 12, letters: 6, space: 18 }),
        y: linear('weights', { hasGrid: true, hasZero: true }),
        marks: [
          bar(rows, {
            length: ({ count }) => count,
            isUpright: true,
            fill: css(sequential(state.palette.theme), SHADE),
            format: (value) => grouped(value),
            name: label,
            say,
          }),
        ],
        size: { widest: WIDEST, height: 200 },
        table: {
          rows: { title: '', labels: ['weights'] },
          columns: { title: 'distance' },
          quantity: 'strong weights of a head over the corpus by distance',
          call,
        },
        sentence: {
          sides: { rows: place.rows, columns: place.columns },
          rest: { readout: say(greatest) },
        },
      },
      state,
    ),
  };
}
