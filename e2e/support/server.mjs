// A pgrecall process on a free port of this machine.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

const startTimeoutMs = 60_000;
const stopTimeoutMs = 20_000;
const pollMs = 20;

/**
 * Starts the program on a database and waits until it is ready.
 *
 * `port` 0 takes a free one; the base URL tells which.
 */
export async function startServer({ binary, databaseUrl, port = 0 }) {
  const child = spawn(binary, ['serve', '--addr', `127.0.0.1:${port}`, '--migrate'], {
    env: { ...withoutSettings(process.env), DATABASE_URL: databaseUrl },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // A test that crashes must not leave a server behind.
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('close', () => process.off('exit', kill));
  const server = new Server(child);
  try {
    server.baseUrl = await server.announced();
    await server.ready();
  } catch (error) {
    child.kill('SIGKILL');
    throw new Error(`pgrecall did not start:\n${server.log.join('\n')}`, { cause: error });
  }
  return server;
}

class Server {
  baseUrl;
  /** Lines of standard error: one JSON object each, but for a fatal message. */
  log = [];
  #child;
  #exited;
  #output;

  constructor(child) {
    this.#child = child;
    this.#exited = new Promise((resolve) => {
      child.once('error', (error) => resolve({ error }));
      child.once('close', (code, signal) => resolve({ code, signal }));
    });
    this.#output = createInterface({ input: child.stdout });
    createInterface({ input: child.stderr }).on('line', (line) => this.log.push(line));
  }

  get port() {
    return Number(new URL(this.baseUrl).port);
  }

  /** Gives the base URL that the program prints once it listens. */
  announced() {
    const line = new Promise((resolve) => {
      this.#output.on('line', (text) => {
        const address = /^The API is at (http:\/\/\S+)\/api$/.exec(text);
        if (address) {
          resolve(address[1]);
        }
      });
    });
    return this.#within(startTimeoutMs, line, 'an address');
  }

  async ready() {
    const deadline = Date.now() + startTimeoutMs;
    while (!(await isReady(this.baseUrl))) {
      if (Date.now() > deadline) {
        throw new Error(`not ready after ${startTimeoutMs} ms`);
      }
      await this.#within(startTimeoutMs, delay(pollMs), 'readiness');
    }
  }

  /** Asks the process to end, and gives its exit code and the signal that ended it. */
  async stop() {
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), stopTimeoutMs);
    try {
      return await this.#exited;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends the process at once, without a chance to finish anything. */
  async kill() {
    this.#child.kill('SIGKILL');
    return this.#exited;
  }

  /** The log's lines of level ERROR: what a request must never cause. */
  errors() {
    return this.log.filter((line) => !line.startsWith('{') || JSON.parse(line).level === 'ERROR');
  }

  async #within(ms, promise, what) {
    const gone = new AbortController();
    try {
      return await Promise.race([
        promise,
        this.#exited.then((end) =>
          Promise.reject(new Error(`the process ended: ${JSON.stringify(end)}`, { cause: end.error })),
        ),
        delay(ms, undefined, { signal: gone.signal }).then(() =>
          Promise.reject(new Error(`no ${what} after ${ms} ms`)),
        ),
      ]);
    } finally {
      gone.abort();
    }
  }
}

/** The environment without the caller's settings of pgrecall: the tests are about its defaults. */
function withoutSettings(environment) {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('PGRECALL_')));
}

async function isReady(baseUrl) {
  try {
    const response = await fetch(`${baseUrl}/readyz`);
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}
