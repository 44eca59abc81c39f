/** Residual connections and layer norm: gradients by layer of five ways to stack layers. */

import { counted } from '../../words/lists.js';
import { decimal, grouped } from '../../words/numbers.js';
import { layersPicture, rowCurves, warm } from '../../plot/curves.js';

/**
 * @import { Arrays, ExperimentView, Picture, Result } from '../../rules/experiment.js'
 * @import { Curve } from '../../plot/curves.js'
 * @import { Size } from '../../plot/map.js'
 */

/** @type {Record<string, string>} */
const NAMES = {
  plain: 'F(x)',
  norm: 'LN(F(x))',
  residual: 'x + F(x)',
  post: 'LN(x + F(x))',
  pre: 'x + F(LN(x))',
};

/** @type {ExperimentView} */
export const experiment = {
  id: 'depth',
  main: ['n_layers', 'scale', 'd_model', 'n_tokens'],
  finding,
  pictures,
};

/** @param {number} value @returns {string} `32,800`, `1.56`, `3.7·10⁻⁵` */
function factorIn(value) {
  return value >= 100 ? grouped(Number(value.toPrecision(3))) : decimal(value, 2);
}

/** @param {Result} result */
function finding({ arrays }) {
  const { variant, stream_gradient: gradient, layer } = arrays;
  /** @param {string} name first layer over last */
  const ratio = (name) => {
    const norms = gradient.data[variant.data.indexOf(name)];
    return factorIn((norms[0] ?? NaN) / (norms.at(-1) ?? NaN));
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
    layersPicture({ id, over, ...words }, arrays, (size) => curvesOf(arrays, id, size));
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

/** @param {Arrays} arrays @param {string} name @param {Size} size @returns {Curve[]} */
function curvesOf(arrays, name, { palette }) {
  /** @type {Record<string, Partial<Curve>>} */
  const looks = {
    plain: { colour: palette.muted, dash: 'dot' },
    norm: { colour: palette.key },
    residual: { colour: palette.ink },
    post: { colour: palette.query },
    pre: { colour: warm(palette), width: 3.5 },
  };
  return rowCurves(arrays.variant, arrays[name], NAMES, looks);
}
