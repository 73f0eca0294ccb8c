import { digestOf, type Forgotten } from '../model/forgotten.ts';
import type { Queryable } from './database.ts';

/** What was asked to be erased, by source: read at the start of every run. */
export async function readForgotten(db: Queryable, source: string): Promise<Forgotten[]> {
  return db.query<Forgotten & Record<string, unknown>>({
    text: 'select kind, digest from tributary.forgotten where source = $1',
    values: [source],
  });
}

export async function remember(db: Queryable, source: string, kind: Forgotten['kind'], id: string): Promise<void> {
  await db.query({
    text: 'insert into tributary.forgotten (source, kind, digest) values ($1, $2, $3) on conflict do nothing',
    values: [source, kind, digestOf(id)],
  });
}

/** Records that were set aside are raw: those that mention the id go. Returns how many. */
export async function forgetQuarantined(db: Queryable, source: string, id: string): Promise<number> {
  const gone = await db.query({
    text: 'delete from tributary.quarantine where source = $1 and strpos(record, $2) > 0 returning id',
    values: [source, JSON.stringify(id)],
  });
  return gone.length;
}

const STATE_TABLES = ['cursors', 'windows', 'runs', 'leases', 'profiles', 'quarantine'] as const;

/** Everything that the state holds of a source, but for what was asked to stay forgotten. Returns how many rows went from each table. */
export async function forgetSource(db: Queryable, source: string): Promise<Record<string, number>> {
  const touched: Record<string, number> = {};
  for (const table of STATE_TABLES) {
    const gone = await db.query({
      text: `delete from tributary.${table} where source = $1 returning 1`,
      values: [source],
    });
    touched[`tributary.${table}`] = gone.length;
  }
  return touched;
}
