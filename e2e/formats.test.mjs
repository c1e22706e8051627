import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';

import { toAISdkV4Messages, toAISdkV5Messages } from '@mastra/ai-sdk/ui';
import { convertToModelMessages, validateUIMessages } from 'ai';

import { at, createThread, newMessage, save } from './support/memory.mjs';
import { alike, foreign, lossy } from './support/stored.mjs';
import { serve } from './support/suite.mjs';

const suite = await serve();

const plain = (value) => JSON.parse(JSON.stringify(value));

/** Saves one message in a thread of its own. */
async function saveAlone({ role, type, content }) {
  const thread = await createThread(suite.client);
  const message = newMessage(thread, { role, type, content, createdAt: at(1) });
  await save(suite.client, [message]);
  return { thread, message };
}

const list = async (thread, query) =>
  (await suite.call('GET', `/memory/threads/${thread.id}/messages`, { query })).messages;

const converters = {
  'aisdk-v5': { refer: toAISdkV5Messages, version: 'v5' },
  'aisdk-v4': { refer: toAISdkV4Messages, version: 'v4' },
};

for (const [format, { refer, version }] of Object.entries(converters)) {
  describe(format, () => {
    for (const [name, stored] of Object.entries({ ...alike, ...foreign, ...lossy })) {
      const why = stored[version];
      test(`gives ${name} ${why ? `better than the reference: ${why}` : 'as the reference does'}`, async () => {
        const { thread } = await saveAlone(stored);
        // With the type as it was saved: listings leave out the usual one.
        const given = (await list(thread)).map((message) => ({ type: 'v2', ...message }));
        const referred = plain(refer(given));
        const messages = await list(thread, { format });
        if (why) {
          assert.notDeepEqual(messages, referred, 'the reference does it too by now');
        } else {
          assert.equal(messages.length, 1);
          assert.deepEqual(messages, referred);
        }
      });
    }

    test('gives a conversation as the reference does', async () => {
      const thread = await createThread(suite.client);
      const messages = Object.values(alike).map((stored, i) => newMessage(thread, { ...stored, createdAt: at(i) }));
      await save(suite.client, messages);
      const given = await list(thread, { perPage: false });
      assert.deepEqual(await list(thread, { perPage: false, format }), plain(refer(given)));
    });
  });
}

describe('what the reference loses', () => {
  const parts = async (name, format = 'aisdk-v5') => {
    const { thread } = await saveAlone(lossy[name]);
    return (await list(thread, { format }))[0].parts;
  };

  test('is there in aisdk-v5', async () => {
    assert.deepEqual(await parts("the AI SDK 5's own parts"), plain(lossy["the AI SDK 5's own parts"].content.parts));
    assert.equal((await parts('a call whose arguments are still coming'))[1].state, 'input-streaming');
    assert.deepEqual(
      (await parts('files that are no plain base64')).map((part) => [part.url, part.filename]),
      [
        ['data:text/plain,hello', undefined],
        ['data:audio/mpeg;base64,//uQxAAA', undefined],
        ['https://example.com/a.png', 'a.png'],
      ],
    );
    assert.deepEqual(
      (await parts('attachments beside files')).map((part) => part.url),
      ['https://example.com/b.png', 'https://example.com/a.png'],
    );
    assert.deepEqual((await parts('a text beside parts')).at(-1), { type: 'text', text: 'It rains.' });
  });

  test('is there in aisdk-v4', async () => {
    const { thread } = await saveAlone(lossy['content of before there were parts']);
    const [message] = await list(thread, { format: 'aisdk-v4' });
    assert.deepEqual(
      message.parts.map((part) => part.type),
      ['tool-invocation', 'reasoning', 'text'],
    );
    assert.equal(message.reasoning, 'Clouds.');
    assert.deepEqual(message.annotations, [{ seen: true }]);
    assert.deepEqual(await parts('a text alone', 'aisdk-v4'), [{ type: 'text', text: 'Will it rain?' }]);
  });
});

describe('the AI SDK 5', () => {
  let thread, messages;
  before(async () => {
    thread = await createThread(suite.client);
    const all = Object.values({ ...alike, ...lossy });
    await save(
      suite.client,
      all.map((stored, i) => newMessage(thread, { ...stored, createdAt: at(i) })),
    );
    messages = await list(thread, { perPage: false, format: 'aisdk-v5' });
  });

  test('takes each message', async () => {
    for (const message of messages) {
      await validateUIMessages({ messages: [message] });
    }
    assert.equal((await validateUIMessages({ messages })).length, messages.length);
  });

  test('sends them to a model', async () => {
    const sent = JSON.stringify(convertToModelMessages(messages));
    for (const said of ['Will it rain?', 'It rains.', 'Be brief.', 'no gauge', 'too dear', 'Clouds.']) {
      assert.ok(sent.includes(said), said);
    }
  });
});

describe('messages for models', () => {
  test('have each result behind its call', async () => {
    const thread = await createThread(suite.client);
    const all = Object.values({ ...alike, ...lossy });
    await save(
      suite.client,
      // The calls' ids are unique in a conversation.
      all.map((stored, i) => {
        const content = JSON.parse(JSON.stringify(stored.content).replaceAll('"call-', `"call-${i}-`));
        return newMessage(thread, { ...stored, content, createdAt: at(i) });
      }),
    );
    const messages = await list(thread, { perPage: false, format: 'openai' });
    let waiting = [];
    for (const { role, content, tool_calls, tool_call_id, ...rest } of messages) {
      assert.deepEqual(rest, {});
      if (role === 'tool') {
        assert.equal(typeof content, 'string');
        assert.equal(tool_call_id, waiting.shift());
        continue;
      }
      assert.deepEqual(waiting, []);
      assert.ok(content?.length > 0 || tool_calls?.length > 0);
      waiting = (tool_calls ?? []).map((call) => call.id);
      for (const call of tool_calls ?? []) {
        assert.equal(typeof JSON.parse(call.function.arguments), 'object');
      }
    }
    assert.deepEqual(waiting, []);
    const blocks = (await list(thread, { perPage: false, format: 'anthropic' })).flatMap((message) => message.content);
    const ofType = (type) => blocks.filter((block) => block.type === type);
    assert.deepEqual(
      ofType('tool_result').map((block) => block.tool_use_id),
      ofType('tool_use').map((block) => block.id),
    );
  });
});

describe('every route that returns messages', () => {
  const format = 'aisdk-v5';
  const want = [{ type: 'text', text: 'Hello!' }];
  const stored = { role: 'user', content: 'Hello!' };

  test('gives them in the format', async () => {
    const thread = await createThread(suite.client);
    const message = { id: `${thread.id}:m`, threadId: thread.id, resourceId: thread.resourceId, ...stored };
    const path = `/memory/threads/${thread.id}`;
    const answers = [
      await suite.call('POST', '/memory/save-messages', { query: { format }, body: { messages: [message] } }),
      await suite.call('PATCH', '/memory/messages', {
        query: { format },
        body: { messages: [{ id: message.id, role: 'user' }] },
      }),
      await suite.call('GET', `${path}/messages`, { query: { format } }),
      await suite.call('GET', `${path}/messages`, { query: { format, agentId: 'agent' } }),
      await suite.call('POST', '/memory/recall', { query: { format }, body: { threadId: thread.id } }),
      await suite.call('POST', '/memory/recall', { body: { threadId: thread.id, format } }),
    ];
    const { clonedMessages } = await suite.call('POST', `${path}/clone`, { query: { format }, body: {} });
    for (const { messages } of [...answers, { messages: clonedMessages }]) {
      assert.deepEqual(
        messages.map((m) => m.parts),
        [want],
      );
    }
  });

  test('refuses an unknown format and changes nothing', async () => {
    const { thread, message } = await saveAlone(stored);
    const path = `/memory/threads/${thread.id}`;
    for (const [method, target, options] of [
      ['POST', '/memory/save-messages', { body: { messages: [{ ...message, content: 'Bye!' }] } }],
      ['PATCH', '/memory/messages', { body: { messages: [{ id: message.id, content: { content: 'Bye!' } }] } }],
      ['GET', `${path}/messages`, {}],
      ['POST', '/memory/recall', { body: { threadId: thread.id } }],
      ['POST', `${path}/clone`, { body: {} }],
    ]) {
      const { status, body } = await suite.send(method, target, { ...options, query: { format: 'aisdk' } });
      assert.equal(status, 400, `${method} ${target}`);
      assert.deepEqual(
        body.issues.map((issue) => issue.field),
        ['format'],
      );
    }
    assert.equal((await list(thread))[0].content.content, 'Hello!');
  });
});
