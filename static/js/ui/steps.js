/**
 * A slider over the states of a training, with what was measured at each under it: the best “token
 * before”, the best “repeats a phrase”, the gain on a repeated list, and the loss of the first words.
 */

import { decimal, grouped } from '../words/numbers.js';
import { element } from './dom.js';

/** @typedef {Card['steps'][number]} Step */

const NAMES = Object.freeze({ previous: 'token before', induction: 'repeats a phrase' });
const [WIDTH, HEIGHT, EDGE] = [600, 64, 4];
const SVG = 'http://www.w3.org/2000/svg';
/** A rise of the early loss of so many nats is a bump. */
const BUMP = 0.02;
/** The loss of the first states, a third of all, is far above the others and drawn at the edge. */
const FIRST = 1 / 3;

/** @param {number} tokens @returns {string} `2.3 M`, `340 k` or `0` */
function inThousands(tokens) {
  if (tokens >= 1e6) return `${decimal(tokens / 1e6, 1)} M`;
  return tokens >= 1000 ? `${Math.round(tokens / 1000)} k` : grouped(tokens);
}

/** Return when a state was, in words. @param {Step} step */
export function whenOf({ step, tokens }) {
  const isNoted = typeof tokens === 'number' && (tokens > 0 || step === 0);
  return isNoted ? `trained on ${inThousands(tokens)} tokens` : `step ${grouped(step)}`;
}

/**
 * Return the best head of a state by a score.
 * @param {Step} step
 * @param {'previous'|'induction'} name
 * @returns {{layer: number, head: number, score: number}|null} null: it was not measured
 */
export function bestOf(step, name) {
  const all = (step[name] ?? []).flatMap((heads, layer) =>
    heads.map((score, head) => ({ layer, head, score })),
  );
  return all.sort((a, b) => b.score - a.score)[0] ?? null;
}

/** Return true if a head of the state has the label. @param {Step} step @param {string} name */
function has({ head_labels: labels }, name) {
  return Object.values(labels).some((heads) => heads.some((head) => name in head));
}

/**
 * Return the index of the state whose early loss is the most above one before it; -1: never by `BUMP`.
 * @param {Step[]} steps
 */
export function bumpOf(steps) {
  const losses = steps.map(({ early_loss: loss }) => loss ?? Infinity);
  const rises = losses.map((loss, at) => loss - Math.min(...losses.slice(0, at + 1)));
  const most = Math.max(...rises);
  return most >= BUMP ? rises.indexOf(most) : -1;
}

/**
 * Tell when the labels appear, and what a repeated list then gains.
 * @param {Step[]} steps
 * @returns {string} empty if no state was measured
 */
export function story(steps) {
  if (!steps.some(({ previous }) => previous)) return '';
  const told = /** @type {const} */ (['previous', 'induction']).map((name) => {
    const first = steps.find((step) => has(step, name));
    const best = first && bestOf(first, name);
    return first && best
      ? `“${NAMES[name]}” is there from ${inThousands(first.tokens ?? 0)} tokens on, in layer ${best.layer}`
      : `“${NAMES[name]}” never appears`;
  });
  const gain = steps[steps.length - 1].repeat_gain ?? 0;
  return `${told.join('; ')}; at the end a list read twice costs ${decimal(gain, 1)} nats a token less the second time.`;
}

/** @param {string} name @param {Record<string, string|number>} attributes */
function drawn(name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  return node;
}

/** @param {Step[]} steps @param {number} at @returns {SVGElement|null} */
function curvesOf(steps, at) {
  if (!steps.some(({ previous }) => previous)) return null;
  const x = (/** @type {number} */ index) =>
    EDGE + (index / (steps.length - 1)) * (WIDTH - 2 * EDGE);
  const y = (/** @type {number} */ share) => HEIGHT - EDGE - share * (HEIGHT - 2 * EDGE);
  const losses = steps.map(({ early_loss: loss }) => loss ?? NaN);
  const [low, high] = [Math.min(...losses), Math.max(...losses.slice(steps.length * FIRST))];
  const gains = steps.map(({ repeat_gain: gain }) => gain ?? NaN);
  const most = Math.max(...gains, 1);
  const curves = {
    gain: gains.map((gain) => Math.max(0, gain) / most),
    previous: steps.map((step) => bestOf(step, 'previous')?.score ?? 0),
    induction: steps.map((step) => bestOf(step, 'induction')?.score ?? 0),
    loss: losses.map((loss) => Math.min(1, (loss - low) / (high - low || 1))),
  };
  const svg = drawn('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none' });
  svg.setAttribute('aria-hidden', 'true');
  for (const [name, values] of Object.entries(curves)) {
    const points = values.map((value, index) => `${x(index)},${y(value)}`).join(' ');
    svg.append(drawn('polyline', { class: `is-${name}`, points }));
  }
  const bump = bumpOf(steps);
  const dot = `M${x(bump)} ${y(curves.loss[bump])}h0`;
  if (bump >= 0) svg.append(drawn('path', { class: 'is-bump', d: dot }));
  svg.append(drawn('line', { x1: x(at), x2: x(at), y1: 0, y2: HEIGHT }));
  return svg;
}

/** Return what was measured at a state, with the names as the keys of the curves. @param {Step} step @param {boolean} isBump */
function figuresOf(step, isBump) {
  const { early_loss: loss, repeat_gain: gain } = step;
  const scores = /** @type {const} */ (['previous', 'induction']).map((name) => {
    const best = bestOf(step, name);
    return best && element(`span.is-${name}`, `${NAMES[name]} ${decimal(best.score, 2)}`);
  });
  const bump = isBump ? ', the top of its bump' : '';
  return [
    ...scores,
    typeof gain === 'number' &&
      element('span.is-gain', `a list read twice gains ${decimal(gain, 2)} nats`),
    loss && element('span.is-loss', `loss of the first words ${decimal(loss, 2)} nats${bump}`),
  ];
}

/**
 * Show the slider; it keeps its element, and with it the focus.
 * @param {HTMLElement} host
 * @param {Card} whole the card of the model, with its steps
 * @param {string} id of the model that reads, which may be one of the states
 * @param {(id: string) => void} onModel
 */
export function showSteps(host, { id: whole, steps }, id, onModel) {
  const found = steps.findIndex(({ step }) => id === `${whole}@${step}`);
  const at = found < 0 ? steps.length - 1 : found;
  if (host.dataset.of !== whole) {
    const slider = element('input', { type: 'range', min: 0, step: 1, 'aria-label': 'Trained on' });
    host.replaceChildren(
      element('div.steps-row', slider, element('output')),
      element('div.steps-curves'),
      element('p.steps-figures'),
      element('p.steps-story'),
    );
    host.dataset.of = whole;
  }
  const [slider, words, curves, figures, told] = [
    'input',
    'output',
    '.steps-curves',
    '.steps-figures',
    '.steps-story',
  ].map((part) => /** @type {HTMLElement} */ (host.querySelector(part)));
  if (!(slider instanceof HTMLInputElement)) return;
  slider.max = String(steps.length - 1);
  slider.value = String(at);
  slider.oninput = () => {
    const chosen = Number(slider.value);
    onModel(chosen === steps.length - 1 ? whole : `${whole}@${steps[chosen].step}`);
  };
  const when = whenOf(steps[at]);
  words.textContent = when;
  slider.setAttribute('aria-valuetext', when);
  curves.replaceChildren(...[curvesOf(steps, at)].filter((drawing) => drawing !== null));
  figures.replaceChildren(
    ...figuresOf(steps[at], at === bumpOf(steps)).filter((part) => part instanceof Node),
  );
  told.textContent = story(steps);
}
