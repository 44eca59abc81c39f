/** Questions for the models that multiply: what they read, and other ways to write it. */

const QUESTION = /^\d+\*\d+=/;
/** Two factors, with a sign between them and perhaps an equals sign, spaces anywhere. */
const WRITTEN = /^(\d+)[*×✕·xX](\d+)(=?)(.*)$/;
const DIGITS = 2;

/** @param {Pick<Card, 'examples'>|null} card @returns {boolean} Do all its examples ask for a product? */
export function multiplies(card) {
  const examples = card?.examples ?? [];
  return examples.length > 0 && examples.every(({ text }) => QUESTION.test(text));
}

/** A sign between numbers; one of a date, a telephone number or “24/7” needs spaces or an equals sign. */
const CALCULATION = /\d\s*[+*×✕·÷^]\s*\d|\d\s+[-−–/xX]\s+\d|\d[-−/xX]\d+\s*=/;

/** @param {string} text @returns {boolean} Does it hold a calculation, such as `2+2=` or `12 / 4`? */
export const isCalculation = (text) => CALCULATION.test(text);

/**
 * Return a question as the models read it: `47 x 23`, `47×23=` and `47 * 23` are `47*23=`.
 * @param {string} text
 * @returns {string} the text itself if it is no product; without an equals sign that it has not
 *   unless both factors have two digits, as the second may still be being typed
 */
export function asQuestion(text) {
  const [, first, second, equals, rest] = text.replace(/\s+/g, '').match(WRITTEN) ?? [];
  if (first === undefined || (rest && !equals)) return text;
  const isWhole = first.length === DIGITS && second.length === DIGITS;
  return `${first}*${second}${equals || (isWhole ? '=' : '')}${rest}`;
}

/**
 * Return whether a text asks for what the models have learned.
 * @param {string} text as `asQuestion` returns it
 */
export function isLearnedQuestion(text) {
  const [, first, second] = text.match(/^(\d+)\*(\d+)(?:=|$)/) ?? [];
  return (
    first?.length === DIGITS &&
    second?.length === DIGITS &&
    !first.startsWith('0') &&
    !second.startsWith('0')
  );
}
