/**
 * The dialog that asks for an API key, and again if the key is rejected.
 */

import { keepKey, keyIn } from '../api/calls.js';
import { element } from './dom.js';

const ASKED = 'Its operator can give you one. The browser keeps it until you close the tab.';
const REFUSED = 'The server rejected that key.';
const NO_KEY = 'That is not a key: a key has letters, digits and signs, and no spaces.';
const NOT_KEPT = 'The browser blocks storage for this page, so the key cannot be used.';

let dialog = null;

/**
 * Asks for an API key, unless the dialog is open already.
 * @param {boolean} hadKey whether the server rejected a key
 * @param {() => void} [onKept] what to do with a new key: everything is requested again
 */
export function askForKey(hadKey, onKept = () => window.location.reload()) {
  dialog ??= createDialog(onKept);
  if (dialog.open) return;
  dialog.querySelector('#key-wrong').textContent = hadKey ? REFUSED : '';
  dialog.showModal();
}

function createDialog(onKept) {
  const input = element('input', {
    type: 'password',
    id: 'key',
    autocomplete: 'off',
    spellcheck: 'false',
    required: true,
    'aria-describedby': 'key-why key-wrong',
  });
  const wrong = element('p', { class: 'key-wrong', id: 'key-wrong', role: 'alert' });
  const form = element(
    'form',
    { method: 'dialog' },
    element('h2', { id: 'key-title' }, 'This server requires an API key'),
    element('p', { id: 'key-why' }, ASKED),
    element('label', { for: 'key' }, 'Key'),
    input,
    wrong,
    element('button', { class: 'button' }, 'Continue'),
  );
  const made = element('dialog', { class: 'key', 'aria-labelledby': 'key-title' }, form);
  document.body.append(made);

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const key = keyIn(input.value);
    if (key === '') wrong.textContent = NO_KEY;
    else if (keepKey(key)) onKept();
    else wrong.textContent = NOT_KEPT;
  });

  return made;
}
