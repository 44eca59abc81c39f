/**
 * Generate: the continuation of the text, and for each generated token its alternatives and its
 * attention row. The tokens come from `ui/generation.js`.
 */

import { modelName } from '../../api/calls.js';
import {
  chosenStep,
  createGeneration,
  isNatural,
  isWritable,
  rowOfStep,
  subjectOf,
  tokensWith,
} from '../../ui/generation.js';
import { guessChart } from '../../plot/bars.js';
import { chart } from '../../plot/chart.js';
import { css, sequential } from '../../plot/colour.js';
import { roundTicks, band, linear } from '../../plot/scales.js';
import { bar } from '../../plot/marks/bar.js';
import { chainSteps } from '../../trace/arithmetic.js';
import { highestIn } from '../../trace/trace.js';
import { counted } from '../../words/lists.js';
import { grouped, percent, share } from '../../words/numbers.js';
import { guessInWords, nameOfGuess, named, tokenLabels } from '../../words/tokens.js';
import { isRating, weightsAt } from '../../trace/attention.js';
import { choosingModel } from '../../state/state.js';
import { asksSampled, chanceInWords, sliders, startFigure, TERMS } from './drawing.js';
import { SEARCH_TERMS, searchControls } from './search.js';
import { control, headControls } from '../../ui/controls.js';

/**
 * @import { Step } from '../../api/generation.js'
 * @import { Guess } from '../../plot/bars.js'
 */

const PATH = '/api/v1/generate';
const WORDS = { event: 'being sampled' };
const ROW_HEIGHT = 180;
const MOST_TICKS = 4;

/** @type {ViewCode} */
export const generate = {
  createOverview: createGeneration,
  help: 'The model continues the text: it samples a token from its prediction, appends it, and samples again. Each token keeps its alternatives and its attention row.',
  terms: { ...TERMS, ...SEARCH_TERMS },
  arrangement: 'many',

  /** A model that does not generate has no terms of sampling. */
  wording(trace) {
    return isWritable(trace) ? {} : { terms: {} };
  },
  asks: (trace, state) =>
    isWritable(trace) && !state.generate_path?.length ? asksSampled('generate', state) : {},

  controls(trace, state) {
    if (!isWritable(trace)) return [];
    const { generate_seed: seed } = state;
    const layers = weightsAt({ stack: 'decoder', ending: 'self_attention' }, trace);
    return [
      ...sliders('generate', state),
      control('integer', 'generate_seed', 'Seed', Math.floor(seed)),
      ...(layers.length > 0 ? headControls(layers, trace, state) : []),
      ...searchControls(trace, state),
    ];
  },

  panels(trace, state) {
    /** @type {Step[]} */
    const steps = state.generation?.steps ?? [];
    if (!isWritable(trace) || steps.length === 0) return [{ id: '', state: {} }];
    return ['choices', 'row'].map((id) => ({ id, state: { generate_part: id } }));
  },

  /** The state has `generation`, what is known of the written tokens. */
  figure(trace, state) {
    if (!isWritable(trace)) return ofAnotherModel(trace, state);
    /** @type {Partial<Writing>} */
    const { steps = [], isReading = false } = state.generation ?? {};
    if (steps.length === 0)
      return state.generate_path?.length > 0
        ? notRead(state, isReading)
        : startFigure(trace, state);
    const chosen = chosenStep(state, steps);
    /** @type {Subject} */
    const subject = {
      trace,
      state,
      step: steps[chosen],
      tokens: tokensWith(trace, steps.slice(0, chosen + 1)),
      path: steps.slice(0, chosen + 1).map(({ id }) => id),
    };
    return PARTS[state.generate_part ?? 'choices'](subject);
  },
};

/**
 * @typedef {Object} Subject a written token, and what came before it
 * @property {Trace} trace
 * @property {ViewState} state
 * @property {Step} step
 * @property {Token[]} tokens up to it
 * @property {number[]} path
 */

/** @type {Record<string, (subject: Subject) => Figure>} */
const PARTS = { choices, row };

/** @param {Trace} trace @param {ViewState} state @returns {Figure} */
function ofAnotherModel(trace, { cards = [] }) {
  const decoders = cards.filter((card) => card.kind === 'decoder' && !isRating({ card }));
  const wayOut =
    decoders.length > 0 ? '. These models can:' : '. This server offers no model that can.';
  return {
    title: 'This model cannot generate text',
    notice: `${modelName(trace.card, trace.model)} cannot continue a text${wayOut}`,
    actions: decoders.map((card) => ({ label: modelName(card), patch: choosingModel(card.id) })),
  };
}

/** @param {Record<string, any>} state @param {boolean} isReading @returns {Figure} */
function notRead({ generate_path: path }, isReading) {
  const notice = isReading
    ? `Replaying ${counted(path.length, 'token')}…`
    : 'The continuation of this text has not been replayed.';
  return { title: 'Next token', notice };
}

/**
 * Return the API call that reproduces this step.
 * @param {Subject} subject
 * @param {Record<string, unknown>} [more]
 * @returns {Call}
 */
function callOf({ trace, state, path }, more = {}) {
  const { model, text, sampling } = subjectOf(trace, state);
  return {
    path: PATH,
    body: {
      model,
      text,
      ...sampling,
      forced: path,
      skip: path.length - 1,
      n_tokens: path.length,
      ...more,
    },
  };
}

/**
 * The candidates: the likeliest tokens, and the generated one wherever it ranks.
 * @param {Subject} subject
 * @returns {Figure}
 */
function choices(subject) {
  const { trace, state, step, tokens } = subject;
  const natural = isNatural(subjectOf(trace, state));
  const bars = candidatesOf(step);
  const written = named(tokens, tokens.length - 1);
  return {
    title: `After ${named(tokens, tokens.length - 2)}`,
    help: natural
      ? 'The alternatives; the chosen token is green.'
      : 'The alternatives; the chosen token is green. The thin line is the model’s own probability, before temperature, top-k, top-p and the repetition penalty.',
    summary: `The ${bars.length} likeliest tokens where ${written} was written.`,
    facts: [...chainFacts(tokens), ...factsOf(step, natural)],
    ...candidateBars(subject, bars, natural),
  };
}

/**
 * Return the finished steps of a calculation, each right or wrong; nothing for other texts.
 * @param {Token[]} tokens
 * @returns {string[][]}
 */
function chainFacts(tokens) {
  const text = tokens.map((token) => (token.is_special ? '' : token.text)).join('');
  return chainSteps(text, tokens[tokens.length - 1].is_special).map(
    ({ text: side, value, expected, isRight }) => [
      `= ${side}`,
      isRight ? '✓ right' : `✗ wrong: ${value ?? 'no sum'}, not ${expected ?? 'known'}`,
    ],
  );
}

/** @typedef {Guess & {id: number, modelProbability: number, rank: number}} Candidate */

/** @param {Step} step @returns {Candidate[]} likeliest first */
function candidatesOf(step) {
  const listed = step.alternatives.map((alternative, index) => ({
    ...alternative,
    rank: index + 1,
  }));
  const all = listed.some(({ id }) => id === step.id) ? listed : [...listed, step];
  return all.map(({ id, text, probability, model_probability: modelProbability, rank }) => ({
    id,
    text,
    name: nameOfGuess(text),
    probability,
    modelProbability,
    rank,
    mark:
      id === step.id ? (rank > listed.length ? `written, rank ${grouped(rank)}` : 'written') : '',
    markInWords: '',
  }));
}

/** @param {Step} step @param {boolean} natural */
function factsOf(
  { probability, model_probability: modelProbability, rank, id, position },
  natural,
) {
  return [
    ['Probability', percent(probability)],
    ...(natural ? [] : [['Model’s own', percent(modelProbability)]]),
    ['Rank', grouped(rank)],
    ['Position', String(position)],
    ['Token id', String(id)],
  ];
}

/** @param {Subject} subject @param {Candidate[]} bars @param {boolean} natural */
function candidateBars(subject, bars, natural) {
  const { trace, state, step, tokens, path } = subject;
  const after = named(tokens, tokens.length - 2);
  const attention = rowOfStep(step, state.layer, state.head);
  /** @param {Candidate} candidate */
  const say = ({ id, text, probability, modelProbability, rank }) => {
    const chance = natural ? percent(probability) : chanceInWords(probability, modelProbability);
    return `After ${after}, “${guessInWords(text)}” has probability ${chance}, rank ${grouped(rank)}${id === step.id ? '; it was written' : ''}`;
  };
  return guessChart(
    natural ? bars.map(({ modelProbability: _, ...candidate }) => candidate) : bars,
    {
      event: WORDS.event,
      query: queryIn(trace, step),
      token: step.position - 1,
      hasOwn: !natural,
      say: (row) => say(bars[row]),
      choose: (row) => ({
        generate_path: [...path.slice(0, -1), bars[row].id],
        generate_step: null,
      }),
      table: {
        quantity: `probability of being token ${step.position}`,
        call: callOf(subject, { n_alternatives: step.alternatives.length }),
      },
      sentence: {
        query: queryIn(trace, step),
        ceiling: 1,
        rest: {
          readout: say(bars.find(({ id }) => id === step.id) ?? bars[0]),
          ...(attention && { tint: attention.slice(0, trace.tokens.length) }),
        },
      },
      cursor: {
        chooseHint: 'Enter puts this token here and drops the tokens after it',
        note: 'Choose a bar to continue from it instead; the tokens after it are dropped.',
      },
    },
    state,
  );
}

/**
 * Return the token of the row, if it is part of the sentence.
 * @param {Trace} trace
 * @param {Step} step
 */
function queryIn({ tokens }, { position }) {
  return position - 1 < tokens.length ? position - 1 : null;
}

/**
 * Return the attention row of the preceding token: one head over all tokens so far.
 * @param {Subject} subject
 * @returns {Figure}
 */
function row(subject) {
  const { state, step, tokens } = subject;
  const { layer, head } = state;
  const before = tokens.slice(0, -1);
  const weights = rowOfStep(step, layer, head);
  const reader = named(before, before.length - 1);
  const title = `Layer ${layer}, head ${head}`;
  if (!weights) return { title, notice: 'This model has no such head.' };
  const labels = tokenLabels(before);
  const end = Math.max(...weights) * 1.05;
  /** @param {number} key */
  const say = (key) =>
    `${reader} attends to ${named(before, key)}, ${share(weights[key])} (layer ${layer}, head ${head})`;
  return {
    title,
    help: `The attention of ${reader} when the next token was sampled; the generated text has the same tint.`,
    summary: `The weights of ${reader} over ${before.length} tokens, layer ${layer}, head ${head}.`,
    ...chart(
      {
        x: band(labels, { isSlanted: true }),
        y: linear('weight', { domain: [0, end], ticks: roundTicks(Math.min(1, end), MOST_TICKS) }),
        marks: [
          bar(
            before.map((_, key) => ({ key, weight: weights[key] })),
            {
              length: ({ weight }) => weight,
              isUpright: true,
              thickness: 0.8,
              fill: css(sequential(state.palette.theme), 128),
              format: (weight) => share(weight, 4),
              name: ({ key }) => named(before, key),
              say: ({ key }) => say(key),
              tokens: ({ key }) => ({ query: before.length - 1, key }),
            },
          ),
        ],
        size: { height: ROW_HEIGHT },
        table: {
          rows: { title: 'query', labels: labels.slice(-1) },
          columns: { title: 'key', labels },
          quantity: `attention weight, layer ${layer}, head ${head}`,
          call: callOf(subject, { layers: [layer], heads: [head], n_alternatives: 0 }),
        },
        sentence: {
          ofRow: () => ({ readout: say(highestIn(weights)), tint: weights }),
          ceiling: 1,
        },
        cursor: { start: { row: 0, column: highestIn(weights) } },
      },
      state,
    ),
  };
}
