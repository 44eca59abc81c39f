/**
 * The choice of where to look: in the encoder, in the decoder, or from one to the other.
 */

import { element } from './element.js';

/**
 * @param {string} name of the radios
 * @param {(id: string) => void} onChoose
 */
export function createPlaces(name, onChoose) {
  const radios = element('div', { class: 'segmented' });
  const control = element(
    'fieldset',
    { class: 'where', hidden: true },
    element('legend', { class: 'unseen' }, 'Where in the model'),
    element('span', { 'aria-hidden': 'true' }, 'Where'),
    radios,
  );
  let offered = '';
  control.addEventListener('change', ({ target }) => onChoose(target.value));

  return {
    element: control,

    /**
     * @param {{id: string, title: string}[]} places nothing to choose from: the control is gone
     * @param {string} [chosen]
     */
    show(places, chosen) {
      control.hidden = places.length === 0;
      const wanted = places.map(({ id }) => id).join(' ');
      if (wanted !== offered) radios.replaceChildren(...places.map((place) => radio(name, place)));
      offered = wanted;
      const current = radios.querySelector(`[value="${chosen}"]`);
      if (current) current.checked = true;
    },
  };
}

function radio(name, { id, title }) {
  return element(
    'label',
    {},
    element('input', { type: 'radio', name, value: id }),
    element('span', {}, title),
  );
}
