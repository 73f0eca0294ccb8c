import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '../../src/cursor/database/index.ts';
import { openEmbedded } from '../../src/cursor/embedded/index.ts';
import { silentLog } from '../../test/support/silent-log.ts';

/** An empty database and an empty folder: where one tool works. */
export interface Place {
  dir: string;
  databaseUrl: string;
}

export interface Places {
  fresh(): Promise<Place>;
  close(): Promise<void>;
}

/** One Postgres server for all tools, as it is configured by default. */
export async function openPlaces(): Promise<Places> {
  const root = await mkdtemp(join(tmpdir(), 'tributary-peers-'));
  const server = await openEmbedded({ dir: join(root, 'server'), log: silentLog });
  const db = connect({ url: server.url, max: 1 });
  return {
    async fresh() {
      const name = `peer_${randomUUID().replaceAll('-', '')}`;
      await db.query({ text: `create database ${name}` });
      const url = new URL(server.url);
      url.pathname = `/${name}`;
      const dir = join(root, name);
      await mkdir(dir);
      return { dir, databaseUrl: url.href };
    },
    async close() {
      await db.close();
      await server.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}
