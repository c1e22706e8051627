import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import {
  agentId,
  at,
  createConversation,
  createThread,
  ids,
  newMessage,
  refused,
  save,
  span,
  texts,
  unique,
} from './support/memory.mjs';
import { serve } from './support/suite.mjs';

const suite = await serve();

const list = async (thread) =>
  (await suite.client.getMemoryThread({ threadId: thread.id }).listMessages({ perPage: false })).messages;

describe('cloning a thread', () => {
  test('copies all messages under new ids, into a thread that knows its source', async () => {
    const { thread, recalling, messages } = await createConversation(suite.client, {
      count: 3,
      title: 'Trip to Kyoto',
      metadata: (n) => ({ n }),
    });
    const { thread: clone, clonedMessages, messageIdMap } = await recalling.clone();
    assert.notEqual(clone.id, thread.id);
    assert.deepEqual(clone, {
      id: clone.id,
      resourceId: thread.resourceId,
      title: 'Clone of Trip to Kyoto',
      metadata: {
        clone: { sourceThreadId: thread.id, clonedAt: clone.metadata.clone.clonedAt, lastMessageId: messages[2].id },
      },
      createdAt: clone.createdAt,
      updatedAt: clone.createdAt,
    });
    assert.deepEqual(messageIdMap, Object.fromEntries(messages.map((m, i) => [m.id, clonedMessages[i].id])));
    assert.deepEqual(
      clonedMessages,
      messages.map((m, i) => ({
        ...m,
        id: clonedMessages[i].id,
        threadId: clone.id,
        createdAt: m.createdAt.toISOString(),
      })),
    );
    assert.deepEqual(await list(clone), clonedMessages);
    assert.equal(new Set([...ids(clonedMessages), ...ids(messages)]).size, 6);
  });

  test('takes the id, owner, title and metadata given', async () => {
    const { thread, recalling } = await createConversation(suite.client, { count: 1, title: 'Source' });
    const newThreadId = unique('clone');
    const resourceId = unique('resource');
    const { thread: clone, clonedMessages } = await recalling.clone({
      newThreadId,
      resourceId,
      title: 'Branch',
      metadata: { kind: 'branch' },
    });
    assert.deepEqual([clone.id, clone.resourceId, clone.title], [newThreadId, resourceId, 'Branch']);
    assert.equal(clone.metadata.kind, 'branch');
    assert.equal(clone.metadata.clone.sourceThreadId, thread.id);
    assert.deepEqual(
      clonedMessages.map((m) => m.resourceId),
      [resourceId],
    );
    assert.deepEqual(await suite.client.getMemoryThread({ threadId: newThreadId }).get(), clone);
  });

  const choices = [
    ['the newest so many', () => ({ messageLimit: 2 }), 'm6 m7'],
    ['none', () => ({ messageLimit: 0 }), ''],
    [
      'those between two dates, these included',
      () => ({ messageFilter: { startDate: at(2), endDate: at(4) } }),
      span(2, 4),
    ],
    ['those from a date on', () => ({ messageFilter: { startDate: at(6) } }), 'm6 m7'],
    ['those up to a date', () => ({ messageFilter: { endDate: at(2) } }), 'm1 m2'],
    [
      'those with given ids, in the order of the thread',
      (id) => ({ messageFilter: { messageIds: [id(5), id(2), unique('nowhere')] } }),
      'm2 m5',
    ],
    ['none for an empty list of ids', () => ({ messageFilter: { messageIds: [] } }), ''],
    [
      'what all conditions leave, and of that the newest',
      (id) => ({
        messageLimit: 2,
        messageFilter: { startDate: at(2), endDate: at(6), messageIds: [1, 2, 4, 5, 7].map(id) },
      }),
      'm4 m5',
    ],
  ];
  for (const [name, options, expected] of choices) {
    test(`copies ${name}`, async () => {
      const { recalling, id } = await createConversation(suite.client, { count: 7 });
      const { thread: clone, clonedMessages } = await recalling.clone({ options: options(id) });
      assert.equal(texts(clonedMessages), expected);
      assert.equal(texts(await list(clone)), expected);
    });
  }

  test('keeps the order of messages whose times are equal', async () => {
    const { recalling } = await createConversation(suite.client, { seconds: [1, 1, 1, 1, 1] });
    assert.equal(texts(await list((await recalling.clone()).thread)), span(1, 5));
  });

  test('gives a thread that goes its own way', async () => {
    const { thread, recalling } = await createConversation(suite.client, { count: 2 });
    const { thread: clone, clonedMessages } = await recalling.clone();
    await save(suite.client, [newMessage(clone, { text: 'in the clone', createdAt: at(2) })]);
    await save(suite.client, [newMessage(thread, { text: 'in the source' })]);
    await recalling.deleteMessages(clonedMessages[0].id);
    assert.equal(texts(await list(clone)), 'm2 in the clone');
    assert.equal(texts(await list(thread)), 'm1 m2 in the source');
  });

  test('onto a taken id is a conflict that changes nothing', async () => {
    const { recalling, thread } = await createConversation(suite.client, { count: 1 });
    const taken = await createThread(suite.client, { resourceId: thread.resourceId, title: 'Taken' });
    await refused(recalling.clone({ newThreadId: taken.id }), { status: 409 });
    assert.deepEqual(await suite.client.getMemoryThread({ threadId: taken.id }).get(), taken);
    assert.deepEqual(await list(taken), []);
  });

  test('while another writes copies all up to some save of his', async () => {
    const { thread, recalling } = await createConversation(suite.client, { count: 1 });
    const pair = (n) => [`m${2 * n}`, `m${2 * n + 1}`].map((text) => newMessage(thread, { text }));
    let writing = true;
    const writer = (async () => {
      for (let n = 1; n <= 30; n++) {
        await save(suite.client, pair(n));
      }
      writing = false;
    })();
    while (writing) {
      const { clonedMessages } = await recalling.clone();
      assert.equal(clonedMessages.length % 2, 1);
      assert.equal(texts(clonedMessages), span(1, clonedMessages.length));
    }
    await writer;
  });
});

describe('the family of a thread', () => {
  const family = (thread, what, query) => suite.call('GET', `/memory/threads/${thread.id}/${what}`, { query });

  test('is known to source and clone', async () => {
    const { thread, recalling } = await createConversation(suite.client, { count: 1 });
    const first = (await recalling.clone({ newThreadId: unique('clone-1') })).thread;
    const second = (await recalling.clone({ newThreadId: unique('clone-2') })).thread;
    const grandchild = (await suite.client.getMemoryThread({ threadId: first.id, agentId }).clone()).thread;
    assert.deepEqual(ids((await family(thread, 'clones')).threads), [first.id, second.id]);
    assert.deepEqual((await family(second, 'clones')).threads, []);
    assert.equal((await family(grandchild, 'source')).thread.id, first.id);
    assert.equal((await family(thread, 'source')).thread, null);
    assert.deepEqual(ids((await family(grandchild, 'clone-history')).threads), [thread.id, first.id, grandchild.id]);
    assert.deepEqual(ids((await family(thread, 'clone-history')).threads), [thread.id]);
  });

  test('loses a source that is deleted, and the clone lives on', async () => {
    const { recalling } = await createConversation(suite.client, { count: 2 });
    const { thread: clone } = await recalling.clone();
    await recalling.delete();
    assert.equal((await family(clone, 'source')).thread, null);
    assert.deepEqual(ids((await family(clone, 'clone-history')).threads), [clone.id]);
    assert.equal(texts(await list(clone)), span(1, 2));
  });

  test("shows an owner none of another's threads", async () => {
    const { thread, recalling } = await createConversation(suite.client, { count: 1 });
    const resourceId = unique('resource');
    const { thread: clone } = await recalling.clone({ resourceId });
    assert.equal((await family(clone, 'source', { resourceId })).thread, null);
    assert.deepEqual(ids((await family(clone, 'clone-history', { resourceId })).threads), [clone.id]);
    assert.deepEqual((await family(thread, 'clones', { resourceId: thread.resourceId })).threads, []);
  });
});
