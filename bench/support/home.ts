import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { openEmbedded } from '../../src/cursor/embedded/index.ts';
import { MIGRATIONS } from '../../src/cursor/migrations/index.ts';
import { migrate } from '../../src/cursor/migrations/migrate.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { silentLog } from '../../test/support/silent-log.ts';

/** A folder and a Postgres of the bench, removed afterwards. */
export interface Home {
  dir: string;
  url: string;
  db: Database;
}

/** Automatic checkpoints and vacuums would affect one measurement and not the other. */
const SETTINGS = { max_wal_size: '8GB', checkpoint_timeout: '1h', autovacuum: 'off' };

/** The reread range of a bench's streams: all of its days count as recent. */
export const ALWAYS = (): number => 3650 * DAY_MS;

export async function withHome<T>(work: (home: Home) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'tributary-bench-'));
  try {
    const server = await openEmbedded({ dir, log: silentLog, settings: SETTINGS });
    const db = connect({ url: server.url });
    try {
      await migrate(db, MIGRATIONS, { schema: 'tributary' });
      return await work({ dir, url: server.url, db });
    } finally {
      await db.close();
      await server.close();
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
