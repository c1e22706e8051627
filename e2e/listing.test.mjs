import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';

import { at, createConversation, ids, newMessage, refused, save, span, texts, unique } from './support/memory.mjs';
import { serve } from './support/suite.mjs';

const suite = await serve();

/** Lists messages and gives their texts in one line. */
const lines = async (thread, params) => texts((await thread.listMessages(params)).messages);

const ascending = { field: 'createdAt', direction: 'ASC' };
const descending = { field: 'createdAt', direction: 'DESC' };

describe('listing a thread without an agent', () => {
  let conversation, thread;
  before(async () => {
    conversation = await createConversation(suite.client, { count: 45 });
    thread = conversation.listing;
  });

  test('gives the oldest 40, oldest first', async () => {
    const { messages, ...rest } = await thread.listMessages();
    assert.equal(texts(messages), span(1, 40));
    assert.deepEqual(messages[0], { ...conversation.messages[0], createdAt: at(1).toISOString() });
    const { total, page, perPage, hasMore } = rest;
    assert.deepEqual({ total, page, perPage, hasMore }, { total: 45, page: 0, perPage: 40, hasMore: true });
  });

  test('page by page gives each message once', async () => {
    const pages = [];
    for (let page = 0; page < 4; page++) {
      pages.push(await thread.listMessages({ page, perPage: 20 }));
    }
    assert.deepEqual(
      pages.map((page) => texts(page.messages)),
      [span(1, 20), span(21, 40), span(41, 45), ''],
    );
    assert.deepEqual(
      pages.map((page) => page.hasMore),
      [true, true, false, false],
    );
    assert.deepEqual(
      pages.map((page) => page.total),
      [45, 45, 45, 45],
    );
  });

  test('descending gives the newest first', async () => {
    assert.equal(await lines(thread, { perPage: 3, orderBy: descending }), span(45, 43));
    assert.equal(await lines(thread, { perPage: 3, page: 1, orderBy: descending }), span(42, 40));
  });

  test('ascending is the default', async () => {
    assert.equal(await lines(thread, { orderBy: ascending }), await lines(thread));
  });

  test('with perPage false gives all', async () => {
    const { messages, perPage, hasMore } = await thread.listMessages({ perPage: false });
    assert.equal(texts(messages), span(1, 45));
    assert.deepEqual({ perPage, hasMore }, { perPage: false, hasMore: false });
  });

  test('with perPage 0 gives none', async () => {
    const { messages, perPage, hasMore } = await thread.listMessages({ perPage: 0 });
    assert.deepEqual({ messages, perPage, hasMore }, { messages: [], perPage: 0, hasMore: false });
  });

  test("works by the client's method for it", async () => {
    const { messages } = await suite.client.listThreadMessages(conversation.thread.id, { page: 1, perPage: 5 });
    assert.equal(texts(messages), span(6, 10));
  });

  test('is not disturbed by what only other servers know', async () => {
    assert.equal(await lines(thread, { includeSystemReminders: true, requestContext: { tenant: 'a' } }), span(1, 40));
  });

  test('works for the owner, and is refused for another', async () => {
    assert.equal(await lines(thread, { resourceId: conversation.thread.resourceId, perPage: 1 }), 'm1');
    await refused(thread.listMessages({ resourceId: 'someone else' }), {
      status: 403,
      error: 'Access denied: thread belongs to a different resource',
    });
  });
});

describe('recalling a thread through an agent', () => {
  let thread;
  before(async () => {
    ({ recalling: thread } = await createConversation(suite.client, { count: 45 }));
  });

  test('gives the newest 40, oldest first', async () => {
    const { messages, total, page, perPage, hasMore } = await thread.listMessages();
    assert.equal(texts(messages), span(6, 45));
    assert.deepEqual({ total, page, perPage, hasMore }, { total: 45, page: 0, perPage: 40, hasMore: true });
  });

  test('goes back in time page by page, each oldest first', async () => {
    const pages = [];
    for (let page = 0; page < 4; page++) {
      pages.push(await lines(thread, { page, perPage: 20 }));
    }
    assert.deepEqual(pages, [span(26, 45), span(6, 25), span(1, 5), '']);
  });

  test('descending chooses as by default', async () => {
    assert.equal(await lines(thread, { perPage: 3, orderBy: descending }), span(43, 45));
  });

  test('ascending pages from the oldest', async () => {
    assert.equal(await lines(thread, { perPage: 3, orderBy: ascending }), span(1, 3));
    assert.equal(await lines(thread, { perPage: 3, page: 1, orderBy: ascending }), span(4, 6));
  });

  test('with perPage false gives all, oldest first', async () => {
    assert.equal(await lines(thread, { perPage: false }), span(1, 45));
  });
});

// What holds for the plain listing holds for the recall.
for (const way of ['listing', 'recalling']) {
  describe(`filtering by metadata, ${way}`, () => {
    let thread;
    before(async () => {
      const metadata = [
        { category: 'travel', priority: 2, escalated: true, archivedAt: null },
        { category: 'travel', priority: '2', escalated: false },
        { category: 'billing', priority: 1.5 },
        { category: 'billing', priority: -3, archivedAt: 'null', escalated: 'true' },
        { category: '', priority: 0, archivedAt: false },
        { category: 'quote " and \\ back', priority: 1e21 },
        { category: ['travel'], priority: { value: 2 } },
        { category: 'Ausflüge 京都 🦊', priority: true },
        undefined,
      ];
      const conversation = await createConversation(suite.client, {
        count: metadata.length,
        metadata: (n) => metadata[n - 1],
      });
      thread = conversation[way];
    });

    const cases = [
      ['a string', { category: 'billing' }, 'm3 m4'],
      ['the empty string', { category: '' }, 'm5'],
      ['a string with quotes', { category: 'quote " and \\ back' }, 'm6'],
      ['a string of any script', { category: 'Ausflüge 京都 🦊' }, 'm8'],
      ['an integer, not the string of it', { priority: 2 }, 'm1'],
      ['a string of digits, not the number', { priority: '2' }, 'm2'],
      ['a fraction', { priority: 1.5 }, 'm3'],
      ['a negative number', { priority: -3 }, 'm4'],
      ['zero, neither false nor empty', { priority: 0 }, 'm5'],
      ['a large number', { priority: 1e21 }, 'm6'],
      ['true', { escalated: true }, 'm1'],
      ['false', { escalated: false }, 'm2'],
      ['the word true, not the value', { escalated: 'true' }, 'm4'],
      ['null, where the key is there', { archivedAt: null }, 'm1'],
      [
        'several pairs, of which all must match',
        { category: 'travel', priority: 2, escalated: true, archivedAt: null },
        'm1',
      ],
      ['several pairs that no message has together', { category: 'travel', priority: 1.5 }, ''],
      ['a key that no message has', { missing: null }, ''],
    ];
    for (const [name, metadata, expected] of cases) {
      test(`finds ${name}`, async () => {
        const { messages, total, hasMore } = await thread.listMessages({ filter: { metadata } });
        assert.equal(texts(messages), expected);
        assert.equal(total, messages.length);
        assert.equal(hasMore, false);
      });
    }

    test('pages and counts what matches', async () => {
      const { messages, total, hasMore } = await thread.listMessages({
        perPage: 1,
        filter: { metadata: { category: 'travel' } },
      });
      assert.equal(messages.length, 1);
      assert.equal(total, 2);
      assert.equal(hasMore, true);
    });
  });

  describe(`filtering by date, ${way}`, () => {
    let thread;
    before(async () => {
      const conversation = await createConversation(suite.client, {
        count: 7,
        metadata: (n) => ({ odd: n % 2 === 1 }),
      });
      thread = conversation[way];
    });
    const within = (dateRange, metadata) => lines(thread, { filter: { dateRange, ...(metadata && { metadata }) } });

    test('takes Date objects as bounds, which belong to the range', async () => {
      assert.equal(await within({ start: at(3), end: at(5) }), 'm3 m4 m5');
    });

    test('leaves out bounds that are to be excluded', async () => {
      assert.equal(await within({ start: at(3), end: at(5), startExclusive: true }), 'm4 m5');
      assert.equal(await within({ start: at(3), end: at(5), endExclusive: true }), 'm3 m4');
      assert.equal(await within({ start: at(3), end: at(5), startExclusive: true, endExclusive: true }), 'm4');
    });

    test('takes one bound alone', async () => {
      assert.equal(await within({ start: at(6) }), 'm6 m7');
      assert.equal(await within({ end: at(2) }), 'm1 m2');
    });

    test('finds a message by its own time on both ends', async () => {
      const { messages } = await thread.listMessages({
        filter: { dateRange: { start: at(4) } },
        perPage: 1,
        orderBy: ascending,
      });
      const { createdAt } = messages[0];
      assert.equal(await within({ start: createdAt, end: createdAt }), 'm4');
      assert.equal(await within({ start: new Date(createdAt), end: new Date(createdAt) }), 'm4');
    });

    test('joins with metadata', async () => {
      assert.equal(await within({ start: at(3), end: at(6) }, { odd: true }), 'm3 m5');
    });

    test('of an empty range finds nothing', async () => {
      assert.equal(await within({ start: at(5), end: at(3) }), '');
    });
  });

  describe(`including messages, ${way}`, () => {
    let conversation, thread, including;
    before(async () => {
      conversation = await createConversation(suite.client, {
        seconds: [1, 2, 3, 3, 3, 6, 7],
        metadata: (n) => ({ odd: n % 2 === 1 }),
      });
      thread = conversation[way];
      including = (...items) =>
        lines(thread, {
          perPage: 0,
          include: items.map(([n, before, after]) => ({
            id: conversation.id(n),
            withPreviousMessages: before,
            withNextMessages: after,
          })),
        });
    });

    test('gives the one alone where no context is asked for', async () => {
      assert.equal(await including([3]), 'm3');
      assert.equal(await including([3, 0, 0]), 'm3');
    });

    test('adds the neighbours, also where times are equal', async () => {
      assert.equal(await including([3, 1, 1]), 'm2 m3 m4');
      assert.equal(await including([4, 1, 1]), 'm3 m4 m5');
      assert.equal(await including([5, 2, 1]), 'm3 m4 m5 m6');
    });

    test('ends at the ends of the thread', async () => {
      assert.equal(await including([1, 5, 1]), 'm1 m2');
      assert.equal(await including([7, 1, 5]), 'm6 m7');
    });

    test('gives each message once where contexts overlap', async () => {
      assert.equal(await including([6, 2, 0], [2, 0, 3]), 'm2 m3 m4 m5 m6');
      assert.equal(await including([4, 0, 0], [4, 1, 0], [3, 0, 0]), 'm3 m4');
    });

    test('adds to the page, whose numbers speak of the page alone', async () => {
      const { messages, total, perPage, hasMore } = await thread.listMessages({
        perPage: 2,
        orderBy: ascending,
        include: [{ id: conversation.id(6) }, { id: conversation.id(2) }],
      });
      assert.equal(texts(messages), 'm1 m2 m6');
      assert.deepEqual({ total, perPage, hasMore }, { total: 7, perPage: 2, hasMore: true });
    });

    test('is not restricted by the filter', async () => {
      const listed = await lines(thread, {
        filter: { metadata: { odd: true }, dateRange: { end: at(3) } },
        include: [{ id: conversation.id(6), withNextMessages: 1 }],
      });
      assert.equal(listed, 'm1 m3 m5 m6 m7');
    });

    test('adds nothing for ids that do not exist', async () => {
      assert.equal(await lines(thread, { perPage: 0, include: [{ id: unique('nowhere'), withNextMessages: 3 }] }), '');
    });

    test('adds nothing of another resource', async () => {
      const other = await createConversation(suite.client, { count: 2 });
      const include = [{ id: other.id(1), threadId: other.thread.id, withNextMessages: 1 }];
      assert.equal(await lines(thread, { perPage: 0, resourceId: conversation.thread.resourceId, include }), '');
    });

    test('reaches into another thread of the resource, in the order of that one', async () => {
      const { thread: other, id } = await createConversation(suite.client, {
        count: 3,
        resourceId: conversation.thread.resourceId,
      });
      const { messages } = await thread.listMessages({
        perPage: 0,
        resourceId: other.resourceId,
        include: [{ id: id(2), threadId: other.id, withPreviousMessages: 1, withNextMessages: 1 }],
      });
      assert.deepEqual(ids(messages), [id(1), id(2), id(3)]);
      assert.deepEqual(
        messages.map((m) => m.threadId),
        [other.id, other.id, other.id],
      );
    });
  });
}

test('a listing shows what was saved before it', async () => {
  const { thread, recalling } = await createConversation(suite.client, { count: 1 });
  for (let n = 2; n <= 10; n++) {
    await save(suite.client, [newMessage(thread, { text: `m${n}` })]);
    assert.equal(await lines(recalling, { perPage: 1 }), `m${n}`);
  }
});
