/**
 * A chapter next to the page: the text of a step, its question, and the way on. The page stays as
 * usable as without it. Loaded when a chapter is opened, on the page and on that of experiments.
 */

import { asProblem } from '../api/calls.js';
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
import { bringIntoView, light } from './chapter_drawing.js';
import { createQuestion } from './chapter_question.js';
import { button, element, keep, kept } from './dom.js';

/**
 * @import { Chapter, Step, Verdict } from '../rules/chapter.js'
 */

const KEPT = 'headlight.chapters';
const FILE = 'headlight.chapter.file';
const SHOWN = 'headlight.chapter.shown';
const STYLES = '../../css/chapter.css';
/** The tags that the text of a step may have; anything else is written as text. */
const TAGS = ['P', 'UL', 'OL', 'LI', 'EM', 'STRONG', 'CODE', 'PRE', 'BLOCKQUOTE', 'BR', 'H3', 'H4'];

/** @type {ReturnType<typeof createPanel>|null} */
let panel = null;

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
  panel ??= createPanel(announce);
  return panel;
}

/** @param {(message: string) => void} announce */
function createPanel(announce) {
  /** @type {Chapter|null} */
  let chapter = null;
  let at = 0;
  /** The next step is on the other page. */
  let isLeaving = false;
  let controller = new AbortController();
  const root = document.documentElement;
  const aside = element('aside', { class: 'chapter', tabindex: -1, 'aria-label': 'Chapter' });
  // The pages of a site hold them, and their modules have no address that a file lies next to.
  if (!document.body.classList.contains('is-site'))
    document.head.append(
      element('link', { rel: 'stylesheet', href: new URL(STYLES, import.meta.url).href }),
    );
  document.body.append(aside);
  window.addEventListener('popstate', follow);
  window.addEventListener('keydown', onKey);
  document.addEventListener('fullscreenchange', () => {
    const isShown = root.classList.contains('is-chapter-shown');
    if (isShown && !document.fullscreenElement && !isLeaving) present(false);
  });

  /** The browser went back or forward, or the page opened another link. */
  function follow() {
    const place = placeIn(location.hash);
    if (!place) {
      if (chapter) close();
    } else if (place.id !== chapter?.id) open(place.id, place.step, isBare(location.hash));
    else if (place.step !== null && place.step !== at) show(place.step);
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (!root.classList.contains('is-chapter-shown') || event.defaultPrevented) return;
    const { key, target } = event;
    if (target instanceof Element && target.closest('input, select, textarea, .plot')) return;
    const isFree = !(target instanceof Element && target.closest('button, [role]:not(body)'));
    if (key === 'PageDown' || (key === 'ArrowRight' && isFree)) go(at + 1);
    else if (key === 'PageUp' || (key === 'ArrowLeft' && isFree)) go(at - 1);
    else if (key === 'Escape') present(false);
    else return;
    event.preventDefault();
    if (key !== 'Escape' && !isLeaving) enlarge(); // a page that was just opened is not yet
  }

  function enlarge() {
    if (!document.fullscreenElement) root.requestFullscreen?.().catch(() => {}); // or the window
  }

  /**
   * @param {string} id
   * @param {number|null} step null: where the reader left it
   * @param {boolean} opens the step's view, too
   */
  async function open(id, step, opens) {
    fill(element('p', { role: 'status' }, 'Loading the chapter…'));
    try {
      chapter = await (id === DROPPED ? readChapter(fileKept()) : fetchChapter(id));
    } catch (error) {
      chapter = null;
      return fail(error);
    }
    aside.setAttribute('aria-label', `Chapter: ${chapter.title}`);
    present(sessionStorage.getItem(SHOWN) !== null);
    const wanted = step ?? progress().step;
    const place = Math.min(wanted, chapter.steps.length - 1);
    if (opens || step === null) return go(place);
    return show(place);
  }

  function progress() {
    return progressIn(kept(KEPT), chapter?.id ?? '');
  }

  /** @param {ReturnType<typeof progress>} now */
  function keepProgress(now) {
    if (chapter) keep(KEPT, withProgress(kept(KEPT), chapter.id, now));
  }

  /** Open a step's view and show its text. @param {number} step */
  function go(step) {
    if (!chapter || step < 0 || step >= chapter.steps.length) return;
    const link = withPlace(chapter.steps[step].link, chapter.id, step);
    const [path, hash] = link.split('#');
    keepProgress({ ...progress(), step });
    if (new URL(path || '.', location.href).pathname !== location.pathname) {
      isLeaving = true;
      location.assign(link);
      return;
    }
    at = step;
    if (location.hash !== `#${hash}`) location.hash = hash;
    show(step);
  }

  /** @param {number} step */
  function show(step) {
    if (!chapter) return;
    controller.abort();
    controller = new AbortController();
    at = Math.min(step, chapter.steps.length - 1);
    const { steps, title, sources } = chapter;
    const current = steps[at];
    const isAsking = current.question !== null;
    root.classList.toggle('is-asking', isAsking);
    root.classList.toggle('is-hiding', Boolean(current.question?.covered));
    const isLast = at === steps.length - 1;
    const heading = element('h2', { class: 'chapter-step', tabindex: -1 }, current.title);
    fill(
      element(
        'header',
        { class: 'chapter-head' },
        element('p', { class: 'chapter-title' }, title),
        button('–', () => aside.classList.toggle('is-folded'), {
          class: 'icon chapter-fold',
          'aria-label': 'Fold or unfold the chapter',
        }),
        button('×', leave, { class: 'icon', 'aria-label': 'Close the chapter' }),
      ),
      stepsOf(steps),
      heading,
      textOf(current.html),
      ...(current.marks ? [element('p', { class: 'chapter-marks' }, current.marks)] : []),
      ...(current.question ? [questionOf(current)] : []),
      ...(isLast && sources.length > 0 ? [sourcesOf(chapter)] : []),
      element(
        'footer',
        { class: 'chapter-foot' },
        button('‹', () => go(at - 1), { 'aria-label': 'Step before', disabled: at === 0 }),
        button('Back to the step', () => go(at)),
        isLast ? onward() : button('Next step', () => go(at + 1), { class: 'button is-primary' }),
      ),
      element(
        'p',
        { class: 'chapter-more' },
        ...(isLast && !chapter.next ? [] : [button('All chapters', list, { class: 'link' })]),
        button('Present', () => present(!root.classList.contains('is-chapter-shown')), {
          class: 'link',
        }),
        button('Worksheet', print, { class: 'link' }),
      ),
    );
    light(isAsking ? current.highlights.filter(isLine) : current.highlights, controller.signal);
    bringIntoView(current.picture, controller.signal);
    announce(`Step ${at + 1} of ${steps.length}: ${current.title}`);
    heading.focus({ preventScroll: true });
  }

  function onward() {
    const next = chapter?.next;
    return next
      ? button('Next chapter', () => open(next, 0, true), { class: 'button is-primary' })
      : button('All chapters', list, { class: 'button is-primary' });
  }

  /** @param {Step[]} steps */
  function stepsOf(steps) {
    const { right, wrong } = progress();
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

  /** @param {Step} step */
  function questionOf(step) {
    const { signal } = controller;
    const step_at = at;
    const handlers = {
      onShown() {
        if (!root.classList.contains('is-asking')) return;
        root.classList.remove('is-asking', 'is-hiding');
        const cells = step.highlights.filter((each) => !isLine(each));
        light(cells, signal);
        bringIntoView(step.picture, signal);
      },
      /** @param {string} link */
      onThen(link) {
        const [, hash] = withPlace(link, chapter?.id ?? '', step_at).split('#');
        location.hash = hash;
      },
      /** @param {Verdict} verdict */
      onAnswer(verdict) {
        keepProgress(answered(progress(), step_at, verdict.isRight));
        announce(verdict.sentence);
      },
    };
    return createQuestion(step, () => fetchOutcome(step, signal), handlers, signal);
  }

  async function list() {
    fill(element('p', { role: 'status' }, 'Loading the chapters…'));
    try {
      const { chapters, unavailable } = await fetchChapters();
      fill(
        element(
          'header',
          { class: 'chapter-head' },
          element('h2', { tabindex: -1 }, 'Chapters'),
          button('×', leave, { class: 'icon', 'aria-label': 'Close the list' }),
        ),
        element(
          'ol',
          { class: 'chapter-list' },
          ...chapters.map(({ id, title, about, n_steps: steps, n_questions: questions }) => {
            const { right } = progressIn(kept(KEPT), id);
            const so = right.length > 0 ? `, ${right.length} right` : '';
            return element(
              'li',
              {},
              button(title, () => open(id, null, true), { class: 'link' }),
              element('p', {}, about),
              element(
                'p',
                { class: 'chapter-marks' },
                `${steps} steps, ${questions} questions${so}`,
              ),
            );
          }),
        ),
        ...Object.values(unavailable).map((why) => element('p', { class: 'chapter-fault' }, why)),
        element('p', {}, 'A chapter of your own: drop its file on the page.'),
      );
      aside.focus({ preventScroll: true });
    } catch (error) {
      fail(error);
    }
  }

  /** @param {string} text */
  async function file(text) {
    if (text.length > MOST_BYTES) {
      const most = `${MOST_BYTES / 1000} kB`;
      return fail(new Error(`The file is larger than ${most}, the most that a chapter may have.`));
    }
    try {
      sessionStorage.setItem(FILE, text);
    } catch {
      return fail(new Error('This browser keeps nothing for a page, so no file can be opened.'));
    }
    return open(DROPPED, 0, true);
  }

  async function print() {
    if (!chapter) return;
    const { printWorksheet } = await import('./chapter_worksheet.js');
    try {
      await printWorksheet(chapter, textOf);
    } catch (error) {
      fail(error);
    }
  }

  /** @param {boolean} isShown large, for a hall */
  function present(isShown) {
    root.classList.toggle('is-chapter-shown', isShown);
    if (isShown) {
      sessionStorage.setItem(SHOWN, '1');
      enlarge();
      announce('Presenting: arrow keys or Page Down and Page Up turn the steps, Escape leaves');
    } else {
      sessionStorage.removeItem(SHOWN);
      if (document.fullscreenElement) document.exitFullscreen();
    }
  }

  /** @param {unknown} error */
  function fail(error) {
    const { message, detail = '' } = asProblem(error);
    const said = detail && detail !== message ? asSentence(detail) : message;
    fill(
      element(
        'header',
        { class: 'chapter-head' },
        element('h2', {}, 'This chapter cannot be opened'),
      ),
      element('p', { role: 'alert' }, said),
      button('All chapters', list),
      button('Close', leave),
    );
  }

  /** @param {...Node} parts */
  function fill(...parts) {
    root.classList.add('has-chapter');
    aside.hidden = false;
    aside.replaceChildren(...parts);
    aside.scrollTop = 0;
  }

  /** Close the panel, and take the chapter out of the address. */
  function leave() {
    const written = new URLSearchParams(location.hash.replace(/^#/, ''));
    written.delete('chapter');
    written.delete('chapter_step');
    close();
    location.hash = `#${written}`;
  }

  function close() {
    controller.abort();
    chapter = null;
    aside.hidden = true;
    present(false);
    root.classList.remove('has-chapter', 'is-asking', 'is-hiding');
  }

  return { open, list, file };
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
    'section',
    { class: 'chapter-sources' },
    element('h3', {}, 'Sources'),
    element(
      'ul',
      {},
      ...sources.map(({ title, url }) =>
        element('li', {}, element('a', { href: url, rel: 'noopener noreferrer' }, title)),
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
  return element('div', { class: 'chapter-text' }, ...[...parsed.childNodes].map(plain));
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
