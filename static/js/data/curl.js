/**
 * A call of the API as a line for a shell.
 */

/**
 * @param {string} origin `http://127.0.0.1:8000`
 * @param {import('./call.js').Call} call
 * @returns {string} safe to paste: whatever a text holds stays within its quotes
 */
export function curlOf(origin, { path, body }) {
  const quoted = (text) => `'${text.replace(/'/g, String.raw`'\''`)}'`;
  const posted = body && [
    `--header ${quoted('Content-Type: application/json')}`,
    `--data ${quoted(JSON.stringify(body))}`,
  ];
  return [`curl --silent ${quoted(origin + path)}`, ...(posted ?? [])].join(' ');
}

/**
 * @param {string} origin
 * @param {import('./call.js').Call[]} calls
 * @param {import('./steps.js').Made} [made]
 * @returns {string} a line for each, and one that says what the page does with what they answer
 */
export function commandsOf(origin, calls, made) {
  return [...calls.map((call) => curlOf(origin, call)), ...(made ? [`# ${made.said}`] : [])].join(
    '\n',
  );
}
