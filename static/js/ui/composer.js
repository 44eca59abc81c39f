/**
 * The composer: text box, examples, model menu, the target of a translator; and the card of the
 * chosen model.
 */

import { messageOf, modelName } from '../api/calls.js';
import { grouped, share, small } from '../words/numbers.js';
import { visible } from '../words/text.js';
import { asQuestion, isLearnedQuestion, multiplies } from '../rules/product.js';
import { introduce, isForSums, offerFor } from '../rules/sentences/introduction.js';
import { MASK } from '../trace/words.js';
import { button, element, partOf } from './dom.js';

const PAUSE = 250;

const STALE =
  'The sentence has changed since you wrote this translation; the model still reads yours.';

export const ADD_COMMAND = 'headlight add org/name';

/** Small models to begin with: what to add, what it shows, size and licence. */
const SUGGESTED = [
  ['HuggingFaceTB/SmolLM2-135M-Instruct', 'rotary positions, shared keys', '269 MB, Apache 2.0'],
  ['openai-community/gpt2', 'the model of most papers on circuits', '548 MB, MIT'],
  ['google-bert/bert-base-uncased', 'a word hidden by [MASK]', '440 MB, Apache 2.0'],
];

/** Without a letter typed, until a sentence is introduced. */
const PAUSE_MS = 1000;

/** The menu's groups, in this order. */
const KINDS = [
  ['decoder', 'Decoders: the next token'],
  ['encoder', 'Encoders: the masked word'],
  ['encoder-decoder', 'Encoder–decoders: translation'],
];

/**
 * @param {HTMLFormElement} form
 * @param {Object} handlers
 * @param {() => void} handlers.onTyping
 * @param {(text: string, isTyped: boolean) => void} handlers.onText
 * @param {(text: string) => boolean} handlers.onFile the text of a file; false: it is no text to read
 * @param {(example: Example) => void} handlers.onExample
 * @param {(target: string, isTyped: boolean) => void} handlers.onTarget '' for the model's own
 * @param {(id: string) => void} handlers.onModel
 * @param {(patch: Patch) => void} handlers.onOffer another model, perhaps with another text
 */
export function createComposer(
  form,
  { onTyping, onText, onFile, onExample, onTarget, onModel, onOffer },
) {
  const box = partOf(form, '#text', HTMLTextAreaElement);
  const target = partOf(form, '#target', HTMLTextAreaElement);
  const page = form.ownerDocument;
  const menu = partOf(page, '#model', HTMLSelectElement);
  /** @param {string} id */
  const part = (id) => partOf(page, `#${id}`, HTMLElement);
  const [translation, translated] = [part('translation'), part('translated')];
  const [stale, exact, reads, note] = ['stale', 'exact', 'reads', 'text-note'].map(part);
  const examples = createExamples(part('examples'), onExample);
  /** The reader’s own translation, and the sentence it was written for. @type {{target: string|null, text: string}} */
  let written = { target: null, text: '' };
  /** The card of the chosen model. @type {Card|null} */
  let chosen = null;
  /** @type {Card[]} */
  let cards = [];

  const ofText = listen(box, onTyping, (text, isTyped) =>
    onText(multiplies(chosen) ? asQuestion(text) : text, isTyped),
  );
  const ofTarget = listen(target, onTyping, onTarget);
  const size = createSize(box, part('surplus'));
  part('own').addEventListener('click', () => {
    target.value = '';
    ofTarget.submit();
    target.focus();
  });
  function leftOut() {
    const back = () => {
      box.value = size.cut().whole;
      ofText.submit();
    };
    return ['The rest of the text was left out. ', button('Put it back', back)];
  }
  takeFiles(page, note, box, onFile);
  const introduceSoon = createIntroduction(note, box, onOffer);
  form.addEventListener('submit', (event) => event.preventDefault());
  menu.addEventListener('change', () => onModel(menu.value));

  return {
    /** @param {{models: Card[], unavailable?: {id: string, reason: string}[]}} catalogue */
    offer({ models, unavailable = [] }) {
      cards = models;
      menu.replaceChildren(
        ...groupsOf(models),
        ...damaged(unavailable),
        element('option', { disabled: true }, `Add one: ${ADD_COMMAND}`),
        ...SUGGESTED.map(([name, ...facts]) =>
          element('option', { disabled: true }, `${name} (${facts.join('; ')})`),
        ),
      );
    },

    /**
     * @param {{text: string, target: string|null, model: string, card: Card}} shown `model` is '' where the menu holds none of that name
     */
    show({ text, target: given, model, card }) {
      chosen = card;
      // A box that is being typed in is read soon; until then it keeps what was typed.
      if (!ofText.isPending() && box.value !== text) {
        box.value = text;
        box.scrollTop = 0;
      }
      box.dataset.model = card.id;
      box.dispatchEvent(new Event('shown')); // what lies behind it may be of another text
      if (!ofTarget.isPending() && target.value.trim() !== (given ?? '').trim())
        target.value = given ?? '';
      if (given !== written.target) written = { target: given, text };
      stale.textContent = given !== null && text !== written.text ? STALE : '';
      size.refit();
      translation.hidden = card.kind !== 'encoder-decoder';
      translation.classList.toggle('is-own', given !== null);
      menu.value = model;
      note.replaceChildren(
        ...(text && text === size.cut().beginning ? leftOut() : [unsuited(text, card)]),
      );
      exact.textContent = exactness(card);
      exact.hidden = exact.textContent === '';
      examples.show(card, text);
    },

    /** Drop what was typed and not yet submitted: another text was chosen. */
    dropTyping() {
      ofText.drop();
      ofTarget.drop();
    },

    /**
     * Tell the characters that the model reads otherwise than they are typed, and what it learned if
     * the text falls into pieces.
     * @param {Trace|null} trace
     */
    tellReading(trace) {
      introduceSoon(trace, cards);
      const read = trace ? readInText(trace, trace.card?.normalization) : '';
      reads.textContent = [trace?.within ? computedInWords(trace.within) : '', read]
        .filter(Boolean)
        .join('; ');
      reads.hidden = reads.textContent === '';
      reads.title =
        'The vocabulary has no tokens for these characters: they are replaced, or read byte by byte.';
    },

    markFrom: size.markFrom,

    /** @param {string|null} text the model's translation; null: there is none */
    translate(text) {
      translated.textContent = text === '' ? 'empty: the model ended at once' : (text ?? '–');
      translated.classList.toggle('is-nothing', !text);
    },
  };
}

/** @param {number} within the most by which a number differed from the server’s on fifty texts */
function computedInWords(within) {
  return `computed in this browser, equal to the server within ${small(within)}`;
}

/**
 * Read text files that are dropped on the page or chosen.
 * @param {Document} page
 * @param {HTMLElement} note where one that cannot be read is told; it changes nothing
 * @param {HTMLTextAreaElement} box
 * @param {(text: string) => boolean} onFile false: it is no text to read
 */
function takeFiles(page, note, box, onFile) {
  /** @param {Promise<File>} choosing */
  async function take(choosing) {
    try {
      const file = await choosing;
      const { readTextFile } = await import('./text_file.js');
      const text = await readTextFile(file);
      if (onFile(text)) box.value = text;
      note.textContent = '';
    } catch (error) {
      note.textContent = messageOf(error);
    }
  }
  takeDrops(page, (file) => take(Promise.resolve(file)));
  partOf(page, '#file', HTMLElement).addEventListener('click', () => take(chooseFile()));
}

/**
 * Create the buttons of the examples; next to a text of the reader's own, one that brings them.
 * Several may be of one text, so the pressed one is marked.
 * @param {HTMLElement} host
 * @param {(example: Example) => void} onExample
 */
function createExamples(host, onExample) {
  let offered = '';
  /** @type {HTMLElement[]} */
  let buttons = [];
  const bring = button('Examples', () => {
    host.replaceChildren(...buttons);
    buttons[0].focus();
  });
  /** @param {HTMLElement|undefined} pressed */
  function mark(pressed) {
    for (const each of buttons) each.ariaPressed = String(each === pressed);
  }
  /** @param {Example} example @param {HTMLElement} button */
  function press(example, button) {
    mark(button);
    onExample(example);
  }
  return {
    /** @param {Card} card @param {string} text that is read */
    show(card, text) {
      if (offered !== card.id)
        buttons = card.examples.map((example) => exampleButton(example, press));
      offered = card.id;
      const alike = buttons.filter(({ dataset }) => dataset.text === text);
      const isOwn = text !== '' && alike.length === 0 && buttons.length > 0;
      if (!isOwn || !host.contains(bring)) host.replaceChildren(...(isOwn ? [bring] : buttons));
      mark(alike.find((button) => button.ariaPressed === 'true') ?? alike[0]);
    },
  };
}

/**
 * Mark what of a text does not fit the model, on a layer below the box.
 * @param {HTMLTextAreaElement} box
 * @param {HTMLElement} surplus
 */
function createSize(box, surplus) {
  /** A text that was too long, and its beginning that fits. */
  let cut = { beginning: '', whole: '' };
  const refit = () => {
    surplus.hidden = true;
    box.classList.remove('is-marked');
  };
  box.addEventListener('input', refit);
  box.addEventListener('scroll', () => {
    surplus.scrollTop = box.scrollTop;
  });
  return {
    refit,
    cut: () => cut,

    /** Mark what of the text does not fit. @param {number} length of what does */
    markFrom(length) {
      cut = { beginning: box.value.slice(0, length), whole: box.value };
      const mark = element('mark', cut.whole.slice(length));
      surplus.replaceChildren(cut.beginning, mark);
      surplus.hidden = false;
      box.classList.add('is-marked');
      box.scrollTop = mark.offsetTop - box.clientHeight / 2;
      surplus.scrollTop = box.scrollTop;
    },
  };
}

/**
 * Return why a text that is not one of a model's examples may show little with it.
 * @param {string} text
 * @param {Card} card
 * @returns {string} empty if nothing is known against it
 */
function unsuited(text, card) {
  const hasMask = text.includes(MASK);
  if (text.trim() === '' || card.examples.some((example) => example.text === text)) return '';
  if (hasMask && !card.has_mask)
    return `${modelName(card)} knows no masks: it reads ${MASK} as ordinary text.`;
  if (multiplies(card) && !isLearnedQuestion(text))
    return `${modelName(card)} multiplies two numbers of two digits, such as 47*23=, and has seen nothing else.`;
  return '';
}

/**
 * Return what introduces a sentence in a note, once it is not being typed: what is true of half a
 * word would come and go, and move the page.
 * @param {HTMLElement} note
 * @param {HTMLElement} box
 * @param {(patch: Patch) => void} onOffer
 */
function createIntroduction(note, box, onOffer) {
  let [introduced, waiting] = ['', 0];
  /** @param {Trace} trace @param {Card[]} cards of all models */
  const show = (trace, cards) => {
    introduced = trace.text;
    if (note.textContent !== '') return;
    const isExample = trace.card?.examples.some(({ text }) => text === trace.text);
    const said = isExample ? '' : introduce(trace);
    const offer = !isExample && (said || isForSums(trace)) ? offerFor(trace, cards) : null;
    note.replaceChildren(
      offer && said ? `${said} ` : said,
      ...(offer ? [button(offer.label, () => onOffer(offer.patch))] : []),
    );
  };
  /** @param {Trace|null} trace @param {Card[]} cards */
  return (trace, cards) => {
    clearTimeout(waiting);
    if (!trace) return;
    if (note.ownerDocument.activeElement !== box || trace.text === introduced) show(trace, cards);
    else waiting = window.setTimeout(show, PAUSE_MS, trace, cards);
  };
}

/**
 * Submit a box when its typing pauses, and at once on Enter.
 * @param {HTMLTextAreaElement} box
 * @param {() => void} onTyping
 * @param {(text: string, isTyped: boolean) => void} onText
 * @returns {{submit: () => void, drop: () => void, isPending: () => boolean}} `isPending`: typed, and not yet submitted
 */
function listen(box, onTyping, onText) {
  let timer = 0;
  let isPending = false;
  const drop = () => {
    clearTimeout(timer);
    isPending = false;
  };
  const submit = (isTyped = false) => {
    drop();
    onText(box.value, isTyped);
  };
  const wait = () => {
    timer = setTimeout(() => submit(true), PAUSE);
  };
  box.addEventListener('input', (event) => {
    clearTimeout(timer);
    isPending = true;
    onTyping();
    if (!event.isComposing) wait();
  });
  box.addEventListener('compositionend', wait);
  box.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  });
  return { submit: () => submit(), drop, isPending: () => isPending };
}

/**
 * Hand on a file that is dropped on the page.
 * @param {Document} page
 * @param {(file: File) => void} onFile
 */
function takeDrops(page, onFile) {
  page.addEventListener('dragover', (event) => {
    if (event.dataTransfer?.types.includes('Files')) event.preventDefault();
  });
  page.addEventListener('drop', (event) => {
    const file = event.dataTransfer?.files[0];
    if (!file) return; // dragged words go where they are dropped
    event.preventDefault();
    onFile(file);
  });
}

/** Models of a family that are listed first, such as `sums` and `sums-direct`. */
const FIRST_OF_FAMILY = 2;

/** Group models by kind, if there are several kinds. @param {Card[]} models */
function groupsOf(models) {
  /** @param {Card} card */
  const option = ({ id, title, state, architecture = 'headlight' }) =>
    element(
      'option',
      { value: id },
      (title || id) +
        (architecture !== 'headlight' && state === 'not_loaded' ? ' (not loaded)' : ''),
    );
  const families = models.map(({ id }) => id.split('-')[0]); // the name says the family
  const [first, more] = [false, true].map((isMore) =>
    models.filter((_, index) => {
      const before = families.slice(0, index).filter((family) => family === families[index]);
      return before.length >= FIRST_OF_FAMILY === isMore;
    }),
  );
  const groups = [
    ...KINDS.map(([kind, label]) => ({ label, of: first.filter((card) => card.kind === kind) })),
    { label: 'More', of: more },
  ].filter(({ of }) => of.length > 0);
  if (groups.length < 2) return models.map(option);
  return groups.map(({ label, of }) => element('optgroup', { label }, of.map(option)));
}

/** @param {{id: string, reason: string}[]} unavailable */
function damaged(unavailable) {
  return unavailable.map(({ id, reason }) =>
    element('option', { value: id, disabled: true, title: reason }, `${id} (damaged)`),
  );
}

/**
 * Create the button of an example, with the score of its claim and the control.
 * @param {Example} example
 * @param {(example: Example, button: HTMLElement) => void} onExample
 */
function exampleButton(example, onExample) {
  const { title, text, claim } = example;
  const measured = claimInWords(claim);
  const options = {
    type: 'button',
    'data-text': text,
    /** @param {Event} event */
    onclick: ({ currentTarget }) => onExample(example, /** @type {HTMLElement} */ (currentTarget)),
  };
  if (!claim) return element('button', { ...options, title: text }, title);
  return element(
    'button',
    { ...options, title: `${text}\n${measured}`, 'aria-description': measured },
    title,
  );
}

/**
 * @param {import('../trace/card.js').Claim|null} [claim]
 * @returns {string} empty if an example claims nothing that was measured
 */
export function claimInWords(claim) {
  if (!claim) return '';
  const { measure, score, against, control, sentences } = claim;
  return `Measured over ${grouped(sentences)} samples: ${measure}, ${share(score, 2)} (${against}: ${share(control, 2)}).`;
}

/**
 * Return the distance of a foreign model's weights from those of its library, as its self-check
 * measured it.
 * @param {Card} card
 * @returns {string} empty for a model of this project
 */
export function exactness({ checks }) {
  const far = checks?.weights;
  if (far === undefined) return '';
  return far === 0 ? 'Matches Hugging Face exactly' : `Matches Hugging Face within ${small(far)}`;
}

/** @type {import('../trace/card.js').Normalization} */
export const NOTHING_CHANGED = { replacements: [], lowers_capitals: false };

const MOST_SPELLED = 3;

/**
 * Return the characters of a text that the tokenizer reads as others, and those that it spells in
 * bytes.
 *
 * @param {{text: string, tokens?: Pick<Token, 'part'>[]}} read
 * @param {import('../trace/card.js').Normalization} [normalization]
 * @returns {string} empty if it reads the text as it is
 */
export function readInText(
  { text, tokens = [] },
  { replacements, lowers_capitals: lowers } = NOTHING_CHANGED,
) {
  const readings = replacements.flatMap(({ characters, text: as }) => {
    const typed = [...characters].filter(
      (character) => character.trim() && text.includes(character),
    );
    return typed.length > 0 ? [`${typed.map(visible).join(' ')} as ${visible(as)}`] : [];
  });
  const isUpper = text === text.toUpperCase() && text !== text.toLowerCase();
  if (lowers && isUpper && /\p{L}{2}/u.test(text)) readings.push('capitals as small letters');
  const spelled = [...new Set(tokens.flatMap(({ part }) => part?.whole ?? []))];
  if (spelled.length > 0)
    readings.push(
      `${spelled.slice(0, MOST_SPELLED).map(visible).join(' ')}${spelled.length > MOST_SPELLED ? ' …' : ''} as bytes`,
    );
  return readings.length > 0 ? `reads ${readings.join(', ')}` : '';
}

/** Open the browser's dialog. @returns {Promise<File>} never settled if none is chosen */
export function chooseFile() {
  const input = element('input', { type: 'file', accept: 'text/*,.txt,.md' });
  return new Promise((resolve) => {
    input.addEventListener('change', () => {
      if (input.files?.[0]) resolve(input.files[0]);
    });
    input.click();
  });
}
