/**
 * Presenting: a queue of views that is edited in a dialog, and the views one by one on the whole
 * screen. Loaded when it is first asked for.
 */

import { asChapter, QUESTIONS } from '../rules/chapter.js';
import { moved, openingIn, patched, read, toggledCover, written } from '../rules/presentation.js';
import { counted } from '../words/lists.js';
import * as storage from './dom.js';
import { button, element, save } from './dom.js';
import { createCovers, takeCovers } from './drawn_cells.js';
import { createFullScreen } from './full_screen.js';

/** @import { Slide } from '../rules/presentation.js' */

const KEPT = 'headlight.presentation';
const FILE = 'headlight-presentation.json';
const CHAPTER_FILE = 'my-chapter.md';
const HELP =
  'Views in the order you show them. The arrow keys left and right go on and back, up and down scroll, Escape leaves. A cell or bar that you cover is hidden until a key press reveals it.';
const COVERING = 'Choose a cell or a bar to cover it, and again to uncover it.';

/**
 * The acts on a view of the queue.
 * @typedef {Object} Acts
 * @property {(at: number, patch: Partial<Slide>, isSilent?: boolean) => void} patch `isSilent`: the list shows it already
 * @property {(at: number, to: number, name?: string) => void} move `name`: a new one
 * @property {(at: number) => void} pick the cells that are covered
 * @property {(at: number) => void} present
 * @property {(at: number) => void} remove
 */

/** @param {(message: string) => void} announce @param {(by: number) => boolean} onWalk */
export function createPresentation(announce, onWalk) {
  let slides = kept();
  /** @type {HTMLElement|null} */
  let opener = null;
  const list = element('ol.queue-list');
  const said = element('p.queue-said', { role: 'status' });
  const start = button('Start', () => acts.present(0), { class: 'button is-primary' });
  const exported = button('Export', () => tell(save([written(slides)], FILE)));
  const asFile = button('Export as a chapter', () => {
    const name = save([asChapter('A chapter', slides)], CHAPTER_FILE);
    tell(`${name}. \`headlight chapter check\` opens its steps.`);
  });
  const file = createFileInput(
    (added, name) => {
      change([...slides, ...added]);
      tell(`Added ${counted(added.length, 'view')} of ${name}`);
    },
    (why) => tell(`${why} Your list is unchanged.`),
  );
  const actions = element(
    'div.queue-actions',
    button('Add this view', add),
    button('Import', () => file.click()),
    exported,
    asFile,
    file,
    element('span.queue-gap'),
    button('Close', () => dialog.close()),
    start,
  );
  const dialog = element(
    'dialog.keys.queue',
    { 'aria-labelledby': 'queue-title' },
    element('h2', { id: 'queue-title' }, 'Presentation'),
    element('p.queue-help', HELP),
    list,
    said,
    actions,
  );
  document.body.append(dialog);
  const open = (/** @type {number} */ at) => {
    if (location.hash !== slides[at].link) location.hash = slides[at].link;
    window.scrollTo(0, 0);
  };
  const handlers = { onSlide: open, onLeave: () => opener?.focus(), onWalk };
  const screen = createFullScreen('is-presenting', announce, handlers);

  const tell = (/** @type {string} */ message) => (said.textContent = message);

  /** @param {Slide[]} wanted @param {boolean} [isSilent] */
  function change(wanted, isSilent = false) {
    slides = wanted;
    if (!openingIn(document)) storage.keep(KEPT, written(slides));
    if (!isSilent) show();
  }

  function add() {
    change([...slides, { name: nameOfView(), link: location.hash, covers: [] }]);
    tell(`Added as view ${slides.length}`);
  }

  function show() {
    start.disabled = exported.disabled = asFile.disabled = slides.length === 0;
    list.replaceChildren(
      ...(slides.length === 0
        ? [element('li.queue-empty', 'No views yet. Add the one you look at.')]
        : slides.map((slide, at) => rowOf(slide, at, at === slides.length - 1, acts))),
    );
  }

  /** @type {Acts} */
  const acts = {
    patch: (at, patch, isSilent) => change(patched(slides, at, patch), isSilent),
    move(at, to, name = slides[at].name) {
      change(moved(patched(slides, at, { name }), at, to));
      const shown = Math.max(0, Math.min(to, slides.length - 1));
      list.children[shown]?.querySelector('input')?.focus();
      tell(`${name} is view ${shown + 1} of ${slides.length}`);
    },
    remove(at) {
      const { name } = slides[at];
      change(slides.filter((_, index) => index !== at));
      tell(`Removed ${name}`);
    },
    pick(at) {
      dialog.close();
      location.hash = slides[at].link;
      pickCovers(
        () => slides[at].covers,
        (cover) => {
          change(patched(slides, at, toggledCover(slides[at], cover)), true);
          announce(`${slides[at].covers.length} covered`);
        },
        () => {
          show();
          dialog.showModal();
        },
      );
      announce(`${COVERING} With the pointer, or with the arrow keys and Enter`);
    },
    present(at) {
      dialog.close();
      open(at);
      screen.show(slides, at);
    },
  };

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

/** @param {Slide} slide @param {number} at @param {boolean} isLast @param {Acts} acts */
function rowOf({ name, covers, text = '', question = '' }, at, isLast, acts) {
  let isMoved = false;
  const input = element('input', {
    type: 'text',
    value: name,
    'aria-label': `Name of view ${at + 1}`,
    maxlength: 200,
    onchange: () => {
      // A field that leaves the page tells its change at another's place.
      if (!isMoved) acts.patch(at, { name: input.value });
    },
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!event.altKey || !by) return;
      event.preventDefault();
      isMoved = true;
      acts.move(at, at + by, input.value);
    },
  });
  const count = covers.length === 0 ? 'Cover…' : `${covers.length} covered…`;
  const words = element(
    'textarea',
    {
      rows: 2,
      'aria-label': `Text of view ${at + 1}`,
      placeholder: 'What to say about it, for a chapter',
      maxlength: 2000,
      onchange: () => acts.patch(at, { text: words.value }, true),
    },
    text,
  );
  const asked = element(
    'select',
    {
      'aria-label': `Question of view ${at + 1}`,
      onchange: () => acts.patch(at, { question: asked.value }, true),
    },
    element('option', { value: '' }, 'No question'),
    ...Object.entries(QUESTIONS).map(([id, { asks }]) =>
      element('option', { value: id, selected: id === question }, asks),
    ),
  );
  return element(
    'li',
    input,
    button(count, () => acts.pick(at), { title: 'Cover a cell or a bar until it is asked for' }),
    icon('↑', `Move ${name} up`, () => acts.move(at, at - 1), at === 0),
    icon('↓', `Move ${name} down`, () => acts.move(at, at + 1), isLast),
    icon('▷', `Start at ${name}`, () => acts.present(at)),
    icon('×', `Remove ${name}`, () => acts.remove(at)),
    words,
    asked,
  );
}

/**
 * Let the reader choose the cells of the open view that are covered.
 * @param {() => Cover[]} wanted
 * @param {(cover: Cover) => void} onToggle
 * @param {() => void} onDone
 */
function pickCovers(wanted, onToggle, onDone) {
  const stop = new AbortController();
  const { signal } = stop;
  const bar = element(
    'div.present-bar',
    { role: 'region', 'aria-label': 'Covering' },
    element('p', COVERING),
    button('Done', finish),
  );
  document.body.append(bar);
  /** @param {Cover} cover */
  const toggle = (cover) => {
    onToggle(cover);
    covers.place();
  };
  const covers = createCovers(wanted, toggle);
  takeCovers(toggle, signal);
  window.addEventListener(
    'keydown',
    (event) => {
      if (event.key !== 'Escape') return;
      event.preventDefault();
      event.stopPropagation();
      finish();
    },
    { signal, capture: true },
  );

  function finish() {
    stop.abort();
    covers.remove();
    bar.remove();
    onDone();
  }
}

/**
 * @param {(slides: Slide[], name: string) => void} onSlides
 * @param {(why: string) => void} onFault
 */
function createFileInput(onSlides, onFault) {
  const input = element('input', {
    type: 'file',
    accept: '.json,application/json',
    class: 'unseen',
    tabindex: -1,
    'aria-hidden': 'true',
    async onchange() {
      const [chosen] = input.files ?? [];
      if (!chosen) return;
      try {
        onSlides(read(await chosen.text()), chosen.name);
      } catch (error) {
        onFault(error instanceof Error ? error.message : String(error));
      }
      input.value = '';
    },
  });
  return input;
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
