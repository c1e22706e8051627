import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';

import {
  agentId,
  at,
  createConversation,
  createThread,
  ids,
  newMessage,
  save,
  span,
  texts,
  unique,
} from './support/memory.mjs';
import { serve } from './support/suite.mjs';

const suite = await serve();

const recall = (body) => suite.call('POST', '/memory/recall', { body });

const refusal = async (body) => {
  const { status, body: answer } = await suite.send('POST', '/memory/recall', { body });
  return { status, fields: (answer.issues ?? []).map((issue) => issue.field) };
};

const ascending = { field: 'createdAt', direction: 'ASC' };

describe('recalling a thread', () => {
  let conversation, threadId;
  before(async () => {
    conversation = await createConversation(suite.client, { count: 25, metadata: (n) => ({ odd: n % 2 === 1, n }) });
    threadId = conversation.thread.id;
  });

  test('gives the newest ten, oldest first', async () => {
    const { messages, ...rest } = await recall({ threadId });
    assert.equal(texts(messages), span(16, 25));
    assert.deepEqual(messages.at(-1), { ...conversation.messages[24], createdAt: at(25).toISOString() });
    const { nextCursor, ...numbers } = rest;
    assert.deepEqual(numbers, { total: 25, page: 0, perPage: 10, hasMore: true });
    assert.equal(typeof nextCursor, 'string');
  });

  test('gives as the client does through an agent', async () => {
    const params = {
      perPage: 7,
      page: 1,
      filter: { dateRange: { start: at(3) } },
      include: [{ id: conversation.id(1) }],
    };
    const { messages } = await recall({ threadId, agentId, ...params });
    assert.deepEqual(messages, (await conversation.recalling.listMessages(params)).messages);
  });

  test('takes its size from the thread configuration of the call', async () => {
    assert.equal(texts((await recall({ threadId, threadConfig: { lastMessages: 3 } })).messages), span(23, 25));
    assert.equal(
      texts((await recall({ threadId, perPage: 2, threadConfig: { lastMessages: 3 } })).messages),
      span(24, 25),
    );
  });

  test('gives one message by its id, and no page beside it', async () => {
    const answer = await recall({ threadId, include: [{ id: conversation.id(5) }] });
    assert.deepEqual(ids(answer.messages), [conversation.id(5)]);
    const { total, perPage, hasMore, nextCursor } = answer;
    assert.deepEqual(
      { total, perPage, hasMore, nextCursor },
      { total: 0, perPage: 0, hasMore: false, nextCursor: null },
    );
  });

  test('gives one message by its id within its resource', async () => {
    const { resourceId } = conversation.thread;
    assert.equal(texts((await recall({ resourceId, include: [{ id: conversation.id(5) }] })).messages), 'm5');
    assert.deepEqual(
      (await recall({ resourceId: unique('resource'), include: [{ id: conversation.id(5) }] })).messages,
      [],
    );
  });

  test('gives messages by id in the order of the thread, with their context', async () => {
    const include = [
      { id: conversation.id(20), withNextMessages: 1 },
      { id: conversation.id(5), withPreviousMessages: 2 },
    ];
    assert.equal(texts((await recall({ threadId, include })).messages), 'm3 m4 m5 m20 m21');
  });

  test('gives included messages beside the page where one is asked for', async () => {
    const include = [{ id: conversation.id(5) }];
    assert.equal(texts((await recall({ threadId, include, perPage: 2 })).messages), 'm5 m24 m25');
    assert.equal(texts((await recall({ threadId, include, page: 0 })).messages), `m5 ${span(16, 25)}`);
  });

  test('leaves the count away where it is not wanted', async () => {
    const { total, messages, hasMore } = await recall({ threadId, includeTotal: false });
    assert.equal(total, null);
    assert.equal(hasMore, true);
    assert.equal(messages.length, 10);
  });

  test('explains why each message is there', async () => {
    const { messages } = await recall({
      threadId,
      perPage: 1,
      explain: true,
      include: [{ id: conversation.id(5), withPreviousMessages: 1 }],
    });
    const explained = messages.map(({ explain }, i) => [
      texts([messages[i]]),
      explain.reason,
      explain.contextOf,
      explain.offset,
    ]);
    assert.deepEqual(explained, [
      ['m4', ['context'], conversation.id(5), -1],
      ['m5', ['include'], null, null],
      ['m25', ['page'], null, null],
    ]);
  });

  test('takes operators on metadata', async () => {
    const where = async (where) => texts((await recall({ threadId, perPage: false, filter: { where } })).messages);
    assert.equal(await where({ n: { $gte: 23 } }), span(23, 25));
    assert.equal(await where({ n: { $gt: 3, $lt: 6 } }), 'm4 m5');
    assert.equal(await where({ $or: [{ n: 1 }, { n: { $in: [7, '8', 9] } }] }), 'm1 m7 m9');
    assert.equal(await where({ $and: [{ odd: true }, { n: { $lte: 5 } }], $not: { n: 3 } }), 'm1 m5');
    assert.equal(await where({ missing: { $exists: false }, n: 2 }), 'm2');
    assert.equal(await where({ n: { $gt: '3' } }), '');
  });

  test('refuses what it cannot do, naming the field', async () => {
    const { nextCursor } = await recall({ threadId });
    assert.deepEqual(await refusal({}), { status: 400, fields: ['threadId'] });
    const threadConfig = { semanticRecall: { topK: 0 } };
    assert.deepEqual(await refusal({ threadId, vectorSearchString: 'a question', threadConfig }), {
      status: 400,
      fields: ['threadConfig.semanticRecall.topK'],
    });
    assert.deepEqual(await refusal({ threadId, cursor: nextCursor, page: 1 }), { status: 400, fields: ['cursor'] });
    assert.deepEqual(await refusal({ threadId, cursor: 'invented' }), { status: 400, fields: ['cursor'] });
    assert.deepEqual(await refusal({ threadId, filter: { where: { n: { $regex: 'x' } } } }), {
      status: 400,
      fields: ['filter.where.n.$regex'],
    });
    assert.deepEqual(await refusal({ threadId, perpage: 3 }), { status: 400, fields: ['perpage'] });
  });
});

describe('recalling a resource', () => {
  test('gives the messages of all its threads in the order of time', async () => {
    const resourceId = unique('resource');
    const first = await createThread(suite.client, { resourceId });
    const second = await createThread(suite.client, { resourceId });
    await createConversation(suite.client, { count: 3 });
    await save(
      suite.client,
      [1, 4, 5].map((n) => newMessage(first, { text: `m${n}`, createdAt: at(n) })),
    );
    await save(
      suite.client,
      [2, 3, 6].map((n) => newMessage(second, { text: `m${n}`, createdAt: at(n) })),
    );
    const { messages, total } = await recall({ resourceId });
    assert.equal(texts(messages), span(1, 6));
    assert.equal(total, 6);
    assert.deepEqual(
      messages.map((m) => m.threadId),
      [first, second, second, first, first, second].map((thread) => thread.id),
    );
  });
});

describe('walking by cursor', () => {
  /** Walks to the end and gives the pages; `between` runs after each. */
  async function walk(body, between = async () => {}) {
    const pages = [];
    let cursor;
    do {
      const { messages, nextCursor, hasMore } = await recall({ ...body, cursor });
      assert.equal(hasMore, nextCursor !== null);
      pages.push(messages);
      cursor = nextCursor;
      await between();
    } while (cursor !== null);
    return pages;
  }

  const lines = async (...walked) => (await walk(...walked)).map(texts);

  test('goes from the newest page to the oldest', async () => {
    const { thread } = await createConversation(suite.client, { count: 10 });
    assert.deepEqual(await lines({ threadId: thread.id, perPage: 4 }), [span(7, 10), span(3, 6), span(1, 2)]);
    assert.deepEqual(await lines({ threadId: thread.id, perPage: 5 }), [span(6, 10), span(1, 5)]);
  });

  test('goes from the oldest page to the newest', async () => {
    const { thread } = await createConversation(suite.client, { count: 10 });
    assert.deepEqual(await lines({ threadId: thread.id, perPage: 4, orderBy: ascending }), [
      span(1, 4),
      span(5, 8),
      span(9, 10),
    ]);
  });

  test('parts messages of equal time', async () => {
    const { thread } = await createConversation(suite.client, { seconds: [1, 1, 1, 1, 1, 1, 1] });
    assert.deepEqual(await lines({ threadId: thread.id, perPage: 3 }), [span(5, 7), span(2, 4), 'm1']);
    assert.deepEqual(await lines({ threadId: thread.id, perPage: 3, orderBy: ascending }), [
      span(1, 3),
      span(4, 6),
      'm7',
    ]);
  });

  test('keeps to the filter', async () => {
    const { thread } = await createConversation(suite.client, { count: 10, metadata: (n) => ({ odd: n % 2 === 1 }) });
    assert.deepEqual(await lines({ threadId: thread.id, perPage: 2, filter: { metadata: { odd: true } } }), [
      'm7 m9',
      'm3 m5',
      'm1',
    ]);
  });

  test('goes over all threads of a resource', async () => {
    const resourceId = unique('resource');
    await createConversation(suite.client, { seconds: [1, 1, 3, 3], resourceId });
    await createConversation(suite.client, { seconds: [1, 2, 3], resourceId });
    const pages = await walk({ resourceId, perPage: 2, orderBy: ascending });
    const { messages } = await recall({ resourceId, perPage: false });
    assert.deepEqual(
      pages.map((page) => page.length),
      [2, 2, 2, 1],
    );
    assert.deepEqual(pages.flat(), messages);
  });

  test('is not shifted by what is saved and deleted meanwhile', async () => {
    const { thread, id, recalling } = await createConversation(suite.client, { count: 10 });
    let n = 0;
    const pages = await lines({ threadId: thread.id, perPage: 3 }, async () => {
      n += 1;
      await save(suite.client, [newMessage(thread, { text: 'later' })]);
      await recalling.deleteMessages(id(11 - n));
    });
    assert.deepEqual(pages, [span(8, 10), span(5, 7), span(2, 4), 'm1']);
  });
});

test('a tool result comes with its call where pairs are to be kept', async () => {
  const thread = await createThread(suite.client);
  const tool = (state, rest) => ({
    format: 2,
    parts: [
      {
        type: 'tool-invocation',
        toolInvocation: { state, toolCallId: 'call-1', toolName: 'weather', args: { city: 'Kyoto' }, ...rest },
      },
    ],
  });
  const [call, between, result] = [
    newMessage(thread, { role: 'assistant', content: tool('call'), createdAt: at(1) }),
    newMessage(thread, { createdAt: at(2) }),
    newMessage(thread, { role: 'assistant', content: tool('result', { result: 'rain' }), createdAt: at(3) }),
  ];
  await save(suite.client, [call, between, result]);
  assert.deepEqual(ids((await recall({ threadId: thread.id, perPage: 1 })).messages), [result.id]);
  assert.deepEqual(ids((await recall({ threadId: thread.id, perPage: 1, keepToolPairs: true })).messages), [
    call.id,
    result.id,
  ]);
});
