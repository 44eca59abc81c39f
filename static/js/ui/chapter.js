/**
 * A chapter next to the page: the text of a step, its question, and the way on. The page stays as
 * usable as without it. Loaded when a chapter is opened, on the page and on that of experiments.
 */

import { asProblem } from '../api/calls.js';
import { atRoot } from '../api/root.js';
import { fetchChapter, fetchChapters, fetchOutcome, readChapter } from '../api/chapters.js';
import {
  answered,
  DROPPED,
  isBare,
  MOST_BYTES,
  placeIn,
  progressIn,
  withPlace,
  withProgress,
} from '../rules/chapter.js';
import { asSentence } from '../words/lists.js';
import { createQuestion } from './chapter_question.js';
import { button, element, keep, kept, partOf } from './dom.js';
import { bringIntoView, light } from './drawn_cells.js';
import { createFullScreen } from './full_screen.js';

/** @import { Step } from '../api/schemas' @import { Progress } from '../rules/chapter.js' */

const KEPT = 'headlight.chapters';
const FILE = 'headlight.chapter.file';
const SHOWN = 'headlight.chapter.shown';
const STYLES = '../../css/chapter.css';
/** The tags that the text of a step may have; anything else is written as text. */
const TAGS = ['P', 'UL', 'OL', 'LI', 'EM', 'STRONG', 'CODE', 'PRE', 'BLOCKQUOTE', 'BR', 'H3', 'H4'];

const ANY = '; for any model, about the one that is open';
const root = document.documentElement;
/** @type {ChapterPanel|null} */
let panel = null;
/** Loads what draws steps for paper, which the page knows. @type {() => Promise<typeof import('../on_paper.js')>} */
let loadDrawings = () => Promise.reject(new Error('nothing draws'));

/** @param {typeof loadDrawings} load */
export function drawBy(load) {
  loadDrawings = load;
}

/**
 * Open the chapter that an address names, if it names one.
 * @param {(message: string) => void} announce
 * @param {string} [hash] as the page was opened: it writes more into it while this module is loaded
 */
export function openFromAddress(announce, hash = location.hash) {
  const place = placeIn(hash);
  if (place) panelOf(announce).open(place.id, place.step, isBare(hash));
}

/** Open the list of chapters. @param {(message: string) => void} announce */
export function openList(announce) {
  panelOf(announce).list();
}

/**
 * Open the chapter of a file that was dropped on the page.
 * @param {string} text
 * @param {(message: string) => void} announce
 */
export function openFile(text, announce) {
  panelOf(announce).file(text);
}

/** @param {(message: string) => void} announce */
function panelOf(announce) {
  panel ??= new ChapterPanel(announce);
  return panel;
}

class ChapterPanel {
  /** @param {(message: string) => void} announce */
  constructor(announce) {
    this.announce = announce;
    /** @type {Chapter|null} */
    this.chapter = null;
    this.at = 0;
    /** The next step is on the other page. */
    this.isLeaving = false;
    this.controller = new AbortController();
    this.aside = element('aside.chapter', { tabindex: -1, 'aria-label': 'Chapter' });
    this.screen = createFullScreen('is-chapter-shown', announce, {
      onSlide: (at) => this.go(at),
      onLeave: () => {
        if (!this.isLeaving) sessionStorage.removeItem(SHOWN);
      },
    });
    /** @type {Acts} */
    this.acts = {
      go: (step) => this.go(step),
      open: (id, step) => this.open(id, step, true),
      list: () => this.list(),
      present: () => this.present(),
      print: () => this.print(),
      leave: () => this.leave(),
    };
    // The pages of a site hold them, and their modules have no address that a file lies next to.
    if (!document.body.classList.contains('is-site'))
      document.head.append(
        element('link', { rel: 'stylesheet', href: new URL(STYLES, import.meta.url).href }),
      );
    document.body.append(this.aside);
    window.addEventListener('popstate', () => this.follow());
  }

  /** The browser went back or forward, or the page opened another link. */
  follow() {
    const place = placeIn(location.hash);
    if (!place) {
      if (this.chapter) this.close();
    } else if (place.id !== this.chapter?.id)
      this.open(place.id, place.step, isBare(location.hash));
    else if (place.step !== null && place.step !== this.at) this.show(place.step);
  }

  /**
   * @param {string} id
   * @param {number|null} step null: where the reader left it
   * @param {boolean} opens the step's view, too
   */
  async open(id, step, opens) {
    this.fill(element('p', { role: 'status' }, 'Loading the chapter…'));
    try {
      const model = new URLSearchParams(location.hash.slice(1)).get('model');
      this.chapter = await (id === DROPPED
        ? readChapter(fileKept(), model)
        : fetchChapter(id, model));
    } catch (error) {
      this.chapter = null;
      this.fail(error);
      return;
    }
    this.aside.setAttribute('aria-label', `Chapter: ${this.chapter.title}`);
    const wanted = step ?? this.progress().step;
    const place = Math.min(wanted, this.chapter.steps.length - 1);
    if (opens || step === null) this.go(place);
    else this.show(place);
    if (sessionStorage.getItem(SHOWN) !== null && !this.isLeaving) this.present();
  }

  progress() {
    return progressIn(kept(KEPT), this.chapter?.id ?? '');
  }

  /** @param {Progress} now */
  keepProgress(now) {
    if (this.chapter) keep(KEPT, withProgress(kept(KEPT), this.chapter.id, now));
  }

  /** Open a step's view and show its text. @param {number} step */
  go(step) {
    if (!this.chapter || step < 0 || step >= this.chapter.steps.length) return;
    const link = atRoot(withPlace(this.chapter.steps[step].link, this.chapter.id, step));
    const [path, hash] = link.split('#');
    this.keepProgress({ ...this.progress(), step });
    if (new URL(path || '.', location.href).pathname !== location.pathname) {
      this.isLeaving = true;
      location.assign(link);
      return;
    }
    this.at = step;
    if (location.hash !== `#${hash}`) location.hash = hash;
    this.show(step);
  }

  /** @param {number} step */
  show(step) {
    if (!this.chapter) return;
    this.controller.abort();
    this.controller = new AbortController();
    this.at = Math.min(step, this.chapter.steps.length - 1);
    const { steps } = this.chapter;
    const { title, question, highlights, picture } = steps[this.at];
    root.classList.toggle('is-asking', question !== null);
    root.classList.toggle('is-hiding', Boolean(question?.covered));
    this.fill(
      ...stepParts(
        this.chapter,
        this.at,
        this.progress(),
        question ? this.questionOf(steps[this.at]) : null,
        this.acts,
      ),
    );
    light(question ? highlights.filter(isLine) : highlights, this.controller.signal);
    bringIntoView(picture, this.controller.signal);
    if (this.screen.isShown()) this.screen.show(slidesOf(this.chapter), this.at);
    else this.announce(`Step ${this.at + 1} of ${steps.length}: ${title}`);
    partOf(this.aside, '.chapter-step', HTMLElement).focus({ preventScroll: true });
  }

  /** @param {Step} step */
  questionOf(step) {
    const { signal } = this.controller;
    const asked = this.at;
    return createQuestion(
      step,
      () => fetchOutcome(step, signal),
      {
        onShown: () => {
          if (!root.classList.contains('is-asking')) return;
          const wasHiding = root.classList.contains('is-hiding');
          const place = () =>
            document.querySelector('.view:not([hidden]) .view-body')?.getBoundingClientRect().top ??
            0;
          const before = place();
          root.classList.remove('is-asking', 'is-hiding');
          const cells = step.highlights.filter((each) => !isLine(each));
          light(cells, signal);
          if (wasHiding) bringIntoView(step.picture, signal);
          else window.scrollBy(0, place() - before); // the finding appears above what is looked at
        },
        onThen: (link) => {
          [, location.hash] = withPlace(link, this.chapter?.id ?? '', asked).split('#');
        },
        onAnswer: (verdict) => {
          this.keepProgress(answered(this.progress(), asked, verdict.isRight));
          this.announce(verdict.sentence);
        },
      },
      signal,
    );
  }

  async list() {
    this.fill(element('p', { role: 'status' }, 'Loading the chapters…'));
    try {
      this.fill(...listParts(await fetchChapters(), this.acts));
      this.aside.focus({ preventScroll: true });
    } catch (error) {
      this.fail(error);
    }
  }

  /** @param {string} text */
  async file(text) {
    if (text.length > MOST_BYTES) {
      const most = `${MOST_BYTES / 1000} kB`;
      return this.fail(
        new Error(`The file is larger than ${most}, the most that a chapter may have.`),
      );
    }
    try {
      sessionStorage.setItem(FILE, text);
    } catch {
      return this.fail(
        new Error('This browser keeps nothing for a page, so no file can be opened.'),
      );
    }
    return this.open(DROPPED, 0, true);
  }

  /** Show the worksheet once, however often the button is pressed. */
  async print() {
    const { openWorksheet } = await import('./chapter_worksheet.js');
    if (!this.chapter || document.querySelector('.worksheet-dialog')) return;
    openWorksheet(this.chapter, textOf, async () => (await loadDrawings()).createDrawings());
  }

  /** Show the chapter large, for a hall. */
  present() {
    if (!this.chapter) return;
    sessionStorage.setItem(SHOWN, '1');
    this.screen.show(slidesOf(this.chapter), this.at);
  }

  /** @param {unknown} error */
  fail(error) {
    const { message, detail = '' } = asProblem(error);
    this.fill(
      headOf(element('h2', 'This chapter cannot be opened')),
      element('p', { role: 'alert' }, detail && detail !== message ? asSentence(detail) : message),
      button('All chapters', this.acts.list),
      button('Close', this.acts.leave),
    );
  }

  /** @param {...Node} parts */
  fill(...parts) {
    root.classList.add('has-chapter');
    this.aside.hidden = false;
    this.aside.replaceChildren(...parts);
    this.aside.scrollTop = 0;
  }

  /** Close the panel, and take the chapter out of the address. */
  leave() {
    const written = new URLSearchParams(location.hash.replace(/^#/, ''));
    written.delete('chapter');
    written.delete('chapter_step');
    this.close();
    location.hash = `#${written}`;
  }

  close() {
    this.controller.abort();
    this.chapter = null;
    this.aside.hidden = true;
    this.screen.leave();
    root.classList.remove('has-chapter', 'is-asking', 'is-hiding');
  }
}

/**
 * The acts of a chapter's buttons.
 * @typedef {{go: (step: number) => void, open: (id: string, step: number|null) => void, list: () => void, present: () => void, print: () => void, leave: () => void}} Acts
 */

/** @param {Chapter} chapter */
function slidesOf({ steps }) {
  return steps.map(({ title }) => ({ name: title, covers: [] }));
}

/** @param {...Node} parts */
function headOf(...parts) {
  return element('header.chapter-head', ...parts);
}

/** @param {string} label @param {() => void} onclick */
function textButton(label, onclick) {
  return button(label, onclick, { class: 'link' });
}

/**
 * @param {Chapter} chapter
 * @param {number} at
 * @param {Progress} progress
 * @param {Node|null} question
 * @param {Acts} acts
 * @returns {Node[]}
 */
function stepParts(chapter, at, progress, question, { go, open, list, present, print, leave }) {
  const { title, steps, sources, next } = chapter;
  const { title: heading, html, marks } = steps[at];
  const isLast = at === steps.length - 1;
  const primary = { class: 'button is-primary' };
  const onward = () => {
    if (!isLast) return button('Next step', () => go(at + 1), primary);
    if (next) return button('Next chapter', () => open(next, 0), primary);
    return button('All chapters', list, primary);
  };
  return [
    headOf(
      element('p.chapter-title', title),
      button('–', () => document.querySelector('.chapter')?.classList.toggle('is-folded'), {
        class: 'icon chapter-fold',
        'aria-label': 'Fold or unfold the chapter',
      }),
      button('×', leave, { class: 'icon', 'aria-label': 'Close the chapter' }),
    ),
    stepChoice(steps, at, progress, go),
    element('h2.chapter-step', { tabindex: -1 }, heading),
    textOf(html),
    ...(marks ? [element('p.chapter-marks', marks)] : []),
    ...(question ? [question] : []),
    ...(isLast && sources.length > 0 ? [sourcesOf(chapter)] : []),
    element(
      'footer',
      { class: isLast ? 'chapter-foot is-last' : 'chapter-foot' },
      button('‹', () => go(at - 1), { 'aria-label': 'Step before', disabled: at === 0 }),
      button('Back to the step', () => go(at)),
      onward(),
    ),
    element(
      'p.chapter-more',
      ...(isLast && !next ? [] : [textButton('All chapters', list)]),
      textButton('Present', present),
      textButton('Worksheet', print),
    ),
  ];
}

/** @param {Step[]} steps @param {number} at @param {Progress} progress @param {Acts['go']} go */
function stepChoice(steps, at, { right, wrong }, go) {
  const chosen = element(
    'select',
    { 'aria-label': 'Step', onchange: () => go(Number(chosen.value)) },
    ...steps.map(({ title }, index) => {
      const mark = right.includes(index) ? ' ✓' : wrong.includes(index) ? ' ✗' : '';
      const name = `${index + 1} of ${steps.length} · ${title}${mark}`;
      return element('option', { value: index, selected: index === at }, name);
    }),
  );
  return chosen;
}

/** @param {ChaptersAnswer} list @param {Acts} acts @returns {Node[]} */
function listParts({ chapters, unavailable }, { open, leave }) {
  return [
    headOf(
      element('h2', { tabindex: -1 }, 'Chapters'),
      button('×', leave, { class: 'icon', 'aria-label': 'Close the list' }),
    ),
    element(
      'ol.chapter-list',
      ...chapters.map((listed) => {
        const { id, title, about, n_steps: steps, n_questions: questions } = listed;
        const { right } = progressIn(kept(KEPT), id);
        const so = right.length > 0 ? `, ${right.length} right` : '';
        // A minute to read and look at a step, and another one to answer a question.
        const size = `${steps} steps, ${questions} questions, about ${steps + questions} minutes${so}${listed.is_for_any ? ANY : ''}`;
        return element(
          'li',
          textButton(title, () => open(id, null)),
          element('p', about),
          element('p.chapter-marks', size),
        );
      }),
    ),
    ...Object.values(unavailable).map((why) => element('p.chapter-fault', why)),
    element('p', 'A chapter of your own: drop its file on the page.'),
  ];
}

/** A cell may be what a question asks for, so that it is outlined with the answer. @param {Step['highlights'][number]} of */
function isLine({ query, key }) {
  return query === null || key === null;
}

function fileKept() {
  return sessionStorage.getItem(FILE) ?? '';
}

/** @param {Chapter} chapter */
function sourcesOf({ sources }) {
  return element(
    'section.chapter-sources',
    element('h3', 'Sources'),
    element(
      'ul',
      ...sources.map(({ title, url }) =>
        element('li', element('a', { href: url, rel: 'noopener noreferrer' }, title)),
      ),
    ),
  );
}

/**
 * Build the text of a step out of its HTML, of which only plain tags and links to the web are kept:
 * the file may be a stranger's.
 * @param {string} html
 */
function textOf(html) {
  const parsed = new DOMParser().parseFromString(html, 'text/html').body;
  return element('div.chapter-text', ...[...parsed.childNodes].map(plain));
}

/** @param {Node} node @returns {Node} */
function plain(node) {
  if (!(node instanceof Element)) return document.createTextNode(node.textContent ?? '');
  const children = [...node.childNodes].map(plain);
  const href = node.getAttribute('href') ?? '';
  if (node.tagName === 'A' && /^(https?:|\/|#)/.test(href))
    return element('a', { href, rel: 'noopener noreferrer' }, ...children);
  const tag = TAGS.includes(node.tagName) ? node.tagName.toLowerCase() : 'span';
  return element(/** @type {any} */ (tag), {}, ...children);
}
