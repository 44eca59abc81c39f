/**
 * Keys of the whole page, and the dialog that lists every key, with the switch for those of one letter.
 */

import { element } from './dom.js';

/** @typedef {{onStep: (what: 'head'|'layer', by: number) => void, onText: () => void, onMap: () => void}} KeyHandlers */

const KEYS_KEPT = 'headlight.keys';

/**
 * Keys of the whole page. Letters act on their own, so they can be switched off (WCAG 2.1.4), and
 * they never act while something is typed.
 * @param {HTMLElement} button opens the list
 * @param {KeyHandlers} handlers
 */
export function createKeys(button, { onStep, onText, onMap }) {
  let isOn = areKeysOn();
  /** @type {HTMLDialogElement|null} */
  let list = null;
  /** @type {Record<string, () => void>} */
  const acts = {
    h: () => onStep('head', -1),
    l: () => onStep('head', 1),
    k: () => onStep('layer', -1),
    j: () => onStep('layer', 1),
    m: onMap,
    '/': onText,
    '?': open,
  };

  function open() {
    list ??= createKeysDialog(isOn, (chosen) => {
      isOn = chosen;
      keepKeys(chosen);
    });
    if (!list.open) list.showModal();
  }
  button.addEventListener('click', open);
  document.addEventListener('keydown', (event) => {
    const { key, target, altKey, ctrlKey, metaKey, isComposing } = event;
    if (altKey || ctrlKey || metaKey || isComposing || event.defaultPrevented) return;
    if (!isOn || !acts[key] || isTypedIn(target) || document.querySelector('dialog[open]')) return;
    event.preventDefault();
    acts[key]();
  });
}

/** @param {EventTarget|null} target */
function isTypedIn(target) {
  return (
    target instanceof Element &&
    target.closest(
      'textarea, select, [role="menu"], input:not([type="radio"], [type="checkbox"])',
    ) !== null
  );
}

function areKeysOn() {
  try {
    return localStorage.getItem(KEYS_KEPT) !== 'off';
  } catch {
    return true; // Storage may be forbidden.
  }
}

/** @param {boolean} isOn */
function keepKeys(isOn) {
  try {
    localStorage.setItem(KEYS_KEPT, isOn ? 'on' : 'off');
  } catch {
    // The choice then lasts until the page is left.
  }
}

/** @type {[string, [string, string][]][]} */
const LISTED = [
  [
    'On the whole page',
    [
      ['h, l', 'previous and next head'],
      ['k, j', 'previous and next layer'],
      ['m', 'to the map of the model'],
      ['/', 'to the sentence'],
      ['?', 'this list'],
    ],
  ],
  [
    'On the map',
    [
      ['← ↑ ↓ →', 'from part to part'],
      ['Home, End', 'to the first and the last part'],
      ['Enter', 'open the view of the part'],
    ],
  ],
  [
    'In a drawing',
    [
      ['← ↑ ↓ →', 'from cell to cell; with Ctrl to the edge'],
      ['Home, End', 'to the ends of the row; with Ctrl to the corners'],
      ['Enter', 'choose the cell'],
    ],
  ],
  [
    'On the tokens',
    [
      ['← →', 'choose the token before or after'],
      ['Enter', 'mask the word, where a model fills masks'],
    ],
  ],
  ['In the sentence', [['Enter', 'read it at once']]],
];

/** @param {boolean} isOn @param {(isOn: boolean) => void} onSwitch */
function createKeysDialog(isOn, onSwitch) {
  const made = element(
    'dialog',
    { class: 'keys', 'aria-labelledby': 'keys-title' },
    element(
      'form',
      { method: 'dialog' },
      element('h2', { id: 'keys-title' }, 'Keys'),
      ...LISTED.flatMap(([title, keys]) => [
        element('h3', {}, title),
        element(
          'dl',
          {},
          ...keys.flatMap(([key, meaning]) => [
            element('dt', {}, ...key.split(', ').map((one) => element('kbd', {}, one))),
            element('dd', {}, meaning),
          ]),
        ),
      ]),
      element(
        'label',
        {},
        element('input', {
          type: 'checkbox',
          checked: isOn,
          onchange: (/** @type {Event} */ { target }) =>
            onSwitch(/** @type {HTMLInputElement} */ (target).checked),
        }),
        ' Letters act as keys',
      ),
      element('button', { class: 'button' }, 'Close'),
    ),
  );
  document.body.append(made);
  return made;
}
