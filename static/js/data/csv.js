/**
 * A grid as comma-separated values (RFC 4180).
 */

/**
 * @param {string[][]} rows
 * @returns {string}
 */
export function csv(rows) {
  return rows.map((row) => row.map(field).join(',')).join('\r\n') + '\r\n';
}

/** A leading = + - @ would run as a formula in a spreadsheet; a tab before it keeps it text. */
function field(text) {
  const isNumber = text.trim() !== '' && Number.isFinite(Number(text));
  const safe = /^[=+\-@]/.test(text) && !isNumber ? `\t${text}` : text;
  return /[",\r\n\t]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}
