/**
 * The conversation that the state holds: its earlier messages as JSON in `chat`, and the text of the
 * box as the last one. Without `chat` the box holds a plain text.
 */

/** @typedef {{chat?: string, pair?: string, text?: string|null, read_special?: boolean}} Said the parts of the state that say what is read */

/** @param {Said} state @returns {MessageRequest[]|null} those before the box's; null: a plain text */
export function earlierIn({ chat }) {
  if (!chat) return null;
  try {
    const messages = JSON.parse(chat);
    const isWhole = (/** @type {any} */ each) =>
      typeof each?.role === 'string' && typeof each.content === 'string';
    return Array.isArray(messages) && messages.every(isWhole) ? messages : null;
  } catch {
    return null;
  }
}

/**
 * Return the part of a request that says what the model reads.
 * @param {Said} state
 * @returns {{messages: MessageRequest[]}|{text: string, text_pair?: string, read_special_tokens?: true}}
 */
export function readIn(state) {
  const [earlier, text] = [earlierIn(state), state.text ?? ''];
  const { pair = '' } = state;
  if (!earlier) {
    const isPair = text.trim() !== '' && pair.trim() !== '';
    return {
      text,
      ...(isPair && { text_pair: pair }),
      ...(state.read_special && { read_special_tokens: true }),
    };
  }
  const last = text.trim() === '' ? [] : [{ role: /** @type {const} */ ('user'), content: text }];
  return { messages: [...earlier, ...last] };
}

/**
 * Return the same of a trace: what it was asked for with.
 * @param {{text: string, asked?: Record<string, any>}} trace
 */
export function readBy({ text, asked }) {
  if (asked?.messages) return { messages: asked.messages };
  if (asked?.text_pair) return { text: asked.text, text_pair: asked.text_pair };
  return { text, ...(asked?.read_special_tokens && { read_special_tokens: true }) };
}

/** Return true if a trace is of what the state says. @param {{text: string, asked?: Record<string, any>}} trace @param {Said} state */
export function isOf(trace, state) {
  return JSON.stringify(readBy(trace)) === JSON.stringify(readIn(state));
}

/** @param {MessageRequest[]} messages @param {string} content '' for none @returns {MessageRequest[]} */
export function withSystem(messages, content) {
  const others = messages.filter(({ role }) => role !== 'system');
  return content.trim() === '' ? others : [{ role: 'system', content }, ...others];
}
