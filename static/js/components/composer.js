/**
 * Where the sentence comes from: the text box, the examples, the menu of models.
 */

import { element } from './element.js';

const PAUSE = 250;

/**
 * @param {HTMLFormElement} form
 * @param {{onTyping: () => void, onText: (text: string, isTyped: boolean) => void, onModel: (id: string) => void}} handlers
 */
export function createComposer(form, { onTyping, onText, onModel }) {
  const box = form.querySelector('#text');
  const menu = form.querySelector('#model');
  const examples = form.querySelector('#examples');
  let timer = 0;
  let offered = null;

  function submit(isTyped) {
    clearTimeout(timer);
    onText(box.value, isTyped);
  }
  box.addEventListener('input', (event) => {
    clearTimeout(timer);
    onTyping();
    if (!event.isComposing) timer = setTimeout(() => submit(true), PAUSE);
  });
  box.addEventListener('compositionend', () => { timer = setTimeout(() => submit(true), PAUSE); });
  box.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit(false);
  });
  form.addEventListener('submit', (event) => event.preventDefault());
  menu.addEventListener('change', () => onModel(menu.value));

  return {
    /**
     * @param {{models: Object[], unavailable?: {id: string, reason: string}[]}} catalogue
     */
    offer({ models, unavailable = [] }) {
      menu.replaceChildren(
        ...models.map(({ id, title }) => element('option', { value: id }, title || id)),
        ...unavailable.map(({ id, reason }) => element('option', { value: id, disabled: true, title: reason }, `${id} (unavailable)`)),
      );
    },

    /**
     * @param {{text: string, model: string, card: Object}} shown `model` is '' where the menu holds none of that name
     */
    show({ text, model, card }) {
      if (box.value !== text) box.value = text;
      menu.value = model;
      if (offered !== card.id) examples.replaceChildren(...card.examples.map((example) => exampleButton(example, onText)));
      offered = card.id;
      for (const button of examples.children) button.setAttribute('aria-pressed', String(button.title === text));
    },
  };
}

function exampleButton({ title, text }, onText) {
  return element('button', { type: 'button', title: text, onclick: () => onText(text, false) }, title);
}
