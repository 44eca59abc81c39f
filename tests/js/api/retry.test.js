import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mayHurry, pauseBefore, retryAfterOf } from '../../../static/js/api/retry.js';

const attempts = (problem, count = 50) =>
  Array.from({ length: count }, (_, attempt) => pauseBefore(problem, attempt));

test('a server that cannot be reached is asked again and again, in pauses that grow and end at a quarter of a minute', () => {
  const pauses = attempts({ status: 0 });
  assert.deepEqual(pauses.slice(0, 4), [1000, 2000, 4000, 8000]);
  assert.ok(pauses.every((pause, at) => at === 0 || pause >= pauses[at - 1]));
  assert.equal(Math.max(...pauses), 15_000);
});

test('a refusal is never asked again', () => {
  for (const status of [400, 404, 408, 413, 422, 429, 500]) {
    assert.ok(
      attempts({ status, retryAfter: 1 }).every((pause) => pause === null),
      String(status),
    );
  }
});

test('a busy server is left alone for as long as it says, and asked only a few times', () => {
  assert.equal(pauseBefore({ status: 503, retryAfter: 7 }, 0), 7000);
  assert.equal(
    attempts({ status: 503, retryAfter: 1 }).filter((pause) => pause !== null).length,
    5,
  );
  assert.equal(pauseBefore({ status: 503, retryAfter: 3600 }, 0), null);
  assert.equal(pauseBefore({ status: 503 }, 0), null, 'it did not ask for it');
});

test('a proxy whose server is away is asked a few times', () => {
  for (const status of [502, 504])
    assert.equal(attempts({ status }).filter((pause) => pause !== null).length, 5);
});

test('Retry-After is a number of seconds or a date', () => {
  assert.equal(retryAfterOf('12'), 12);
  assert.equal(retryAfterOf('Sat, 21 Nov 2026 10:00:30 GMT', Date.UTC(2026, 10, 21, 10, 0, 0)), 30);
  assert.equal(retryAfterOf('Sat, 21 Nov 2026 10:00:30 GMT', Date.UTC(2026, 10, 21, 11, 0, 0)), 0);
  for (const nothing of [null, '', 'soon']) assert.equal(retryAfterOf(nothing), undefined);
});

test('only where the server did not say how long to wait may it be sooner', () => {
  assert.ok(mayHurry({ status: 0 }));
  assert.ok(!mayHurry({ status: 503 }));
});
