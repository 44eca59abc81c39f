/** Residual connections and layer norm: gradients by layer of five ways to stack layers. */

import { counted } from '../../words/lists.js';
import { rough } from '../../words/numbers.js';
import { layersPicture, rowCurves } from '../../plot/curves.js';

/**
 * @import { Picture } from '../../rules/experiment.js'
 * @import { Look } from '../../plot/curves.js'
 */

/** @type {Record<string, Look>} */
const LOOKS = {
  plain: { name: 'F(x)', colour: 'muted', dash: 'dot' },
  norm: { name: 'LN(F(x))', colour: 'key' },
  residual: { name: 'x + F(x)', colour: 'ink' },
  post: { name: 'LN(x + F(x))', colour: 'query' },
  pre: { name: 'x + F(LN(x))', colour: 'warm', width: 3.5 },
};

/** @type {ExperimentView} */
export const experiment = {
  id: 'depth',
  main: ['n_layers', 'scale', 'd_model', 'n_tokens'],
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays }) {
  const { variant, stream_gradient: gradient, layer } = arrays;
  /** @param {string} name first layer over last */
  const ratio = (name) => {
    const norms = gradient.data[variant.data.indexOf(name)];
    return rough((norms[0] ?? NaN) / (norms.at(-1) ?? NaN));
  };
  return (
    `From the last of ${counted(layer.data.length, 'layer')} back to the first, the gradient is multiplied by ${ratio('plain')} ` +
    `in F(x), by ${ratio('norm')} in LN(F(x)), by ${ratio('residual')} in x + F(x), by ${ratio('post')} in LN(x + F(x)), post-norm, ` +
    `and by ${ratio('pre')} in x + F(LN(x)), pre-norm.`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays }) {
  const over = 'by layer, for five ways to stack layers';
  /** @param {string} id @param {{title: string, help: string, up: string, isWide?: boolean}} words */
  const picture = (id, words) =>
    layersPicture({ id, over, ...words }, arrays, (size) =>
      rowCurves(arrays.variant, arrays[id], LOOKS, size),
    );
  return [
    picture('stream_gradient', {
      title: 'The gradient that reaches each layer',
      help: 'Norm of the gradient of the loss by the input of each layer. Backpropagation goes from right to left: a curve that falls towards layer 0 leaves the first layers without a signal.',
      up: 'gradient',
      isWide: true,
    }),
    picture('weight_gradient', {
      title: 'The gradient of the weights',
      help: 'Norm of the gradient of the loss by the matrices of each layer: what an optimizer gets to see.',
      up: 'gradient',
    }),
    picture('stream_size', {
      title: 'The size of the stream',
      help: 'Root mean square of the numbers that enter each layer. Residual sums grow with depth; a norm after the sum resets them.',
      up: 'root mean square',
    }),
  ];
}
