/**
 * The scene above the drawings: the sentence with the arcs of the opened head, one finding, the switch
 * that takes a part away, and the words that could come next as bars.
 */

import {
  isFilling,
  isLabelling,
  isOfText,
  predictingSide,
  splitsScores,
  tokensOf,
  WHY_THERE,
} from '../trace/attention.js';
import { chance } from '../words/numbers.js';
import { bytesInWords, guessInWords } from '../words/tokens.js';
import { sceneOfVector } from '../rules/moved.js';
import { corpusInWords, cutEdges, isPredicting, partOff } from '../rules/prediction.js';
import { arcsOf, sceneOf } from '../rules/scene.js';
import { arcsOfThread, stepInWords, threadIn, walked } from '../rules/thread.js';
import { choosing, queryOf } from '../state/state.js';
import { button, element, partOf } from './dom.js';
import { Hero } from './hero.js';
import { createRoving } from './roving.js';

/**
 * @import { Look } from './looking.js'
 * @import { Chosen, NextWord } from '../rules/prediction.js'
 * @import { Scene as Told, Spot, Subject } from '../rules/scene.js'
 */

/** @typedef {{onState: (patch: Patch) => void, onChoose: (spot: Spot) => void, announce: (message: string) => void}} By */

/** Outputs of a head that is off, in place of its own. @type {Record<string, {label: string, does: string}>} */
const BASELINES = {
  zero: { label: 'nothing', does: 'it writes nothing' },
  mean: { label: 'let it write its mean', does: 'it writes its mean over the tokens of a corpus' },
  resample: {
    label: 'a drawn value',
    does: 'it writes what it wrote at a token drawn from a corpus',
  },
};

/** Return true where no server computes what only it can. */
const isSite = () => document.body.classList.contains('is-site');

export class Scene {
  /** @type {Map<number, HTMLElement>} */
  #rows = new Map();
  #told = '';
  /** @type {{trace: Trace, state: Chosen, subject: Subject, arcs: Arc[], isOff: boolean}|null} */
  #shown = null;
  #by;

  /** @param {(id: string) => HTMLElement} byId @param {By} by */
  constructor(byId, by) {
    this.#by = by;
    this.hero = new Hero(byId, { onChoose: by.onChoose, onPoint: (spot) => this.#point(spot) });
    this.host = byId('finding');
    this.says = byId('says');
    this.more = byId('says-more');
    this.act = byId('says-act');
    this.bars = byId('next');
    this.label = byId('next-label');
    this.switch = partOf(this.host, '#switch', HTMLButtonElement);
    this.switch.addEventListener('click', () => this.#press());
    createRoving(this.bars);
  }

  /** @param {Trace} trace */
  take(trace) {
    this.#rows.clear();
    this.bars.replaceChildren();
    this.host.classList.add('is-of-before'); // until the finding of this text is there
    this.hero.show(trace);
  }

  /**
   * @param {Trace} trace
   * @param {Chosen} state
   * @param {Look} look
   * @param {{isChosen: boolean, finding: string}} of `isChosen`: the reader chose the head; `finding`: of a view, where nothing is predicted
   */
  show(trace, state, look, { isChosen, finding }) {
    const { position } = look;
    this.host.hidden = position < 0 && finding === '';
    this.host.classList.toggle('has-next', position >= 0);
    if (position < 0) {
      this.#showVector(trace, state, look, finding);
      return;
    }
    const { isSaved } = state;
    const thread = threadIn(state);
    const told = {
      ...sceneOf(trace, state, { position, isChosen, edit: editInWords(state), isSaved }),
      ...(thread && { ...stepInWords(trace, thread, thread.at), part: null }),
    };
    // Until it is known which head decides, the arcs of no other are shown.
    const isOfBefore = this.host.classList.contains('is-of-before');
    const isEarly = isOfBefore && !isChosen && Boolean(state.answers?.next_why?.isWaiting);
    const drawn = isEarly ? [] : arcsOf(trace, told.subject, position);
    const arcs = thread ? arcsOfThread(trace, thread) : drawn;
    this.#say(
      trace,
      state,
      told,
      isSite() || isSaved ? null : whyThere(trace, state, told.subject, arcs[0]),
    );
    this.#drawBars(trace, state, told);
    const [top] = told.next.words;
    const end = tokensOf(trace, predictingSide(trace)).length - 1;
    const isAtEnd =
      (isFilling(trace) && trace.card?.predicts !== 'token_label') ||
      isOfText(trace) ||
      (!trace.target && position === end);
    const inWords = top && bytesInWords(top.text); // stands apart from the text
    this.hero.showNext(
      top && isAtEnd
        ? {
            text: inWords || isOfText(trace) ? ` ${inWords ?? top.text}` : top.text,
            chance: chance(top.probability),
          }
        : null,
      position,
    );
    const { subject } = told;
    const off = partOff(trace, state);
    const isOff = Boolean(off && off.layer === subject.layer && off.head === subject.head);
    this.#shown = { trace, state, subject, arcs, isOff };
    this.hero.showArcs(arcs, isOff);
  }

  /** Return the head that the finding is about. @returns {Partial<Subject>} */
  subject() {
    const { layer = null, where, head = null } = this.#shown?.subject ?? {};
    return layer === null || head === null ? {} : { layer, head, ...(where && { where }) };
  }

  /**
   * Show what moves the vector of the sentence, or only the finding where nothing does.
   * @param {Trace} trace
   * @param {Chosen} state
   * @param {Look} look
   * @param {string} finding
   */
  #showVector(trace, state, look, finding) {
    const told = sceneOfVector(trace, state);
    const { subject = state, part = null, decisive = '', more = '' } = told;
    const none = { words: [], chosen: null, least: [] };
    const next = { ...none, isEdited: false, isWaiting: false, problem: '' };
    const arcs = told.subject ? arcsOf(trace, subject, queryOf(look.state, trace)) : [];
    const said = told.finding ?? finding;
    const all = { finding: said, more, part, decisive, subject, next, rule: '', rival: null };
    this.host.hidden = said === '';
    this.#say(trace, state, all, told.subject ? whyThere(trace, state, subject, arcs[0]) : null);
    const isOff = part?.isOn === false;
    this.#shown = { trace, state, subject, arcs, isOff };
    this.hero.showNext(null, -1);
    this.hero.showArcs(arcs, isOff);
  }

  /** Return true if the finding is about the opened head. @param {Chosen} state */
  isAbout({ layer, head }) {
    const { subject } = this.#shown ?? {};
    return this.says.textContent !== '' && subject?.layer === layer && subject.head === head;
  }

  /** @param {Spot|null} spot */
  #point(spot) {
    if (!this.#shown) return;
    const { trace, subject, isOff } = this.#shown;
    const at = spot && trace.target ? spot.index - 1 : spot?.index;
    const { arcs: shown } = this.#shown;
    const arcs = spot === null ? [] : arcsOf(trace, subject, Math.max(at ?? 0, 0));
    const isOfSpot = arcs.length > 0 && arcs[0].from.side === spot?.side;
    this.hero.showArcs(isOfSpot ? arcs : shown, !isOfSpot && isOff);
  }

  /** Take the part of the finding away, or put everything back. */
  #press() {
    const { id, state } = this.switch.dataset;
    this.#by.onState(state === 'on' ? { off: id ?? '', weight: null } : this.#unedited());
  }

  /** @returns {Patch} */
  #unedited() {
    const hasCuts = this.#shown !== null && cutEdges(this.#shown.state).length > 0;
    return { off: '', weight: null, ...(hasCuts && { circuit_cut: '' }) };
  }

  /** @param {Trace} trace @param {Chosen} state @param {Told} told @param {Patch|null} lookedAt */
  #say(trace, state, { finding, more, part, decisive, next }, lookedAt) {
    const isWaiting = next.isWaiting || Boolean(state.answers?.next_why?.isWaiting);
    this.host.classList.toggle('is-waiting', isWaiting);
    // A finding stays until the next one comes; that of another text is soon hidden.
    if (finding === '' && isWaiting) return;
    if (next.isWaiting && !next.problem) return;
    this.host.classList.remove('is-of-before');
    this.says.textContent = spaced(finding);
    this.more.textContent = spaced(more);
    this.switch.hidden = part === null;
    if (part) {
      Object.assign(this.switch.dataset, { id: part.id, state: part.isOn ? 'on' : 'off' });
      this.switch.ariaChecked = String(part.isOn);
      const [, name] = this.switch.children;
      name.textContent = part.label;
      this.switch.ariaLabel = `${part.label}: switch it ${part.isOn ? 'off' : 'on again'}`;
    }
    this.act.replaceChildren(...this.#doors(trace, state, decisive, lookedAt));
    const message = part && !part.isOn ? `${finding} ${more}` : '';
    if (message && message !== this.#told) this.#by.announce(message);
    this.#told = message;
  }

  /** @param {Trace} trace @param {Chosen} state @param {string} decisive @param {Patch|null} lookedAt */
  #doors(trace, state, decisive, lookedAt) {
    const { onState } = this.#by;
    const steps = [
      { label: '← Step back', patch: walked(state, -1) },
      { label: 'Next step →', patch: walked(state, 1) },
    ].filter(({ patch }) => patch);
    const isSplit = trace.card?.analyses?.includes('attention_thread') && !threadIn(state);
    const off = partOff(trace, state);
    const isEdited = off || editInWords(state) !== '';
    const corpus = corpusInWords(trace.card);
    const [, where, layer, head] = decisive.split(' ');
    return [
      ...steps,
      decisive && {
        label: `The head that decides: ${layer}.${head}`,
        patch: { ...(trace.target && { where }), layer: Number(layer), head: Number(head) },
      },
      isEdited && !off && { label: 'Put it back', patch: this.#unedited() },
      isEdited && { label: 'Try your own sentence', patch: null },
      !isEdited && lookedAt && { label: WHY_THERE, patch: lookedAt },
      !isEdited &&
        isSplit &&
        !isSite() && { label: 'Step by step', patch: { view: 'word', word_show: 'thread' } },
      !isEdited &&
        isPredicting(trace) && {
          label: 'Every reason',
          patch: { view: 'word', word_show: 'parts' },
        },
      ...(off && off.head !== null && isPredicting(trace)
        ? Object.entries(BASELINES)
            .filter(([id]) => id !== (state.off_to ?? 'zero'))
            .filter(([id]) => id === 'zero' || (corpus && !isSite()))
            .map(([id, { label, does }]) => ({
              label: `or ${label}`,
              title: does.replace('a corpus', corpus),
              patch: { off_to: id },
            }))
        : []),
    ]
      .filter((door) => Boolean(door))
      .map((door) => {
        const { label, patch, title } =
          /** @type {{label: string, patch: Patch|null, title?: string}} */ (door);
        return button(label, () => (patch ? onState(patch) : this.#begin()), {
          class: 'door',
          title,
          'data-focus': label,
        });
      });
  }

  /** Begin a sentence of one's own. */
  #begin() {
    this.#by.onState(this.#unedited());
    this.hero.box.focus();
    this.hero.box.select();
  }

  /** @param {Trace} trace @param {Chosen} state @param {Told} told */
  #drawBars(trace, state, { next, rule, rival }) {
    const { words, chosen, least } = next;
    const [against = ''] = rule.match(/^against “⁨.*?⁩”/) ?? [];
    this.label.textContent = [labelOf(trace, state, next), against].filter(Boolean).join(', ');
    this.label.title = spaced(rule);
    const most = Math.max(...words.map(({ probability }) => probability || 0), 1e-9);
    const rows = words.map((word) => {
      const row = this.#rows.get(word.id) ?? this.#newRow(word);
      this.#rows.set(word.id, row);
      const [name, track, number, against] = /** @type {HTMLElement[]} */ ([...row.children]);
      const isChosen = word.id === chosen?.id;
      row.classList.toggle('is-chosen', isChosen);
      row.classList.toggle('is-rival', word.id === rival && !isChosen);
      name.ariaPressed = String(isChosen);
      const share = Number.isNaN(word.probability) ? 0 : word.probability;
      track.style.setProperty('--size', String(share / most));
      track.style.setProperty('--was', String(Math.min(1, (word.before ?? 0) / most || 0)));
      number.textContent = chance(word.probability, least[1]).replaceAll(' %', '\u00a0%');
      against.hidden = isChosen;
      against.ariaPressed = String(word.id === rival);
      return row;
    });
    for (const [id, row] of this.#rows)
      if (!words.some((word) => word.id === id)) {
        row.remove();
        this.#rows.delete(id);
      }
    const isInOrder = rows.every((row, at) => this.bars.children[at] === row);
    if (!isInOrder) this.bars.append(...rows);
  }

  /** @param {NextWord} word */
  #newRow({ id, text }) {
    const { onState } = this.#by;
    const name = guessInWords(text);
    return element(
      'div.bar',
      button(name, () => onState({ token: id, against: null }), {
        class: 'bar-name',
        title: `Explain “${name}”`,
      }),
      element('span.bar-track'),
      element('span.bar-number'),
      button('against', () => onState({ against: id }), {
        class: 'bar-against',
        title: `Compare with “${name}”`,
        'aria-label': `Compare with “${name}”`,
      }),
    );
  }
}

/** @param {string} words */
const spaced = (words) => words.replaceAll(' %', '\u00a0%');

/** @param {Trace} trace @param {Chosen} state @param {Told['next']} next */
function labelOf(trace, { token }, { chosen }) {
  const what = isLabelling(trace) ? 'Label' : isFilling(trace) ? 'The word here' : 'Next word';
  return token !== null && chosen ? `“${guessInWords(chosen.text)}”` : what;
}

/**
 * Return the change that opens what made a head look at its strongest word.
 * @param {Trace} trace
 * @param {Chosen} state
 * @param {Subject} subject
 * @param {Arc|undefined} arc
 * @returns {Patch|null}
 */
function whyThere(trace, { where }, { layer, head }, arc) {
  if (!arc || !splitsScores(trace)) return null;
  const looked = choosing(trace, arc.from.side, arc.from.index);
  return { view: 'there', where, layer, head, ...looked, key: arc.to.index };
}

/** @param {Chosen} state @returns {string} an edit that is no part switched off */
function editInWords(state) {
  const cuts = cutEdges(state);
  const isSet = state.weight !== null && Boolean(state.answers?.next_edited);
  if (isSet) return `With the chosen weight at ${state.weight}`;
  return cuts.length > 0 ? `With ${cuts.join(', ')} cut` : '';
}
