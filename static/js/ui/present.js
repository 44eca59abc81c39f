/**
 * Presenting: a queue of views that is edited in a dialog, and the views one by one on the whole
 * screen. Loaded when it is first asked for.
 */

import {
  back,
  moved,
  onward,
  openingIn,
  read,
  toggledCover,
  written,
} from '../rules/presentation.js';
import { button, element, save } from './dom.js';
import { CELLS } from './plot.js';
import { createCovers, plots, plotOf, coverOf } from './covers.js';
import { asChapter, QUESTIONS } from '../rules/chapter.js';
import * as storage from './dom.js';

/**
 * @import { Cover, Place, Slide } from '../rules/presentation.js'
 */

const KEPT = 'headlight.presentation';
const FILE = 'headlight-presentation.json';
const CHAPTER_FILE = 'my-chapter.md';
const NARROW = '(max-width: 40rem)';

/** @param {(message: string) => void} announce */
export function createPresentation(announce) {
  let slides = kept();
  const list = element('ol', { class: 'queue-list' });
  const said = element('p', { class: 'queue-said', role: 'status' });
  const file = element('input', {
    type: 'file',
    accept: '.json,application/json',
    class: 'unseen',
    tabindex: -1,
    'aria-hidden': 'true',
    onchange: importFile,
  });
  const start = button('Start', () => present(0), { class: 'button is-primary' });
  const exported = button('Export', () => {
    tell(save(new Blob([written(slides)], { type: 'application/json' }), FILE));
  });
  const asFile = button('Export as a chapter', () => {
    const file = new Blob([asChapter('A chapter', slides)], { type: 'text/markdown' });
    tell(`${save(file, CHAPTER_FILE)}. \`headlight chapter check\` opens its steps.`);
  });
  const dialog = element(
    'dialog',
    { class: 'keys queue', 'aria-labelledby': 'queue-title' },
    element('h2', { id: 'queue-title' }, 'Presentation'),
    element(
      'p',
      { class: 'queue-help' },
      'Views in the order you show them. The arrow keys left and right go on and back, up and down scroll, Escape leaves. A cell or bar that you cover is hidden until a key press reveals it.',
    ),
    list,
    said,
    element(
      'div',
      { class: 'queue-actions' },
      button('Add this view', add),
      button('Import', () => file.click()),
      exported,
      asFile,
      file,
      element('span', { class: 'queue-gap' }),
      button('Close', () => dialog.close()),
      start,
    ),
  );
  document.body.append(dialog);

  /** @param {string} message */
  function tell(message) {
    said.textContent = message;
  }

  /** @param {Slide[]} wanted */
  function change(wanted) {
    slides = wanted;
    keep(slides);
    show();
  }

  function add() {
    change([...slides, { name: nameOfView(), link: location.hash, covers: [] }]);
    tell(`Added as view ${slides.length}`);
  }

  async function importFile() {
    const [chosen] = file.files ?? [];
    if (!chosen) return;
    try {
      const added = read(await chosen.text());
      change([...slides, ...added]);
      tell(`Added ${added.length} ${added.length === 1 ? 'view' : 'views'} of ${chosen.name}`);
    } catch (error) {
      tell(`${error instanceof Error ? error.message : error} Your list is unchanged.`);
    }
    file.value = '';
  }

  function show() {
    start.disabled = exported.disabled = asFile.disabled = slides.length === 0;
    list.replaceChildren(
      ...(slides.length === 0
        ? [element('li', { class: 'queue-empty' }, 'No views yet. Add the one you look at.')]
        : slides.map(row)),
    );
  }

  /** @param {Slide} slide @param {number} index */
  function row(slide, index) {
    const { name, covers } = slide;
    /** @param {number} to */
    const move = (to) => {
      change(moved(slides, index, to));
      const shown = Math.max(0, Math.min(to, slides.length - 1));
      list.children[shown]?.querySelector('input')?.focus();
      tell(`${name} is view ${shown + 1} of ${slides.length}`);
    };
    let isMoved = false;
    const input = element('input', {
      type: 'text',
      value: name,
      'aria-label': `Name of view ${index + 1}`,
      maxlength: 200,
      onchange: () => {
        if (isMoved) return; // a field that leaves the page tells its change at another's place
        change(
          slides.map((former, at) => (at === index ? { ...former, name: input.value } : former)),
        );
      },
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
        if (!event.altKey || !by) return;
        event.preventDefault();
        slides[index] = { ...slides[index], name: input.value };
        isMoved = true;
        move(index + by);
      },
    });
    const count = covers.length === 0 ? 'Cover…' : `${covers.length} covered…`;
    return element(
      'li',
      {},
      input,
      button(count, () => pick(index), { title: 'Cover a cell or a bar until it is asked for' }),
      icon('↑', `Move ${name} up`, () => move(index - 1), index === 0),
      icon('↓', `Move ${name} down`, () => move(index + 1), index === slides.length - 1),
      icon('▷', `Start at ${name}`, () => present(index)),
      icon('×', `Remove ${name}`, () => {
        change(slides.filter((_, at) => at !== index));
        tell(`Removed ${name}`);
      }),
      ...lesson(slide, index),
    );
  }

  /** Return the text and the question that a view has in a chapter. @param {Slide} slide @param {number} index */
  function lesson({ text = '', question = '' }, index) {
    /** @param {Partial<Slide>} patch */
    const patch = (patch) => {
      slides = slides.map((former, at) => (at === index ? { ...former, ...patch } : former));
      keep(slides);
    };
    const words = element(
      'textarea',
      {
        rows: 2,
        'aria-label': `Text of view ${index + 1}`,
        placeholder: 'What to say about it, for a chapter',
        maxlength: 2000,
        onchange: () => patch({ text: words.value }),
      },
      text,
    );
    const asked = element(
      'select',
      {
        'aria-label': `Question of view ${index + 1}`,
        onchange: () => patch({ question: asked.value }),
      },
      element('option', { value: '' }, 'No question'),
      ...Object.entries(QUESTIONS).map(([id, { asks }]) =>
        element('option', { value: id, selected: id === question }, asks),
      ),
    );
    return [words, asked];
  }

  /** Let the reader choose the cells of a view that are covered. @param {number} index */
  function pick(index) {
    dialog.close();
    location.hash = slides[index].link;
    const stop = new AbortController();
    const done = button('Done', finish);
    const bar = element(
      'div',
      { class: 'present-bar', role: 'region', 'aria-label': 'Covering' },
      element('p', {}, 'Choose a cell or a bar to cover it, and again to uncover it.'),
      done,
    );
    const covers = createCovers(() => slides[index].covers, toggle);
    document.body.append(bar);
    announce(
      'Choose a cell or a bar to cover it: with the pointer, or with the arrow keys and Enter',
    );

    /** @param {Cover} cover */
    function toggle(cover) {
      slides = slides.map((slide, at) => (at === index ? toggledCover(slide, cover) : slide));
      keep(slides);
      covers.place();
      announce(`${slides[index].covers.length} covered`);
    }
    function finish() {
      stop.abort();
      covers.remove();
      bar.remove();
      show();
      dialog.showModal();
    }
    /** @param {Element|null} plot @param {{row: number, column: number}|null|undefined} cell */
    function choose(plot, cell) {
      const panel = plot ? plots().indexOf(plot) : -1;
      if (panel >= 0 && cell) toggle({ panel, row: cell.row, column: cell.column });
    }
    const options = { signal: stop.signal, capture: true };
    window.addEventListener(
      'pointerdown',
      (event) => {
        const plot = plotOf(event.target);
        if (!plot || coverOf(event.target)) return;
        event.stopPropagation();
        choose(plot, CELLS.get(plot)?.at(event));
      },
      options,
    );
    window.addEventListener(
      'keydown',
      (event) => {
        const plot = plotOf(event.target);
        if (event.key === 'Escape') finish();
        else if (plot && (event.key === 'Enter' || event.key === ' '))
          choose(plot, CELLS.get(plot)?.current());
        else return;
        event.preventDefault();
        event.stopPropagation();
      },
      options,
    );
  }

  /** @param {number} first */
  async function present(first) {
    if (slides.length === 0) return;
    dialog.close();
    const page = document.documentElement;
    page.classList.add('is-presenting');
    page.requestFullscreen?.().catch(() => {}); // the page then fills the window
    /** @type {Place} */
    let place = { at: first, revealed: 0 };
    const stop = new AbortController();
    const position = element('h1', {});
    const reveal = button('Reveal', () => go(onward(slides, place)));
    const before = button('‹', () => go(back(place)), { 'aria-label': 'View before' });
    const after = button('›', () => go(onward(slides, place)), { 'aria-label': 'Next' });
    const below = button(matchMedia(NARROW).matches ? '↓' : 'More ↓', () => scrollOn(bar, 1), {
      'aria-label': 'More of this view below',
      hidden: true,
    });
    const bar = element(
      'div',
      { class: 'present-bar', role: 'region', 'aria-label': 'Presentation' },
      before,
      position,
      after,
      reveal,
      below,
      button('Leave', leave),
    );
    const covers = createCovers(
      () => slides[place.at].covers.slice(place.revealed),
      () => go(onward(slides, place)),
      () => {
        below.hidden = !hasMoreBelow(bar);
      },
    );
    document.body.append(bar);

    /** @param {Place} to */
    function go(to) {
      const isOther = to.at !== place.at;
      const isRevealed = !isOther && to.revealed > place.revealed;
      const cover = slides[place.at].covers[place.revealed];
      place = to;
      draw();
      if (isOther) tellPlace();
      else if (isRevealed && cover) announce(`Revealed: ${covers.describe(cover)}`);
      else announce(place.at === 0 ? 'This is the first view' : 'This is the last view');
    }
    function draw() {
      const { link, name, covers: all } = slides[place.at];
      if (location.hash !== link) location.hash = link;
      position.textContent = `${place.at + 1} of ${slides.length} · ${name}`;
      reveal.hidden = place.revealed >= all.length;
      before.disabled = place.at === 0;
      after.disabled = place.at === slides.length - 1 && reveal.hidden;
      covers.place();
      window.scrollTo(0, 0);
    }
    function tellPlace() {
      const { name, covers: all } = slides[place.at];
      const covered = all.length > 0 ? `, ${all.length} covered` : '';
      announce(`${place.at + 1} of ${slides.length}: ${name}${covered}`);
    }
    function leave() {
      if (stop.signal.aborted) return;
      stop.abort();
      covers.remove();
      bar.remove();
      page.classList.remove('is-presenting');
      if (document.fullscreenElement) document.exitFullscreen();
      announce('The presentation ended');
      opener?.focus();
    }
    /** @type {Record<string, () => void>} */
    const acts = {
      ArrowRight: () => go(onward(slides, place)),
      PageDown: () => go(onward(slides, place)),
      ' ': () => go(onward(slides, place)),
      ArrowDown: () => scrollOn(bar, 1),
      ArrowUp: () => scrollOn(bar, -1),
      ArrowLeft: () => go(back(place)),
      PageUp: () => go(back(place)),
      Home: () => go({ at: 0, revealed: 0 }),
      End: () => go({ at: slides.length - 1, revealed: 0 }),
      Escape: leave,
    };
    window.addEventListener(
      'keydown',
      (event) => {
        const { key, target, altKey, ctrlKey, metaKey } = event;
        if (altKey || ctrlKey || metaKey || !acts[key] || isOwn(target, key)) return;
        event.preventDefault();
        event.stopPropagation();
        acts[key]();
      },
      { signal: stop.signal, capture: true },
    );
    document.addEventListener(
      'fullscreenchange',
      () => {
        if (!document.fullscreenElement) leave();
      },
      { signal: stop.signal },
    );
    draw();
    tellPlace();
  }

  /** @type {HTMLElement|null} */
  let opener = null;

  return {
    /** @param {HTMLElement} from takes the focus at the end */
    open(from) {
      opener = from;
      tell('');
      show();
      if (!dialog.open) dialog.showModal();
    },
  };
}

/**
 * Return true if an element needs the key itself. A drawing that the keyboard walks through keeps
 * its arrows.
 * @param {EventTarget|null} target
 * @param {string} key
 */
function isOwn(target, key) {
  if (!(target instanceof Element) || key === 'Escape' || key.startsWith('Page')) return false;
  if (target.closest('button, summary, a')) return key === ' ';
  return target.matches('textarea, select, input, .plot:focus-visible');
}

/** The part of a screen that one step down scrolls by. */
const STEP = 0.75;

/** @param {HTMLElement} bar which covers the bottom of the screen */
function hasMoreBelow(bar) {
  const panels = [...document.querySelectorAll('.view:not([hidden]) .panels > *')];
  const end = Math.max(...panels.map((panel) => panel.getBoundingClientRect().bottom));
  return end > window.innerHeight - bar.offsetHeight + 4;
}

/** @param {HTMLElement} bar @param {1|-1} direction */
function scrollOn(bar, direction) {
  window.scrollBy(0, direction * STEP * (window.innerHeight - bar.offsetHeight));
}

function nameOfView() {
  const view = document.querySelector('.view:not([hidden])');
  const [title] = view?.querySelectorAll('.view-title') ?? [];
  const [drawing, ...others] = view?.querySelectorAll('.panel h2') ?? [];
  const named = others.length > 0 ? [title] : [title, drawing];
  const names = named.map((part) => part?.textContent?.trim() ?? '');
  return [...new Set(names.filter(Boolean))].join(': ') || 'View';
}

/**
 * @param {string} sign
 * @param {string} label
 * @param {() => void} onclick
 * @param {boolean} [disabled]
 */
function icon(sign, label, onclick, disabled = false) {
  return button(sign, onclick, { class: 'icon', title: label, 'aria-label': label, disabled });
}

/** @returns {Slide[]} the presentation of a saved page, or the last one of this browser */
export function kept() {
  const opening = openingIn(document);
  if (opening) return opening.slides;
  try {
    return read(storage.kept(KEPT) ?? '');
  } catch {
    return []; // nothing was kept
  }
}

/** @param {Slide[]} slides */
function keep(slides) {
  if (!openingIn(document)) storage.keep(KEPT, written(slides));
}
