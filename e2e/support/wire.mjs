// Requests for which the client has no method.

import assert from 'node:assert/strict';

/** Sends a request and gives what came back, whatever its status. */
export async function send(baseUrl, method, path, { query = {}, body, headers = {} } = {}) {
  const url = new URL(`${baseUrl}/api${path}`);
  for (const [name, value] of Object.entries(query)) {
    url.searchParams.set(name, String(value));
  }
  const init = { method, headers };
  if (body !== undefined) {
    init.headers = { 'content-type': 'application/json', ...headers };
    init.body = typeof body === 'string' ? body : JSON.stringify(body);
  }
  const response = await fetch(url, init);
  return { status: response.status, headers: response.headers, body: await response.json() };
}

/** Sends a request that must succeed, and gives the answer's body. */
export async function call(baseUrl, method, path, options) {
  const answer = await send(baseUrl, method, path, options);
  assert.equal(answer.status, 200, `${method} ${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}
