/** The experiment on costs: a loop and a product, a cache, fused kernels, and experts. */

import { numbersIn } from '../../rules/experiment.js';
import { amount, grouped, inBytes } from '../../words/numbers.js';
import { chart } from '../../plot/chart.js';
import { curvesPicture, plainCurve, strongCurve, warm } from '../../plot/curves.js';
import { bar } from '../../plot/marks/bar.js';
import { band, linear } from '../../plot/scales.js';

/**
 * @import { Arrays, ExperimentView, Picture, Result } from '../../rules/experiment.js'
 * @import { Size } from '../../plot/map.js'
 */

/** @type {ExperimentView} */
export const experiment = {
  id: 'cost',
  main: ['n_tokens', 'd_model', 'length', 'megabytes', 'is_compiled', 'n_experts', 'top_k'],
  isMeasured: true,
  finding,
  pictures,
};

/** @param {number} seconds @returns {string} `23 µs`, `1.5 ms`, `2.1 s` */
function timeOf(seconds) {
  if (seconds < 0.9995e-3) return `${amount(seconds * 1e6)} µs`;
  return seconds < 1 ? `${amount(seconds * 1e3)} ms` : `${amount(seconds)} s`;
}

/** @param {number} value @returns {string} `1.5`, `23`, `1,230` */
function times(value) {
  return value >= 100 ? grouped(Number(value.toPrecision(3))) : amount(value, 2);
}

/** @param {Result} result */
function finding({ arrays, values }) {
  const [loop, product] = arrays.way_seconds.data;
  const [again, cached] = arrays.writing_seconds.data;
  const whole = arrays.all_parameters.data.at(-1);
  const active = arrays.active_parameters.data.at(-1);
  const measured = arrays.kernel_seconds
    ? `One pass over memory takes ${timeOf(arrays.kernel_seconds.data[1])} in place of ${timeOf(arrays.kernel_seconds.data[0])}, and moves ${inBytes(arrays.traffic.data[1])} in place of ${inBytes(arrays.traffic.data[0])}. `
    : 'The kernels are being measured. ';
  const problem = arrays.compile_problem?.data
    ? `It could not be compiled: ${arrays.compile_problem.data}. `
    : '';
  return (
    `Measured on this server just now: the product is ${times(loop / product)} times as fast as the loop, and a cache writes ` +
    `${grouped(values.length ?? arrays.length.data.length)} tokens ${times(again / cached)} times as fast, less than it saves multiplications, for each step has a cost of its own. ${measured}${problem}` +
    `Of ${amount(whole / 1e6)} million parameters a token uses ${amount(active / 1e6)} million.`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays }) {
  return [
    ...(arrays.kernel_seconds
      ? [
          {
            id: 'kernels',
            draw: (/** @type {Size} */ size) =>
              bars(
                {
                  title: 'One kernel in place of five',
                  help: 'The same arithmetic. Eager: operation by operation. Time falls less than traffic does, for arithmetic and the calls stay.',
                  labels: arrays.kernel.data,
                  values: numbersIn(arrays.kernel_seconds.data),
                  title2: 'seconds',
                  write: timeOf,
                },
                size,
              ),
          },
          {
            id: 'traffic',
            draw: (/** @type {Size} */ size) =>
              bars(
                {
                  title: 'What they move through memory',
                  help: 'Bytes read and written, counted from what each kernel needs.',
                  labels: arrays.kernel.data,
                  values: numbersIn(arrays.traffic.data),
                  title2: 'bytes',
                  write: inBytes,
                },
                size,
              ),
          },
        ]
      : []),
    {
      id: 'ways',
      draw: (size) =>
        bars(
          {
            title: 'A loop and a matrix product',
            help: `${grouped(arrays.multiplications.data)} multiplications each. The scale is logarithmic.`,
            labels: arrays.way.data,
            values: numbersIn(arrays.way_seconds.data),
            title2: 'seconds',
            write: timeOf,
            isLog: true,
          },
          size,
        ),
    },
    cacheChart(arrays),
    expertsChart(arrays),
  ];
}

/**
 * @param {{title: string, help: string, labels: string[], values: number[], title2: string, write: (value: number) => string, isLog?: boolean}} of
 * @param {Size} size
 */
function bars({ title, help, labels, values, title2, write, isLog = false }, size) {
  const most = Math.max(...values);
  const least = Math.min(...values) / 3;
  const shown = values.map((value) => (isLog ? Math.log10(value / least) : value));
  const end = isLog ? Math.log10(most / least) : most;
  const decades = isLog ? powersOfTen(least, most) : [];
  const data = labels.map((label, at) => ({ label, value: values[at], shown: shown[at] }));
  return {
    title,
    help,
    summary: `${title}: ${data.map(({ label, value }) => `${label} ${write(value)}`).join(', ')}.`,
    ...chart(
      {
        x: linear(isLog ? `${title2}, logarithmic` : title2, {
          domain: [0, end * 1.02],
          ticks: decades.map((power) => Math.log10(power / least)),
          write: (at) => write(least * 10 ** at),
        }),
        y: band(labels, { title: '' }),
        marks: [
          bar(data, {
            length: ({ shown: length }) => length,
            value: ({ value }) => value,
            fill: warm(size.palette),
            text: ({ value }) => write(value),
            isPast: true,
            name: ({ label }) => label,
            format: write,
          }),
        ],
        size: { row: 34 },
        table: {
          rows: { title: '', labels },
          columns: { title: title2, labels: [title2] },
          quantity: title2,
        },
      },
      size,
    ),
  };
}

/** @param {number} least @param {number} most @returns {number[]} those between */
function powersOfTen(least, most) {
  const first = Math.ceil(Math.log10(least));
  const count = Math.floor(Math.log10(most)) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, at) => 10 ** (first + at));
}

/** @param {Arrays} arrays */
function cacheChart(arrays) {
  const lengths = numbersIn(arrays.length.data);
  const [again, cached] = arrays.writing_seconds.data;
  return curvesPicture({
    id: 'cache',
    title: 'A step with a cache, and without',
    summary: 'The multiplications of each step of writing, with and without a cache.',
    help: `Multiplications of one layer in each step. Measured for the whole text: ${timeOf(again)} without, ${timeOf(cached)} with; the cache holds ${grouped(arrays.cache_numbers.data.at(-1))} numbers at the end.`,
    x: lengths,
    across: { title: 'tokens written' },
    up: { title: 'multiplications', isLog: true },
    quantity: 'multiplications of a step',
    format: grouped,
    curves: (size) => [
      plainCurve('without', arrays.step_multiplications.data[0], size),
      strongCurve('with cache', arrays.step_multiplications.data[1], size),
    ],
  });
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
    curves: (size) => [
      plainCurve('all', arrays.all_parameters.data, size),
      strongCurve('active', arrays.active_parameters.data, size),
    ],
  });
}
