/**
 * The dialog that lists every key, with the switch for those of one letter. Loaded when it is first
 * opened.
 */

import { element } from './dom.js';

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
 * @param {boolean} isOn
 * @param {(isOn: boolean) => void} onSwitch
 */
export function createKeysDialog(isOn, onSwitch) {
  const made = element(
    'dialog',
    { class: 'keys', 'aria-labelledby': 'keys-title' },
    element(
      'form',
      { method: 'dialog' },
      element('h2', { id: 'keys-title' }, 'Keys'),
      element('div', { class: 'keys-groups' }, ...LISTED.map(groupOf)),
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

/** @param {[string, [string, string][]]} group */
function groupOf([title, keys]) {
  return element(
    'section',
    {},
    element('h3', {}, title),
    element(
      'dl',
      {},
      ...keys.flatMap(([key, meaning]) => [
        element('dt', {}, ...key.split(', ').map((one) => element('kbd', {}, one))),
        element('dd', {}, meaning),
      ]),
    ),
  );
}
