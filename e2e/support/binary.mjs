// The program under test: PGRECALL_BINARY, or a build of this working tree.

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const repository = fileURLToPath(new URL('../..', import.meta.url));

/** Gives the path of the program, and a way to remove what was built for it. */
export async function findBinary() {
  if (process.env.PGRECALL_BINARY) {
    return { path: path.resolve(process.env.PGRECALL_BINARY), remove: async () => {} };
  }
  const directory = await mkdtemp(path.join(tmpdir(), 'pgrecall-e2e-'));
  const remove = () => rm(directory, { recursive: true, force: true });
  const binary = path.join(directory, 'pgrecall');
  try {
    await promisify(execFile)('go', ['build', '-buildvcs=false', '-o', binary, './cmd/pgrecall'], { cwd: repository });
  } catch (error) {
    await remove();
    throw error;
  }
  return { path: binary, remove };
}
