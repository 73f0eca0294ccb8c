import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../src/cursor/database/index.ts';

/** Waits until so many connections to this database wait for a lock. Other databases belong to other tests. */
export async function untilWaiting(db: Database, connections = 1): Promise<void> {
  const waiting = {
    text: `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  };
  while ((await db.query(waiting)).length < connections) await sleep(10);
}
