import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';

import { agentId, at, createThread, ids, newMessage, save, texts, unique } from './support/memory.mjs';
import { serve } from './support/suite.mjs';

const suite = await serve();

describe('searching', () => {
  const resourceId = unique('resource');
  let lake, city;
  before(async () => {
    lake = await createThread(suite.client, { resourceId, title: 'Summer' });
    city = await createThread(suite.client, { resourceId, title: 'City' });
    const other = await createThread(suite.client, {});
    const said = (thread, lines) =>
      save(
        suite.client,
        lines.map((text, n) => newMessage(thread, { text, createdAt: at(n), role: n % 2 ? 'assistant' : 'user' })),
      );
    await said(lake, ['Where did you spend the summer?', 'I went swimming across the lakes', 'That sounds cold', 'It was!']);
    await said(city, ['来週は京都へ旅行に行きます', '東京タワーも見たいですか', 'Yes, and the museum', 'Book it then']);
    await said(other, ['We go swimming in the lake each day', 'So do we']);
  });

  test('finds what answers a question among all threads of the user, with its context', async () => {
    const { results, count } = await suite.client.searchMemory({
      agentId,
      resourceId,
      searchQuery: 'who swims in a lake?',
      memoryConfig: { semanticRecall: { topK: 1, messageRange: 1 } },
    });
    assert.equal(count, results.length);
    const [first] = results;
    assert.equal(first.content, 'I went swimming across the lakes');
    assert.equal(first.threadTitle, 'Summer');
    assert.deepEqual(
      [first.context.before, first.context.after].map((side) => side.map((message) => message.content)),
      [['Where did you spend the summer?'], ['That sounds cold']],
    );
    assert.ok(results.every((result) => [lake.id, city.id].includes(result.threadId)));
  });

  test('adds hits with their context to a recall', async () => {
    const { messages } = await suite.call('POST', '/memory/recall', {
      body: {
        threadId: lake.id,
        perPage: 0,
        vectorSearchString: '京都',
        threadConfig: { semanticRecall: { topK: 1, messageRange: 0, mode: 'lexical' } },
      },
    });
    assert.equal(texts(messages), '来週は京都へ旅行に行きます');
    assert.deepEqual(ids(messages).length, 1);
  });
});
