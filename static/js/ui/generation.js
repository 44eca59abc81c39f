/**
 * The generated text: the tokens after a text, as data, and as chips that follow the stream. The path of
 * tokens is part of the page's state, so that a link restores it.
 */

import { guessInWords } from '../words/tokens.js';
import { advice, isWorthRetrying } from '../api/calls.js';
import { Writer, streamGeneration } from '../api/generation.js';
import { hasTwoSides, isFilling, isLabelling, isRating } from '../trace/attention.js';
import { counted, asSentence } from '../words/lists.js';
import { grouped, percent } from '../words/numbers.js';
import { sequential } from '../plot/colour.js';
import { readBy } from '../state/conversation.js';
import { button, element } from './dom.js';
import { Chips } from './sentence.js';

/** @import { Step, Subject } from '../api/generation.js' */

/** Return true if this model writes on. @param {Trace} trace */
export function isWritable(trace) {
  return !hasTwoSides(trace) && !isFilling(trace) && !isRating(trace) && !isLabelling(trace);
}

/** @param {Trace} trace @param {ViewState} state @returns {Subject} */
export function subjectOf(trace, state) {
  const { generate_temperature: temperature, generate_top_k: topK, generate_top_p: topP } = state;
  const { generate_penalty: penalty = 1 } = state;
  const sampling = {
    ...samplingOf(temperature, topK, topP),
    ...(penalty > 1 && { repetition_penalty: penalty }),
    seed: Math.floor(state.generate_seed),
  };
  return {
    model: trace.model,
    text: trace.text,
    said: readBy(trace),
    sampling,
    search: searchOf(trace, state),
  };
}

/** Return the reward model that rates the texts of this one. @param {Trace} trace @param {ViewState} state */
export function raterOf({ card }, { cards = [] }) {
  return cards.find((other) => isRating({ card: other }) && other.vocab_size === card?.vocab_size);
}

/**
 * Return the part of a request that says where a text ends, and which of several is written.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Subject['search']}
 */
function searchOf(trace, state) {
  const { generate_stop: stop = '', generate_search: search, generate_width: width } = state;
  const reward = raterOf(trace, state)?.id;
  return {
    ...(stop !== '' && { stop: [stop] }),
    ...(search === 'beams' && { beams: Math.floor(width) }),
    ...(search === 'best' && reward && { best_of: Math.floor(width), reward }),
  };
}

/**
 * Return the sampling part of a request: the server's defaults are left out, except for the
 * temperature.
 * @param {number} temperature
 * @param {number} topK
 * @param {number} topP
 */
export function samplingOf(temperature, topK, topP) {
  return {
    temperature,
    ...(topK > 0 && { top_k: Math.floor(topK) }),
    ...(topP < 1 && { top_p: topP }),
  };
}

/** @param {Pick<Subject, 'sampling'>} subject draws from what the model itself says */
export function isNatural({ sampling }) {
  const { temperature, top_k: topK, top_p: topP, repetition_penalty: penalty } = sampling;
  return temperature === 1 && [topK, topP, penalty].every((setting) => setting === undefined);
}

/**
 * Return the tokens of the text, and those that were written after it.
 * @param {Trace} trace
 * @param {Step[]} steps
 * @returns {Token[]}
 */
export function tokensWith(trace, steps) {
  return [
    ...trace.tokens,
    ...steps.map(({ id, text, is_special }) => ({
      id,
      text,
      is_special,
      start: 0,
      end: 0,
      word: null,
      part: null,
    })),
  ];
}

/**
 * @param {ViewState} state
 * @param {Step[]} steps
 * @returns {number} the chosen step, by default the last; −1 if there is none
 */
export function chosenStep({ generate_step: step }, steps) {
  return step !== null && step < steps.length ? step : steps.length - 1;
}

/**
 * Return the row that predicted a step’s token.
 * @param {Step} step
 * @param {number} layer
 * @param {number} head
 * @returns {Float64Array|null} over all tokens before it; null: the model has no such head
 */
export function rowOfStep({ attention: { layers, heads, data } }, layer, head) {
  const row = data[layers.indexOf(layer)]?.[heads.indexOf(head)];
  return row ? Float64Array.from(row) : null;
}

/**
 * Return the status next to the buttons.
 * @param {Trace} trace
 * @param {Writing} writing
 * @param {string} [stop] where the text ends
 */
function statusOf(trace, { steps, isWriting, isReading, replay, reason, most }, stop = '') {
  if (replay)
    return `Replaying ${counted(replay.of, 'token')}…${replay.read > 0 ? ` ${grouped(replay.read)} so far` : ''}`;
  if (isReading) return 'Reading…';
  if (reason === 'server_stopping') return 'The server is shutting down; the text so far is kept.';
  return (
    whyOver(trace, steps, most, stop) ||
    (isWriting && steps.length === 0 ? 'Writing…' : '') ||
    (steps.length > 0 ? `${counted(steps.length, 'token')} written` : '')
  );
}

/**
 * Return why nothing can come after these steps.
 * @param {Trace} trace
 * @param {Step[]} steps
 * @param {number} most tokens that the server writes
 * @param {string} [stop] where the text ends
 * @returns {string} '' where something can
 */
export function whyOver({ tokens, card }, steps, most, stop = '') {
  if (
    stop !== '' &&
    steps
      .map(({ text }) => text)
      .join('')
      .includes(stop)
  )
    return `End of text: “${stop}” is written.`;
  const last = steps.at(-1);
  if (last?.is_special && last.text === '</s>')
    return 'End of text: the model generated its end token.';
  if (card && tokens.length + steps.length >= card.max_tokens)
    return `End of text: the model reads at most ${counted(card.max_tokens, 'token')}.`;
  if (steps.length >= most)
    return `End of text: this server generates at most ${counted(most, 'token')}.`;
  return '';
}

/**
 * Return the tokens that the page shows the numbers of: while more arrive, those that it last
 * followed.
 * @param {Writing} writing
 * @param {ViewState} state
 */
export function followedSteps({ steps, isWriting }, { generate_path: path }) {
  return isWriting ? steps.slice(0, path.length) : steps;
}

/** Figures, marks and the address follow a run at this pace; the text itself shows every token. */
const FOLLOWING = { least: 500, most: 2000 };
/** Slow drawings are drawn less often, so that most of the time is left for input. */
const TIMES_AS_LONG = 4;
/** @param {number} took milliseconds of the last drawing */
function paceAfter(took) {
  return Math.min(FOLLOWING.most, Math.max(FOLLOWING.least, took * TIMES_AS_LONG));
}

const STOPPED = 'Stopped: the generated text has not been replayed.';

/** @param {Step} step */
function inWords({ text, probability, rank }) {
  return `“${guessInWords(text)}” written, probability ${percent(probability)}, rank ${grouped(rank)}`;
}

/** Return true if there is something to stop; replaying a visible text is not. @param {Writing} writing */
function isBusy({ isWriting, isReading, steps }) {
  return isWriting || (isReading && steps.length === 0);
}

/**
 * Return what was written since a length of the text, in words; '': nothing.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Pick<Writing, 'steps'|'most'>} writing
 * @param {number} length
 */
export function writtenInWords(trace, state, { steps, most }, length) {
  const count = steps.length - length;
  const last = steps.at(-1);
  if (!last || count <= 0) return '';
  const said = count === 1 ? inWords(last) : `${counted(count, 'token')} written`;
  return `${said}. ${whyOver(trace, steps, most, state.generate_stop)}`.trim();
}

/**
 * Build the buttons, the status and the text.
 * @param {Record<'write'|'run'|'back'|'over'|'again', () => void> & {choose: (index: number) => void}} acts
 */
function createParts({ write, run, back, over, again, choose }) {
  /** @param {string} label @param {() => void} act @returns {HTMLButtonElement} */
  const unlessOff = (label, act) => {
    const made = button(label, () => {
      if (made.getAttribute('aria-disabled') !== 'true') act();
    });
    return made;
  };
  const list = element('div.chips.is-prose');
  const handlers = { onChoose: choose, onPress: choose, onPoint: () => {} };
  const buttons = {
    run: unlessOff('Run', run),
    step: unlessOff('Step', write),
    back: unlessOff('Step back', back),
    over: unlessOff('Start over', over),
  };
  const status = element('p.generation-status');
  const problem = element('div.generation-problem', { role: 'alert', hidden: true });
  const block = element(
    'section.generation',
    { 'aria-label': 'Generated text' },
    element('div.generation-buttons', Object.values(buttons), status),
    problem,
    list,
  );
  const chips = new Chips(list, 'The text and its continuation', handlers);
  return { ...buttons, again: unlessOff('Try again', again), status, problem, list, chips, block };
}

/** @typedef {ReturnType<typeof createParts>} Parts */

/**
 * Turn a button on or off; a button that is off keeps the focus.
 * @param {HTMLButtonElement} button
 * @param {boolean} isOn
 */
function turn(button, isOn) {
  button.setAttribute('aria-disabled', String(!isOn));
}

/** @param {Parts} parts @param {Trace} trace @param {ViewState} state @param {Writing} writing */
function draw(parts, trace, state, writing) {
  const { steps, most } = writing;
  const isStoppable = isBusy(writing);
  const ending = whyOver(trace, steps, most, state.generate_stop);
  parts.run.textContent = isStoppable ? 'Stop' : 'Run';
  turn(parts.run, isStoppable || ending === '');
  turn(parts.step, !isStoppable && ending === '');
  for (const way of [parts.back, parts.over])
    turn(way, !isStoppable && state.generate_path.length > 0);
  parts.status.textContent = statusOf(trace, writing, state.generate_stop);
  showProblem(parts, problemIn(writing));
  parts.chips.show(tokensWith(trace, steps), trace.text);
  mark(parts, trace, state, followedSteps(writing, state));
  if (writing.isWriting) parts.list.scrollTop = parts.list.scrollHeight;
}

/**
 * Tint the text by the row that led to the chosen token.
 * @param {Parts} parts
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Step[]} steps
 */
function mark({ list, chips }, { tokens: { length } }, state, steps) {
  const chosen = chosenStep(state, steps);
  list
    .querySelectorAll('.chip')
    .forEach((node, index) => node.classList.toggle('is-written', index >= length));
  chips.choose(chosen < 0 ? null : length + chosen);
  if (chosen < 0) {
    chips.tint(null);
    return;
  }
  const row = rowOfStep(steps[chosen], state.layer, state.head);
  const ceiling = state.range === 'head' && row ? Math.max(...row) : 1;
  chips.mark({ query: length + chosen - 1 });
  chips.tint(row, sequential(state.palette.theme), ceiling);
}

/**
 * Return what went wrong, in words, and whether it can be tried again.
 * @param {Pick<Writing, 'problem'|'isCancelled'>} writing
 */
export function problemIn({ problem, isCancelled }) {
  if (isCancelled) return { message: STOPPED, isForAgain: true };
  if (!problem) return { message: '', isForAgain: false };
  const isForAgain = isWorthRetrying(problem);
  const way = isForAgain ? advice(problem) : 'Start over or change the text.';
  return { message: `${problem.title}. ${asSentence(problem.detail)} ${way}`, isForAgain };
}

/** @param {Parts} parts @param {ReturnType<typeof problemIn>} told */
function showProblem({ problem, again }, { message, isForAgain }) {
  problem.hidden = message === '';
  if (problem.dataset.message === message) return;
  problem.dataset.message = message;
  problem.replaceChildren(
    ...(message ? [element('p', message)] : []),
    ...(isForAgain ? [again] : []),
  );
}

/** @param {Pick<Handlers, 'onState'|'onGoingOn'|'onRedraw'|'announce'>} handlers */
export function createGeneration({ onState, onGoingOn, onRedraw, announce }) {
  /** @type {Trace} */
  let trace;
  /** @type {ViewState} */
  let state;
  let timer = 0;
  let took = 0;
  let asked = 0; // tokens, by a button; 0: the page replays a link
  /** @type {{length: number, isNew: boolean}|null} what is being written: after how many tokens it began */
  let begun = null;
  const writer = new Writer({
    stream: streamGeneration,
    onChange,
    onReplay: () => {
      parts.status.textContent = statusOf(trace, writer.state(), state.generate_stop);
    },
  });
  const parts = createParts({
    write: () => write(1),
    run: () => (isBusy(writer.state()) ? stop() : write(trace.card?.max_tokens ?? 0)),
    back: () => go(state.generate_path.slice(0, -1)),
    over: () => go([]),
    again: () => (asked > 0 ? write(asked) : writer.retry()),
    /** Show the step of a written token; the tokens of the text itself have none. */
    choose(index) {
      const number = index - trace.tokens.length;
      if (number >= 0) onState({ generate_step: number });
    },
  });
  const drawNow = () => draw(parts, trace, state, writer.state());

  /** @param {number} count */
  function write(count) {
    asked = count;
    begun = { length: state.generate_path.length, isNew: true };
    writer.write(count);
    drawNow();
  }

  /** @param {number[]} path */
  function go(path) {
    asked = 0;
    writer.stop();
    onState({ generate_path: path, generate_step: null });
  }

  function stop() {
    writer.cancel();
    if (writer.state().isCancelled) asked = 0;
    finish();
  }

  /**
   * Show every token at once; the rest of the page follows now and then.
   * @param {boolean} isOver
   */
  function onChange(isOver) {
    if (isOver) {
      finish();
      return;
    }
    drawNow();
    if (timer === 0) timer = setTimeout(follow, begun?.isNew ? 0 : paceAfter(took));
  }

  /** Said once, when it is over: a token that is read out while the next one comes is of no use. */
  function finish() {
    if (timer !== 0) follow();
    else onRedraw();
    const words = begun && writtenInWords(trace, state, writer.state(), begun.length);
    begun = null;
    if (words) announce(words);
  }

  /** The first token of a run is a step in the history; what follows belongs to it. */
  function follow() {
    clearTimeout(timer);
    timer = 0;
    const isNew = Boolean(begun?.isNew);
    if (begun) begun.isNew = false;
    const began = performance.now();
    const generate_path = writer.follow();
    if (isNew) onState({ generate_path, generate_step: null });
    else onGoingOn({ generate_path });
    setTimeout(() => {
      took = performance.now() - began;
    });
  }

  return {
    element: parts.block,

    /** @param {Trace} of @param {ViewState} now */
    show(of, now) {
      trace = of;
      state = now;
      parts.block.hidden = !isWritable(trace);
      if (parts.block.hidden) {
        writer.stop();
        return;
      }
      writer.want(subjectOf(trace, state), state.generate_path);
      drawNow();
    },

    state() {
      const writing = writer.state();
      return { generation: { ...writing, steps: followedSteps(writing, state) } };
    },

    /** Leave the view and cancel pending requests. */
    leave() {
      clearTimeout(timer);
      timer = 0;
      begun = null;
      writer.stop();
    },
  };
}
