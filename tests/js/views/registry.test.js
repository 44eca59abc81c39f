import { deepEqual, equal, match, notEqual, ok, throws } from 'node:assert/strict';
import { test } from 'node:test';
import { callOf } from '../../../static/js/data/request_code.js';
import {
  standardsOf,
  fieldsOf,
  readFragment,
  writeFragment,
} from '../../../static/js/state/state.js';
import { csvOf } from '../../../static/js/ui/exports.js';
import { entryOf, VIEWS } from '../../../static/js/views/registry.js';
import { figuresOf, FRAME, longTrace, sampleTrace } from '../sample.js';
import { assertAxesCount, assertFits, assertNoMarkup, assertReadable } from './view_contract.js';

/** Without answers a view that asks for more says that it waits. */
const drawn = (figures) => figures.filter(({ notice }) => !notice);

test('the registry loads each view, and a view keeps what the registry says of it', async () => {
  for (const { load, ...entry } of VIEWS) {
    const view = await load();
    for (const [name, value] of Object.entries(entry)) equal(view[name], value);
  }
  throws(() => entryOf('nothing'), /nothing/);
});

for (const view of await Promise.all(VIEWS.map(({ load }) => load()))) {
  test(`${view.id}: the same trace and state give the same figure, and neither is changed`, () => {
    const trace = sampleTrace();
    const before = JSON.stringify([trace, FRAME]);
    const strip = (figures) => JSON.stringify(figures);
    equal(strip(figuresOf(view, trace)), strip(figuresOf(view, trace)));
    equal(JSON.stringify([trace, FRAME]), before);
  });

  test(`${view.id}: every figure has a summary, and every cell a description`, () => {
    for (const figure of figuresOf(view, sampleTrace())) {
      if (figure.notice) ok(figure.title && figure.notice);
      else assertReadable(figure);
    }
  });

  test(`${view.id}: no token reaches Plotly as markup`, () => {
    assertNoMarkup(drawn(figuresOf(view, sampleTrace())));
  });

  test(`${view.id}: axes count cells, so that equal tokens stay apart`, () => {
    drawn(figuresOf(view, sampleTrace())).forEach(assertAxesCount);
  });

  test(`${view.id}: fits the width it is given, at 256 tokens too`, () => {
    const long = longTrace(256);
    for (const width of [358, 820, 1360]) {
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
