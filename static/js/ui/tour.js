/**
 * The tour: a card that stands beside one part of the page after the other. The page stays usable
 * meanwhile; Escape, the card's own button and the button in the masthead leave it.
 */

import { placeBeside } from './tour_stops.js';
import { element } from './element.js';

const KEY = 'headlight.tour';
/** What covers the top of the page once it is scrolled. */
const COVER = '#sentence';

/**
 * @param {HTMLElement} button starts it
 * @param {import('./tour_stops.js').Stop[]} stops
 * @param {{onState: (patch: Object) => void}} handlers
 */
export function createTour(button, stops, { onState }) {
  const title = element('h2', { id: 'tour-title', tabindex: -1 });
  const text = element('p', { id: 'tour-text' });
  const progress = element('span', { class: 'tour-progress' });
  const back = element(
    'button',
    { type: 'button', class: 'button', onclick: () => walk(-1) },
    'Back',
  );
  const next = element('button', {
    type: 'button',
    class: 'button is-next',
    onclick: () => walk(1),
  });
  const leaving = element(
    'button',
    { type: 'button', class: 'tour-leave', onclick: leave },
    'Leave',
  );
  const card = element(
    'section',
    {
      class: 'tour',
      role: 'dialog',
      'aria-labelledby': title.id,
      'aria-describedby': text.id,
      hidden: true,
    },
    title,
    text,
    element('div', { class: 'tour-foot' }, progress, leaving, back, next),
  );
  const ring = element('div', { class: 'tour-ring', 'aria-hidden': 'true', hidden: true });
  const watcher = new ResizeObserver(place);
  let at = -1;
  let target = null;
  document.body.append(ring, card);
  button.classList.toggle('is-new', !wasSeen());

  /** To the next stop in a direction that has something to point at; past the last one it ends. */
  function walk(direction, from = at) {
    for (let index = from + direction; index >= 0 && index < stops.length; index += direction) {
      if (stops[index].view) onState({ view: stops[index].view });
      const found = document.querySelector(stops[index].target);
      if (isVisible(found)) {
        stopAt(index, found);
        return;
      }
    }
    if (direction > 0) leave();
  }

  function stopAt(index, found) {
    at = index;
    watcher.disconnect();
    target = found;
    title.textContent = stops[at].title;
    text.textContent = stops[at].text;
    progress.textContent = `${at + 1} of ${stops.length}`;
    back.hidden = at === 0;
    next.textContent = at === stops.length - 1 ? 'Done' : 'Next';
    card.hidden = ring.hidden = false;
    reveal(target);
    watcher.observe(target);
    place();
    title.focus({ preventScroll: true });
  }

  function place() {
    if (at < 0) return;
    const box = target.getBoundingClientRect();
    const size = { width: card.offsetWidth, height: card.offsetHeight };
    const { left, top } = placeBeside(box, size, {
      width: document.documentElement.clientWidth,
      height: window.innerHeight,
    });
    card.style.transform = `translate(${left}px, ${top}px)`;
    ring.style.transform = `translate(${box.left - 6}px, ${box.top - 6}px)`;
    ring.style.width = `${box.width + 12}px`;
    ring.style.height = `${box.height + 12}px`;
  }

  function leave() {
    if (at < 0) return;
    at = -1;
    watcher.disconnect();
    card.hidden = ring.hidden = true;
    button.focus({ preventScroll: true });
  }

  button.addEventListener('click', () => {
    if (at >= 0) {
      leave();
      return;
    }
    button.classList.remove('is-new');
    remember();
    walk(1, -1);
  });
  card.addEventListener('keydown', ({ key }) => {
    if (key === 'ArrowRight') walk(1);
    if (key === 'ArrowLeft') walk(-1);
  });
  document.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape') leave();
  });
  window.addEventListener('scroll', place, { passive: true });
  window.addEventListener('resize', place);
}

function isVisible(node) {
  return Boolean(node && node.getClientRects().length > 0);
}

/** Into the middle of the screen; what is higher than that begins below the sentence. */
function reveal(target) {
  const { top, height } = target.getBoundingClientRect();
  const cover =
    target.matches(COVER) ||
    target.compareDocumentPosition(document.querySelector(COVER)) & Node.DOCUMENT_POSITION_FOLLOWING
      ? 0
      : document.querySelector(COVER).offsetHeight;
  const room = window.innerHeight - cover;
  const margin = Math.max(24, (room - height) / 2);
  window.scrollBy(0, top - cover - margin);
}

function wasSeen() {
  try {
    return localStorage.getItem(KEY) === 'seen';
  } catch {
    return true; // Storage may be forbidden; nobody is asked twice then.
  }
}

function remember() {
  try {
    localStorage.setItem(KEY, 'seen');
  } catch {
    // As above.
  }
}
