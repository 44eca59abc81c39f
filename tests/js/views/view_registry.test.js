import { deepEqual, equal, match, notEqual, ok, rejects } from 'node:assert/strict';
import { test } from 'node:test';
import { MAP } from '../../../static/js/ui/model_map/parts.js';
import { callOf } from '../../../static/js/api/request_code.js';
import {
  standardsOf,
  fieldsOf,
  readFragment,
  writeFragment,
} from '../../../static/js/state/state.js';
import { csvOf } from '../../../static/js/ui/exports.js';
import { lackOf, request } from '../../../static/js/api/answers.js';
import { loadView, VIEWS } from '../../../static/js/views/view_registry.js';
import { figuresOf, FRAME, longTrace, sampleTrace } from '../sample.js';
import { assertContract, assertFits, WIDTHS } from './view_contract.js';

/** Without answers a view that asks for more says that it waits. */
const drawn = (figures) => figures.filter(({ notice }) => !notice);

test('the registry loads each view, and a view keeps what its entry says of it', async () => {
  for (const { load, ...entry } of VIEWS) {
    const view = await load();
    for (const [name, value] of Object.entries(entry)) equal(view[name], value);
  }
  await rejects(loadView('nothing'), /nothing/);
});

test('the bounds of a number are those of its field', async () => {
  const why = await loadView('why');
  const asked = { ...FRAME, ...standardsOf(fieldsOf(VIEWS)), layer: 0, head: 0 };
  const slider = why.controls(sampleTrace(), asked).find(({ kind }) => kind === 'number');
  const { least, most } = why.fields[slider.name];
  deepEqual([slider.least, slider.most], [least, most]);
  ok(least < most);
});

for (const view of await Promise.all(VIEWS.map(({ load }) => load()))) {
  test(`${view.id}: the same trace and state give the same figure, and neither is changed`, () => {
    const trace = sampleTrace();
    const before = JSON.stringify([trace, FRAME]);
    const strip = (figures) => JSON.stringify(figures);
    equal(strip(figuresOf(view, trace)), strip(figuresOf(view, trace)));
    equal(JSON.stringify([trace, FRAME]), before);
  });

  test(`${view.id}: keeps the contract, at 256 tokens too`, () => {
    const long = longTrace(256);
    for (const width of WIDTHS) {
      const figures = figuresOf(view, sampleTrace(), { width });
      for (const { notice, title } of figures) if (notice) ok(title);
      const seen = drawn(figures);
      if (seen.length > 0) assertContract(seen, width);
      for (const figure of drawn(figuresOf(view, long, { width, layer: 1 })))
        assertFits(figure, width);
    }
  });

  test(`${view.id}: its state goes into the link and comes back`, () => {
    const fields = fieldsOf(VIEWS);
    for (const [name, field] of Object.entries(view.fields ?? {})) {
      ok(name.startsWith(view.id), `${name} is a field of ${view.id}`);
      deepEqual(readFragment(writeFragment({ [name]: field.standard }, fields), fields), {});
      const other = anotherValueOf(field);
      notEqual(other, undefined, `a link can say nothing about ${name}`);
      deepEqual(readFragment(writeFragment({ [name]: other }, fields), fields), { [name]: other });
    }
  });

  test(`${view.id}: the values of its switches are kept in the link`, () => {
    const fields = fieldsOf(VIEWS);
    for (const { kind, name, patch, options = [] } of view.controls?.(sampleTrace(), {
      ...FRAME,
      ...standardsOf(fields),
    }) ?? []) {
      const { values } = fields[name] ?? {};
      for (const { id } of options) ok(values?.includes(id) ?? true, `${name}: ${id}`);
      for (const set of kind === 'button' ? Object.keys(patch) : [name])
        ok(set in fields, `${set} is no field`);
    }
  });

  test(`${view.id}: its numbers can be taken along, and asked for by code`, () => {
    for (const { title, grid } of drawn(figuresOf(view, sampleTrace()))) {
      ok(grid.rows > 0 && grid.columns > 0 && grid.quantity, title);
      ok(csvOf(grid).split('\r\n').length > grid.rows, title);
      const { path, body } = callOf(sampleTrace(), grid);
      match(path, /^\/api\/v1\/[a-z]+/, title);
      ok(
        grid.call || body.capture?.length > 0 || body.analyses?.length > 0,
        `${title}: the code asks for nothing`,
      );
    }
  });
}

/** Some value that a field does not have to begin with. */
function anotherValueOf({ standard, read, values = [] }) {
  const written = [...values.map(String), '1', '0', '2', '0.5', 'another'];
  return written
    .map((text) => read(text))
    .find((value) => value !== undefined && JSON.stringify(value) !== JSON.stringify(standard));
}

test('a request asks for what the views need and the model has', () => {
  const dense = { kind: 'decoder', positional: 'none', moe: null };
  deepEqual(request(VIEWS, dense), {
    capture: ['*.self_attention.weights'],
    analyses: ['head_labels', 'next_token'],
  });
  deepEqual(
    request([...VIEWS, MAP], { ...dense, analyses: ['next_token', 'head_norms'] }).analyses,
    ['next_token', 'head_norms'],
  );
  const more = (facts) =>
    request(VIEWS, { ...dense, ...facts })
      .capture.slice(1)
      .map((site) => site.split('.').at(-1));
  deepEqual(more({ kind: 'encoder-decoder' }), ['weights']);
  deepEqual(more({ positional: 'sinusoidal' }), ['positional']);
  deepEqual(more({ positional: 'learned' }), ['positional']);
  deepEqual(more({ positional: 'alibi' }), ['bias']);
  deepEqual(more({ positional: 'rotary' }), ['rotated_queries', 'queries']);
  deepEqual(more({ moe: { layers: [0] } }), ['router_probs', 'expert_indices', 'expert_weights']);
});

const FOREIGN = {
  kind: 'decoder',
  positional: 'learned',
  analyses: ['next_token'],
  sites: [{ name: 'decoder.layers.0.self_attention.weights', axes: [] }],
  omitted: { head_labels: 'its attention has no maps' },
};

test('a request leaves out what the full card of a model lacks', () => {
  deepEqual(request(VIEWS, FOREIGN), {
    capture: ['*.self_attention.weights'],
    analyses: ['next_token'],
  });
});

test('a view says which part the model lacks, and the reason of its card', () => {
  const view = { title: 'Attention', needs: ['analyses.head_labels'] };
  deepEqual(
    lackOf(view, FOREIGN),
    '“Attention” is not available for this model, which has no head labels: its attention has no maps.',
  );
  deepEqual(lackOf({ ...view, needs: ['*.self_attention.weights'] }, FOREIGN), '');
  const unread = { ...FOREIGN, sites: undefined, analyses: [], is_checked: false };
  equal(lackOf(view, unread), '', 'nothing is known of it yet');
  deepEqual(request([{ needs: ['analyses.next_token.ids'] }], unread).analyses, ['next_token']);
});
