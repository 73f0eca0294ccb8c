import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { connect } from '../../src/cursor/database/index.ts';
import { openEmbedded } from '../../src/cursor/embedded/index.ts';
import { lookAtPostmaster } from '../../src/cursor/embedded/server.ts';
import { dataDirectory } from '../../src/cursor/embedded/state-folder.ts';
import { MIGRATIONS } from '../../src/cursor/migrations/index.ts';
import { migrate } from '../../src/cursor/migrations/migrate.ts';
import { freePort } from './free-port.ts';
import { silentLog } from './silent-log.ts';

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string;
    /** A database with the state's tables: copying it is cheaper than migrating. */
    stateTemplate: string;
  }
}

const STATE_TEMPLATE = 'state_template';
const PREFIX = 'tributary-test-';

/** One Postgres for the whole run. It does not survive a power cut, which makes tests faster. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await sweepKilledRuns();
  const dir = await mkdtemp(join(tmpdir(), PREFIX));
  // As a superuser, who creates databases and roles, and on a port, for proxies.
  const port = await freePort();
  const settings = {
    ...{ fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '200' },
    ...{ listen_addresses: '127.0.0.1', port: String(port) },
  };
  const server = await openEmbedded({ dir, log: silentLog, command: 'vitest', settings });
  const password = await readFile(join(dataDirectory(dir), 'tributary.password'), 'utf8');
  const url = `postgresql://tributary:${password}@127.0.0.1:${port}/tributary`;
  await makeTemplate(url);
  project.provide('postgresUrl', url);
  project.provide('stateTemplate', STATE_TEMPLATE);
  return async () => {
    await server.close();
    await rm(dir, { recursive: true, force: true });
  };
}

async function makeTemplate(server: string): Promise<void> {
  const admin = connect({ url: server, max: 1, name: 'test' });
  await admin.query({ text: `CREATE DATABASE ${STATE_TEMPLATE}` });
  await admin.close();
  const url = new URL(server);
  url.pathname = `/${STATE_TEMPLATE}`;
  const template = connect({ url: url.href, max: 1, name: 'test' });
  await migrate(template, MIGRATIONS, { schema: 'tributary' });
  await template.close();
}

/** A killed run left its server running. Attaching and closing as the last user stops it. */
async function sweepKilledRuns(): Promise<void> {
  for (const name of (await readdir(tmpdir())).filter((entry) => entry.startsWith(PREFIX))) {
    const dir = join(tmpdir(), name);
    try {
      // Newer ones may be starting.
      if (Date.now() - (await stat(dir)).mtimeMs < 60_000) continue;
      if ((await lookAtPostmaster(dataDirectory(dir))).state === 'ready') {
        await (await openEmbedded({ dir, log: silentLog, attach: true })).close();
      }
      if ((await lookAtPostmaster(dataDirectory(dir))).state === 'absent')
        await rm(dir, { recursive: true, force: true });
    } catch {
      // Recovery: another user's, or swept by another run at the same time.
    }
  }
}
