/** The experiment on costs: a loop and a product, fused kernels, and experts. */

import { numbersIn } from '../../rules/experiment.js';
import { amount, grouped, inBytes, rough } from '../../words/numbers.js';
import { barPicture } from '../../plot/bar_picture.js';
import { curvesPicture, warm } from '../../plot/curves.js';

/** @import { Picture } from '../../rules/experiment.js' */

/** @type {ExperimentView} */
export const experiment = {
  id: 'cost',
  main: ['n_tokens', 'd_model', 'megabytes', 'n_experts', 'top_k'],
  isMeasured: true,
  finding,
  pictures,
};

/** @param {number} seconds @returns {string} `23 µs`, `1.5 ms`, `2.1 s` */
function timeOf(seconds) {
  if (seconds < 0.9995e-3) return `${amount(seconds * 1e6)} µs`;
  return seconds < 1 ? `${amount(seconds * 1e3)} ms` : `${amount(seconds)} s`;
}

/** @param {Result} result */
function finding({ arrays }) {
  const [loop, product] = arrays.way_seconds.data;
  const whole = arrays.all_parameters.data.at(-1);
  const active = arrays.active_parameters.data.at(-1);
  const measured = arrays.kernel_seconds
    ? `One pass over memory takes ${timeOf(arrays.kernel_seconds.data[1])} in place of ${timeOf(arrays.kernel_seconds.data[0])}, and moves ${inBytes(arrays.traffic.data[1])} in place of ${inBytes(arrays.traffic.data[0])}. `
    : 'The kernels are being measured. ';
  return (
    `Measured on this server just now: the product is ${rough(loop / product)} times as fast as the loop. ${measured}` +
    `Of ${amount(whole / 1e6)} million parameters a token uses ${amount(active / 1e6)} million.`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays }) {
  const kernels = arrays.kernel?.data;
  return [
    ...(kernels
      ? [
          bars({
            id: 'kernels',
            title: 'One kernel in place of five',
            help: 'The same arithmetic. Eager: operation by operation. Time falls less than traffic does, for arithmetic and the calls stay.',
            labels: kernels,
            values: numbersIn(arrays.kernel_seconds.data),
            of: 'seconds',
            write: timeOf,
          }),
          bars({
            id: 'traffic',
            title: 'What they move through memory',
            help: 'Bytes read and written, counted from what each kernel needs.',
            labels: kernels,
            values: numbersIn(arrays.traffic.data),
            of: 'bytes',
            write: inBytes,
          }),
        ]
      : []),
    bars({
      id: 'ways',
      title: 'A loop and a matrix product',
      help: `${grouped(arrays.multiplications.data)} multiplications each. The scale is logarithmic.`,
      labels: arrays.way.data,
      values: numbersIn(arrays.way_seconds.data),
      of: 'seconds',
      write: timeOf,
      isLog: true,
    }),
    expertsChart(arrays),
  ];
}

/**
 * @param {{id: string, title: string, help: string, labels: string[], values: number[], of: string, write: (value: number) => string, isLog?: boolean}} told
 * @returns {Picture}
 */
function bars({ id, title, help, labels, values, of, write, isLog = false }) {
  const most = Math.max(...values);
  const least = Math.min(...values) / 3;
  const decades = isLog ? powersOfTen(least, most) : [];
  const told = labels.map((label, at) => `${label} ${write(values[at])}`);
  return barPicture({
    id,
    title,
    help,
    summary: `${title}: ${told.join(', ')}.`,
    labels,
    values,
    of: '',
    ...(isLog && { length: (value) => Math.log10(value / least) }),
    axis: {
      title: isLog ? `${of}, logarithmic` : of,
      domain: [0, (isLog ? Math.log10(most / least) : most) * 1.02],
      ticks: decades.map((power) => Math.log10(power / least)),
      write: (at) => write(least * 10 ** at),
    },
    fill: (_, palette) => warm(palette),
    format: write,
    row: 34,
    quantity: of,
  });
}

/** @param {number} least @param {number} most @returns {number[]} those between */
function powersOfTen(least, most) {
  const first = Math.ceil(Math.log10(least));
  const count = Math.floor(Math.log10(most)) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, at) => 10 ** (first + at));
}

/** @param {Arrays} arrays */
function expertsChart(arrays) {
  const write = (/** @type {number} */ value) => `${amount(value / 1e6)} million`;
  return curvesPicture({
    id: 'experts',
    title: 'Parameters there are, and those in use',
    summary: 'All and active parameters by the number of experts.',
    help: 'A token is sent to a few experts of each layer. The router grows with the experts, so the lower line rises a little.',
    x: numbersIn(arrays.experts.data),
    across: { title: 'experts in a layer' },
    up: { title: 'parameters', write: (value) => `${amount(value / 1e6)} M` },
    quantity: 'parameters',
    format: write,
    curves: { all: arrays.all_parameters.data, active: arrays.active_parameters.data },
  });
}
