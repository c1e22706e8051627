import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import {
  at,
  createConversation,
  createThread,
  ids,
  newMessage,
  refused,
  save,
  span,
  textOf,
  texts,
  unique,
} from './support/memory.mjs';
import { serve } from './support/suite.mjs';

const suite = await serve();

const list = async (thread, params) =>
  (await suite.client.getMemoryThread({ threadId: thread.id }).listMessages(params)).messages;

describe('saving messages', () => {
  test('keeps content as it is given, what the server does not know of included', async () => {
    const thread = await createThread(suite.client);
    const content = {
      format: 2,
      parts: [
        { type: 'reasoning', reasoning: 'hm', details: [{ type: 'text', text: 'hm' }] },
        { type: 'text', text: 'Zwölf Boxkämpfer 京都 🦊 "quoted" \\ \u2028 \n' },
        {
          type: 'tool-invocation',
          toolInvocation: {
            state: 'result',
            toolCallId: 'c1',
            toolName: 'weather',
            args: { city: '京都' },
            result: { degrees: 21.5 },
          },
        },
      ],
      metadata: { category: 'travel', score: 0.1, big: 9007199254740991, archivedAt: null, tags: ['a', { b: [] }] },
      inventedTomorrow: { at: 1e21 },
    };
    const message = newMessage(thread, { role: 'assistant', type: 'v2', content, createdAt: at(1) });
    const { messages: saved } = await save(suite.client, [message]);
    assert.deepEqual(saved, [{ ...message, createdAt: '2026-03-01T10:00:01.000Z' }]);
    const { type, ...listed } = saved[0];
    assert.deepEqual(await list(thread), [listed]);
  });

  test('makes of a plain string a message of one text part', async () => {
    const thread = await createThread(suite.client);
    const message = { ...newMessage(thread, { content: 'Hello!', createdAt: at(1) }), format: 2 };
    const { messages: saved } = await save(suite.client, [message]);
    const content = { format: 2, parts: [{ type: 'text', text: 'Hello!' }], content: 'Hello!' };
    assert.deepEqual(saved[0].content, content);
    assert.deepEqual((await list(thread))[0].content, content);
  });

  test('takes Date objects and times with an offset, and gives UTC to the millisecond', async () => {
    const thread = await createThread(suite.client);
    const { messages } = await save(suite.client, [
      newMessage(thread, { createdAt: new Date('2026-03-01T10:00:01.234Z') }),
      newMessage(thread, { createdAt: '2026-03-01T19:00:02.345678+09:00' }),
    ]);
    assert.deepEqual(
      messages.map((m) => m.createdAt),
      ['2026-03-01T10:00:01.234Z', '2026-03-01T10:00:02.345Z'],
    );
    assert.deepEqual(
      (await list(thread)).map((m) => m.createdAt),
      messages.map((m) => m.createdAt),
    );
  });

  test('gives ids and times to those that have none', async () => {
    const thread = await createThread(suite.client);
    const { id: _, ...anonymous } = newMessage(thread);
    const { messages } = await save(suite.client, [anonymous, anonymous]);
    assert.notEqual(messages[0].id, messages[1].id);
    assert.ok(messages[0].createdAt >= thread.createdAt);
    assert.deepEqual(ids(await list(thread)), ids(messages));
  });

  test('keeps the order of a batch whose times are equal, whatever the ids', async () => {
    const thread = await createThread(suite.client);
    const batch = ['m1', 'm2', 'm3', 'm4'].map((text) => newMessage(thread, { text, createdAt: at(1) }));
    await save(suite.client, batch);
    assert.equal(texts(await list(thread)), span(1, 4));
  });

  test('orders by time first, and what came later comes after its equals', async () => {
    const thread = await createThread(suite.client);
    await save(suite.client, [
      newMessage(thread, { text: 'm3', createdAt: at(2) }),
      newMessage(thread, { text: 'm1', createdAt: at(1) }),
    ]);
    await save(suite.client, [
      newMessage(thread, { text: 'm4', createdAt: at(2) }),
      newMessage(thread, { text: 'm2', createdAt: at(1) }),
    ]);
    assert.equal(texts(await list(thread)), span(1, 4));
  });

  test('under an id of the same thread updates the message in its place', async () => {
    const { thread, id } = await createConversation(suite.client, { count: 3 });
    await save(suite.client, [
      newMessage(thread, { id: id(2), text: 'changed', role: 'assistant', createdAt: at(30) }),
    ]);
    const messages = await list(thread);
    assert.equal(texts(messages), 'm1 changed m3');
    assert.equal(messages[1].role, 'assistant');
    assert.equal(messages[1].createdAt, at(2).toISOString());
  });

  test('under an id of another thread is a conflict that moves nothing', async () => {
    const { thread, id } = await createConversation(suite.client, { count: 2 });
    const other = await createThread(suite.client, { resourceId: thread.resourceId });
    const stolen = [newMessage(other), newMessage(other, { id: id(1), text: 'stolen' })];
    await refused(save(suite.client, stolen), { status: 409, fields: ['messages.1.id'] });
    assert.equal(texts(await list(thread)), span(1, 2));
    assert.deepEqual(await list(other), []);
  });

  test('stores all or nothing', async () => {
    const thread = await createThread(suite.client);
    const { role: _, ...roleless } = newMessage(thread);
    await refused(save(suite.client, [newMessage(thread), roleless]), {
      status: 400,
      error: 'Invalid request body',
      fields: ['messages.1.role'],
    });
    const lost = newMessage({ id: unique('nowhere'), resourceId: thread.resourceId });
    await refused(save(suite.client, [newMessage(thread), lost]), { status: 404, error: 'Thread not found' });
    assert.deepEqual(await list(thread), []);
  });

  test('goes to several threads at once', async () => {
    const first = await createThread(suite.client);
    const second = await createThread(suite.client);
    const { messages } = await save(suite.client, [
      newMessage(first, { text: 'a' }),
      newMessage(second, { text: 'b' }),
      newMessage(first, { text: 'c' }),
    ]);
    assert.equal(texts(messages), 'a b c');
    assert.equal(texts(await list(first)), 'a c');
    assert.equal(texts(await list(second)), 'b');
  });

  test('creates the thread where that is asked for', async () => {
    const thread = { id: unique('thread'), resourceId: unique('resource') };
    await save(suite.client, [newMessage(thread, { text: 'm1' })], { createThread: true });
    assert.equal((await suite.client.getMemoryThread({ threadId: thread.id }).get()).resourceId, thread.resourceId);
    assert.equal(texts(await list(thread)), 'm1');
  });

  test('takes an empty list, and content of a megabyte', async () => {
    const thread = await createThread(suite.client);
    assert.deepEqual(await save(suite.client, []), { messages: [] });
    const text = '長い 🦊 '.repeat(80_000);
    await save(suite.client, [newMessage(thread, { text })]);
    assert.equal(textOf((await list(thread))[0]), text);
  });
});

describe('updating messages', () => {
  const update = (messages, query) => suite.send('PATCH', '/memory/messages', { query, body: { messages } });

  test('merges content and its metadata key by key', async () => {
    const thread = await createThread(suite.client);
    const content = {
      format: 2,
      parts: [{ type: 'text', text: 'old' }],
      metadata: { category: 'travel', draft: true },
      annotations: [1],
    };
    const message = newMessage(thread, { content, createdAt: at(1) });
    await save(suite.client, [message]);
    const parts = [{ type: 'text', text: 'new' }];
    const { status, body } = await update([
      { id: message.id, content: { parts, metadata: { draft: false, score: 2 } } },
    ]);
    assert.equal(status, 200);
    const expected = { ...content, parts, metadata: { category: 'travel', draft: false, score: 2 } };
    assert.deepEqual(body.messages, [{ ...message, content: expected, createdAt: at(1).toISOString() }]);
    assert.deepEqual(await list(thread), body.messages);
  });

  test('changes the role or type alone, and keeps place and time', async () => {
    const { thread, id } = await createConversation(suite.client, { count: 3 });
    const before = await list(thread);
    await update([
      { id: id(2), role: 'assistant' },
      { id: id(1), type: 'tool-result' },
    ]);
    assert.deepEqual(await list(thread), [
      { ...before[0], type: 'tool-result' },
      { ...before[1], role: 'assistant' },
      before[2],
    ]);
  });

  test('answers in the order asked, over several threads', async () => {
    const first = await createConversation(suite.client, { count: 2 });
    const second = await createConversation(suite.client, { count: 1 });
    const wanted = [first.id(2), second.id(1), first.id(1)];
    const { body } = await update(wanted.map((id) => ({ id, role: 'system' })));
    assert.deepEqual(ids(body.messages), wanted);
  });

  test('of an unknown id is refused and changes nothing', async () => {
    const { thread, id } = await createConversation(suite.client, { count: 1 });
    const { status, body } = await update([
      { id: id(1), role: 'system' },
      { id: unique('nowhere'), role: 'system' },
    ]);
    assert.equal(status, 404);
    assert.deepEqual(body, { error: 'Message not found' });
    assert.equal((await list(thread))[0].role, 'user');
  });

  test("of another owner's message is refused as of an unknown one", async () => {
    const { thread, id } = await createConversation(suite.client, { count: 1 });
    const { status, body } = await update([{ id: id(1), role: 'system' }], { resourceId: 'someone else' });
    assert.equal(status, 404);
    assert.deepEqual(body, { error: 'Message not found' });
    assert.equal((await update([{ id: id(1), role: 'system' }], { resourceId: thread.resourceId })).status, 200);
  });

  test('shows in a filter at once', async () => {
    const { id, listing } = await createConversation(suite.client, { count: 2, metadata: () => ({ done: false }) });
    await update([{ id: id(2), content: { metadata: { done: true } } }]);
    const matching = async (done) => texts((await listing.listMessages({ filter: { metadata: { done } } })).messages);
    assert.equal(await matching(true), 'm2');
    assert.equal(await matching(false), 'm1');
  });
});

describe('deleting messages', () => {
  const forms = {
    'an id': (id) => [id(2), 'm1 m3 m4'],
    'a list of ids': (id) => [[id(2), id(4)], 'm1 m3'],
    'an object with an id': (id) => [{ id: id(3) }, 'm1 m2 m4'],
    'a list of objects with ids': (id) => [[{ id: id(1) }, { id: id(2) }, { id: id(3) }], 'm4'],
  };
  for (const [form, arrange] of Object.entries(forms)) {
    test(`takes ${form}`, async () => {
      const { recalling, id } = await createConversation(suite.client, { count: 4 });
      const [messageIds, left] = arrange(id);
      const { success, message } = await recalling.deleteMessages(messageIds);
      const { messages, total } = await recalling.listMessages();
      assert.equal(texts(messages), left);
      assert.equal(total, messages.length);
      assert.equal(success, true);
      const deleted = 4 - total;
      assert.equal(message, `${deleted} message${deleted === 1 ? '' : 's'} deleted successfully`);
    });
  }

  test('takes the messages of the last answer as they are', async () => {
    const { recalling } = await createConversation(suite.client, { count: 3 });
    const { messages } = await recalling.listMessages({ perPage: 2 });
    await recalling.deleteMessages(messages);
    assert.equal(texts((await recalling.listMessages()).messages), 'm1');
  });

  test('counts those that there were, unknown ones not', async () => {
    const { recalling, id } = await createConversation(suite.client, { count: 1 });
    const remove = async () => (await recalling.deleteMessages([id(1), unique('nowhere')])).message;
    assert.equal(await remove(), '1 message deleted successfully');
    assert.equal(await remove(), '0 messages deleted successfully');
  });

  test("in an owner's name leaves those of others", async () => {
    const { listing, id, thread } = await createConversation(suite.client, { count: 2 });
    const remove = (resourceId, messageIds) =>
      suite.call('POST', '/memory/messages/delete', { query: { resourceId }, body: { messageIds } });
    await remove('someone else', id(1));
    await remove(thread.resourceId, id(2));
    assert.equal(texts((await listing.listMessages()).messages), 'm1');
  });

  test('frees no place: what is saved next comes last', async () => {
    const { thread, recalling, id } = await createConversation(suite.client, { seconds: [1, 1, 1] });
    await recalling.deleteMessages([id(1), id(3)]);
    await save(suite.client, [newMessage(thread, { text: 'm4', createdAt: at(1) })]);
    assert.equal(texts((await recalling.listMessages()).messages), 'm2 m4');
  });

  test('of a whole thread leaves the thread', async () => {
    const { thread, listing } = await createConversation(suite.client, { count: 3, title: 'Kept' });
    const { success } = await suite.call('DELETE', `/memory/threads/${thread.id}/messages`);
    assert.equal(success, true);
    assert.deepEqual((await listing.listMessages()).messages, []);
    assert.equal((await listing.get()).title, 'Kept');
  });
});
