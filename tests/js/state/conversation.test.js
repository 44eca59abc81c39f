/** The model reads a text, or the messages of a conversation. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { isOf, readBy, readIn, withSystem } from '../../../static/js/state/conversation.js';
import { bodyOf } from '../../../static/js/api/answers.js';

const USER = { role: 'user', content: 'Hello' };
const ANSWER = { role: 'assistant', content: 'Yes?' };
const state = (messages, text = '') => ({ chat: JSON.stringify(messages), text });

test('the text of the box is the last message, unless it is empty', () => {
  deepEqual(readIn(state([USER, ANSWER], 'Why?')), {
    messages: [USER, ANSWER, { role: 'user', content: 'Why?' }],
  });
  deepEqual(readIn(state([USER, ANSWER], ' ')), { messages: [USER, ANSWER] });
});

test('a link whose conversation is damaged is of its text', () => {
  for (const chat of ['', '{', '[1]', '{"role":"user"}', '[{"role":"user"}]'])
    deepEqual(readIn({ chat, text: 'Hello' }), { text: 'Hello' });
});

test('typed special tokens are words unless the switch is on', () => {
  deepEqual(readIn({ text: 'a', read_special: false }), { text: 'a' });
  deepEqual(readIn({ text: 'a', read_special: true }), { text: 'a', read_special_tokens: true });
});

test('all that a view asks for is of the same conversation', () => {
  const asked = { model: 'talker', messages: [USER] };
  const trace = { model: 'talker', text: '<s>user\nHello</s>', target: null, asked };
  deepEqual(bodyOf({ capture: ['logits'] }, trace), { ...asked, capture: ['logits'] });
  deepEqual(bodyOf({ text: 'Hi' }, trace), { model: 'talker', capture: [], text: 'Hi' });
  const other = { messages: [ANSWER, USER] };
  deepEqual(bodyOf(other, trace), { model: 'talker', capture: [], ...other });
  deepEqual(readBy(trace), { messages: [USER] });
  ok(isOf(trace, state([], 'Hello')));
  ok(!isOf(trace, state([ANSWER], 'Hello')));
});

test('there is one system prompt, the first message', () => {
  const system = { role: 'system', content: 'Be brief.' };
  deepEqual(withSystem([USER], 'Be brief.'), [system, USER]);
  deepEqual(withSystem([{ role: 'system', content: 'x' }, USER], 'Be brief.'), [system, USER]);
  equal(withSystem([system], ' ').length, 0);
});
