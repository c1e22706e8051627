import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { agentId, createConversation, createThread, refused, unique } from './support/memory.mjs';
import { serve } from './support/suite.mjs';

const suite = await serve();

const read = (thread, of = {}) =>
  suite.client.getWorkingMemory({ agentId, threadId: thread.id, resourceId: thread.resourceId, ...of });
const write = (thread, workingMemory, of = {}) =>
  suite.client.updateWorkingMemory({ agentId, threadId: thread.id, resourceId: thread.resourceId, workingMemory, ...of });
const path = (thread, rest = '') => `/memory/threads/${thread.id}/working-memory${rest}`;

/** Stores an agent of the test's own, and gives its id. */
async function createAgent(workingMemory) {
  const id = unique('agent');
  await suite.call('PUT', '/memory/config', { query: { agentId: id }, body: { config: { workingMemory } } });
  return id;
}

const person = {
  type: 'object',
  properties: { name: { type: 'string' }, address: { type: 'object', properties: { city: { type: 'string' } } } },
};

describe('working memory', () => {
  test('is nothing but a template at first, and then what was written', async () => {
    const thread = await createThread(suite.client);
    const first = await read(thread);
    assert.equal(first.workingMemory, null);
    assert.equal(first.source, 'resource');
    assert.equal(first.threadExists, true);
    assert.equal(first.workingMemoryTemplate.format, 'markdown');
    assert.match(first.workingMemoryTemplate.content, /^# User Information\n/);

    assert.equal((await write(thread, '# Profile\n- Name: Sam')).success, true);
    assert.equal((await read(thread)).workingMemory, '# Profile\n- Name: Sam');
  });

  test('is shared by the threads of a user, and by nobody else', async () => {
    const thread = await createThread(suite.client);
    const other = await createThread(suite.client, { resourceId: thread.resourceId });
    await write(thread, 'Likes tea.');
    assert.equal((await read(other)).workingMemory, 'Likes tea.');
    assert.equal((await read(await createThread(suite.client))).workingMemory, null);
    await refused(read(thread, { resourceId: 'thief' }), { status: 403 });
    await refused(write(thread, 'x', { resourceId: 'thief' }), { status: 403 });
  });

  test('can be read, but not written, before its thread is there', async () => {
    const thread = await createThread(suite.client);
    await write(thread, 'Likes tea.');
    const later = { id: unique('thread'), resourceId: thread.resourceId };
    const memory = await read(later);
    assert.deepEqual([memory.workingMemory, memory.threadExists], ['Likes tea.', false]);
    await refused(write(later, 'x'), { status: 404, error: 'Thread not found' });
  });

  test('of an agent with thread scope stays in the thread', async () => {
    const scoped = { agentId: await createAgent({ enabled: true, scope: 'thread', template: '# Task' }) };
    const thread = await createThread(suite.client);
    await write(thread, 'Plans a trip.', scoped);
    assert.equal((await read(thread)).workingMemory, null);
    const memory = await read(thread, scoped);
    assert.equal(memory.workingMemory, 'Plans a trip.');
    assert.equal(memory.source, 'thread');
    assert.deepEqual(memory.workingMemoryTemplate, { format: 'markdown', content: '# Task' });
  });

  test('of an agent with a schema is a document that the schema admits', async () => {
    const formal = { agentId: await createAgent({ enabled: true, schema: person }) };
    const thread = await createThread(suite.client);
    await write(thread, JSON.stringify({ name: 'Sam', address: { city: 'Kyoto' } }), formal);
    await refused(write(thread, JSON.stringify({ address: { city: 7 } }), formal), {
      status: 422,
      fields: ['workingMemory.address.city'],
    });
    await suite.call('POST', path(thread), { query: formal, body: { merge: { name: 'Ana', address: null } } });
    const memory = await read(thread, formal);
    assert.deepEqual(JSON.parse(memory.workingMemory), { name: 'Ana' });
    assert.equal(memory.workingMemoryTemplate.format, 'json');
    assert.deepEqual(JSON.parse(memory.workingMemoryTemplate.content), { name: '', address: { city: '' } });
  });

  test('keeps its versions, which can be restored', async () => {
    const thread = await createThread(suite.client);
    for (const text of ['one', 'two', 'three']) {
      await write(thread, text);
    }
    await suite.call('POST', path(thread, '/restore'), { body: { version: 1 } });
    const { versions } = await suite.call('GET', path(thread, '/versions'));
    assert.deepEqual(
      versions.map(({ version, workingMemory }) => [version, workingMemory]),
      [[4, 'one'], [3, 'three'], [2, 'two'], [1, 'one']],
    );
  });

  test('tells a writer that another was first', async () => {
    const formal = { agentId: await createAgent({ enabled: true, schema: person }) };
    const thread = await createThread(suite.client);
    await write(thread, '{}', formal);
    const merge = (patch, tag) =>
      suite.send('POST', path(thread), { query: formal, body: { merge: patch }, headers: { 'if-match': tag } });
    const answers = await Promise.all([merge({ name: 'A' }, '"1"'), merge({ address: { city: 'B' } }, '"1"')]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 412]);
    const lost = answers[0].status === 412 ? { name: 'A' } : { address: { city: 'B' } };
    const again = await merge(lost, answers.find(({ status }) => status === 200).headers.get('etag'));
    assert.equal(again.status, 200);
    assert.equal(again.headers.get('etag'), '"3"');
    assert.deepEqual(JSON.parse(again.body.workingMemory), { name: 'A', address: { city: 'B' } });
  });

  test('comes as an instruction and a tool for a model', async () => {
    const thread = await createThread(suite.client);
    await write(thread, '# Profile\n- Name: Sam');
    const { instruction } = await suite.call('GET', path(thread, '/instruction'));
    assert.match(instruction, /- Name: Sam/);
    const { tool } = await suite.call('GET', path(thread, '/tool'));
    assert.equal(tool.name, 'updateWorkingMemory');
    assert.deepEqual(tool.parameters.required, ['memory']);
  });

  test('of a clone is that of the fork point', async () => {
    const scoped = { agentId: await createAgent({ enabled: true, scope: 'thread' }) };
    const { thread, id } = await createConversation(suite.client, { count: 2 });
    await write(thread, 'now', scoped);
    const clone = (options) => suite.client.getMemoryThread({ threadId: thread.id, agentId }).clone({ options });
    assert.equal((await read((await clone()).thread, scoped)).workingMemory, 'now');
    // Both messages are of long before the text.
    const { thread: part } = await clone({ messageFilter: { messageIds: [id(1)] } });
    assert.equal((await read(part, scoped)).workingMemory, null);
  });
});
