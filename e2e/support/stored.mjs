// Messages as Mastra stores them, of every kind of part and every state of a
// tool call, each with the name of what it is about.

const call = (invocation, rest = {}) => ({
  type: 'tool-invocation',
  toolInvocation: { toolCallId: 'call-1', toolName: 'weather', args: { city: 'Kyoto' }, ...invocation },
  ...rest,
});
const text = (said = 'It rains.', rest = {}) => ({ type: 'text', text: said, ...rest });
const file = (rest) => ({ type: 'file', mimeType: 'image/png', ...rest });
const step = { type: 'step-start' };
const transformed = (display) => ({ mastra: { toolPayloadTransform: { display } } });

const user = (parts, rest = {}) => ({ role: 'user', content: { format: 2, parts, ...rest } });
const assistant = (parts, rest = {}) => ({ role: 'assistant', content: { format: 2, parts, ...rest } });

/** Those that both UI formats give as the reference does. */
export const alike = {
  'a text': user([text('Will it rain?')]),
  'texts with what a provider said of them': assistant([
    text('One.', { createdAt: 1772359200000, providerMetadata: { openai: { itemId: 'msg_1' } } }),
    text('Two.', { createdAt: 1772359200001 }),
    text('Three.', { providerMetadata: { mastra: { own: true } }, createdAt: 5, state: 'done' }),
  ]),
  'an empty text': assistant([text('')]),
  'metadata of a message': assistant([text()], {
    metadata: { category: 'travel', score: 0.1, tags: ['a'], createdAt: 'mine', threadId: 'mine' },
    providerMetadata: { anthropic: { cacheControl: { type: 'ephemeral' } } },
  }),
  'a result': assistant([step, call({ state: 'result', result: { degrees: 21.5 } }), step, text()], {
    content: 'It rains.',
  }),
  'a result of null': assistant([call({ state: 'result', result: null })]),
  'a result by a provider': assistant([
    call(
      { state: 'result', result: ['rain'] },
      { providerExecuted: true, createdAt: 7, providerMetadata: { openai: { itemId: 'ws_1' } } },
    ),
    text(),
  ]),
  'a call that waits': assistant([step, text('Let me look.'), call({ state: 'call' })]),
  'a failure': assistant([step, call({ state: 'output-error', errorText: 'no gauge', rawInput: 'x' }), text()]),
  'a denial with a reason': assistant([
    call({ state: 'output-denied', approval: { id: 'a', approved: false, reason: 'too dear' } }),
  ]),
  'a denial': assistant([call({ state: 'output-denied', approval: { id: 'a', approved: false } })]),
  'a call to be approved': assistant([call({ state: 'approval-requested', approval: { id: 'a' } })]),
  'a call that was approved': assistant([call({ state: 'approval-responded', approval: { id: 'a', approved: true } })]),
  'results of one step and the next': assistant([
    step,
    call({ toolCallId: 'call-2', state: 'result', result: 1 }),
    call({ toolCallId: 'call-3', toolName: 'tides', state: 'result', result: 'high', step: 9 }),
    step,
    call({ toolCallId: 'call-4', state: 'result', result: false }),
  ]),
  'a list of calls beside the parts': assistant([call({ state: 'result', result: 'rain' })], {
    toolInvocations: [{ state: 'result', toolCallId: 'call-1', toolName: 'weather', args: {}, result: 'rain' }],
  }),
  'a payload that people see changed': assistant([
    call(
      { state: 'result', result: { key: 'secret' } },
      {
        providerMetadata: transformed({
          'input-available': { transformed: { city: '***' } },
          'output-available': { transformed: { key: '***' } },
        }),
      },
    ),
    call(
      { toolCallId: 'call-2', state: 'result', result: 'secret' },
      { providerMetadata: { mastra: { toolPayloadProjection: { display: { error: { projected: 'hidden' } } } } } },
    ),
  ]),
  reasoning: assistant([
    { type: 'reasoning', reasoning: 'Clouds.', details: [{ type: 'text', text: 'Clouds.', signature: 's' }] },
    {
      type: 'reasoning',
      reasoning: '',
      details: [
        { type: 'text', text: 'More ' },
        { type: 'redacted', data: 'x' },
        { type: 'text', text: 'clouds.' },
      ],
      createdAt: 3,
    },
    {
      type: 'reasoning',
      reasoning: '',
      details: [{ type: 'text', text: '' }],
      providerMetadata: { openai: { itemId: 'rs_1', reasoningEncryptedContent: 'e' } },
    },
    text(),
  ]),
  files: user([
    text('See:'),
    file({ data: 'iVBORw0KGgo=' }),
    file({ data: 'https://example.com/a.png' }),
    file({ data: 'data:image/png;base64,iVBORw0KGgo=' }),
    file({ mimeType: 'application/pdf', data: 'file-abc123' }),
    { type: 'file', mediaType: 'image/gif', url: 'https://example.com/b.gif' },
    file({ data: 'https://example.com/c.png', createdAt: 4, providerMetadata: { openai: { imageDetail: 'high' } } }),
  ]),
  sources: assistant([
    {
      type: 'source',
      source: { sourceType: 'url', id: 's1', url: 'https://example.com', title: 'Example' },
      providerMetadata: { google: { at: 1 } },
    },
    { type: 'source', source: { sourceType: 'url', id: 's2', url: 'https://example.org' } },
    { type: 'source-url', sourceId: 's3', url: 'https://example.net', title: 'Net' },
    text(),
  ]),
  'data parts': assistant([
    { type: 'data-weather', id: 'd1', data: { mm: [3] } },
    text(),
    { type: 'data-done', data: null },
  ]),
  'calls that wait for a person': assistant([text('May I?'), call({ state: 'approval-requested' })], {
    metadata: {
      suspendedTools: { weather: { toolCallId: 'call-1', toolName: 'weather', suspendPayload: { ask: 'city' } } },
      pendingToolApprovals: { 'call-9': { toolCallId: 'call-9', toolName: 'tides', args: { a: 1 } } },
    },
  }),
  'a call that a part says is suspended': assistant(
    [
      call({ state: 'approval-requested' }),
      {
        type: 'data-tool-call-suspended',
        data: {
          toolCallId: 'call-1',
          args: { key: 'secret' },
          suspendPayload: 'secret',
          metadata: transformed({
            'input-available': { transformed: { key: '***' } },
            suspend: { transformed: '***' },
          }),
        },
      },
    ],
    { metadata: { suspendedTools: { weather: { toolCallId: 'call-1' } } } },
  ),
  'a signal': {
    role: 'signal',
    content: {
      format: 2,
      parts: [text('The shop closes.')],
      metadata: { signal: { id: 'sig', type: 'notification', tagName: 'shop', attributes: { at: 'six' } } },
    },
  },
  'a signal in the name of a user': { role: 'signal', type: 'user', content: { format: 2, parts: [text('Hello?')] } },
};

/** Those of which one or both of the reference's formats lose or break something. */
export const lossy = {
  'a call whose arguments are still coming': {
    ...assistant([text('Let me look.'), call({ state: 'partial-call', args: { city: 'Ky' } })]),
    v5: 'the reference calls the arguments whole',
  },
  'a call without arguments': {
    ...assistant([call({ state: 'call', args: undefined }), text()]),
    v5: 'the AI SDK refuses a call without input',
  },
  'a result of nothing': {
    ...assistant([call({ state: 'result' })]),
    v5: 'the AI SDK refuses a result without output',
  },
  "the AI SDK 5's own parts": {
    ...assistant([
      { type: 'reasoning', text: 'Clouds.', state: 'done' },
      { type: 'tool-weather', toolCallId: 'call-1', state: 'output-available', input: {}, output: 'rain' },
      {
        type: 'dynamic-tool',
        toolName: 'tides',
        toolCallId: 'call-2',
        state: 'output-available',
        input: {},
        output: 1,
      },
      { type: 'source-document', sourceId: 's', mediaType: 'application/pdf', title: 'Tides' },
      text(),
    ]),
    v5: 'the reference leaves out its reasoning, calls and source documents',
    v4: 'the AI SDK 4 knows neither name of the members',
  },
  'files that are no plain base64': {
    ...user([
      { type: 'file', mimeType: 'text/plain', data: 'data:text/plain,hello' },
      { type: 'file', mimeType: 'audio/mpeg', data: '//uQxAAA' },
      { type: 'file', mimeType: 'image/png', data: 'https://example.com/a.png', filename: 'a.png' },
    ]),
    v5: 'the reference writes base64 before a text, and takes an MP3 for a URL',
    v4: 'the reference takes an MP3 for a URL and loses the name of a file',
  },
  'attachments beside parts': {
    ...user([text('See:')], {
      content: 'See:',
      experimental_attachments: [{ name: 'a.png', contentType: 'image/png', url: 'https://example.com/a.png' }],
    }),
    v5: 'the reference loses the name',
  },
  'attachments beside files': {
    ...user([file({ data: 'https://example.com/a.png' })], {
      experimental_attachments: [
        { contentType: 'image/png', url: 'https://example.com/a.png' },
        { contentType: 'image/png', url: 'https://example.com/b.png' },
      ],
    }),
    v5: 'the reference gives none of the attachments',
    v4: 'the reference gives one of them twice',
  },
  'a file of an assistant': {
    ...assistant([file({ data: 'iVBORw0KGgo=' }), text()]),
    v4: 'the reference gives an assistant no files',
  },
  'a text beside parts': {
    ...assistant([step, call({ state: 'result', result: 1 })], { content: 'It rains.' }),
    v5: 'the reference leaves the text out beside a step-start',
    v4: 'the AI SDK 4 shows and sends the parts alone',
  },
  'a text alone': {
    role: 'user',
    content: { format: 2, content: 'Will it rain?' },
    v4: 'the AI SDK 4 shows and sends the parts alone',
  },
  'content of before there were parts': {
    ...assistant([], {
      content: 'It rains.',
      reasoning: 'Clouds.',
      annotations: [{ seen: true }],
      toolInvocations: [
        { state: 'result', toolCallId: 'call-1', toolName: 'weather', args: { city: 'Kyoto' }, result: 'rain' },
        { state: 'call', toolCallId: 'call-2', toolName: 'tides', args: {} },
        { state: 'partial-call', toolCallId: 'call-3', toolName: 'tides', args: {} },
      ],
    }),
    v4: 'the AI SDK 4 shows and sends the parts alone, and the reference loses reasoning and annotations',
  },
  'a text as a list': {
    ...assistant([], { content: [{ type: 'text', text: 'It rains.' }] }),
    v5: 'the reference gives a text that is a list',
    v4: 'the reference loses it',
  },
  'a message without parts': { ...user([]), v5: 'the AI SDK refuses all messages beside one of a user without parts' },
  'a message of a tool': {
    role: 'tool',
    content: { format: 2, parts: [call({ state: 'result', result: 'rain' })] },
    v5: 'the AI SDK refuses the role',
    v4: 'the AI SDK refuses the role',
  },
  'a message of the system': {
    role: 'system',
    content: { format: 2, parts: [text('Be brief.')] },
    v5: 'the reference leaves it out',
    v4: 'the reference leaves it out',
  },
  'a user who writes of reminders': {
    ...user([text('What is a <system-reminder>?')]),
    v5: 'the reference takes it for one and leaves it out',
    v4: 'the reference takes it for one and leaves it out',
  },
};

/** Those that the AI SDK itself does not know; the formats keep them, as the reference does. */
export const foreign = {
  'a part of an unknown type': assistant([{ type: 'hologram', beams: [1] }, text()]),
  'a failure of the model': assistant([{ type: 'error', error: { message: 'overloaded' } }]),
};
