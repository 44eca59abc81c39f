/**
 * The residual stream by depth, one row per step through the model.
 */

/** @typedef {Record<string, NamedArray>} StreamArrays what `residual_stream` gives */

/**
 * @typedef {Object} Step
 * @property {string} title on an axis: `0, attention`
 * @property {string} name in a sentence: `the attention of layer 0`
 */

/** @typedef {{steps: Step[], matrix: Matrix}} Depth steps by positions */

const PARTS = ['self_attention', 'cross_attention', 'feed_forward'];
const PLACES = ['before', 'between', 'middle', 'after'];
/** @type {Record<string, string>} */
const TITLES = {
  self_attention: 'attention',
  cross_attention: 'cross-attention',
  feed_forward: 'feed-forward',
};

/**
 * Return the norm of the stream after the embedding and after every part of every layer.
 * @param {StreamArrays} arrays
 * @param {'encoder'|'decoder'} stack
 * @param {Card} [card]
 * @returns {Depth}
 */
export function streamDepth(arrays, stack, card) {
  const places = PLACES.filter((place) => `${stack}.residual_norm.${place}` in arrays);
  /** @param {string} place @param {number} layer */
  const at = (place, layer) => rowAt(arrays[`${stack}.residual_norm.${place}`], layer);
  const parts = partsIn(arrays, stack);
  const rows = eachWrite(arrays, stack, card).map(({ step, part, layer }) => ({
    step: { title: step.title, name: `after ${step.name}` },
    row: at(places[parts.indexOf(part) + 1], layer),
  }));
  return depthOf([
    { step: { title: 'embedding', name: 'after the embedding' }, row: at('before', 0) },
    ...rows,
  ]);
}

/**
 * Return the norm of the vector that every part of every layer adds.
 * @param {StreamArrays} arrays
 * @param {'encoder'|'decoder'} stack
 * @param {Card} [card]
 * @returns {Depth}
 */
export function writtenDepth(arrays, stack, card) {
  return depthOf(
    eachWrite(arrays, stack, card).map(({ step, part, layer }) => ({
      step,
      row: rowAt(arrays[`${stack}.written_norm.${part}`], layer),
    })),
  );
}

/** @param {StreamArrays} arrays @param {string} stack */
function partsIn(arrays, stack) {
  return PARTS.filter((part) => `${stack}.written_norm.${part}` in arrays);
}

/** @param {StreamArrays} arrays @param {string} stack @param {Card|undefined} card */
function eachWrite(arrays, stack, card) {
  const parts = partsIn(arrays, stack);
  const layers = arrays[`${stack}.residual_norm.before`].shape[0];
  return Array.from({ length: layers }, (_, layer) =>
    parts.map((part) => ({ part, layer, step: stepOf(part, layer, card) })),
  ).flat();
}

/** @param {string} part @param {number} layer @param {Card|undefined} card */
function stepOf(part, layer, card) {
  const title =
    part === 'feed_forward' && card?.moe?.layers.includes(layer) ? 'experts' : TITLES[part];
  return {
    title: `${layer}, ${title}`,
    name: `the ${title === 'feed-forward' ? 'feed-forward network' : title} of layer ${layer}`,
  };
}

/** @param {NamedArray} array @param {number} layer */
function rowAt({ shape, data, scale }, layer) {
  const columns = shape[shape.length - 1];
  return Float64Array.from(
    { length: columns },
    (_, column) => data[layer * columns + column] * scale,
  );
}

/** @param {{step: Step, row: Float64Array}[]} rows @returns {Depth} */
function depthOf(rows) {
  const columns = rows[0].row.length;
  const data = new Float64Array(rows.length * columns);
  rows.forEach(({ row }, index) => data.set(row, index * columns));
  return { steps: rows.map(({ step }) => step), matrix: { rows: rows.length, columns, data } };
}
