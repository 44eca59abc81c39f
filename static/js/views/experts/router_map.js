/**
 * The router of one layer: a probability for every expert and token, and its choices.
 */

import { capitalised } from '../../words/lists.js';
import { percent, share, shortShare, signed } from '../../words/numbers.js';
import { named, tokenLabels } from '../../words/tokens.js';
import { chart } from '../../plot/chart.js';
import { css, sequential } from '../../plot/colour.js';
import { isNarrow, band, linear, tokenBand } from '../../plot/scales.js';
import { bar } from '../../plot/marks/bar.js';
import { cell } from '../../plot/marks/mark.js';
import { rect, ruleAt, text } from '../../plot/marks/decorations.js';
import { choicesInWords, pathOverlap, routeInWords, tintOf } from './routing.js';
import { panes } from '../../plot/panes.js';

/** @import { Scene } from './experts.js' @import { Routing, Stage } from './routing.js' */

const EXPERT_HEIGHT = { few: 24, many: 14 };
const MANY_EXPERTS = 32;
const ROOM_FOR_OUTLINES = 12;

/**
 * @param {Trace} trace
 * @param {Frame & {drawn?: number}} state
 * @param {Scene} scene
 * @returns {Figure}
 */
export function routingFigure(trace, state, scene) {
  const stage = scene.stages.find(({ layer }) => layer === state.drawn) ?? scene.stage;
  const { layer, routing } = stage;
  const { probabilities, load, entropies } = routing;
  const { tokens, side, query, choose, nameOf } = scene;
  const narrow = isNarrow(state.width);
  return {
    title: capitalised(nameOf(layer)),
    summary: `Routing of ${nameOf(layer)}: ${probabilities.rows} experts by ${tokens.length} tokens, ${routing.topK} chosen for each.`,
    facts: factsOf(routing),
    ...chart(
      {
        x: tokenBand(tokens, { side, query, choose }, { side: 'top', isSlanted: true }),
        y: band(
          load.map((_, expert) => String(expert)),
          { title: 'expert', side: 'top', ...(!narrow && { space: EXPERT_HEIGHT.many }) },
        ),
        isSwapped: narrow,
        marks: [mapOf(scene, stage, narrow), outlinesOf(routing)],
        panes: panes([loadPane(routing, state, narrow), entropyPane(routing, state, narrow)]),
        size: narrow ? {} : { row: expertHeight(load.length) },
        table: {
          rows: {
            title: 'expert',
            labels: load.map((part, expert) => `${expert} (load ${percent(part)})`),
          },
          columns: {
            title: 'token',
            labels: tokenLabels(tokens).map(
              (label, token) => `${label} (entropy ${bits(entropies[token])} bits)`,
            ),
          },
          quantity: `router probability, ${nameOf(layer)}`,
          request: { capture: [`${routing.stem}*`] },
        },
        sentence: sentenceOf(scene, routing),
      },
      state,
    ),
  };
}

/** @param {number} count */
function expertHeight(count) {
  return count > MANY_EXPERTS ? EXPERT_HEIGHT.many : EXPERT_HEIGHT.few;
}

/** @param {Routing} routing */
function factsOf({ meanEntropy, mostEntropy, balanceLoss }) {
  return [
    ['mean router entropy', `${bits(meanEntropy)} of at most ${bits(mostEntropy)} bits`],
    ['balance loss', signed(balanceLoss)],
  ];
}

/** @param {number} entropy */
function bits(entropy) {
  return signed(entropy, 2);
}

/**
 * Return the probabilities, with the weight in each chosen cell, or a dot if there is no room.
 * @param {Scene} scene
 * @param {Stage} stage
 * @param {boolean} narrow
 */
function mapOf({ tokens, nameOf, choose }, { layer, routing }, narrow) {
  const { probabilities, weightOf } = routing;
  return cell(probabilities, {
    ramp: {
      title: `router probability; marked: chosen${narrow ? '' : ', with the weight of its answer'}`,
      domain: [0, 1],
    },
    text: ({ row, column }) => {
      const weight = weightOf(row, column);
      return weight === undefined ? '' : shortShare(weight);
    },
    spot: ({ row, column }) => weightOf(row, column) !== undefined,
    format: (probability) => share(probability, 4),
    name: ({ row, column }) => `${named(tokens, column)} → expert ${row}`,
    number({ row, column, value }) {
      const weight = weightOf(row, column);
      return share(value, 4) + (weight === undefined ? '' : `, chosen: weight ${share(weight)}`);
    },
    say: ({ row, column, value }) =>
      `${capitalised(routeInWords(named(tokens, column), row, value, weightOf(row, column)))} (${nameOf(layer)})`,
    choose: ({ column }) => ({ ...choose(column), layer }),
    weight: ({ row, column }) => weightOf(row, column),
  });
}

/** @param {Routing} routing */
function outlinesOf({ choices }) {
  return rect(choices, {
    from: ({ token, expert }) => ({ x: token - 0.46, y: expert - 0.44 }),
    to: ({ token, expert }) => ({ x: token + 0.46, y: expert + 0.44 }),
    width: 1.5,
    least: ROOM_FOR_OUTLINES,
  });
}

/** @param {Scene} scene @param {Routing} routing */
function sentenceOf({ tokens, query, stage, nameOf }, routing) {
  const { layer, routing: of } = stage;
  /** @param {number} token */
  const inWords = (token) =>
    `${choicesInWords(tokens, token, of, nameOf(layer))}; router entropy ${bits(of.entropies[token])} of at most ${bits(of.mostEntropy)} bits`;
  return {
    tint: (/** @type {number} */ expert) => tintOf(routing, expert),
    ofToken: (/** @type {number} */ token) => ({
      readout: inWords(token),
      tint: pathOverlap([stage], token),
    }),
    rest: { readout: inWords(query) },
    ceiling: 1,
  };
}

/**
 * Return the load of each expert; a line marks an even one.
 * @param {Routing} routing
 * @param {Frame} state
 * @param {boolean} narrow
 * @returns {Pane}
 */
function loadPane({ load }, { palette }, narrow) {
  const even = 1 / load.length;
  const end = Math.max(...load, 2 * even) * 1.5; // with room for the number of the longest bar
  return {
    x: linear('', {
      domain: [0, end],
      ticks: narrow ? [] : [even],
      write: () => `even: ${percent(even)}`,
      hasGrid: false,
      hasZero: true,
    }),
    marks: [
      bar(load, { length: (part) => part, fill: barColour(palette), thickness: 0.62 }),
      text(load, {
        x: () => end,
        y: (_, expert) => expert,
        text: (part) => percent(part, narrow ? 0 : 1),
        ink: palette.muted,
        size: 13,
        at: narrow ? 'bottom center' : 'middle left',
        isFit: true,
      }),
      ruleAt(even, { stroke: palette.ink }),
    ],
    pixels: narrow ? 44 : 190,
    gap: narrow ? 8 : 24,
    isAbove: true,
    title: ['load'],
    titleAt: narrow ? 'before' : 'above',
  };
}

/**
 * Return the router’s entropy, token by token; a line marks that of the uniform distribution.
 * @param {Routing} routing
 * @param {Frame} state
 * @param {boolean} narrow
 * @returns {Pane}
 */
function entropyPane({ entropies, mostEntropy }, { palette }, narrow) {
  return {
    y: linear('', {
      domain: [0, mostEntropy],
      ticks: narrow ? [] : [0, mostEntropy],
      write: bits,
      hasGrid: false,
      hasZero: true,
    }),
    marks: [
      bar([...entropies], {
        isUpright: true,
        length: (entropy) => entropy,
        fill: barColour(palette),
        thickness: 0.7,
      }),
      ruleAt(mostEntropy, { of: 'y', stroke: palette.ink }),
    ],
    pixels: narrow ? 40 : 34,
    gap: narrow ? 10 : 16,
    title: [narrow ? 'entropy' : 'router entropy'],
    titleAt: narrow ? 'above' : 'after',
  };
}

/** @param {Palette} palette */
function barColour({ theme }) {
  return css(sequential(theme), 128);
}
