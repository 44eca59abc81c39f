/**
 * The whole screen for slides: the views of a presentation, or the steps of a chapter. One set of
 * keys and one bar turn them; what is covered is revealed before the next slide is shown.
 */

import { turned } from '../rules/presentation.js';
import { button, element } from './dom.js';
import { createCovers } from './drawn_cells.js';

/** @import { Place, Slide, Turn } from '../rules/presentation.js' */

/** @type {Record<string, Turn>} */
const TURNS = {
  ArrowRight: 'next',
  PageDown: 'next',
  ' ': 'next',
  ArrowLeft: 'back',
  PageUp: 'back',
  Home: 'first',
  End: 'last',
};
const SCROLLS = /** @type {Record<string, 1|-1>} */ ({ ArrowDown: 1, ArrowUp: -1 });

/**
 * @param {string} look a class of the page while slides are shown
 * @param {(message: string) => void} announce
 * @param {{onSlide: (at: number) => void, onLeave: () => void, onWalk?: (by: number) => boolean}} handlers `onSlide`: another one was turned to; `onWalk`: true if the view has a step that comes first
 */
export function createFullScreen(look, announce, { onSlide, onLeave, onWalk }) {
  const root = document.documentElement;
  /** @type {Pick<Slide, 'name'|'covers'>[]} */
  let slides = [];
  /** @type {Place} */
  let place = { at: 0, revealed: 0 };
  /** The screen while slides are shown; null: they are not. @type {{draw: () => void, describe: (cover: any) => string, end: () => void}|null} */
  let shown = null;

  /** @param {Turn} to */
  function turn(to) {
    const by = { next: 1, back: -1 }[String(to)];
    if (by && onWalk?.(by)) return;
    const before = place;
    place = turned(slides, place, to);
    const { at, revealed } = before;
    if (place.at !== at) onSlide(place.at);
    shown?.draw();
    if (place.at !== at) tellPlace();
    else if (place.revealed > revealed)
      announce(`Revealed: ${shown?.describe(slides[at].covers[revealed])}`);
    else announce(at === 0 ? 'This is the first view' : 'This is the last view');
  }

  function tellPlace() {
    const { name, covers } = slides[place.at];
    const covered = covers.length > 0 ? `, ${covers.length} covered` : '';
    announce(`${place.at + 1} of ${slides.length}: ${name}${covered}`);
  }

  function enlarge() {
    if (!document.fullscreenElement) root.requestFullscreen?.().catch(() => {}); // it fills the window
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const { key, target, altKey, ctrlKey, metaKey } = event;
    const isKnown = key === 'Escape' || key in TURNS || key in SCROLLS;
    if (altKey || ctrlKey || metaKey || !isKnown || isOwn(target, key)) return;
    event.preventDefault();
    event.stopPropagation();
    if (key === 'Escape') leave();
    else enlarge(); // a page that was just opened is not yet
    if (key in TURNS) turn(TURNS[key]);
    if (key in SCROLLS) scrollOn(SCROLLS[key]);
  }

  function enter() {
    root.classList.add(look);
    enlarge();
    const stop = new AbortController();
    const { signal } = stop;
    const bar = createBar(turn, leave);
    const covers = createCovers(
      () => slides[place.at].covers.slice(place.revealed),
      () => turn('next'),
      bar.look,
    );
    document.body.append(bar.element);
    window.addEventListener('keydown', onKey, { signal, capture: true });
    document.addEventListener(
      'fullscreenchange',
      () => {
        if (!document.fullscreenElement) leave();
      },
      { signal },
    );
    shown = {
      describe: covers.describe,
      draw() {
        bar.draw(slides, place);
        covers.place();
      },
      end() {
        stop.abort();
        covers.remove();
        bar.element.remove();
        root.classList.remove(look);
      },
    };
  }

  function leave() {
    if (!shown) return;
    shown.end();
    shown = null;
    if (document.fullscreenElement) document.exitFullscreen();
    announce('The presentation ended');
    onLeave();
  }

  return {
    isShown: () => shown !== null,
    leave,
    /**
     * Show a slide, which is open already.
     * @param {Pick<Slide, 'name'|'covers'>[]} of
     * @param {number} at
     */
    show(of, at) {
      slides = of;
      place = { at, revealed: 0 };
      if (!shown) enter();
      shown?.draw();
      tellPlace();
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

const NARROW = '(max-width: 40rem)';

/** @param {(to: Turn) => void} turn @param {() => void} leave */
function createBar(turn, leave) {
  const position = element('h1');
  const reveal = button('Reveal', () => turn('next'));
  const before = button('‹', () => turn('back'), { 'aria-label': 'View before' });
  const after = button('›', () => turn('next'), { 'aria-label': 'Next' });
  const below = button(matchMedia(NARROW).matches ? '↓' : 'More ↓', () => scrollOn(1), {
    'aria-label': 'More of this view below',
    hidden: true,
  });
  const bar = element(
    'div.present-bar',
    { role: 'region', 'aria-label': 'Presentation' },
    before,
    position,
    after,
    reveal,
    below,
    button('Leave', leave),
  );
  return {
    element: bar,
    /** Look whether there is more below. */
    look() {
      const end = Math.max(...panelsShown().map((panel) => panel.getBoundingClientRect().bottom));
      below.hidden = end <= window.innerHeight - bar.offsetHeight + 4;
    },
    /** @param {Pick<Slide, 'name'|'covers'>[]} slides @param {Place} place */
    draw(slides, { at, revealed }) {
      const { name, covers } = slides[at];
      position.textContent = `${at + 1} of ${slides.length} · ${name}`;
      reveal.hidden = revealed >= covers.length;
      before.disabled = at === 0;
      after.disabled = at === slides.length - 1 && reveal.hidden;
    },
  };
}

/** The part of a screen that one step scrolls by within a drawing that is higher. */
const STEP = 0.75;

const panelsShown = () => [...document.querySelectorAll('.view:not([hidden]) .panels > *')];

/** Scroll to the next drawing, or within one that the screen cuts. @param {1|-1} direction */
function scrollOn(direction) {
  const room = window.innerHeight - (document.querySelector('.present-bar')?.clientHeight ?? 0);
  const boxes = panelsShown().map((panel) => panel.getBoundingClientRect());
  const edge = direction > 0 ? room : 0;
  const isCut = boxes.some(({ top, bottom }) => top < edge - 8 && bottom > edge + 8);
  const next =
    direction > 0 ? boxes.find(({ top }) => top >= room) : boxes.findLast((box) => box.top < -8);
  window.scrollBy(0, isCut || !next ? direction * STEP * room : next.top - 8);
}
