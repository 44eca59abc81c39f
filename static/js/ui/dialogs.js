/** The dialogs of the page: the list of its keys, and the API key of its server. Loaded when one opens. */

import { keepKey, keyIn } from '../api/calls.js';
import { element } from './dom.js';

/** @type {[string, [string, string][]][]} */
const LISTED = [
  [
    'On the whole page',
    [
      ['h, l', 'previous and next head'],
      ['k, j', 'previous and next layer'],
      ['← →', 'step back and on, where a view has steps'],
      ['m', 'to the map of the model'],
      ['d', 'to the drawing'],
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
      ['Esc', 'put the cursor away'],
    ],
  ],
  [
    'In the map of a long text',
    [
      ['+, −, 0', 'zoom in, zoom out, the whole text'],
      ['Shift + ← ↑ ↓ →', 'move the part that is shown'],
    ],
  ],
  [
    'On the tokens',
    [
      ['← →', 'choose the token before or after'],
      ['Enter', 'mask the word, where a model fills masks'],
    ],
  ],
  [
    'In the sentence',
    [
      ['Enter', 'read it at once'],
      ['Shift + Enter', 'start a new line'],
    ],
  ],
  [
    'While presenting',
    [
      ['←, →', 'previous and next view'],
      ['↑, ↓', 'up and down in a long view'],
      ['Home, End', 'the first and the last view'],
      ['Esc', 'end'],
    ],
  ],
];

/**
 * Create the dialog that lists every key, with the switch for those of one letter.
 * @param {boolean} isOn
 * @param {(isOn: boolean) => void} onSwitch
 */
export function createKeysDialog(isOn, onSwitch) {
  const made = element(
    'dialog.keys',
    { 'aria-labelledby': 'keys-title' },
    element(
      'form',
      { method: 'dialog' },
      element('h2', { id: 'keys-title' }, 'Keys'),
      element('div.keys-groups', LISTED.map(groupOf)),
      element(
        'label',
        element('input', {
          type: 'checkbox',
          checked: isOn,
          onchange: (/** @type {Event} */ { target }) =>
            onSwitch(/** @type {HTMLInputElement} */ (target).checked),
        }),
        ' Letters act as keys',
      ),
      element('button.button', 'Close'),
    ),
  );
  document.body.append(made);
  return made;
}

/** @param {[string, [string, string][]]} group */
function groupOf([title, keys]) {
  return element(
    'section',
    element('h3', title),
    element(
      'dl',
      keys.flatMap(([key, meaning]) => [
        element(
          'dt',
          key.split(', ').map((keyName) => element('kbd', keyName)),
        ),
        element('dd', meaning),
      ]),
    ),
  );
}

const ASKED = 'Its operator can give you one. The browser keeps it until you close the tab.';
const REFUSED = 'The server rejected that key.';
const NO_KEY = 'That is not a key: a key has letters, digits and signs, and no spaces.';
const NOT_KEPT = 'The browser blocks storage for this page, so the key cannot be used.';

let dialog = null;

/**
 * Ask for an API key, unless the dialog is open already.
 * @param {boolean} hadKey whether the server rejected a key
 * @param {() => void} [onKept] what to do with a new key: everything is requested again
 */
export function askForKey(hadKey, onKept = () => window.location.reload()) {
  dialog ??= createDialog(onKept);
  if (dialog.open) return;
  dialog.querySelector('#key-wrong').textContent = hadKey ? REFUSED : '';
  dialog.showModal();
}

/** @param {() => void} onKept */
function createDialog(onKept) {
  const input = element('input', {
    type: 'password',
    id: 'key',
    autocomplete: 'off',
    spellcheck: 'false',
    required: true,
    'aria-describedby': 'key-why key-wrong',
  });
  const wrong = element('p.key-wrong', { id: 'key-wrong', role: 'alert' });
  const form = element(
    'form',
    { method: 'dialog' },
    element('h2', { id: 'key-title' }, 'This server requires an API key'),
    element('p', { id: 'key-why' }, ASKED),
    element('label', { for: 'key' }, 'Key'),
    input,
    wrong,
    element('button.button', 'Continue'),
  );
  const made = element('dialog.key', { 'aria-labelledby': 'key-title' }, form);
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
