/**
 * What the experts take of the training text, as a model's card has it.
 */

/**
 * @typedef {{text: string, share: number, count: number}} TakenToken of its `count` occurrences, `share` go to the expert
 * @typedef {{share: number, kinds: Record<string, number>, tokens: TakenToken[]}} Takes
 */

/** Kinds that say nothing to a reader. */
const UNTOLD = ['other'];

/**
 * @param {import('./trace.js').Trace} trace
 * @param {string} stack
 * @param {number} layer
 * @returns {Takes[]|null} expert by expert; null where the card does not say
 */
export function takesOf({ card }, stack, layer) {
  return card?.expert_tokens?.layers?.[`${stack}.layers.${layer}`] ?? null;
}

/**
 * The kinds of token that the card tells, in its order.
 * @param {Object} card
 * @returns {string[]}
 */
export function kindsOf({ expert_tokens: { kinds } }) {
  return Object.keys(kinds).filter((kind) => !UNTOLD.includes(kind));
}

/** @param {string} kind @returns {string} `start of word` */
export function kindInWords(kind) {
  return kind.replace(/_/g, ' ');
}

/**
 * How often a token stands in a text, and how often it goes to an expert there.
 * @param {import('./trace.js').Token[]} tokens
 * @param {string} text
 * @param {import('./routing.js').Routing} routing
 * @param {number} expert
 * @returns {{places: number[], went: number}}
 */
export function occurrencesOf(tokens, text, routing, expert) {
  const places = tokens.flatMap((token, index) =>
    token.text === text && !token.is_special ? [index] : [],
  );
  return {
    places,
    went: places.filter((index) => routing.weightOf(expert, index) !== undefined).length,
  };
}
