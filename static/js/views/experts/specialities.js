/**
 * The share of the training text that each expert takes, from the model card, by kind of token, and
 * the tokens that it takes most above its share.
 */

import { guessInWords } from '../../words/tokens.js';
import { cardPath } from '../../api/calls.js';
import { counted } from '../../words/lists.js';
import { percent } from '../../words/numbers.js';
import { matrixFrom } from '../../trace/trace.js';
import { chart } from '../../plot/chart.js';
import { cell } from '../../plot/marks/mark.js';
import { ruleAt } from '../../plot/marks/decorations.js';
import { band } from '../../plot/scales.js';
import { choicesInWords, pathOverlap, tintOf } from './routing.js';

/** @import { ExpertTakesAnswer } from '../../api/schemas' @import { Scene } from './experts.js' */

const ROW_HEIGHT = 26;
const WIDEST = 760;
const KIND = { size: 13, letters: 20, space: 1 };

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
  const { stage, nameOf } = scene;
  const { layer, routing } = stage;
  /** @param {number} row */
  const first = (row) =>
    (tokenSharesOf(trace, scene.stack, layer)?.[row].tokens ?? [])
      .slice(0, 8)
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
        }),
        ruleAt(0.5, { stroke: state.palette.ink, dash: 'solid' }),
      ],
      size: { row: ROW_HEIGHT, widest: WIDEST },
      table: {
        rows: { title: 'expert', labels: parts.map((_, row) => `expert ${row}`) },
        columns: { title: 'kind of token', labels: columns },
        quantity: `share of the training text’s tokens that an expert takes, ${nameOf(layer)}`,
        call: { path: cardPath(trace.model) },
      },
      sentence: { ...sentenceOf(scene), tint: (row) => tintOf(routing, row) },
      cursor: { note: 'Point at an expert to read the tokens that it takes most of all.' },
    },
    state,
  );
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

/** Kinds without meaning to a reader. */
const UNTOLD = ['other'];

/**
 * @param {Trace} trace
 * @param {string} stack
 * @param {number} layer
 * @returns {ExpertTakesAnswer[]|null} expert by expert; null if the card has none
 */
function tokenSharesOf({ card }, stack, layer) {
  return card?.expert_tokens?.layers?.[`${stack}.layers.${layer}`] ?? null;
}
