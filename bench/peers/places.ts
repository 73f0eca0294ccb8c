import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EmbeddedPostgres, openEmbedded } from '../../src/cursor/embedded/index.ts';
import { silentLog } from '../../test/support/silent-log.ts';

/** An empty database and an empty folder for one tool. */
export interface Place {
  dir: string;
  databaseUrl: string;
}

export interface Places {
  fresh(): Promise<Place>;
  close(): Promise<void>;
}

/** A Postgres server for each, with its default configuration. */
export async function openPlaces(): Promise<Places> {
  const root = await mkdtemp(join(tmpdir(), 'tributary-peers-'));
  const servers: EmbeddedPostgres[] = [];
  return {
    async fresh() {
      const dir = join(root, randomUUID());
      await mkdir(dir);
      const server = await openEmbedded({ dir: join(dir, 'server'), log: silentLog });
      servers.push(server);
      return { dir, databaseUrl: server.url };
    },
    async close() {
      for (const server of servers) await server.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}
