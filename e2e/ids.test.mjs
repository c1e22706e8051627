import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { agentId, ids, newMessage, refused, save, texts, unique } from './support/memory.mjs';
import { serve } from './support/suite.mjs';

const suite = await serve();

// The client puts a thread's id into the path as it is, and fetch escapes some
// of it. The rest is for the caller to escape.
const usableAsGiven = [
  'with spaces within',
  'Ausflüge, 京都, عربى, 🦊',
  `"double", 'single', \`back\``,
  'a+b&c=d;e,f:g@h$i!j*k(l)m~n_o-p.q',
  '<a>|{b}|[c]^d',
  'urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66',
  '...',
  'A'.repeat(512),
];
const usableEscaped = [
  ...usableAsGiven,
  'tenant/user/thread',
  'why?',
  'issue #7',
  '100%',
  '%41',
  'back\\slash',
  ' space at both ends ',
  'tab\tand\nnewline',
  'https://example.com/a/../b?c=d#e',
];

/** Does with a thread of this id all that has the id in its path. */
async function useThread(threadId, inPath) {
  const { client } = suite;
  const resourceId = `${threadId.slice(0, 400)} ${unique('owner')}`;
  const thread = client.getMemoryThread({ threadId: inPath, agentId });
  const created = await client.createMemoryThread({ agentId, threadId, resourceId });
  assert.equal(created.id, threadId);
  assert.deepEqual(await thread.get(), created);
  const { messages } = await save(client, [
    newMessage(created, { id: `${threadId.slice(0, 400)} ${unique('message')}`, text: 'm1' }),
  ]);
  assert.equal((await thread.update({ title: 'Updated', resourceId })).title, 'Updated');

  const listed = await client.getMemoryThread({ threadId: inPath }).listMessages({ resourceId });
  assert.deepEqual(ids(listed.messages), ids(messages));
  assert.deepEqual(
    listed.messages.map((m) => m.threadId),
    [threadId],
  );
  const included = await thread.listMessages({ perPage: 0, include: [{ id: messages[0].id, threadId }] });
  assert.deepEqual(ids(included.messages), ids(messages));
  assert.deepEqual(ids((await client.listMemoryThreads({ resourceId })).threads), [threadId]);

  const { thread: clone } = await thread.clone();
  assert.equal(clone.metadata.clone.sourceThreadId, threadId);
  const { threads } = await suite.call('GET', `/memory/threads/${inPath}/clones`);
  assert.deepEqual(ids(threads), [clone.id]);
  assert.equal((await thread.transfer({ resourceId: 'new owner' })).id, threadId);
  await thread.deleteMessages(messages[0].id);
  assert.deepEqual((await thread.listMessages()).messages, []);
  await thread.delete();
  await refused(thread.get(), { status: 404, error: 'Thread not found' });
}

const shown = (id) => JSON.stringify(id.length > 60 ? `${id.slice(0, 10)}... of ${id.length}` : id);

describe('a thread is reached by its id as it is', () => {
  for (const id of usableAsGiven) {
    test(shown(id), () => useThread(id, id));
  }
});

describe('a thread is reached by its id escaped by the caller', () => {
  for (const id of usableEscaped) {
    test(shown(id), () => useThread(id, encodeURIComponent(id)));
  }
});

test('ids that look alike are different', async () => {
  const alike = ['caf\u00e9', 'cafe\u0301', 'Caf\u00e9', 'caf\u00e9 ', 'caf\u00e9\u200b'];
  for (const [i, threadId] of alike.entries()) {
    const thread = await suite.client.createMemoryThread({ agentId, threadId, resourceId: threadId });
    await save(suite.client, [newMessage(thread, { text: `m${i}` })]);
  }
  for (const [i, threadId] of alike.entries()) {
    const { messages } = await suite.client
      .getMemoryThread({ threadId: encodeURIComponent(threadId) })
      .listMessages({ resourceId: threadId });
    assert.equal(texts(messages), `m${i}`);
  }
});

test('an id is text, whatever SQL or JSON would make of it', async () => {
  for (const id of [`'; DROP TABLE recall.threads; --`, '$1', '{"id":1}', '\\x00', '%s%n', 'null', '0', '*']) {
    await useThread(id, encodeURIComponent(id));
  }
});

test('an id that is empty or too long is refused', async () => {
  const create = (threadId, resourceId) => suite.client.createMemoryThread({ agentId, threadId, resourceId });
  await refused(create('', 'sam'), { status: 400, fields: ['threadId'] });
  await refused(create('x', ''), { status: 400, fields: ['resourceId'] });
  await refused(create('x'.repeat(513), 'sam'), { status: 400, fields: ['threadId'] });
  await refused(create('é'.repeat(257), 'sam'), { status: 400, fields: ['threadId'] });
  await refused(suite.client.getMemoryThread({ threadId: 'x'.repeat(513) }).get(), {
    status: 400,
    fields: ['threadId'],
  });
});
