import { deepEqual, equal, match } from 'node:assert/strict';
import { test } from 'node:test';
import { answer } from '../../../../static/js/views/choices/answer.js';
import { FRAME, near, plain, sampleTrace, tensor } from '../../sample.js';

test('an answer has the probabilities of its start and of its end, token by token', () => {
  const trace = sampleTrace();
  equal(answer.figure(trace, FRAME).isWaiting, true);
  const shape = [trace.tokens.length, 2];
  const probabilities = tensor(['query', 'end'], shape, (at) => at / 100);
  const span = {
    trace: { analyses: { answer: { probabilities, start: 1, end: 2, text: 'it saw' } } },
  };
  const { title, help, grid } = answer.figure(trace, { ...FRAME, answers: { span } });
  match(plain(title), /“it saw”$/);
  match(plain(help), /starts at “it” \(2\.0 %\) and ends at “saw” \(5\.0 %\)/u);
  deepEqual(grid.rowLabels, ['start', 'end']);
  near(grid.value(1, 3), 0.07);
});
