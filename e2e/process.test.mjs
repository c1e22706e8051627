import assert from 'node:assert/strict';
import { test } from 'node:test';

import { MastraClientError } from '@mastra/client-js';

import { createConversation, createThread, ids, newMessage, save, span, textOf, texts } from './support/memory.mjs';
import { newClient, serve } from './support/suite.mjs';

const suite = await serve();

const listAll = async (thread) =>
  (await suite.client.getMemoryThread({ threadId: thread.id }).listMessages({ perPage: false })).messages;

test('the server says that it lives and that it is ready', async () => {
  for (const path of ['healthz', 'readyz']) {
    const response = await fetch(`${suite.server.baseUrl}/${path}`);
    assert.equal(response.status, 200);
    await response.json();
  }
});

test('what was kept is there after a restart, and a walk goes on where it was', async () => {
  const { thread } = await createConversation(suite.client, { count: 6 });
  const recall = (cursor) =>
    suite.call('POST', '/memory/recall', { body: { threadId: thread.id, perPage: 4, cursor } });
  const before = await recall();
  assert.deepEqual(await suite.server.stop(), { code: 0, signal: null });
  await suite.start();
  assert.deepEqual(await recall(), before);
  assert.equal(texts((await recall(before.nextCursor)).messages), span(1, 2));
});

test('told to stop, the server finishes what runs and ends with code 0', async () => {
  const thread = await createThread(suite.client);
  const writing = new Writing(thread, { writers: 8 });
  await writing.acknowledged(50);
  assert.deepEqual(await suite.server.stop(), { code: 0, signal: null });
  const { saved, failed } = await writing.over();
  await suite.start();
  assert.deepEqual(ids(await listAll(thread)).sort(), ids(saved).sort());
  for (const { error } of failed) {
    assert.ok(!(error instanceof MastraClientError), `answered while it stopped: ${error}`);
  }
});

test('killed among saves, the server has kept each acknowledged message once', async () => {
  const thread = await createThread(suite.client);
  const writing = new Writing(thread, { writers: 20 });
  await writing.acknowledged(100);
  await suite.server.kill();
  const { saved, failed } = await writing.over();
  assert.equal(failed.length, 20);
  await suite.start();

  const kept = ids(await listAll(thread));
  assert.equal(new Set(kept).size, kept.length);
  assert.deepEqual(
    ids(saved).filter((id) => !kept.includes(id)),
    [],
  );
  const inDoubt = failed.map(({ message }) => message);
  const known = new Set([...ids(saved), ...ids(inDoubt)]);
  assert.deepEqual(
    kept.filter((id) => !known.has(id)),
    [],
  );

  // Whoever got no answer saves again under the same ids.
  await save(suite.client, inDoubt);
  const { messages, total } = await suite.client
    .getMemoryThread({ threadId: thread.id })
    .listMessages({ perPage: false });
  assert.deepEqual(ids(messages).sort(), [...known].sort());
  assert.equal(total, known.size);
});

test('a client that tries again gets over a crash, each message saved once and in order', async () => {
  const thread = await createThread(suite.client);
  const { baseUrl, port } = suite.server;
  let saved = 0;
  let crashed;
  const write = async (w) => {
    const patient = newClient(baseUrl, { retries: 1000, backoffMs: 20, maxBackoffMs: 50 });
    for (let n = 1; n <= 20; n++) {
      await save(patient, [newMessage(thread, { text: `${w}:${n}` })]);
      saved += 1;
      if (saved === 40) {
        crashed = suite.server.kill().then(() => suite.start(port));
      }
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, w) => write(w)));
  await crashed;
  const messages = await listAll(thread);
  assert.equal(messages.length, 160);
  for (let w = 0; w < 8; w++) {
    const own = messages.map(textOf).filter((text) => text.startsWith(`${w}:`));
    assert.deepEqual(
      own,
      Array.from({ length: 20 }, (_, i) => `${w}:${i + 1}`),
    );
  }
});

/** Clients that save one message after the other until a save fails. */
class Writing {
  #saved = [];
  #failed = [];
  #writers;
  #awaited;

  constructor(thread, { writers }) {
    const client = newClient(suite.server.baseUrl);
    this.#writers = Array.from({ length: writers }, () => this.#write(client, thread));
  }

  /** Waits until so many messages have been acknowledged. */
  acknowledged(count) {
    return new Promise((resolve) => {
      this.#awaited = { count, resolve };
    });
  }

  /** Waits for the failure of each client. */
  async over() {
    await Promise.all(this.#writers);
    return { saved: this.#saved, failed: this.#failed };
  }

  async #write(client, thread) {
    for (;;) {
      const message = newMessage(thread);
      try {
        await save(client, [message]);
      } catch (error) {
        this.#failed.push({ message, error });
        return;
      }
      this.#saved.push(message);
      if (this.#awaited?.count === this.#saved.length) {
        this.#awaited.resolve();
      }
    }
  }
}
