/**
 * The share of the training text that each expert takes, from the model card: by kind of token, and
 * for one expert the tokens that it takes most above its share.
 */

import { guessInWords } from '../../words/tokens.js';
import { cardPath } from '../../api/calls.js';
import { textsInWords } from '../../trace/card.js';
import { counted } from '../../words/lists.js';
import { grouped, percent } from '../../words/numbers.js';
import { visible } from '../../words/text.js';
import { matrixFrom } from '../../trace/trace.js';
import { chart } from '../../plot/chart.js';
import { css, sequential } from '../../plot/colour.js';
import { bar } from '../../plot/marks/bar.js';
import { cell } from '../../plot/marks/mark.js';
import { ruleAt } from '../../plot/marks/decorations.js';
import { band, linear } from '../../plot/scales.js';
import { choicesInWords, pathOverlap, tintOf } from './routing.js';

/**
 * @import { ExpertTokens } from '../../trace/card.js'
 * @import { Token, Trace } from '../../trace/trace.js'
 * @import { Figure, Frame } from '../../plot/figure.js'
 * @import { Scene } from './experts.js'
 * @import { Routing } from './routing.js'
 */

const ROW_HEIGHT = 26;
const WIDEST = 760;
const KIND = { size: 13, letters: 20, space: 1 };
const TOKEN = { size: 13, letters: 14, space: 1 };

/**
 * @param {Trace} trace with the full card
 * @param {Frame} state
 * @param {Scene} scene
 * @returns {Figure}
 */
export function kindsFigure(trace, state, scene) {
  const { stage, stack, nameOf } = scene;
  const takes = tokenSharesOf(trace, stack, stage.layer);
  const title = `Routing of ${nameOf(stage.layer)} by kind of token`;
  if (!takes) return { title, notice: untold(trace, nameOf(stage.layer)) };
  const kinds = Object.keys(trace.card?.expert_tokens?.kinds ?? {}).filter(
    (kind) => !UNTOLD.includes(kind),
  );
  const columns = ['all tokens', ...kinds.map((kind) => kind.replace(/_/g, ' '))];
  const parts = takes.map(({ share, kinds: of }) => [share, ...kinds.map((kind) => of[kind] ?? 0)]);
  return {
    title,
    help: 'The share of each kind of token that goes to each expert, next to its share of all tokens.',
    summary: `Shares of ${counted(columns.length, 'kind')} of token that each of ${takes.length} experts takes of the training text.`,
    ...kindsChart(trace, scene, { parts, columns }, state),
  };
}

/** @param {Trace} trace @param {string} where */
function untold({ card, model }, where) {
  const way =
    card?.kind === 'decoder'
      ? ` “headlight evaluate ${model} --corpus FILE” counts them over a text and writes them to the card.`
      : '';
  return `The card of ${model} has no figures for the experts of ${where}.${way}`;
}

/**
 * @param {Trace} trace
 * @param {Scene} scene
 * @param {{parts: number[][], columns: string[]}} of
 * @param {Frame} state
 */
function kindsChart(trace, scene, { parts, columns }, state) {
  const { stage, expert, nameOf } = scene;
  const { layer, routing } = stage;
  /** @param {number} row */
  const first = (row) =>
    (tokenSharesOf(trace, scene.stack, layer)?.[row].tokens ?? [])
      .slice(0, 5)
      .map(({ text }) => `“${guessInWords(text)}”`)
      .join(' ');
  /** @param {number} column */
  const what = (column) =>
    column === 0 ? 'all tokens' : `the tokens of the kind “${columns[column]}”`;
  return chart(
    {
      x: band(columns, { ...KIND, side: 'top', isSlanted: true }),
      y: band(
        parts.map((_, row) => String(row)),
        { title: 'expert' },
      ),
      marks: [
        cell(matrixFrom(parts), {
          ramp: {
            title: 'share that goes to the expert',
            domain: [0, 1],
            write: (part) => percent(part, 0),
          },
          text: ({ value }) => String(Math.round(value * 100)),
          format: (part) => percent(part),
          name: ({ row, column }) => `expert ${row}, ${columns[column]}`,
          say: ({ row, column, value }) =>
            `Expert ${row} takes ${percent(value)} of ${what(column)}; most of all ${first(row)} (${nameOf(layer)})`,
          choose: ({ row }) => ({ experts_expert: row }),
        }),
        ruleAt(0.5, { stroke: state.palette.ink, dash: 'solid' }),
      ],
      size: { row: ROW_HEIGHT, widest: WIDEST },
      table: {
        rows: { title: 'expert', labels: parts.map((_, row) => `expert ${row}`) },
        columns: { title: 'kind of token', labels: columns },
        quantity: `share of the training text’s tokens that an expert takes, ${nameOf(layer)}`,
        call: callFor(trace),
      },
      sentence: { ...sentenceOf(scene), tint: (row) => tintOf(routing, row) },
      cursor: {
        chooseHint: 'Enter opens the tokens of the expert',
        note: 'Choose an expert to see its tokens.',
        chosen: { row: expert },
        start: { row: expert, column: 0 },
      },
    },
    state,
  );
}

/** Return the call that returns the card with these numbers. @param {Trace} trace */
function callFor({ model }) {
  return { path: cardPath(model) };
}

/** Return the choices of a token, for the sentence. @param {Scene} scene */
function sentenceOf({ side, tokens, query, stage, nameOf }) {
  /** @param {number} token */
  const readout = (token) => choicesInWords(tokens, token, stage.routing, nameOf(stage.layer));
  return {
    sides: { rows: side, columns: side },
    ofToken: (/** @type {number} */ token) => ({
      readout: readout(token),
      tint: pathOverlap([stage], token),
    }),
    rest: { readout: readout(query) },
    ceiling: 1,
  };
}

/**
 * @param {Trace} trace with the full card
 * @param {Frame} state
 * @param {Scene} scene
 * @returns {Figure}
 */
export function expertFigure(trace, state, scene) {
  const { stage, stack, expert, nameOf } = scene;
  const takes = tokenSharesOf(trace, stack, stage.layer)?.[expert];
  const title = `Expert ${expert} of ${nameOf(stage.layer)}`;
  if (!takes) return { title, notice: untold(trace, nameOf(stage.layer)) };
  const listed = takes.tokens.map((token) => ({
    ...token,
    name: visible(token.text),
    ...occurrencesOf(scene.tokens, token.text, stage.routing, expert),
  }));
  if (listed.length === 0)
    return {
      title,
      notice: `Expert ${expert} takes no token of the training text more often than by chance.`,
    };
  return {
    title,
    help: trace.card?.expert_tokens ? helpFor(trace.card.expert_tokens) : '',
    summary: `The ${listed.length} tokens that expert ${expert} of ${nameOf(stage.layer)} takes most above its share.`,
    facts: [['share of all tokens', percent(takes.share)]],
    ...takenChart(trace, scene, { listed, chance: takes.share }, state),
  };
}

/** @param {ExpertTokens} expertTokens */
function helpFor({ text, tokens, least_count: least }) {
  return `The tokens that it takes most above its share, of those that occur ${least} times or more in ${grouped(tokens)} tokens of ${textsInWords(text)}. Green: in this sentence.`;
}

/**
 * Draw the share that the expert takes; a tick marks the share by chance.
 * @param {Trace} trace
 * @param {Scene} scene
 * @param {{listed: ListedToken[], chance: number}} of
 * @param {Frame} state
 */
function takenChart(trace, scene, { listed, chance }, state) {
  const { stage, expert, nameOf } = scene;
  const { palette } = state;
  const usual = css(sequential(palette.theme), 128);
  return chart(
    {
      x: linear('share of its occurrences', {
        domain: [0, 1.02],
        ticks: [chance, 1],
        write: (share) => (share === 1 ? '100 %' : `chance: ${percent(share)}`),
      }),
      y: band(
        listed.map(({ name }) => name),
        TOKEN,
      ),
      marks: [
        bar(listed, {
          length: ({ share }) => share,
          fill: ({ places }) => (places.length > 0 ? palette.key : usual),
          text: numberOf,
          isPast: true,
          thickness: 0.62,
          format: (part) => percent(part),
          name: ({ name }) => `“${name}”`,
          number: numberOf,
          say: (token) => sentence(token, expert, nameOf(stage.layer)),
          tokens: ({ places }) => ({ key: places[0] }),
          choose: ({ places }) =>
            places.length > 0
              ? scene.choose(places.find((place) => place > scene.query) ?? places[0])
              : {},
        }),
        ruleAt(chance, { stroke: palette.ink }),
      ],
      size: { row: ROW_HEIGHT, widest: WIDEST },
      table: {
        rows: {
          title: 'token',
          labels: listed.map(({ name, count }) => `${name} (${count} times)`),
        },
        columns: { title: '', labels: ['share'] },
        quantity: `share of a token’s occurrences that expert ${expert} takes, ${nameOf(stage.layer)}`,
        call: callFor(trace),
      },
      sentence: {
        ...sentenceOf(scene),
        tint: (row) =>
          tintOf(stage.routing, expert).map((weight, index) =>
            listed[row].places.includes(index) ? weight : 0,
          ),
      },
      cursor: {
        chooseHint: 'Enter goes to the token in the sentence',
        note: listed.some(({ places }) => places.length > 0)
          ? 'Choose a green bar to go to its token in the sentence.'
          : '',
      },
    },
    state,
  );
}

/** @param {ListedToken} of */
function numberOf({ share, count }) {
  return `${percent(share)} of ${grouped(count)}`;
}

/** @param {ListedToken} of @param {number} expert @param {string} where */
function sentence({ text, share, count, places, went }, expert, where) {
  const here =
    places.length === 0
      ? 'it is not in this sentence'
      : `in this sentence ${went} of ${places.length} ${places.length === 1 ? 'does' : 'do'}`;
  return `${percent(share)} of the ${grouped(count)} occurrences of “${guessInWords(text)}” in the training text go to expert ${expert}; ${here} (${where})`;
}

/**
 * @typedef {{text: string, share: number, count: number}} TakenToken of its `count` occurrences, `share` go to the expert
 * @typedef {TakenToken & {name: string, places: number[], went: number}} ListedToken also where it is in the text
 * @typedef {{share: number, kinds: Record<string, number>, tokens: TakenToken[]}} Takes
 */

/** Kinds without meaning to a reader. */
const UNTOLD = ['other'];

/**
 * @param {Trace} trace
 * @param {string} stack
 * @param {number} layer
 * @returns {Takes[]|null} expert by expert; null if the card has none
 */
function tokenSharesOf({ card }, stack, layer) {
  return card?.expert_tokens?.layers?.[`${stack}.layers.${layer}`] ?? null;
}

/**
 * Return the occurrences of a token in a text, and how many of them go to an expert.
 * @param {Token[]} tokens
 * @param {string} text
 * @param {Routing} routing
 * @param {number} expert
 * @returns {{places: number[], went: number}}
 */
function occurrencesOf(tokens, text, routing, expert) {
  const places = tokens.flatMap((token, index) =>
    token.text === text && !token.is_special ? [index] : [],
  );
  return {
    places,
    went: places.filter((index) => routing.weightOf(expert, index) !== undefined).length,
  };
}
