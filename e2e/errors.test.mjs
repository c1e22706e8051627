import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { agentId, createConversation, createThread, newMessage, refused, save } from './support/memory.mjs';
import { serve } from './support/suite.mjs';

const suite = await serve();

const conversation = await createConversation(suite.client, { count: 1, title: 'Kept' });
const { thread } = conversation;

test('an error reaches the caller with its status, text and body', async () => {
  const missing = suite.client.getMemoryThread({ threadId: 'missing' }).get();
  await assert.rejects(missing, {
    name: 'MastraClientError',
    status: 404,
    statusText: 'Not Found',
    message: 'HTTP error! status: 404 - {"error":"Thread not found"}',
    body: { error: 'Thread not found' },
  });
});

describe('a thread that does not exist is not found', () => {
  const open = () => suite.client.getMemoryThread({ threadId: 'missing', agentId });
  const requests = {
    get: () => open().get(),
    update: () => open().update({ title: 'x' }),
    delete: () => open().delete(),
    'list messages': () => suite.client.getMemoryThread({ threadId: 'missing' }).listMessages(),
    'recall messages': () => open().listMessages(),
    save: () => save(suite.client, [newMessage({ id: 'missing', resourceId: 'x' })]),
    transfer: () => open().transfer({ resourceId: 'x' }),
  };
  for (const [name, request] of Object.entries(requests)) {
    test(name, () => refused(request(), { status: 404, error: 'Thread not found' }));
  }

  test('clone', () => refused(open().clone(), { status: 404, error: 'Source thread not found' }));
});

describe('a thread of another owner is refused', () => {
  const error = 'Access denied: thread belongs to a different resource';
  const requests = {
    'list messages': () => conversation.listing.listMessages({ resourceId: 'someone else' }),
    'recall messages': () => conversation.recalling.listMessages({ resourceId: 'someone else' }),
    update: () => conversation.recalling.update({ title: 'x', resourceId: 'someone else' }),
    save: () => save(suite.client, [newMessage({ id: thread.id, resourceId: 'someone else' })]),
  };
  for (const [name, request] of Object.entries(requests)) {
    test(name, () => refused(request(), { status: 403, error }));
  }
});

describe('an id that is taken is a conflict', () => {
  test('of a thread, on creation by another owner', () =>
    refused(createThread(suite.client, { threadId: thread.id }), { status: 409 }));

  test('of a thread, on cloning', () =>
    refused(conversation.recalling.clone({ newThreadId: thread.id }), { status: 409 }));

  test('of a message, on saving into another thread', async () => {
    const other = await createThread(suite.client);
    await refused(save(suite.client, [newMessage(other, { id: conversation.id(1) })]), {
      status: 409,
      fields: ['messages.0.id'],
    });
  });
});

describe('a bad request names each bad field', () => {
  const body = 'Invalid request body';
  const query = 'Invalid query parameters';
  const filter = (metadata) => conversation.listing.listMessages({ filter: { metadata } });
  const requests = [
    ['a thread without an owner', body, ['resourceId'], () => suite.client.createMemoryThread({ agentId })],
    ['a title that is no string', body, ['title'], () => conversation.recalling.update({ title: 3 })],
    ['metadata that is no object', body, ['metadata'], () => createThread(suite.client, { metadata: [1] })],
    [
      'all that is wrong at once',
      body,
      ['resourceId', 'title'],
      () => suite.client.createMemoryThread({ agentId, resourceId: 7, title: false }),
    ],
    ['messages that are no list', body, ['messages'], () => save(suite.client, { id: 'x' })],
    [
      'a message without role and content',
      body,
      ['messages.1.role', 'messages.1.content'],
      () => saveSecond({ role: undefined, content: undefined }),
    ],
    ['a time that is none', body, ['messages.1.createdAt'], () => saveSecond({ createdAt: new Date(Number.NaN) })],
    ['content that is a number', body, ['messages.1.content'], () => saveSecond({ content: 7 })],
    ['no message ids to delete', body, ['messageIds'], () => conversation.recalling.deleteMessages(undefined)],
    ['message ids that are numbers', body, ['messageIds.1'], () => conversation.recalling.deleteMessages(['a', 2])],
    [
      'a clone of a negative number',
      body,
      ['options.messageLimit'],
      () => conversation.recalling.clone({ options: { messageLimit: -1 } }),
    ],
    [
      'a clone from a date that is none',
      body,
      ['options.messageFilter.startDate'],
      () => conversation.recalling.clone({ options: { messageFilter: { startDate: 'yesterday' } } }),
    ],
    ['a transfer to no one', body, ['resourceId'], () => conversation.recalling.transfer({})],
    ['a negative page', query, ['page'], () => suite.client.listMemoryThreads({ page: -1 })],
    ['a page size that is no number', query, ['perPage'], () => conversation.listing.listMessages({ perPage: 'ten' })],
    ['a page size beyond the limit', query, ['perPage'], () => conversation.listing.listMessages({ perPage: 1001 })],
    [
      'an order of threads by title',
      query,
      ['orderBy.field'],
      () => suite.client.listMemoryThreads({ orderBy: { field: 'title', direction: 'ASC' } }),
    ],
    [
      'an order of messages by role',
      query,
      ['orderBy.field'],
      () => conversation.listing.listMessages({ orderBy: { field: 'role', direction: 'ASC' } }),
    ],
    [
      'a direction that is none',
      query,
      ['orderBy.direction'],
      () => conversation.listing.listMessages({ orderBy: { field: 'createdAt', direction: 'UP' } }),
    ],
    ['a filter by a key with a dot', query, ['filter.metadata.a.b'], () => filter({ 'a.b': 1 })],
    ['a filter by a reserved key', query, ['filter.metadata.constructor'], () => filter({ constructor: 1 })],
    ['a filter by a list', query, ['filter.metadata.a'], () => filter({ a: [1] })],
    ['a filter by an object', query, ['filter.metadata.a'], () => filter({ a: { b: 1 } })],
    [
      'a filter by a date that is none',
      query,
      ['filter.dateRange.start'],
      () => conversation.listing.listMessages({ filter: { dateRange: { start: 'yesterday' } } }),
    ],
    [
      'included messages that are no list',
      query,
      ['include'],
      () => conversation.listing.listMessages({ include: { id: 'x' } }),
    ],
    [
      'an included message without an id',
      query,
      ['include.0.id'],
      () => conversation.listing.listMessages({ include: [{ withNextMessages: 1 }] }),
    ],
  ];
  for (const [name, error, fields, request] of requests) {
    test(name, () => refused(request(), { status: 400, error, fields }));
  }

  test('a message without thread or owner is refused in the words that clients know', async () => {
    await refused(save(suite.client, [newMessage({ id: thread.id }), newMessage({ resourceId: 'x' })]), {
      status: 400,
      error: 'All messages must have threadId and resourceId fields. Found 2 invalid message(s).',
    });
  });

  test('messages of one thread and two owners are refused in the words that clients know', async () => {
    await refused(save(suite.client, [newMessage(thread), newMessage({ ...thread, resourceId: 'someone else' })]), {
      status: 400,
      error: 'All messages for the same threadId must use the same resourceId.',
    });
  });

  const saveSecond = (message) => save(suite.client, [newMessage(thread), { ...newMessage(thread), ...message }]);
});

describe('what cannot be stored is refused, naming the place', () => {
  const saveText = (text) => save(suite.client, [newMessage(thread, { text })]);

  test('a NUL character', () =>
    refused(saveText('a\0b'), { status: 422, fields: ['messages.0.content.parts.0.text'] }));

  test('half of a surrogate pair', () =>
    refused(saveText('🦊'.slice(0, 1)), { status: 422, fields: ['messages.0.content.parts.0.text'] }));

  test('a NUL character in an id', () =>
    refused(createThread(suite.client, { threadId: 'a\0b' }), { status: 422, fields: ['threadId'] }));
});

describe('what is no request of this protocol is refused as JSON', () => {
  const requests = [
    [
      'a body that is too large',
      413,
      () => suite.send('POST', '/memory/save-messages', { body: { messages: [], filler: 'x'.repeat(10 << 20) } }),
    ],
    ['a body that is no JSON', 400, () => suite.send('POST', '/memory/threads', { body: '{"resourceId":' })],
    [
      'a key given twice',
      400,
      () => suite.send('POST', '/memory/threads', { body: '{"resourceId":"a","resourceId":"b"}' }),
    ],
    [
      'a body of another media type',
      415,
      () => suite.send('POST', '/memory/threads', { body: '{}', headers: { 'content-type': 'text/plain' } }),
    ],
    ['a route that there is not', 404, () => suite.send('GET', '/memory/nothing')],
    ['a method that a route does not take', 405, () => suite.send('PUT', '/memory/threads/x', { body: {} })],
  ];
  for (const [name, status, request] of requests) {
    test(name, async () => {
      const answer = await request();
      assert.equal(answer.status, status);
      assert.equal(typeof answer.body.error, 'string');
    });
  }
});

test('every answer names its request, by the caller where he has a name for it', async () => {
  const named = await suite.send('GET', '/memory/threads', { headers: { 'x-request-id': 'mine' } });
  assert.equal(named.headers.get('x-request-id'), 'mine');
  const missing = await suite.send('GET', '/memory/threads/missing');
  assert.ok(missing.headers.get('x-request-id'));
});

test('nothing that was refused has left a trace', async () => {
  const { messages, total } = await conversation.listing.listMessages();
  assert.equal(messages.length, 1);
  assert.equal(total, 1);
  assert.equal((await conversation.listing.get()).title, 'Kept');
  assert.deepEqual((await suite.client.listMemoryThreads({ resourceId: 'someone else' })).threads, []);
});
