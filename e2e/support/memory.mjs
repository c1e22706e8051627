// What the tests make and look at: threads, messages and answers.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';

import { MastraClientError } from '@mastra/client-js';

/** The client asks for an agent at each write. Any name will do. */
export const agentId = 'agent';

/** Gives an id that no other test uses. */
export const unique = (prefix) => `${prefix}-${randomUUID()}`;

/** The time of a conversation's message: 10:00 and so many seconds. */
export const at = (seconds) => new Date(Date.UTC(2026, 2, 1, 10, 0, seconds));

/** Creates a thread, of a new resource unless one is given. */
export function createThread(client, { threadId = unique('thread'), resourceId = unique('resource'), ...rest } = {}) {
  return client.createMemoryThread({ agentId, threadId, resourceId, ...rest });
}

/** Gives a message to save into a thread, in the format of Mastra's database. */
export function newMessage(
  thread,
  { id = unique('message'), text = id, role = 'user', content, metadata, ...rest } = {},
) {
  content ??= { format: 2, parts: [{ type: 'text', text }], ...(metadata && { metadata }) };
  return { id, threadId: thread.id, resourceId: thread.resourceId, role, content, ...rest };
}

export function save(client, messages, rest = {}) {
  return client.saveMessageToMemory({ agentId, messages, ...rest });
}

/**
 * Creates a thread with messages whose texts are m1, m2, ..., at seconds 1, 2,
 * ... or those given. `id(n)` is the id of message n, `metadata(n)` its metadata.
 */
export async function createConversation(client, { count, seconds, metadata = () => undefined, ...rest }) {
  const thread = await createThread(client, rest);
  seconds ??= Array.from({ length: count }, (_, i) => i + 1);
  const id = (n) => `${thread.id}:m${n}`;
  const messages = seconds.map((second, i) =>
    newMessage(thread, { id: id(i + 1), text: `m${i + 1}`, createdAt: at(second), metadata: metadata(i + 1) }),
  );
  await save(client, messages);
  return {
    thread,
    id,
    messages,
    /** The thread as the client lists it, and as an agent recalls it. */
    listing: client.getMemoryThread({ threadId: thread.id }),
    recalling: client.getMemoryThread({ threadId: thread.id, agentId }),
  };
}

export const ids = (items) => items.map((item) => item.id);

export const textOf = (message) => message.content.parts[0].text;

/** The texts of messages in one line: "m1 m2 m3". */
export const texts = (messages) => messages.map(textOf).join(' ');

/** The texts of a conversation's messages from one to another, in one line. */
export function span(from, to) {
  const step = from <= to ? 1 : -1;
  return Array.from({ length: Math.abs(to - from) + 1 }, (_, i) => `m${from + i * step}`).join(' ');
}

/** Asserts that the server refuses with this status, text and named fields. */
export async function refused(promise, { status, error, fields = [] }) {
  await assert.rejects(promise, (thrown) => {
    assert.ok(thrown instanceof MastraClientError, `not an answer of the server: ${thrown}`);
    assert.equal(thrown.status, status, thrown.message);
    assert.deepEqual(
      (thrown.body.issues ?? []).map((issue) => issue.field),
      fields,
      thrown.message,
    );
    if (error !== undefined) {
      assert.equal(thrown.body.error, error);
    }
    return true;
  });
}
