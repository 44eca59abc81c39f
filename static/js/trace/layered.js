/**
 * A trace of a text whose weights are too many for one answer: it has those of the layers that were
 * looked at. The others are arrays of the same shape without numbers, until they are asked for.
 */

/** The most numbers of weights that are kept: 128 MB. */
const MOST_NUMBERS = 32e6;
/** Read the weights of every layer, or are told of each layer by itself. */
const OF_ALL_LAYERS = ['head_labels', 'role_shares'];

/** @param {Card} card @param {number} layer */
const siteOf = ({ kind }, layer) =>
  `${kind === 'encoder' ? 'encoder' : 'decoder'}.layers.${layer}.self_attention.weights`;

/** Return true if a trace holds the numbers of an array. @param {NamedArray|undefined} array */
export function isHeld(array) {
  return Boolean(array && array.data.length > 0);
}

/**
 * Return a request with the weights of one layer in place of all; null: the model has three attentions.
 * @param {Ask} whole what all views need
 * @param {Card} card
 * @param {number|null} layer the chosen one, or one in the middle
 * @returns {Ask|null}
 */
export function layerFirst(whole, card, layer) {
  if (card.kind === 'encoder-decoder') return null;
  const first = Math.min(layer ?? card.n_layers >> 1, card.n_layers - 1);
  return {
    ...whole,
    capture: [
      siteOf(card, first),
      ...(whole.capture ?? []).filter((glob) => !glob.endsWith('.weights')),
    ],
    analyses: whole.analyses?.filter((name) => !OF_ALL_LAYERS.includes(name)),
  };
}

/** Return a request for the weights of one layer more. @param {Card} card @param {number} layer @returns {Ask} */
export function layerAsk(card, layer) {
  return { capture: [siteOf(card, layer)], analyses: [] };
}

/**
 * Return the trace of one layer with all others named, without their numbers.
 * @param {Trace} trace
 * @param {Card} card
 * @returns {Trace}
 */
export function withAllLayers(trace, card) {
  const held = Object.keys(trace.tensors).find((site) => site.endsWith('.weights')) ?? '';
  const empty = { ...trace.tensors[held], data: new Float32Array(0) };
  const named = Array.from({ length: card.n_layers }, (_, layer) => [siteOf(card, layer), empty]);
  return { ...trace, isLayered: true, tensors: { ...Object.fromEntries(named), ...trace.tensors } };
}

/**
 * Return a trace with the weights of one layer more; the layers that came first are dropped if all
 * are too many.
 * @param {Trace} trace
 * @param {Trace} answer
 * @returns {Trace}
 */
export function joined(trace, answer) {
  const tensors = { ...trace.tensors };
  for (const site of Object.keys(answer.tensors)) {
    delete tensors[site]; // the youngest comes last
    tensors[site] = answer.tensors[site];
  }
  const held = Object.keys(tensors).filter(
    (site) => site.endsWith('.weights') && isHeld(tensors[site]),
  );
  let numbers = held.reduce((sum, site) => sum + tensors[site].data.length, 0);
  for (const site of held.slice(0, -1)) {
    if (numbers <= MOST_NUMBERS) break;
    numbers -= tensors[site].data.length;
    tensors[site] = { ...tensors[site], data: new Float32Array(0) };
  }
  return { ...trace, tensors };
}
