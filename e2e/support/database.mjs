// A database of the test's own on the server that DATABASE_URL names.

import { randomBytes } from 'node:crypto';

import pg from 'pg';

/** Creates an empty database and gives its URL, and ways to look into it and drop it. */
export async function createDatabase() {
  if (!process.env.DATABASE_URL) {
    throw new Error('DATABASE_URL is not set; run the tests by "make e2e"');
  }
  const name = `pgrecall_e2e_${randomBytes(8).toString('hex')}`;
  await execute(`CREATE DATABASE ${name}`);
  const url = new URL(process.env.DATABASE_URL);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    /** How many deadlocks Postgres had to resolve, each after a second. */
    deadlocks: async () => {
      const { rows } = await execute('SELECT deadlocks::int FROM pg_stat_database WHERE datname = $1', [name]);
      return rows[0].deadlocks;
    },
    drop: () => execute(`DROP DATABASE ${name} WITH (FORCE)`),
  };
}

async function execute(statement, values) {
  const connection = new pg.Client({ connectionString: process.env.DATABASE_URL });
  await connection.connect();
  try {
    return await connection.query(statement, values);
  } finally {
    await connection.end();
  }
}
