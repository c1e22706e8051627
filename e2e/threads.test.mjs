import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import {
  agentId,
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

const open = (thread) => suite.client.getMemoryThread({ threadId: thread.id, agentId });

describe('creating a thread', () => {
  test('keeps the id, owner, title and metadata given', async () => {
    const metadata = { category: 'support', nested: { list: [1, 'two', null] } };
    const thread = await createThread(suite.client, {
      threadId: 'kyoto',
      resourceId: 'sam',
      title: 'Trip to Kyoto',
      metadata,
    });
    assert.match(thread.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.deepEqual(thread, {
      id: 'kyoto',
      resourceId: 'sam',
      title: 'Trip to Kyoto',
      metadata,
      createdAt: thread.createdAt,
      updatedAt: thread.createdAt,
    });
    assert.deepEqual(await open(thread).get(), thread);
  });

  test('without an id gives each thread one of its own', async () => {
    const resourceId = unique('resource');
    const first = await suite.client.createMemoryThread({ agentId, resourceId });
    const second = await suite.client.createMemoryThread({ agentId, resourceId });
    assert.notEqual(first.id, second.id);
    assert.deepEqual(await open(first).get(), first);
    assert.deepEqual(await open(second).get(), second);
  });

  test('again changes the title and metadata given, and nothing else', async () => {
    const before = await createThread(suite.client, { title: 'First', metadata: { tier: 1 } });
    const { id: threadId, resourceId } = before;
    const retitled = await createThread(suite.client, { threadId, resourceId, title: 'Second' });
    assert.deepEqual(retitled, { ...before, title: 'Second', updatedAt: retitled.updatedAt });
    const remade = await createThread(suite.client, { threadId, resourceId, metadata: { plan: 'pro' } });
    assert.deepEqual(remade, { ...retitled, metadata: { plan: 'pro' }, updatedAt: remade.updatedAt });
    const { total } = await suite.client.listMemoryThreads({ resourceId });
    assert.equal(total, 1);
  });

  test("again keeps the thread's messages", async () => {
    const { thread, listing } = await createConversation(suite.client, { count: 3 });
    await createThread(suite.client, { threadId: thread.id, resourceId: thread.resourceId, title: 'Again' });
    assert.equal(texts((await listing.listMessages()).messages), span(1, 3));
  });

  test('under an id of another owner is a conflict that changes nothing', async () => {
    const thread = await createThread(suite.client, { title: 'Mine' });
    await refused(createThread(suite.client, { threadId: thread.id, title: 'Yours' }), { status: 409 });
    assert.deepEqual(await open(thread).get(), thread);
  });
});

describe('getting a thread', () => {
  test('works without an agent, and with a request context', async () => {
    const thread = await createThread(suite.client);
    assert.deepEqual(await suite.client.getMemoryThread({ threadId: thread.id }).get(), thread);
    assert.deepEqual(await open(thread).get({ tenant: 'a', locale: 'ja' }), thread);
  });

  test('works for its owner, and is refused for another', async () => {
    const thread = await createThread(suite.client);
    const get = (resourceId) => suite.send('GET', `/memory/threads/${thread.id}`, { query: { resourceId } });
    assert.deepEqual((await get(thread.resourceId)).body, thread);
    const { status, body } = await get('someone else');
    assert.equal(status, 403);
    assert.deepEqual(body, { error: 'Access denied: thread belongs to a different resource' });
  });
});

describe('updating a thread', () => {
  test('sets the title and keeps the rest', async () => {
    const before = await createThread(suite.client, { title: 'Old', metadata: { tier: 2 } });
    const updated = await open(before).update({ title: 'New' });
    assert.deepEqual(updated, { ...before, title: 'New', updatedAt: updated.updatedAt });
    assert.deepEqual(await open(before).get(), updated);
  });

  test('merges metadata key by key, and a null removes its key', async () => {
    const thread = await createThread(suite.client, {
      metadata: { tier: 2, status: 'open', address: { city: 'Kyoto', zip: 1 } },
    });
    const { metadata } = await open(thread).update({
      metadata: { status: 'resolved', tier: null, address: { city: 'Nara' }, mood: 'happy' },
    });
    assert.deepEqual(metadata, { status: 'resolved', address: { city: 'Nara' }, mood: 'happy' });
  });

  test('is for its owner to do, and refused in the name of another', async () => {
    const thread = await createThread(suite.client, { title: 'Old' });
    await refused(open(thread).update({ title: 'Stolen', resourceId: 'someone else' }), { status: 403 });
    assert.equal((await open(thread).get()).title, 'Old');
    const updated = await open(thread).update({ title: 'New', resourceId: thread.resourceId });
    assert.equal(updated.title, 'New');
    assert.equal(updated.resourceId, thread.resourceId);
  });

  test('by many at once loses no key', async () => {
    const thread = await createThread(suite.client);
    const keys = Array.from({ length: 20 }, (_, i) => `key${i}`);
    await Promise.all(keys.map((key) => open(thread).update({ metadata: { [key]: true } })));
    assert.deepEqual((await open(thread).get()).metadata, Object.fromEntries(keys.map((key) => [key, true])));
  });
});

describe('listing threads', () => {
  test('gives those of the resource, newest first, 100 a page', async () => {
    const threads = await createThreads(3);
    await createThread(suite.client);
    const page = await suite.client.listMemoryThreads({ resourceId: threads[0].resourceId, agentId });
    assert.deepEqual(page, { threads: threads.reverse(), total: 3, page: 0, perPage: 100, hasMore: false });
  });

  test('without a resource gives those of all', async () => {
    const threads = [await createThread(suite.client), await createThread(suite.client)];
    const page = await suite.client.listMemoryThreads({ perPage: false });
    for (const thread of threads) {
      assert.ok(ids(page.threads).includes(thread.id));
    }
    assert.equal(page.total, page.threads.length);
  });

  test('page by page gives each thread once, and tells when there are more', async () => {
    const threads = await createThreads(7);
    const { resourceId } = threads[0];
    const pages = [];
    for (let page = 0; page < 4; page++) {
      pages.push(await suite.client.listMemoryThreads({ resourceId, page, perPage: 3 }));
    }
    assert.deepEqual(
      pages.map((page) => page.threads.length),
      [3, 3, 1, 0],
    );
    assert.deepEqual(
      pages.map((page) => page.hasMore),
      [true, true, false, false],
    );
    assert.deepEqual(
      pages.map((page) => page.total),
      [7, 7, 7, 7],
    );
    assert.deepEqual(ids(pages.flatMap((page) => page.threads)), ids(threads).reverse());
  });

  test('with perPage false gives all', async () => {
    const threads = await createThreads(5);
    const page = await suite.client.listMemoryThreads({ resourceId: threads[0].resourceId, perPage: false });
    assert.deepEqual(ids(page.threads), ids(threads).reverse());
    assert.equal(page.perPage, false);
    assert.equal(page.hasMore, false);
  });

  test('pages by creation or update, in either direction', async () => {
    const threads = await createThreads(3);
    const [first, second, third] = ids(threads);
    await touchAfter(threads[0], threads[2].updatedAt);
    const list = async (field, direction) => {
      const listPage = (page) =>
        suite.client.listMemoryThreads({
          resourceId: threads[0].resourceId,
          page,
          perPage: 2,
          orderBy: { field, direction },
        });
      return [...ids((await listPage(0)).threads), ...ids((await listPage(1)).threads)];
    };
    assert.deepEqual(await list('createdAt', 'ASC'), [first, second, third]);
    assert.deepEqual(await list('createdAt', 'DESC'), [third, second, first]);
    assert.deepEqual(await list('updatedAt', 'ASC'), [second, third, first]);
    assert.deepEqual(await list('updatedAt', 'DESC'), [first, third, second]);
  });

  test('by update puts the thread first that got the last message', async () => {
    const threads = await createThreads(2);
    do {
      await save(suite.client, [newMessage(threads[0])]);
    } while ((await open(threads[0]).get()).updatedAt <= threads[1].updatedAt);
    const { threads: listed } = await suite.client.listMemoryThreads({
      resourceId: threads[0].resourceId,
      orderBy: { field: 'updatedAt', direction: 'DESC' },
    });
    assert.deepEqual(ids(listed), ids(threads));
  });

  test('by metadata is exact in value and type, and all pairs must match', async () => {
    const resourceId = unique('resource');
    const create = (metadata) => createThread(suite.client, { resourceId, ...(metadata && { metadata }) });
    const number = await create({ tier: 2, status: 'active' });
    const string = await create({ tier: '2', status: 'active' });
    const fraction = await create({ tier: 1.5, vip: true });
    const nothing = await create({ tier: null, vip: false });
    await create();
    const matching = async (metadata) => {
      const { threads, total } = await suite.client.listMemoryThreads({
        resourceId,
        metadata,
        orderBy: { field: 'createdAt', direction: 'ASC' },
      });
      assert.equal(total, threads.length);
      return new Set(ids(threads));
    };
    assert.deepEqual(await matching({ tier: 2 }), new Set([number.id]));
    assert.deepEqual(await matching({ tier: '2' }), new Set([string.id]));
    assert.deepEqual(await matching({ tier: 1.5 }), new Set([fraction.id]));
    assert.deepEqual(await matching({ tier: null }), new Set([nothing.id]));
    assert.deepEqual(await matching({ vip: true }), new Set([fraction.id]));
    assert.deepEqual(await matching({ vip: false }), new Set([nothing.id]));
    assert.deepEqual(await matching({ status: 'active' }), new Set([number.id, string.id]));
    assert.deepEqual(await matching({ status: 'active', tier: 2 }), new Set([number.id]));
    assert.deepEqual(await matching({ status: 'closed' }), new Set());
  });

  /** Creates threads of one resource whose ids are in the order of their creation. */
  async function createThreads(count) {
    const resourceId = unique('resource');
    const threads = [];
    for (let i = 1; i <= count; i++) {
      threads.push(await createThread(suite.client, { resourceId, threadId: `${resourceId}:t${i}` }));
    }
    return threads;
  }

  /** Updates a thread until the clock has moved past the time given. */
  async function touchAfter(thread, time) {
    let updated;
    do {
      updated = await open(thread).update({ title: 'Touched' });
    } while (updated.updatedAt <= time);
  }
});

describe('transferring a thread', () => {
  test('gives it with its messages to the other resource, and changes nothing else', async () => {
    const { thread, listing } = await createConversation(suite.client, {
      count: 3,
      title: 'Mine',
      metadata: () => ({ kept: true }),
    });
    const before = await open(thread).get();
    const receiver = unique('resource');
    const transferred = await open(thread).transfer({ resourceId: receiver });
    assert.deepEqual(transferred, { ...before, resourceId: receiver, updatedAt: transferred.updatedAt });
    const { messages } = await listing.listMessages({ resourceId: receiver });
    assert.equal(texts(messages), span(1, 3));
    assert.deepEqual(
      messages.map((m) => m.resourceId),
      [receiver, receiver, receiver],
    );
  });

  test('takes it from its former owner', async () => {
    const { thread, listing } = await createConversation(suite.client, { count: 1 });
    const receiver = unique('resource');
    await open(thread).transfer({ resourceId: receiver });
    await refused(listing.listMessages({ resourceId: thread.resourceId }), { status: 403 });
    assert.deepEqual((await suite.client.listMemoryThreads({ resourceId: thread.resourceId })).threads, []);
    assert.deepEqual(ids((await suite.client.listMemoryThreads({ resourceId: receiver })).threads), [thread.id]);
    const recalled = (resourceId) => suite.call('POST', '/memory/recall', { body: { resourceId } });
    assert.deepEqual((await recalled(thread.resourceId)).messages, []);
    assert.equal(texts((await recalled(receiver)).messages), 'm1');
  });

  test('lets the new owner go on, and no longer the old one', async () => {
    const { thread, listing } = await createConversation(suite.client, { count: 1 });
    const transferred = await open(thread).transfer({ resourceId: unique('resource') });
    await refused(save(suite.client, [newMessage(thread, { text: 'm2' })]), { status: 403 });
    await save(suite.client, [newMessage(transferred, { text: 'm2' })]);
    assert.equal(texts((await listing.listMessages()).messages), span(1, 2));
  });
});

describe('deleting a thread', () => {
  test('takes its messages along', async () => {
    const { thread, listing, id } = await createConversation(suite.client, { count: 3 });
    assert.deepEqual(await open(thread).delete(), { result: 'Thread deleted' });
    await refused(open(thread).get(), { status: 404, error: 'Thread not found' });
    await refused(listing.listMessages(), { status: 404, error: 'Thread not found' });
    const { messages } = await suite.call('POST', '/memory/recall', {
      body: { resourceId: thread.resourceId, include: [{ id: id(1) }] },
    });
    assert.deepEqual(messages, []);
  });

  test('works once, by the other method of the client too', async () => {
    const thread = await createThread(suite.client);
    await suite.client.deleteThread(thread.id, { agentId });
    await refused(suite.client.deleteThread(thread.id, { agentId }), { status: 404, error: 'Thread not found' });
  });

  test('frees its id and those of its messages', async () => {
    const { thread, id } = await createConversation(suite.client, { count: 2 });
    await open(thread).delete();
    const other = await createThread(suite.client, { threadId: thread.id });
    await save(suite.client, [newMessage(other, { id: id(1), text: 'anew' })]);
    assert.equal(texts((await open(other).listMessages()).messages), 'anew');
  });
});
