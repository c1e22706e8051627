import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { MastraClientError } from '@mastra/client-js';

import {
  agentId,
  createConversation,
  createThread,
  ids,
  newMessage,
  save,
  span,
  textOf,
  texts,
  unique,
} from './support/memory.mjs';
import { newClient, serve } from './support/suite.mjs';

const suite = await serve();

const clients = Array.from({ length: 20 }, () => newClient(suite.server.baseUrl));

const atOnce = (work) => Promise.all(clients.map(work));

const listAll = (thread) => suite.client.getMemoryThread({ threadId: thread.id }).listMessages({ perPage: false });

describe('twenty clients that save into one thread', () => {
  test('lose no message, and each finds its own in the order it saved them', async () => {
    const thread = await createThread(suite.client);
    await atOnce(async (client, c) => {
      for (let n = 1; n <= 10; n++) {
        await save(client, [newMessage(thread, { text: `${c}:${n}` })]);
      }
    });
    const { messages, total } = await listAll(thread);
    assert.equal(total, 200);
    assert.equal(new Set(messages.map(textOf)).size, 200);
    const own = (c) => texts(messages.filter((m) => textOf(m).startsWith(`${c}:`)));
    for (const c of clients.keys()) {
      assert.equal(own(c), Array.from({ length: 10 }, (_, i) => `${c}:${i + 1}`).join(' '));
    }
  });

  test('find what was saved before the start of another save before it', async () => {
    const thread = await createThread(suite.client);
    const saves = new Map();
    let clock = 0;
    await atOnce(async (client) => {
      for (let n = 1; n <= 5; n++) {
        const message = newMessage(thread);
        const began = clock++;
        await save(client, [message]);
        saves.set(message.id, { began, ended: clock++ });
      }
    });
    const order = (await listAll(thread)).messages.map((m) => saves.get(m.id));
    assert.equal(order.length, 100);
    for (const [i, later] of order.entries()) {
      const overtaken = order.slice(0, i).filter((earlier) => later.ended < earlier.began);
      assert.deepEqual(overtaken, []);
    }
  });

  test('find each batch unbroken', async () => {
    const thread = await createThread(suite.client);
    await atOnce((client, c) =>
      save(
        client,
        Array.from({ length: 10 }, (_, i) => newMessage(thread, { text: `${c}:${i}` })),
      ),
    );
    const { messages } = await listAll(thread);
    for (let i = 0; i < messages.length; i += 10) {
      const [c] = textOf(messages[i]).split(':');
      assert.equal(texts(messages.slice(i, i + 10)), Array.from({ length: 10 }, (_, n) => `${c}:${n}`).join(' '));
    }
    assert.equal(messages.length, 200);
  });

  test('find each message once where all save the same ids in different orders', async () => {
    const thread = await createThread(suite.client);
    const messages = Array.from({ length: 50 }, () => newMessage(thread));
    await atOnce((client, c) => save(client, c % 2 === 0 ? messages : messages.toReversed()));
    const { messages: listed, total } = await listAll(thread);
    assert.equal(total, 50);
    assert.deepEqual(ids(listed).sort(), ids(messages).sort());
  });

  test('may delete at the same time, and the count stays right', async () => {
    const { thread, id } = await createConversation(suite.client, { count: 40 });
    await atOnce(async (client, c) => {
      const opened = client.getMemoryThread({ threadId: thread.id, agentId });
      await Promise.all([
        opened.deleteMessages([id(c + 1), id(c + 2)]),
        save(client, [newMessage(thread, { text: 'new' })]),
      ]);
    });
    const { messages, total } = await listAll(thread);
    assert.equal(texts(messages.slice(0, 19)), span(22, 40));
    assert.equal(total, messages.length);
    assert.equal(total, 39);
  });
});

describe('twenty clients that create one thread', () => {
  // Whoever comes second must see the first in time; a few rounds make it likely that one does not.
  const rounds = 10;

  test('get the same one where they have the same owner', async () => {
    for (let round = 1; round <= rounds; round++) {
      const [threadId, resourceId] = [unique('thread'), unique('resource')];
      const threads = await atOnce((client) => createThread(client, { threadId, resourceId }));
      assert.deepEqual(new Set(ids(threads)), new Set([threadId]));
      assert.equal(new Set(threads.map((thread) => thread.createdAt)).size, 1);
      assert.equal((await suite.client.listMemoryThreads({ resourceId })).total, 1);
    }
  });

  test('leave it to one of different owners', async () => {
    for (let round = 1; round <= rounds; round++) {
      const threadId = unique('thread');
      const winner = await theOneThatWins(atOnceSettled((client) => createThread(client, { threadId })));
      assert.deepEqual(await suite.client.getMemoryThread({ threadId }).get(), winner);
    }
  });

  test('by cloning leave it to one', async () => {
    const { thread, recalling } = await createConversation(suite.client, { count: 3 });
    const newThreadId = unique('clone');
    const winner = await theOneThatWins(atOnceSettled((_, c) => recalling.clone({ newThreadId, title: `${c}` })));
    assert.deepEqual(await suite.client.getMemoryThread({ threadId: newThreadId }).get(), winner.thread);
    assert.equal(texts((await listAll({ id: newThreadId })).messages), span(1, 3));
    assert.equal(winner.thread.metadata.clone.sourceThreadId, thread.id);
  });

  test('by their first messages create it once, and lose none', async () => {
    for (let round = 1; round <= rounds; round++) {
      const thread = { id: unique('thread'), resourceId: unique('resource') };
      await atOnce((client) => save(client, [newMessage(thread)], { createThread: true }));
      assert.equal((await listAll(thread)).total, 20);
    }
  });

  const atOnceSettled = (work) => Promise.allSettled(clients.map(work));

  /** Gives what the one request answered that was not refused as a conflict. */
  async function theOneThatWins(outcomes) {
    const settled = await outcomes;
    for (const { reason } of settled.filter(({ status }) => status === 'rejected')) {
      assert.ok(reason instanceof MastraClientError, `${reason}`);
      assert.equal(reason.status, 409, reason.message);
    }
    const won = settled.filter(({ status }) => status === 'fulfilled');
    assert.equal(won.length, 1);
    return won[0].value;
  }
});

test('a walk by cursor among twenty who save gives each message that was there once', async () => {
  const { thread } = await createConversation(suite.client, { count: 100 });
  let walking = true;
  const saving = atOnce(async (client) => {
    while (walking) {
      await save(client, [newMessage(thread, { text: 'later' })]);
    }
  });
  const walked = [];
  let cursor;
  try {
    do {
      const body = { threadId: thread.id, perPage: 7, orderBy: { field: 'createdAt', direction: 'ASC' }, cursor };
      const page = await suite.call('POST', '/memory/recall', { body });
      walked.push(...page.messages.filter((m) => textOf(m) !== 'later'));
      cursor = page.nextCursor;
    } while (walked.length < 100 && cursor !== null);
  } finally {
    walking = false;
    await saving;
  }
  assert.equal(texts(walked), span(1, 100));
});

test('an owner never sees a thread that is given back and forth half in his hands', async () => {
  const { thread } = await createConversation(suite.client, { count: 20 });
  const owners = [thread.resourceId, unique('resource')];
  const opened = suite.client.getMemoryThread({ threadId: thread.id, agentId });
  let giving = true;
  const giver = (async () => {
    for (let n = 1; n <= 20; n++) {
      await opened.transfer({ resourceId: owners[n % 2] });
    }
  })().finally(() => {
    giving = false;
  });
  while (giving) {
    const recalls = owners.map((resourceId) =>
      suite.call('POST', '/memory/recall', { body: { resourceId, perPage: false } }),
    );
    for (const { messages, total } of await Promise.all(recalls)) {
      assert.ok(messages.length === 0 || texts(messages) === span(1, 20));
      assert.equal(total, messages.length);
    }
  }
  await giver;
});
