// One server on one database for the tests of a file.

import assert from 'node:assert/strict';
import { after } from 'node:test';

import { MastraClient } from '@mastra/client-js';

import { findBinary } from './binary.mjs';
import { createDatabase } from './database.mjs';
import { startServer } from './server.mjs';
import { call, send } from './wire.mjs';

/**
 * Starts what the tests of the file that calls it need, and ends it after them.
 *
 * `client` is the official client; `call` and `send` reach the routes that it
 * has no method for.
 */
export async function serve() {
  const suite = new Suite();
  after(() => suite.end());
  try {
    await suite.begin();
  } catch (error) {
    await suite.end();
    throw error;
  }
  return suite;
}

/** Gives a client that does not try again, so that a failure shows. */
export const newClient = (baseUrl, options = {}) => new MastraClient({ baseUrl, retries: 0, ...options });

class Suite {
  #binary;
  #database;
  #cleanups = [];

  async begin() {
    this.#binary = await findBinary();
    this.#cleanups.push(this.#binary.remove);
    this.#database = await createDatabase();
    this.#cleanups.push(this.#database.drop);
    await this.start();
    this.#cleanups.push(() => this.#endInOrder());
  }

  /** Starts the server, which must not run, at the port given or a free one. */
  async start(port) {
    this.server = await startServer({ binary: this.#binary.path, databaseUrl: this.#database.url, port });
    this.client = newClient(this.server.baseUrl);
  }

  async end() {
    const cleanups = this.#cleanups.reverse();
    this.#cleanups = [];
    await runAll(cleanups);
  }

  async #endInOrder() {
    assert.deepEqual(await this.server.stop(), { code: 0, signal: null });
    assert.deepEqual(this.server.errors(), [], 'the server failed at a request');
    assert.equal(await this.#database.deadlocks(), 0, 'writers waited for a deadlock to be resolved');
  }

  call(...request) {
    return call(this.server.baseUrl, ...request);
  }

  send(...request) {
    return send(this.server.baseUrl, ...request);
  }
}

/** Runs all steps, and fails with the first failure. */
async function runAll([step, ...rest]) {
  if (step === undefined) {
    return;
  }
  try {
    await step();
  } finally {
    await runAll(rest);
  }
}
