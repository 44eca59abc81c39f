/** Draw 10,000 heads as points, without a browser: milliseconds of a figure, and of one of a filter. */

import { sky } from '../../static/js/views/sky/sky.js';
import { FRAME, sampleTrace } from '../js/sample.js';

const [SIDE, ROUNDS] = [100, 9];
const sample = sampleTrace();
const n = sample.tokens.length;
const numbers = Float32Array.from({ length: SIDE * n * n }, (_, at) => ((at * 7919) % 1009) / 1009);
const weights = { axes: [], shape: [SIDE, n, n], data: numbers, scale: 1 };
const head = (at) => ({
  ...{ labels: at % 3 ? [] : ['previous'], entropy: at % 7, distance: at % 11, cost: at / 9e5 },
  scores: { sink: { score: numbers[at % 1009], control: 0.1 } },
});
const sides = Array.from({ length: SIDE }, (_, at) => at);
const paths = sides.map((layer) => `decoder.layers.${layer}.self_attention`);
const attentions = Object.fromEntries(
  paths.map((path, layer) => [path, sides.map((at) => head(layer * SIDE + at))]),
);
const heads = { sentences: 64, text: ['sample.txt'], controlled: {}, attentions };
const state = {
  ...{ ...FRAME, sky_x: '', sky_y: '', sky_size: 'cost', sky_colour: 'label' },
  answers: { card: { trace: { card: { heads } } } },
};
const trace = () => ({
  ...sample,
  tensors: Object.fromEntries(paths.map((path) => [`${path}.weights`, weights])),
});

/** Return the median of the milliseconds of a figure of a trace that `make` returns, and its points. */
function median(make, sky_only) {
  let points = 0;
  const times = sides.slice(0, ROUNDS).map(() => {
    const [drawn, began] = [make(), performance.now()];
    points = sky.figure(drawn, { ...state, sky_only }).data.at(-1).x.length;
    return performance.now() - began;
  });
  return { took: times.sort((a, b) => a - b)[(ROUNDS - 1) / 2], points };
}

const one = trace();
const filter = median(() => one, 'sink >= 0.5, entropy < 3');
console.log(JSON.stringify({ figure: median(trace, ''), filter }));
