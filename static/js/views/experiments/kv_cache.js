/** The cache of keys and values: who shares keys, what a window hides, and how the bytes grow. */

import { numbersIn } from '../../rules/experiment.js';
import { counted } from '../../words/lists.js';
import { grouped } from '../../words/numbers.js';
import { curvesPicture, plainCurve, strongCurve } from '../../plot/curves.js';
import { mapPicture } from '../../plot/map.js';

/** @import { Picture } from '../../rules/experiment.js' */

/** @type {ExperimentView} */
export const experiment = {
  id: 'kv_cache',
  main: ['n_heads', 'n_kv_heads', 'window', 'n_sinks', 'n_tokens', 'n_layers', 'd_head'],
  hidden: ['seed'],
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays }) {
  const [full, shared, windowed] = ['full', 'grouped', 'windowed'].map((name) =>
    inKilobytes(arrays[`${name}_bytes`].data.at(-1)),
  );
  const [heads, groups] = arrays.shares.shape;
  return (
    `After ${counted(arrays.n_written.data.at(-1), 'token')} the cache of ${counted(heads, 'head')} takes ${full}; with ` +
    `${counted(groups, 'head')} of keys that they share ${shared}, and with the window, which keeps ` +
    `${counted(arrays.n_kept.data.at(-1), 'token')}, ${windowed}.`
  );
}

/** @param {number} bytes */
const inKilobytes = (bytes) => `${grouped(Math.round(bytes / 1000))} kB`;

const SEEN = ['hidden', 'kept as a sink', 'in the window'];

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays }) {
  const numbers = (/** @type {number} */ _, /** @type {number} */ at) => String(at);
  const shares = arrays.shares.data.map((/** @type {boolean[]} */ row) => row.map(Number));
  const sees = arrays.sees.data.map(numbersIn);
  return [
    mapPicture({
      id: 'groups',
      title: 'Heads of queries share keys',
      summary: 'Which head of queries reads which head of keys.',
      help: 'A row for each head of queries. A column is kept once, however many rows read it.',
      values: shares,
      rows: shares.map(numbers),
      columns: shares[0].map(numbers),
      titles: { rows: 'queries of head', columns: 'keys of head' },
      range: [0, 1.6],
      quantity: '1: reads them',
      format: (value) => (value === 1 ? 'read' : 'not read'),
      hasBar: false,
    }),
    mapPicture({
      id: 'window',
      title: 'What the window leaves',
      summary: 'Which keys each query sees.',
      help: 'Dark: in the window; pale: a sink. The rest is hidden, and what no later query sees is dropped.',
      values: sees,
      rows: sees.map(numbers),
      columns: sees.map(numbers),
      titles: { rows: 'query', columns: 'key' },
      range: [0, 2.4],
      quantity: '0: hidden, 1: a sink, 2: in the window',
      format: (value) => SEEN[value],
      cell: Math.max(4, 240 / sees.length),
      hasBar: false,
    }),
    curvesPicture({
      id: 'steps',
      title: 'A step with a cache, and without',
      summary: 'The multiplications of each step of writing, with and without a cache.',
      help: 'In one layer: without a cache a step computes all earlier tokens again.',
      x: numbersIn(arrays.n_written.data),
      across: { title: 'tokens' },
      up: { title: 'multiplications', isLog: true },
      quantity: 'multiplications of a step',
      format: grouped,
      curves: { without: arrays.recomputed.data, 'with cache': arrays.cached.data },
    }),
    curvesPicture({
      id: 'bytes',
      title: 'The cache fills',
      summary: 'The bytes of keys and values after each token.',
      help: 'All layers together: 2 · layers · heads with keys · width · tokens kept · bytes of a number.',
      x: numbersIn(arrays.n_written.data),
      across: { title: 'tokens' },
      up: { title: 'bytes', write: inKilobytes },
      quantity: 'bytes',
      format: inKilobytes,
      curves: (size) => [
        plainCurve('a key for each head', arrays.full_bytes.data, size),
        { ...plainCurve('shared', arrays.grouped_bytes.data, size), colour: size.palette.query },
        strongCurve('shared, with a window', arrays.windowed_bytes.data, size),
      ],
    }),
  ];
}
