/**
 * A call of the API as a line for a shell.
 */

/**
 * @param {string} origin `http://127.0.0.1:8000`
 * @param {Object} body what is posted to `/api/v1/trace`
 * @returns {string} safe to paste: whatever a text holds stays within its quotes
 */
export function curlOf(origin, body) {
  const quoted = (text) => `'${text.replace(/'/g, String.raw`'\''`)}'`;
  return [
    `curl --silent ${quoted(`${origin}/api/v1/trace`)}`,
    `--header ${quoted('Content-Type: application/json')}`,
    `--data ${quoted(JSON.stringify(body))}`,
  ].join(' ');
}
