/**
 * The dialog that shares the page: a link, its QR code for a hall, and the page as one file. Loaded
 * when it is asked for. Nothing is kept by the server before a button is pressed.
 */

import { messageOf } from '../api/calls.js';
import { createLink, fetchQrCode, isLoopback, linkLimits } from '../api/links.js';
import { counted } from '../words/lists.js';
import { grouped } from '../words/numbers.js';
import { button, element } from './dom.js';
import { copy, saveWhole } from './exports.js';

/** @import { Link, LinkLimits } from '../api/links.js' */

/** @typedef {{trace: Trace, figure: {grid: Pick<Grid, 'request'|'call'>}}} Shared */

const OFFLINE =
  'This page is a file already: send the file itself. A link and a QR code need the server that made it.';
export const ONLY_HERE =
  'This address leads to the machine it is opened on, so it opens on yours only.';
const DAY = { day: 'numeric', month: 'long', year: 'numeric' };

/**
 * @param {() => Shared|null} subject null: nothing was read yet
 * @param {(message: string) => void} announce
 */
export function createShare(subject, announce) {
  const isOffline = document.body.classList.contains('is-saved');
  const link = createLinkPart(announce);
  const file = createFilePart(subject, announce);
  const dialog = element(
    'dialog.keys.share',
    { 'aria-labelledby': 'share-title' },
    element('h2', { id: 'share-title' }, 'Share'),
    isOffline ? [element('p.share-why', OFFLINE)] : [link.element, file.element],
    element(
      'div.queue-actions',
      element('span.queue-gap'),
      button('Close', () => dialog.close()),
    ),
  );
  document.body.append(dialog);

  return {
    open() {
      if (dialog.open) return;
      if (!isOffline) link.begin();
      dialog.showModal();
    },
  };
}

/** @param {(message: string) => void} announce */
function createLinkPart(announce) {
  /** @type {Promise<LinkLimits>|null} */
  let limits = null;
  /** @type {{hash: string, link: Promise<Link>}|null} */
  let made = null;
  const why = element('p.share-why');
  const here = element('p.share-why', ONLY_HERE);
  here.hidden = !isLoopback(location.hostname);
  const said = element('p.share-said', { role: 'status' });
  const address = element('input.share-address', {
    type: 'text',
    readonly: true,
    'aria-label': 'Link to this view',
    onfocus: () => address.select(),
  });
  address.hidden = true;
  const copies = button('Copy link', copyLink, { class: 'button is-primary' });
  const shows = button('QR code', showCode, { title: 'Show the link to a hall' });

  /** @param {string} message */
  function tell(message) {
    said.textContent = message;
  }

  /** Return the limits, asked for once. */
  function limitsNow() {
    limits ??= linkLimits().catch((error) => {
      limits = null;
      throw error;
    });
    return limits;
  }

  /**
   * Return the link that the server keeps for the view; the same one while the view is the same.
   * @returns {Promise<Link|null>} null: the address itself is the link
   */
  async function kept() {
    const hash = location.hash;
    const { days, bytes } = await limitsNow();
    if (days === 0 || hash.length - 1 > bytes) return null;
    if (made?.hash !== hash) made = { hash, link: createLink(hash.slice(1)) };
    try {
      return await made.link;
    } catch (error) {
      made = null;
      throw error;
    }
  }

  async function begin() {
    tell('');
    address.hidden = true;
    why.textContent = 'Opens the text, the model and the view as you see them.';
    try {
      const told = await limitsNow();
      why.textContent = `${why.textContent} ${keepingInWords(told, location.href)}`;
      shows.hidden = isLong(told, location.href);
    } catch (error) {
      tell(`Links cannot be made now: ${messageOf(error)}.`);
    }
  }

  async function copyLink() {
    tell('Making the link…');
    try {
      const link = await kept();
      await showAddress(link?.address ?? location.href, link);
    } catch (error) {
      tell(`No link was made: ${messageOf(error)}.`);
    }
  }

  /** @param {string} text @param {Link|null} link */
  async function showAddress(text, link) {
    address.value = text;
    address.hidden = false;
    const until = link ? ` It opens until ${dayOf(link.expires)}.` : '';
    try {
      await copy(text);
      tell(`Link copied.${until}`);
      announce('Link copied');
    } catch (error) {
      tell(`Not copied: ${messageOf(error)}. Copy it from the field.${until}`);
      address.focus();
    }
  }

  async function showCode() {
    tell('Making the code…');
    try {
      const link = await kept();
      if (!link) throw new Error('this view has no short link');
      const picture = await fetchQrCode(link.id);
      tell(`The code opens until ${dayOf(link.expires)}.`);
      showToHall(link, picture);
    } catch (error) {
      tell(`No code was made: ${messageOf(error)}.`);
    }
  }

  return {
    begin,
    element: element(
      'section.share-part',
      element('h3', 'Link'),
      why,
      here,
      element('div.share-line', copies, shows),
      address,
      said,
    ),
  };
}

/** @param {LinkLimits} limits @param {string} href */
function isLong({ days, bytes }, href) {
  return days === 0 || new URL(href).hash.length - 1 > bytes;
}

/**
 * Say who keeps the view, and for how long.
 * @param {LinkLimits} limits
 * @param {string} href of the page
 */
export function keepingInWords(limits, href) {
  const { days, bytes } = limits;
  const long = `The link holds all of it, in ${counted(href.length, 'character')}, and there is no QR code`;
  if (days === 0) return `This server keeps no short links. ${long}.`;
  if (isLong(limits, href))
    return `It is too large for a short link, which holds ${grouped(bytes)} characters. ${long}.`;
  return `The server keeps them for ${counted(days, 'day')} under an address that cannot be guessed.`;
}

/** @param {Date} date */
function dayOf(date) {
  return date.toLocaleDateString('en-GB', /** @type {Intl.DateTimeFormatOptions} */ (DAY));
}

/**
 * Show a QR code on the whole screen, with its address; a click or Escape puts it away.
 * @param {Link} link
 * @param {Blob} picture
 */
function showToHall({ address }, picture) {
  const url = URL.createObjectURL(picture);
  const dialog = element(
    'dialog.share-hall',
    {
      'aria-label': 'QR code of the link',
      onclose: () => {
        URL.revokeObjectURL(url);
        dialog.remove();
      },
    },
    element('img', { src: url, alt: `QR code of ${address}` }),
    element('p', address),
    ...(isLoopback(location.hostname) ? [element('p', ONLY_HERE)] : []),
    button('Close', () => dialog.close()),
  );
  document.body.append(dialog);
  dialog.showModal();
}

const SECOND = 1000;

/** @param {() => Shared|null} subject @param {(message: string) => void} announce */
function createFilePart(subject, announce) {
  /** @type {AbortController|null} */
  let going = null;
  const bar = element('progress', { 'aria-label': 'Making the page', max: 1 });
  const said = element('p.share-said', { role: 'status' });
  const elapsed = element('span.share-said', { 'aria-hidden': 'true' });
  const saves = button('Save page', save);
  const cancels = button('Cancel', () => going?.abort());
  const line = element('div.share-line', bar, elapsed, cancels);
  line.hidden = true;

  /** @param {number|null} share null: not known */
  function show(share) {
    if (share === null) bar.removeAttribute('value');
    else bar.value = share;
  }

  async function save() {
    const of = subject();
    if (!of) {
      said.textContent = 'Nothing to save yet: type a sentence first.';
      return;
    }
    going = new AbortController();
    const { signal } = going;
    const since = performance.now();
    const count = () => {
      elapsed.textContent = `${Math.round((performance.now() - since) / SECOND)} s`;
    };
    const timer = setInterval(count, SECOND);
    count();
    show(null);
    said.textContent = 'Making the page…';
    saves.disabled = true;
    line.hidden = false;
    cancels.focus();
    try {
      said.textContent = await saveWhole(of, { signal, onProgress: show });
      announce(said.textContent ?? '');
    } catch (error) {
      said.textContent = signal.aborted ? 'Cancelled.' : `Not saved: ${messageOf(error)}.`;
    }
    clearInterval(timer);
    const isFocused = line.contains(document.activeElement);
    line.hidden = true;
    saves.disabled = false;
    if (isFocused) saves.focus();
  }

  return {
    element: element(
      'section.share-part',
      element('h3', 'One file'),
      element(
        'p.share-why',
        'Every view of this text, in one file that opens without a server; of a long text, its Overview.',
      ),
      element('div.share-line', saves),
      line,
      said,
    ),
  };
}

/** Say above the results why the link that was followed has no state. @param {string} why */
export function tellLost(why) {
  const notice = element(
    'div.notice',
    { role: 'status' },
    element('p', `${why} An example is shown instead.`),
    button('Close', () => notice.remove()),
  );
  document.getElementById('notice')?.before(notice);
}
