/**
 * The router of one layer: a probability for every expert and token, and its choices.
 */

import { valueIn } from '../../data/trace.js';
import { transposed } from '../../data/arithmetic.js';
import {
  percent,
  share,
  shortShare,
  signed,
  capitalised,
  escapeForPlotly,
  named,
  tokenLabels,
} from '../../data/format.js';
import { css, inkOn, levelOf, sequential } from '../../plot/colour.js';
import {
  baseLayout,
  downwards,
  isNarrow,
  labelAxis,
  labelWidth,
  legendRoom,
  letteringFor,
  heatmapTrace,
  nested,
  routerLegend,
  shortBar,
  paperText,
} from '../../plot/figure.js';
import { transposedGrid } from '../../plot/grid.js';
import {
  dottedLine,
  entropyAxis,
  entropyBars,
  entropyTitle,
  mostEntropyLine,
  STRIP,
} from './routing.js';
import { choicesInWords, pathOverlap, tintOf } from './routing.js';

/**
 * @import { Token, Trace } from '../../data/trace.js'
 * @import { Drawing, Figure, Frame, Palette } from '../../plot/figure.js'
 * @import { Grid } from '../../plot/grid.js'
 * @import { Scene } from './experts.js'
 * @import { Routing, Stage } from './routing.js'
 */

/**
 * @param {Trace} trace
 * @param {Frame & {drawn?: number}} state
 * @param {Scene} scene
 * @returns {Figure}
 */
export function routingFigure(trace, state, scene) {
  const stage = scene.stages.find(({ layer }) => layer === state.drawn) ?? scene.stage;
  const { layer, routing } = stage;
  const grid = gridOf(scene, stage);
  return {
    title: capitalised(scene.nameOf(layer)),
    summary: `Routing of ${scene.nameOf(layer)}: ${routing.probabilities.rows} experts by ${scene.tokens.length} tokens, ${routing.topK} chosen for each.`,
    facts: factsOf(routing),
    ...drawing(scene.tokens, state, routing),
    grid: isNarrow(state.width) ? transposedGrid(grid) : grid,
  };
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

/** @param {Scene} scene @param {Stage} stage @returns {Grid} */
function gridOf({ side, tokens, query, stage: looked, nameOf, choose }, stage) {
  const { layer, routing } = stage;
  const { probabilities, load, entropies, weightOf } = routing;
  const name = nameOf(layer);
  const value = valueIn(probabilities);
  /** @param {number} token @param {Stage} stage */
  const inWords = (token, { layer: at, routing: of }) =>
    `${choicesInWords(tokens, token, of, nameOf(at))}; router entropy ${bits(of.entropies[token])} of at most ${bits(of.mostEntropy)} bits`;
  return {
    rows: probabilities.rows,
    columns: probabilities.columns,
    sides: { rows: side, columns: side },
    rowTitle: 'expert',
    columnTitle: 'token',
    rowLabels: load.map((part, expert) => `${expert} (load ${percent(part)})`),
    columnLabels: tokenLabels(tokens).map(
      (label, token) => `${label} (entropy ${bits(entropies[token])} bits)`,
    ),
    quantity: `router probability, ${name}`,
    request: { capture: [`${routing.stem}*`] },
    value,
    format: (probability) => share(probability, 4),
    describe: (row, column) =>
      sentence(named(tokens, column), row, value(row, column), weightOf(row, column), name),
    tip: (row, column) => [
      `${named(tokens, column)} → expert ${row}`,
      tipNumber(value(row, column), weightOf(row, column)),
    ],
    tokens: (_, column) => ({ query: column }),
    tint: (row) => tintOf(routing, row),
    ofToken: (token) => ({ readout: inWords(token, looked), tint: pathOverlap([looked], token) }),
    choose: (_, column) => ({ ...choose(column), layer }),
    chosen: { column: query },
    start: { row: 0, column: query },
    rest: { readout: inWords(query, looked) },
    ceiling: 1,
    chosenWeight: weightOf,
  };
}

/** @param {number} probability @param {number|undefined} weight */
function tipNumber(probability, weight) {
  return share(probability, 4) + (weight === undefined ? '' : `, chosen: weight ${share(weight)}`);
}

/**
 * @param {string} name
 * @param {number} expert
 * @param {number} probability
 * @param {number|undefined} weight
 * @param {string} where
 */
function sentence(name, expert, probability, weight, where) {
  const verdict = weight === undefined ? 'not chosen' : `chosen, with weight ${share(weight)}`;
  return `The router gives expert ${expert} probability ${share(probability)} for ${name}: ${verdict} (${where})`;
}

const EXPERT_HEIGHT = { few: 24, many: 14 };
const MANY_EXPERTS = 32;
const LOAD = { across: 190, down: 44 };
const GUTTER = { across: 24, down: 8 };
const TOKEN_HEIGHT = { most: 20, least: 4 };
const LONGEST_MAP = 1280;
const ROOM_FOR_NUMBERS = { width: 22, height: 14 };
const ROOM_FOR_OUTLINES = 12;
const ROOM_FOR_PERCENT = { least: 20, withDecimal: 36 };

/** @param {Token[]} tokens @param {Frame} state @param {Routing} routing @returns {Drawing} */
function drawing(tokens, { palette, width }, routing) {
  const labels = tokenLabels(tokens);
  const box = (isNarrow(width) ? downBox : acrossBox)(labels, width, routing.load.length);
  return {
    data: [
      heatmap(routing, palette, box),
      choiceMarks(routing, palette, box),
      loadBars(routing, palette, box),
      loadNumbers(routing, palette, box),
      entropyBars(routing, palette, box),
    ],
    layout: {
      ...baseLayout(palette, box),
      ...axes(labels, routing, palette, box),
      ...entropyAxis(routing, palette, box),
      shapes: [
        evenShare(routing, palette, box),
        ...outlines(routing, palette, box),
        mostEntropyLine(routing, palette, box),
      ],
      annotations: [
        loadTitle(palette, box),
        ...routerLegend(palette, { width, left: box.margin.l, hasNumbers: hasRoomForNumbers(box) }),
        entropyTitle(palette, box),
      ],
    },
  };
}

/**
 * `along` is the share of the map on the side of the token axis; the load has the rest.
 * @param {string[]} labels
 * @param {number} width
 * @param {number} nExperts
 */
function acrossBox(labels, width, nExperts) {
  const lettering = letteringFor(width);
  const margin = {
    l: 44,
    r: 8,
    t: Math.ceil(labelWidth(labels, lettering) * 0.72) + 14,
    b: legendRoom(width),
  };
  const room = width - margin.l - margin.r;
  const along = room - GUTTER.across - LOAD.across;
  const expertHeight = nExperts > MANY_EXPERTS ? EXPERT_HEIGHT.many : EXPERT_HEIGHT.few;
  const height = nExperts * expertHeight + STRIP.gap + STRIP.across;
  return {
    isDown: false,
    lettering,
    margin,
    room,
    along,
    width,
    height: height + margin.t + margin.b,
    strip: [0, STRIP.across / height],
    experts: [(STRIP.across + STRIP.gap) / height, 1],
    loadFrom: (along + GUTTER.across) / room,
    gutter: GUTTER.across,
    cell: { width: along / labels.length, height: expertHeight },
    at: (/** @type {number} */ token, /** @type {number} */ expert) => ({ x: token, y: expert }),
  };
}

/** @param {string[]} labels @param {number} width @param {number} nExperts */
function downBox(labels, width, nExperts) {
  const lettering = letteringFor(width);
  const margin = {
    l: Math.max(labelWidth(labels, lettering) + 14, 40),
    r: 4,
    t: 40,
    b: legendRoom(width),
  };
  const along =
    labels.length *
    Math.max(TOKEN_HEIGHT.least, Math.min(TOKEN_HEIGHT.most, LONGEST_MAP / labels.length));
  const room = along + GUTTER.down + LOAD.down;
  const across = width - margin.l - margin.r;
  const map = across - STRIP.gap - STRIP.down;
  return {
    isDown: true,
    lettering,
    margin,
    room,
    along,
    width,
    height: room + margin.t + margin.b,
    gutter: GUTTER.down,
    strip: [1 - STRIP.down / across, 1],
    experts: [0, map / across],
    cell: { width: map / nExperts, height: along / labels.length },
    at: (/** @type {number} */ token, /** @type {number} */ expert) => ({ x: expert, y: token }),
  };
}

/**
 * @param {string[]} labels
 * @param {Routing} routing
 * @param {Palette} palette
 * @param {ReturnType<typeof downBox>} box
 */
function axes(labels, { load }, palette, box) {
  const experts = load.map((_, expert) => String(expert));
  const mapPart = [0, box.along / box.room];
  const loadPart = [(box.along + box.gutter) / box.room, 1];
  const tokenAxis = labelAxis({
    labels,
    pixels: box.along,
    title: '',
    palette,
    lettering: box.lettering,
  });
  const expertAxis = labelAxis({
    labels: experts,
    pixels: experts.length * (box.isDown ? box.cell.width : box.cell.height),
    title: 'expert',
    palette,
    space: box.isDown ? labelWidth(experts) + 4 : EXPERT_HEIGHT.many,
  });
  if (box.isDown) {
    return {
      xaxis: { ...expertAxis, domain: box.experts, side: 'top', anchor: 'y2' },
      yaxis: downwards({ ...tokenAxis, domain: mapPart }),
      yaxis2: { ...loadAxis(load, palette, box), domain: loadPart, anchor: 'x' },
    };
  }
  return {
    xaxis: { ...tokenAxis, domain: mapPart, side: 'top', tickangle: -45 },
    yaxis: { ...downwards(expertAxis), domain: box.experts },
    xaxis2: { ...loadAxis(load, palette, box), domain: loadPart, anchor: 'y', side: 'bottom' },
  };
}

/**
 * In the wide layout one tick marks the load of a uniform router.
 * @param {number[]} load
 * @param {Palette} palette
 * @param {ReturnType<typeof downBox>} box
 */
function loadAxis(load, palette, box) {
  const even = 1 / load.length;
  return {
    range: [0, loadEnd(load)],
    tickvals: box.isDown ? [] : [even],
    ticktext: [`even: ${percent(even)}`],
    tickfont: { size: 11, color: palette.muted },
    ticks: '',
    showgrid: false,
    zeroline: true,
    zerolinecolor: palette.line,
  };
}

/** The end of the load axis, with room for the number of the longest bar. @param {number[]} load */
function loadEnd(load) {
  return Math.max(...load, 2 / load.length) * 1.5;
}

/** @param {Routing} routing @param {Palette} palette @param {ReturnType<typeof downBox>} box */
function heatmap({ probabilities }, palette, box) {
  return heatmapTrace(
    nested(box.isDown ? transposed(probabilities) : probabilities),
    { colours: sequential(palette.theme) },
    shortBar(palette),
    [box.cell.width >= ROOM_FOR_OUTLINES ? 1 : 0, box.cell.height >= ROOM_FOR_OUTLINES ? 1 : 0],
  );
}

/**
 * The weight in each chosen cell, or a dot if there is no room.
 * @param {Routing} routing
 * @param {Palette} palette
 * @param {ReturnType<typeof downBox>} box
 */
function choiceMarks({ probabilities, choices }, palette, box) {
  const { cell, at } = box;
  const scale = sequential(palette.theme);
  const places = choices.map(({ token, expert }) => at(token, expert));
  const inks = choices.map(({ expert, token }) =>
    inkOn(scale, levelOf(probabilities.data[expert * probabilities.columns + token], 1)),
  );
  return {
    type: 'scatter',
    mode: hasRoomForNumbers(box) ? 'text' : 'markers',
    x: places.map(({ x }) => x),
    y: places.map(({ y }) => y),
    text: choices.map(({ weight }) => escapeForPlotly(shortShare(weight))),
    textfont: { size: cell.width >= 30 ? 11 : 10, color: inks },
    hoverinfo: 'none',
    marker: {
      symbol: 'circle',
      size: Math.max(2, Math.min(5, cell.width - 2, cell.height - 2)),
      color: inks,
      line: { width: 0 },
    },
  };
}

/** @param {ReturnType<typeof downBox>} downBox */
function hasRoomForNumbers({ cell }) {
  return cell.width >= ROOM_FOR_NUMBERS.width && cell.height >= ROOM_FOR_NUMBERS.height;
}

/** @param {Routing} routing @param {Palette} palette @param {ReturnType<typeof downBox>} downBox */
function outlines({ choices }, palette, { cell, at }) {
  if (Math.min(cell.width, cell.height) < ROOM_FOR_OUTLINES) return [];
  return choices.map(({ expert, token }) => {
    const from = at(token - 0.46, expert - 0.44);
    const to = at(token + 0.46, expert + 0.44);
    return {
      type: 'rect',
      x0: from.x,
      x1: to.x,
      y0: from.y,
      y1: to.y,
      line: { color: palette.ink, width: 1.5 },
    };
  });
}

/** The load has its own axis, along the tokens. @param {ReturnType<typeof downBox>} downBox */
function onLoadAxis({ isDown: down }) {
  return down ? { yaxis: 'y2' } : { xaxis: 'x2' };
}

/** @param {Routing} routing @param {Palette} palette @param {ReturnType<typeof downBox>} box */
function loadBars({ load }, palette, box) {
  const places = load.map((part, expert) => box.at(part, expert));
  return {
    type: 'bar',
    orientation: box.isDown ? 'v' : 'h',
    ...onLoadAxis(box),
    x: places.map(({ x }) => x),
    y: places.map(({ y }) => y),
    width: 0.62,
    marker: { color: css(sequential(palette.theme), 128), line: { width: 0 } },
    hoverinfo: 'none',
  };
}

/**
 * The numbers of the load, in a row or column of their own.
 * @param {Routing} routing
 * @param {Palette} palette
 * @param {ReturnType<typeof downBox>} box
 */
function loadNumbers({ load }, palette, box) {
  const places = load.map((_, expert) => box.at(loadEnd(load), expert));
  const room = box.isDown ? box.cell.width : Infinity;
  const digits = room < ROOM_FOR_PERCENT.withDecimal ? 0 : 1;
  return {
    type: 'scatter',
    mode: 'text',
    ...onLoadAxis(box),
    x: places.map(({ x }) => x),
    y: places.map(({ y }) => y),
    text:
      room < ROOM_FOR_PERCENT.least
        ? []
        : load.map((part) => escapeForPlotly(percent(part, digits))),
    textposition: box.isDown ? 'bottom center' : 'middle left',
    textfont: { size: box.isDown ? 10 : 11, color: palette.muted },
    cliponaxis: false,
    hoverinfo: 'none',
  };
}

/** @param {Routing} routing @param {Palette} palette @param {ReturnType<typeof downBox>} downBox */
function evenShare({ load }, palette, { at, isDown: down }) {
  const [from, to] = [-0.5, load.length - 0.5].map((expert) => at(1 / load.length, expert));
  return dottedLine(from, to, down ? ['x', 'y2'] : ['x2', 'y'], palette);
}

/** @param {Palette} palette @param {ReturnType<typeof downBox>} downBox */
function loadTitle(palette, { isDown: down, along, gutter, room }) {
  const start = (along + gutter) / room;
  const place = down
    ? { x: 0, xanchor: 'right', xshift: -6, y: start }
    : { x: start, xanchor: 'left', y: 1, yshift: 4 };
  return paperText('load', palette.muted, { ...place, yanchor: 'bottom' });
}
