/**
 * The conversation below the box: its earlier turns, the system prompt, folded, and the answer, which
 * is written token by token. Next to it the switch by which typed special tokens are read.
 */

import { messageOf } from '../api/calls.js';
import { streamGeneration } from '../api/generation.js';
import { earlierIn, readIn, withSystem } from '../state/conversation.js';
import { button, element } from './dom.js';

const MOST_TOKENS = 200;

/** @param {HTMLElement} host @param {{onState: (patch: Patch) => void}} by */
export function createConversation(host, { onState }) {
  /** @type {{state: State, model: string}} */
  let now;
  let controller = new AbortController();
  let drawn = '';
  /** @param {MessageRequest[]} messages @param {string} [text] */
  const keep = (messages, text = now.state.text ?? '') =>
    onState({ chat: JSON.stringify(messages), text });
  /** @param {Event} event */
  const valueOf = ({ currentTarget }) => /** @type {HTMLInputElement} */ (currentTarget).value;

  /** @param {HTMLElement} line @param {HTMLButtonElement} act */
  async function answer(line, act) {
    const said = readIn(now.state);
    if (!('messages' in said) || said.messages.length === 0) return;
    controller = new AbortController();
    act.textContent = 'Stop';
    let text = '';
    try {
      const wanted = { model: now.model, ...said, n_tokens: MOST_TOKENS, temperature: 0 };
      for await (const { event, data } of streamGeneration(wanted, controller.signal)) {
        if (event === 'end') ({ text } = data);
        else if (event === 'token' && !data.is_special) text += data.text;
        line.textContent = text;
      }
    } catch (error) {
      if (!controller.signal.aborted) line.textContent = messageOf(error);
      else if (text) keep([...said.messages, { role: 'assistant', content: text }], '');
      act.textContent = 'Answer';
      return;
    }
    keep([...said.messages, { role: 'assistant', content: text }], '');
  }

  /** @param {MessageRequest[]} messages */
  function turns(messages) {
    const rows = messages.map(({ role, content }, at) =>
      role === 'system'
        ? null
        : element(
            'li',
            { 'data-role': role },
            element('label', { for: `turn-${at}` }, role),
            element(
              'textarea',
              {
                id: `turn-${at}`,
                rows: Math.min(4, Math.ceil(content.length / 70)) || 1,
                onchange: (/** @type {Event} */ event) =>
                  keep(messages.with(at, { role, content: valueOf(event) })),
              },
              content,
            ),
            button('×', () => keep(messages.toSpliced(at, 1)), { title: 'Leave this turn out' }),
          ),
    );
    const system = messages.find(({ role }) => role === 'system')?.content ?? '';
    const line = element('p.answer', { role: 'status' });
    const act = button('Answer', () =>
      act.textContent === 'Stop' ? controller.abort() : answer(line, act),
    );
    return [
      systemPrompt(system, messages.length === 1, (event) =>
        keep(withSystem(messages, valueOf(event))),
      ),
      rows.length > 0 && element('ol', rows),
      line,
      element(
        'div.acts',
        act,
        button('Start over', () => keep(withSystem([], system), '')),
      ),
    ];
  }

  return {
    /** @param {State} state @param {Card} card */
    show(state, card) {
      now = { state, model: card.id };
      const earlier = earlierIn(state);
      const isForeign = (card.architecture ?? 'headlight') !== 'headlight';
      const isOffered = earlier !== null || Boolean(card.features?.includes('chat'));
      const takesPairs = Boolean(card.features?.includes('pairs'));
      const { chat, pair, read_special: isRead } = state;
      const mayHold = isForeign && (isRead || /[<[]/.test(state.text ?? '')); // special tokens
      host.hidden = !isOffered && !takesPairs && !mayHold;
      const key = JSON.stringify([card.id, isOffered, takesPairs, mayHold, chat, pair, isRead]);
      if (key === drawn) return;
      drawn = key;
      controller.abort();
      const parts = [
        isOffered &&
          toggle('Conversation', earlier !== null, (is) => onState({ chat: is ? '[]' : '' })),
        takesPairs && secondBox(pair, onState),
        ...(earlier ? turns(earlier) : []),
        mayHold &&
          !earlier &&
          toggle(
            `Read special tokens: ${isRead ? 'one that is typed is that token' : 'off, one that is typed is words'}`,
            Boolean(isRead),
            (is) => onState({ read_special: is }),
          ),
      ];
      host.replaceChildren(...parts.filter((part) => part instanceof Node));
    },
  };
}

/** @param {string} system @param {boolean} isAlone @param {(event: Event) => void} onchange */
function systemPrompt(system, isAlone, onchange) {
  return element(
    'details',
    { open: system !== '' && isAlone },
    element('summary', system ? 'System prompt' : 'System prompt: the template’s own'),
    element('textarea', { 'aria-label': 'System prompt', rows: 2, onchange }, system),
  );
}

/** @param {string} pair @param {(patch: Patch) => void} onState */
function secondBox(pair, onState) {
  const box = element('input', { type: 'text', id: 'pair', value: pair, maxlength: 8000 });
  box.addEventListener('change', () => onState({ pair: box.value }));
  return element('label.pair', 'Second sentence ', box);
}

/** @param {string} label @param {boolean} checked @param {(is: boolean) => void} onChange */
function toggle(label, checked, onChange) {
  const box = element('input', { type: 'checkbox', checked });
  box.addEventListener('change', () => onChange(box.checked));
  return element('label.toggle', box, ` ${label}`);
}
