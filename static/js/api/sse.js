/**
 * Server-Sent Events out of the body of any answer: the browser's own EventSource can only ask with
 * GET. https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 */

/** @typedef {{event: string, data: string}} ServerSentEvent */

const LINE_END = /\r\n|\r|\n/g;

/**
 * Puts events together from text that comes in pieces of any size.
 * @param {(event: ServerSentEvent) => void} onEvent
 * @returns {{push: (text: string) => void}} what is left unfinished at the end is no event
 */
export function createSseParser(onEvent) {
  let unfinished = '';
  let isAfterReturn = false; // of a line end that may be cut in two
  let event = '';
  let data = [];

  function dispatch() {
    if (data.length > 0) onEvent({ event: event || 'message', data: data.join('\n') });
    event = '';
    data = [];
  }

  function read(line) {
    if (line === '') {
      dispatch();
      return;
    }
    const colon = line.indexOf(':');
    const [field, value] =
      colon < 0 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
    if (field === 'data') data.push(value);
    else if (field === 'event') event = value; // other fields, and comments, say nothing here
  }

  return {
    push(text) {
      if (text === '') return;
      const fresh = isAfterReturn && text.startsWith('\n') ? text.slice(1) : text;
      isAfterReturn = text.endsWith('\r');
      const lines = (unfinished + fresh).split(LINE_END);
      unfinished = lines.pop();
      lines.forEach(read);
    },
  };
}

/**
 * The events of an answer, as they arrive. Who stops reading them cancels the answer.
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<ServerSentEvent>}
 */
export async function* eventsOf(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const arrived = [];
  const parser = createSseParser((event) => arrived.push(event));
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.push(decoder.decode(value, { stream: true }));
      yield* arrived.splice(0);
    }
  } finally {
    reader.cancel().catch(() => {}); // it may have failed, or be over
  }
}
