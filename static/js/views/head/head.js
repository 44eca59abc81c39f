/**
 * One head: what it does over many sentences, from the profile on the model's card, next to its
 * label in this text. Its weights tell the tokens that it writes if it attends to a token (OV
 * circuit), and the tokens that a token looks for (QK circuit). If the model has an atlas, it shows
 * what the head attends to in a corpus.
 */

import { cardPath } from '../../api/calls.js';
import { noticeOf } from '../../api/answers.js';
import {
  ATTENTIONS,
  headInWords,
  labelInWords,
  labelledHeads,
  choosePlace,
  tokensOf,
  heldWeightsAt,
} from '../../trace/attention.js';
import { agrees, rowsDoing } from '../../trace/label_here.js';
import { capitalised, enumerated } from '../../words/lists.js';
import { decimal, percent, share, signed } from '../../words/numbers.js';
import { guessInWords, nameOfGuess, named } from '../../words/tokens.js';
import { countedTexts, feedersOf, textsInWords } from '../../trace/card.js';
import { titleOfScore } from '../../trace/head_measures.js';
import { highestIn, matrixAt, rowOf } from '../../trace/trace.js';
import { signedBars, withSign } from '../../plot/bars.js';
import { chart } from '../../plot/chart.js';
import { css, sequential } from '../../plot/colour.js';
import { isNarrow, band, linear } from '../../plot/scales.js';
import { bar } from '../../plot/marks/bar.js';
import { rule, text } from '../../plot/marks/decorations.js';
import { choosing, NOTHING_CHOSEN, queryOf } from '../../state/state.js';
import { choice, tokenOptions } from '../../ui/controls.js';
import { element } from '../../ui/dom.js';
import { rolesIn } from '../../plot/roles.js';
import { ROLES, rolesFigure } from './roles.js';
import { asksForAtlas, ATLAS, atlasFigure } from './atlas_figures.js';
import { SPACE, spaceFigure, SPACES } from './space.js';

/** @import { Place } from '../../trace/attention.js' */

const ROW_HEIGHT = 26;
const WIDEST = 720;
const LETTERING = { size: 13, letters: 26, space: 1 };
const MARK = 215;
/** Half the height of the line that marks a control, in rows. */
const TICK = 0.31;
const LONGEST_SENTENCE = 60;

const PANELS = ['profile', 'writes', 'seeks'];

/** @type {ViewCode} */
export const head = {
  help: 'The behaviour of this head over many sentences, and the tokens that its weights write and look for.',
  terms: {
    score: 'a mean attention weight, from 0 to 1',
    control:
      'the same mean for uniform attention; for subject and antecedent, the weight on the other noun of the sentence',
    'bits per byte': 'how much the model needs to predict a text; less is better',
    'what it writes':
      'the OV circuit: embedding · W_V · W_O · unembedding, with the norm before the attention applied and the scale of the last norm frozen',
    'what it looks for':
      'the QK circuit: embedding · W_Q · (embedding · W_K)ᵀ, scaled; positions and what earlier layers add are left out, so it holds best in layer 0',
    'fed by':
      'the earlier heads that write what most distinguishes the queries, keys or values of this head, by share; heads drawn at random give less than half of it',
    'shuffled, in a space':
      'the same if each coordinate of the vectors, or the parts of speech, are shuffled over the tokens',
    copying:
      'the sum of the OV circuit’s eigenvalues over that of their sizes: 1 if the head makes likelier what it attends to, −1 if less likely',
  },
  arrangement: 'led',
  ...ATTENTIONS,
  asks: (trace, state) => ({
    card: { card: trace.model },
    ...(trace.card?.analyses.includes(ANALYSIS) ? { circuits: requestOf(state.head) } : {}),
    ...asksForAtlas(trace, choosePlace(state, trace), state),
    ...(rolesIn(trace).length > 0 && {
      roles: { analyses: ['role_shares'], layers: [state.layer] },
    }),
  }),

  controls(trace, state) {
    const place = choosePlace(state, trace);
    if (!place) return [];
    const tokens = tokensOf(trace, place.columns);
    return [
      choice('key', 'Attending to', sourceIn(trace, place, state), tokenOptions(tokens), {
        help: 'The token whose OV circuit is shown',
      }),
      choice('head_space', 'Space of', state.head_space, SPACES, {
        help: 'The head’s vectors over the project’s own sentences, as points',
      }),
    ];
  },
  panels: (trace, state) =>
    [
      ...(state.head_space ? [SPACE] : []),
      ...(rolesIn(trace).length > 0 ? [ROLES] : []),
      ...PANELS,
      ...(trace.card?.has_atlas ? [ATLAS] : []),
    ].map((id) => ({ id, state: { chart: id } })),

  /** Load what is no figure: the search of the corpus, and the measuring of a profile. */
  async loadOverview() {
    const { createAtlas } = await import('./atlas.js');
    const { createProfile } = await import('../../ui/profile.js');
    /** @param {Handlers} handlers @returns {Overview} */
    return (handlers) => {
      const parts = [createProfile(handlers), createAtlas(handlers)];
      return {
        element: element('div', ...parts.map((part) => part.element)),
        show: (trace, state) => parts.forEach((part) => part.show(trace, state)),
        leave: () => parts.forEach((part) => part.leave?.()),
      };
    };
  },

  figure(trace, state) {
    const place = choosePlace(state, trace);
    if (!place) return { title: 'Head', notice: 'This trace holds no attention weights.' };
    if (state.chart === ROLES)
      return rolesFigure(`${place.stack}.layers.${state.layer}.${place.ending}`, state);
    if (state.chart === 'writes' || state.chart === 'seeks')
      return circuitFigure(state.chart, trace, place, state);
    if (state.chart === SPACE) return spaceFigure(trace, place, state);
    if (state.chart === ATLAS) return atlasFigure(trace, place, state);
    const { layer, head: number } = state;
    const title = capitalised(headInWords(trace, place, layer, number));
    const answer = state.answers?.card;
    if (!answer?.trace) return { title, notice: noticeOf(answer), isWaiting: true };
    const profiles = answer.trace.card?.heads ?? null;
    const profile =
      profiles?.attentions[`${place.stack}.layers.${layer}.${place.ending}`]?.[number];
    if (!profiles || !profile) {
      return {
        title,
        notice: `The heads of ${trace.model} have no profile: what each does over many sentences was not measured.`,
      };
    }
    const rows = rowsOf(profile);
    return {
      title,
      summary: `${rows.length} scores of the head over ${countedTexts(profiles)}.`,
      help: helpFor(profile, profiles, heldIn(trace, place, state, profile)),
      facts: factsOf(trace, place, state, profile, profiles),
      ...scoreBars(trace, place, rows, state),
      actions: profile.strongest.map((example) => ({
        label: sentenceInWords(example, profiles),
        patch: {
          ...NOTHING_CHOSEN,
          text: profiles.examples[example.sentence].text,
          target: profiles.examples[example.sentence].target || null,
          view: 'attention',
          where: place.id,
          layer,
          head: number,
          ...choosing(trace, place.rows, example.query),
        },
      })),
    };
  },
};

/** @typedef {{name: string, title: string, score: number, control: number, isLabel: boolean}} Row */

/**
 * @param {HeadProfile} profile
 * @returns {Row[]} the highest score first, `sink` in place of its parts
 */
function rowsOf({ scores, labels }) {
  return Object.entries(scores)
    .map(([name, { score, control }]) => ({
      name,
      title: titleOfScore(name),
      score,
      control,
      isLabel: labels.includes(name),
    }))
    .sort((a, b) => b.score - a.score);
}

/** Return the labels that this text does not disagree with. @param {Trace} trace @param {Place} place @param {ViewState} state @param {HeadProfile} profile */
function heldIn(trace, place, { layer, head: number }, { labels }) {
  const site = `${place.stack}.layers.${layer}.${place.ending}.weights`;
  return labels.filter((id) => agrees(rowsDoing(trace, place, site, number, id)));
}

/** @param {HeadProfile} profile @param {HeadProfiles} profiles @param {string[]} held the labels that are told */
function helpFor({ labels }, profiles, held) {
  const over = `over ${countedTexts(profiles)} of ${textsInWords(profiles.text)}`;
  const named = held.map((name) => `“${titleOfScore(name)}”`);
  if (labels.length > 0 && held.length === 0)
    return `The scores are means ${over}. In this text the head does something else.`;
  return labels.length > 0
    ? `The head is labelled ${enumerated(named)}, with a score of at least 0.25 and twice its control, ${over}.`
    : `No score reaches 0.25 and twice its control, ${over}.`;
}

/**
 * @param {Trace} trace
 * @param {Place} place
 * @param {ViewState} state
 * @param {HeadProfile} profile
 * @param {HeadProfiles} profiles
 * @returns {string[][]}
 */
function factsOf(trace, place, { layer, head: number }, { cost, entropy, distance }, profiles) {
  const here = labelledHeads(trace, place)
    .find((row) => row.layer === layer)
    ?.heads.find((entry) => entry.head === number);
  const label = here ? labelInWords(here) : '';
  const inTexts = countedTexts(profiles, profiles.ablated_in);
  const path = `${place.stack}.layers.${layer}.${place.ending}`;
  const fed = feedersOf({ heads: profiles }, path, number).map(
    ({ name, share: part, side }) => `${name} (${side}, ${percent(part, 0)})`,
  );
  return [
    ...(cost === null || cost === undefined
      ? []
      : [[`Switched off in ${inTexts}`, costInWords(Number(profiles.bits_per_byte), cost)]]),
    ['Entropy', `${decimal(entropy, 2)} bits`],
    ['Distance', `${distance.toFixed(1)} tokens`],
    ...(fed.length > 0 ? [['Fed by', fed.join('; ')]] : []),
    ...(label ? [['In this text', label]] : []),
  ];
}

/** A change of the bits per byte that is slight: a hundredth of them. */
const SLIGHT = 0.01;

/**
 * Return how well the model predicts before and after a head is switched off.
 * @param {number} bits per byte
 * @param {number} cost in bits per byte
 * @returns {string} `1.27 → 1.2695 bits per byte (slightly better)`
 */
function costInWords(bits, cost) {
  /** @param {number} value */
  const written = (value) => String(Number(value.toFixed(4)));
  const [before, after] = [written(bits), written(bits + cost)];
  const verdict = `${Math.abs(cost) < SLIGHT * bits ? 'slightly ' : ''}${cost < 0 ? 'better' : 'worse'}`;
  return `${before} → ${after} bits per byte (${before === after ? 'no change' : verdict})`;
}

/** @param {Trace} trace @param {Place} place @param {Row[]} rows @param {Frame} state */
function scoreBars(trace, place, rows, state) {
  const { palette, width } = state;
  const colours = sequential(palette.theme);
  return chart(
    {
      x: linear('score', { domain: [0, 1], hasGrid: true, hasZero: true }),
      y: band(
        rows.map(({ title }) => title),
        { ...LETTERING, letters: isNarrow(width) ? 18 : LETTERING.letters },
      ),
      marks: [
        bar(rows, {
          length: ({ score }) => score,
          fill: ({ isLabel }) => css(colours, isLabel ? MARK : Math.round(MARK / 3)),
          format: (value) => share(value, 2),
          name: ({ title }) => title,
          say: sentence,
        }),
        rule(
          rows.flatMap(({ control }, row) => (control > 0 ? [{ control, row }] : [])),
          {
            from: ({ control, row }) => ({ x: control, y: row - TICK }),
            to: ({ control, row }) => ({ x: control, y: row + TICK }),
            stroke: palette.ink,
            width: 2,
          },
        ),
        text(rows, {
          x: ({ score, control }) => Math.max(score, control) + 0.01,
          y: (_, row) => row,
          text: ({ score }) => share(score, 2),
          size: 13,
          at: 'middle right',
          room: 36,
        }),
      ],
      size: { widest: WIDEST, row: ROW_HEIGHT },
      table: {
        rows: { title: 'score' },
        columns: { title: '', labels: ['mean'] },
        quantity: 'score of a head over many sentences',
        call: { path: cardPath(trace.model) },
      },
      sentence: {
        sides: { rows: place.rows, columns: place.rows },
        rest: { readout: sentence(rows[0]) },
      },
    },
    state,
  );
}

/** @param {Row} row */
function sentence({ title, score, control }) {
  const ofControl = control > 0 ? `; its control is ${share(control, 2)}` : '';
  return `${capitalised(title)}: ${share(score, 2)}${ofControl}.`;
}

/** @param {HeadProfile['strongest'][number]} example @param {HeadProfiles} profiles */
function sentenceInWords({ sentence: index, weight, query_span: from, key_span: to }, profiles) {
  const { text, target } = profiles.examples[index];
  const of = target || text;
  const short = text.length > LONGEST_SENTENCE ? `${text.slice(0, LONGEST_SENTENCE - 1)}…` : text;
  const [query, key] = [of.slice(...from), text.slice(...to)];
  return `“${query}” looks at “${key}” (${percent(weight, 0)}): ${short}`;
}

const ANALYSIS = 'head_circuits';

/** @typedef {'writes'|'seeks'} Circuit */
/** @typedef {{name: string, word: string, value: number}} Ranked a token of the vocabulary, `word` in a sentence */

/** @type {Record<Circuit, {title: string, arrays: [string, string], unit: string, say: (token: string) => string}>} */
const CIRCUITS = {
  writes: {
    title: 'Tokens it writes',
    arrays: ['written_ids', 'written_logits'],
    unit: 'logits',
    say: (token) => `If it attends to ${token}, the head raises the logits of these tokens most.`,
  },
  seeks: {
    title: 'Tokens it looks for',
    arrays: ['sought_ids', 'sought_scores'],
    unit: 'score',
    say: (token) =>
      `At ${token}, these tokens would get the highest scores, if only their embeddings counted.`,
  },
};

/** @param {number} head */
function requestOf(head) {
  return { capture: [], analyses: [ANALYSIS], heads: [head] };
}

/** Return the reason for which a model has no circuits. @param {Card|undefined} card */
function refusalOf(card) {
  if (!card || card.analyses.includes(ANALYSIS)) return '';
  if (card.norm_place === 'post')
    return 'This model normalises what its parts write, so no head writes to the logits directly.';
  const reason = card.omitted?.head_circuits;
  return reason
    ? `This model has no circuits: ${reason}.`
    : 'This model normalises token and position together, so a token has no embedding of its own.';
}

/**
 * Return the source token: the chosen one, or the one that the chosen row attends to most.
 * @param {Trace} trace
 * @param {Place} place
 * @param {ViewState} state
 */
function sourceIn(trace, place, state) {
  const columns = tokensOf(trace, place.columns);
  if (state.key !== null && state.key < columns.length) return state.key;
  const site = heldWeightsAt(place, trace).find(({ layer }) => layer === state.layer)?.site;
  if (!site) return 0;
  const weights = matrixAt(trace.tensors[site], state.head);
  return highestIn(rowOf(weights, queryOf(state, trace, place.rows)));
}

/**
 * @param {Circuit} which
 * @param {Trace} trace
 * @param {Place} place
 * @param {ViewState} state
 * @returns {Figure}
 */
function circuitFigure(which, trace, place, state) {
  const { title, arrays, unit, say } = CIRCUITS[which];
  const answer = state.answers?.circuits;
  const circuits = answer?.trace?.analyses[ANALYSIS];
  const notice = refusalOf(trace.card) || (circuits ? '' : noticeOf(answer));
  if (notice) return { title, notice, isWaiting: !circuits && !refusalOf(trace.card) };
  const path = `${place.stack}.layers.${state.layer}.${place.ending}`;
  const [ids, values] = arrays.map((name) => circuits[`${path}.${name}`]);
  if (!ids) return { title, notice: `This head has none: ${circuits.omitted[`${path}.written`]}.` };
  const isWriting = which === 'writes';
  const token = isWriting ? sourceIn(trace, place, state) : queryOf(state, trace, place.rows);
  const tokens = tokensOf(trace, isWriting ? place.columns : place.rows);
  const count = ids.shape[2]; // head × token × rank
  /** @type {Ranked[]} */
  const ranked = Array.from({ length: count }, (_, rank) => {
    const text = circuits.token_texts[ids.data[token * count + rank]];
    const value = values.data[token * count + rank];
    return { name: nameOfGuess(text), word: guessInWords(text), value };
  });
  const name = named(tokens, token);
  return {
    title,
    help: say(name),
    summary: `${title} for ${name}: ${ranked.length} tokens of the vocabulary, in ${unit === 'score' ? 'scores before the softmax' : unit}.`,
    ...(isWriting && { facts: [copyingOf(circuits[`${path}.copying`])] }),
    ...circuitBars({ ranked, token, isWriting, name, unit, place, head: state.head }, state),
  };
}

/** @param {NamedArray} copying @returns {string[]} */
function copyingOf({ data }) {
  const score = data[0];
  return ['Copying', `${score < 0 ? '−' : ''}${decimal(Math.abs(score), 2)} of 1`];
}

/**
 * @param {{ranked: Ranked[], token: number, isWriting: boolean, name: string, unit: string, place: Place, head: number}} of
 * @param {Frame} state
 */
function circuitBars({ ranked, token, isWriting, name, unit, place, head }, state) {
  const side = isWriting ? place.columns : place.rows;
  /** @param {Ranked} tokenName */
  const say = ({ word: tokenName, value }) =>
    isWriting
      ? `Attending to ${name}, the head adds ${withSign(value)} to the logit of “${tokenName}”.`
      : `At ${name}, “${tokenName}” would get a score of ${signed(value, 2)}.`;
  return signedBars(
    ranked.map((row) => ({ ...row, label: row.name })),
    {
      title: isWriting ? 'logits' : 'score before the softmax',
      ends: ['', ''],
      say,
      tokens: () => (isWriting ? { key: token } : { query: token }),
      table: {
        columns: { title: '', labels: [unit] },
        quantity: isWriting
          ? `what the head adds to the logits if it attends to ${name}`
          : `score before the softmax that a token would get from ${name}`,
        request: requestOf(head),
      },
      sentence: {
        sides: { rows: side, columns: side },
        query: null,
        rowOf: () => -1,
        rest: { readout: say(ranked[0]) },
      },
    },
    state,
  );
}
