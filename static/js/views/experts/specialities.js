/**
 * The share of the training text that each expert takes, from the model card: by kind of token, and
 * for one expert the tokens that it takes most above its share.
 */

import { cardPath } from '../../api/calls.js';
import { counted, grouped, percent, columnsOf, visible } from '../../data/format.js';
import { css, levelOf, sequential } from '../../plot/colour.js';
import {
  baseLayout,
  downwards,
  labelAxis,
  labelWidth,
  heatmapTrace,
  nested,
  textInCells,
  shortBar,
  amountAxis,
} from '../../plot/figure.js';
import { barTrace } from '../../plot/bars.js';
import { choicesInWords, pathOverlap, tintOf } from './routing.js';

/**
 * @import { ExpertTokens, Matrix, Token, Trace } from '../../data/trace.js'
 * @import { Figure, Frame, Palette } from '../../plot/figure.js'
 * @import { Grid } from '../../plot/grid.js'
 * @import { Scene } from './experts.js'
 * @import { Routing } from './routing.js'
 */

const ROW_HEIGHT = 26;
const WIDEST = 760;
const LETTERING = { size: 12, letters: 20, space: 1 };
const TOKEN = { size: 13, letters: 14, space: 1 };
const ROOM_FOR_NUMBERS = 30;
/** Space behind the longest bar for its number. */
const END = 1.02;

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
  const kinds = kindsOf(trace);
  const columns = ['all tokens', ...kinds.map(kindInWords)];
  const parts = takes.map(({ share, kinds: of }) => [share, ...kinds.map((kind) => of[kind] ?? 0)]);
  return {
    title,
    help: 'The share of each kind of token that goes to each expert, next to its share of all tokens.',
    summary: `Shares of ${counted(columns.length, 'kind')} of token that each of ${takes.length} experts takes of the training text.`,
    ...kindsDrawing(parts, columns, state),
    grid: kindsGrid(trace, scene, parts, columns),
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

/** @param {number[][]} parts @param {string[]} columns @param {Frame} state */
function kindsDrawing(parts, columns, { palette, width }) {
  const total = Math.min(width, WIDEST);
  const top = Math.ceil(labelWidth(columns, LETTERING) * 0.72) + 12;
  const margin = { l: 44, r: Math.ceil(top * 0.75), t: top, b: 36 };
  const across = total - margin.l - margin.r;
  const labels = parts.map((_, expert) => String(expert));
  const matrix = {
    rows: parts.length,
    columns: columns.length,
    data: Float64Array.from(parts.flat()),
  };
  return {
    data: [kindsMap(matrix, palette), ...kindsNumbers(matrix, palette, across / columns.length)],
    layout: {
      ...baseLayout(palette, {
        width: total,
        height: parts.length * ROW_HEIGHT + margin.t + margin.b,
        margin,
      }),
      xaxis: {
        ...labelAxis({ labels: columns, pixels: across, title: '', palette, lettering: LETTERING }),
        side: 'top',
        tickangle: -45,
      },
      yaxis: downwards(
        labelAxis({ labels, pixels: parts.length * ROW_HEIGHT, title: 'expert', palette }),
      ),
      shapes: [
        {
          type: 'line',
          x0: 0.5,
          x1: 0.5,
          xref: 'x',
          y0: 0,
          y1: 1,
          yref: 'paper',
          line: { color: palette.ink, width: 1 },
        },
      ],
    },
  };
}

/** @param {Matrix} matrix @param {Palette} palette */
function kindsMap(matrix, palette) {
  const ticks = { tickvals: [0, 0.5, 1], ticktext: ['0', '50 %', '100 %'] };
  return heatmapTrace(
    nested(matrix),
    { colours: sequential(palette.theme) },
    shortBar(palette, ticks),
  );
}

/** @param {Matrix} matrix @param {Palette} palette @param {number} width */
function kindsNumbers({ columns, data }, palette, width) {
  if (width < ROOM_FOR_NUMBERS) return [];
  const cells = Array.from(data, (part, at) => ({
    x: at % columns,
    y: Math.floor(at / columns),
    text: String(Math.round(part * 100)),
    level: levelOf(part, 1),
  }));
  return [textInCells(cells, sequential(palette.theme))];
}

/**
 * @param {Trace} trace
 * @param {Scene} scene
 * @param {number[][]} parts
 * @param {string[]} columns
 * @returns {Grid}
 */
function kindsGrid(trace, scene, parts, columns) {
  const {
    stage: { layer, routing },
    expert,
    side,
    nameOf,
  } = scene;
  /** @param {number} row */
  const first = (row) =>
    (tokenSharesOf(trace, scene.stack, layer)?.[row].tokens ?? [])
      .slice(0, 5)
      .map(({ text }) => `“${visible(text)}”`)
      .join(' ');
  /** @param {number} column */
  const what = (column) =>
    column === 0 ? 'all tokens' : `the tokens of the kind “${columns[column]}”`;
  return {
    rows: parts.length,
    columns: columns.length,
    sides: { rows: side, columns: side },
    rowTitle: 'expert',
    columnTitle: 'kind of token',
    rowLabels: parts.map((_, row) => `expert ${row}`),
    columnLabels: columns,
    quantity: `share of the training text’s tokens that an expert takes, ${nameOf(layer)}`,
    call: callFor(trace),
    value: (row, column) => parts[row][column],
    format: (part) => percent(part),
    describe: (row, column) =>
      `Expert ${row} takes ${percent(parts[row][column])} of ${what(column)}; most of all ${first(row)} (${nameOf(layer)})`,
    tip: (row, column) => [`expert ${row}, ${columns[column]}`, percent(parts[row][column])],
    tokens: () => ({}),
    tint: (row) => tintOf(routing, row),
    ofToken: ofToken(scene),
    ceiling: 1,
    choose: (row) => ({ experts_expert: row }),
    chooseHint: 'Enter opens the tokens of the expert',
    note: 'Choose an expert to see its tokens.',
    chosen: { row: expert },
    start: { row: expert, column: 0 },
    rest: restOf(scene),
  };
}

/** The call that returns the card with these numbers. @param {Trace} trace */
function callFor({ model }) {
  return { path: cardPath(model) };
}

/** @param {Scene} scene */
function ofToken({ tokens, stage, nameOf }) {
  return (/** @type {number} */ token) => ({
    readout: choicesInWords(tokens, token, stage.routing, nameOf(stage.layer)),
    tint: pathOverlap([stage], token),
  });
}

/** @param {Scene} scene */
function restOf({ tokens, query, stage, nameOf }) {
  return { readout: choicesInWords(tokens, query, stage.routing, nameOf(stage.layer)) };
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
  const found = takes.tokens.map((token) => ({
    ...token,
    name: visible(token.text),
    ...occurrencesOf(scene.tokens, token.text, stage.routing, expert),
  }));
  if (found.length === 0)
    return {
      title,
      notice: `Expert ${expert} takes no token of the training text more often than by chance.`,
    };
  return {
    title,
    help: trace.card?.expert_tokens ? helpFor(trace.card.expert_tokens) : '',
    summary: `The ${found.length} tokens that expert ${expert} of ${nameOf(stage.layer)} takes most above its share.`,
    facts: [['share of all tokens', percent(takes.share)]],
    ...takenDrawing(found, takes.share, state),
    grid: takenGrid(trace, scene, found),
  };
}

/** @param {ExpertTokens} expertTokens */
function helpFor({ text, tokens, least_count: least }) {
  return `The tokens that it takes most above its share, of those that occur ${least} times or more in ${grouped(tokens)} tokens of ${text.join(' and ')}. Green: in this sentence.`;
}

/**
 * @param {ListedToken[]} found
 * @param {number} share
 * @param {Frame} state
 */
function takenDrawing(found, share, { palette, width }) {
  const total = Math.min(width, WIDEST);
  const labels = found.map(({ name }) => name);
  const numbers = found.map(numberOf);
  const margin = {
    l: labelWidth(labels, TOKEN) + 16,
    r: Math.max(...numbers.map(columnsOf)) * 7 + 8,
    t: 4,
    b: 48,
  };
  const height = found.length * ROW_HEIGHT;
  return {
    data: [bars(found, numbers, palette)],
    layout: {
      ...baseLayout(palette, { width: total, height: height + margin.t + margin.b, margin }),
      xaxis: shareAxis(share, palette),
      yaxis: downwards(labelAxis({ labels, pixels: height, title: '', palette, lettering: TOKEN })),
      shapes: [
        {
          type: 'line',
          x0: share,
          x1: share,
          xref: 'x',
          y0: 0,
          y1: 1,
          yref: 'paper',
          line: { color: palette.ink, width: 1, dash: 'dot' },
        },
      ],
    },
  };
}

/**
 * @param {ListedToken[]} found
 * @param {string[]} numbers
 * @param {Palette} palette
 */
function bars(found, numbers, palette) {
  const usual = css(sequential(palette.theme), 128);
  const rows = found.map(({ share, places }, row) => ({
    value: share,
    written: numbers[row],
    colour: places.length > 0 ? palette.key : usual,
  }));
  return { ...barTrace(rows, palette), width: 0.62 };
}

/** @param {ListedToken} of */
function numberOf({ share, count }) {
  return `${percent(share)} of ${grouped(count)}`;
}

/**
 * One tick marks the share that the expert would take by chance.
 * @param {number} share
 * @param {Palette} palette
 */
function shareAxis(share, palette) {
  return {
    range: [0, END],
    tickvals: [share, 1],
    ticktext: [`chance: ${percent(share)}`, '100 %'],
    ...amountAxis('share of its occurrences', palette, 12),
    ticks: '',
    tickangle: 0,
    showgrid: false,
  };
}

/**
 * @param {Trace} trace
 * @param {Scene} scene
 * @param {ListedToken[]} found
 * @returns {Grid}
 */
function takenGrid(trace, scene, found) {
  const { stage, expert, side, nameOf } = scene;
  const { routing } = stage;
  return {
    rows: found.length,
    columns: 1,
    sides: { rows: side, columns: side },
    rowTitle: 'token',
    columnTitle: '',
    rowLabels: found.map(({ name, count }) => `${name} (${count} times)`),
    columnLabels: ['share'],
    quantity: `share of a token’s occurrences that expert ${expert} takes, ${nameOf(stage.layer)}`,
    call: callFor(trace),
    value: (row) => found[row].share,
    format: (part) => percent(part),
    describe: (row) => sentence(found[row], expert, nameOf(stage.layer)),
    tip: (row) => [`“${found[row].name}”`, numberOf(found[row])],
    tokens: (row) => ({ key: found[row].places[0] }),
    tint: (row) =>
      tintOf(routing, expert).map((weight, index) =>
        found[row].places.includes(index) ? weight : 0,
      ),
    ofToken: ofToken(scene),
    ceiling: 1,
    choose: (row) => (found[row].places.length > 0 ? nextOf(scene, found[row].places) : {}),
    chooseHint: 'Enter goes to the token in the sentence',
    note: found.some(({ places }) => places.length > 0)
      ? 'Choose a green bar to go to its token in the sentence.'
      : '',
    start: { row: 0, column: 0 },
    rest: restOf(scene),
  };
}

/**
 * The occurrence after the chosen one, or the first.
 * @param {Scene} scene
 * @param {number[]} places
 */
function nextOf({ query, choose }, places) {
  return choose(places.find((place) => place > query) ?? places[0]);
}

/**
 * @param {ListedToken} of
 * @param {number} expert
 * @param {string} where
 */
function sentence({ name, share, count, places, went }, expert, where) {
  const here =
    places.length === 0
      ? 'it is not in this sentence'
      : `in this sentence ${went} of ${places.length} ${places.length === 1 ? 'does' : 'do'}`;
  return `${percent(share)} of the ${grouped(count)} occurrences of “${name}” in the training text go to expert ${expert}; ${here} (${where})`;
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
 * The kinds of token in the card, in its order.
 * @param {Trace} trace
 * @returns {string[]}
 */
function kindsOf({ card }) {
  return Object.keys(card?.expert_tokens?.kinds ?? {}).filter((kind) => !UNTOLD.includes(kind));
}

/** @param {string} kind @returns {string} `start of word` */
function kindInWords(kind) {
  return kind.replace(/_/g, ' ');
}

/**
 * The occurrences of a token in a text, and how many of them go to an expert.
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
