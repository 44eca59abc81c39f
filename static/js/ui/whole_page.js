/**
 * Every view of a text as one file, which opens on the view that is looked at. Loaded when it is
 * asked for.
 */

import { BASE, call } from '../api/calls.js';
import { counted, inBytes } from '../data/format.js';
import { openingElement, openingOf } from '../data/presentation.js';
import { slugOf } from '../data/text.js';
import { save } from './dom.js';
import { kept } from './present.js';

/** @import { Subject } from './panel.js' */

/**
 * The server computes what is not on the screen yet.
 * @param {Subject} of
 * @returns {Promise<string>} the name and the size of the file
 */
export async function saveWhole({ trace: { model, text, target, asked }, figure: { grid } }) {
  const opening = openingOf(location.hash, kept());
  // A prediction that was chosen to be explained is explained in the file too.
  const { logit_difference, patching } = grid.request ?? {};
  const answer = await call(`${BASE}/page`, {
    method: 'POST',
    headers: { Accept: 'text/html', 'Content-Type': 'application/json' },
    body: JSON.stringify({
      model: asked?.model ?? model,
      text,
      ...(target && { target }),
      ...(logit_difference && { logit_difference }),
      ...(patching && { patching }),
    }),
  });
  const page = await answer.text();
  const end = page.lastIndexOf('</body>');
  const file = new Blob([page.slice(0, end), openingElement(opening), page.slice(end)], {
    type: 'text/html',
  });
  const name = ['headlight', model, slugOf(text)].filter(Boolean).join('-');
  const { length } = opening.slides;
  const queue = length > 0 ? `, with ${counted(length, 'view')} to present` : '';
  return `${save(file, `${name}.html`)}, ${inBytes(file.size)}${queue}`;
}
