import { MAX_LIMIT } from '../api/params.ts';
import type { Profile } from '../extract/reader.ts';
import type { StreamName } from '../model/streams.ts';
import type { Queryable } from './database.ts';

/** What is assumed of a server that nobody has met yet. */
export const UNKNOWN_SERVER: Profile = { granularity: 'exact', tickMs: 1000, pageRows: MAX_LIMIT };

export async function readProfile(db: Queryable, source: string, stream: StreamName): Promise<Profile> {
  const [row] = await db.query<{ granularity: Profile['granularity']; tick_ms: number; page_rows: number }>({
    text: 'select granularity, tick_ms, page_rows from tributary.profiles where source = $1 and stream = $2',
    values: [source, stream],
  });
  return row ? { granularity: row.granularity, tickMs: row.tick_ms, pageRows: row.page_rows } : UNKNOWN_SERVER;
}

export async function writeProfile(db: Queryable, source: string, stream: StreamName, profile: Profile): Promise<void> {
  await db.query({
    text: `
      insert into tributary.profiles (source, stream, granularity, tick_ms, page_rows) values ($1, $2, $3, $4, $5)
      on conflict (source, stream) do update
        set granularity = excluded.granularity, tick_ms = excluded.tick_ms, page_rows = excluded.page_rows, updated_at = now()`,
    values: [source, stream, profile.granularity, profile.tickMs, profile.pageRows],
  });
}

/** Every server that was met; none where the state has no tables yet. */
export async function readKnownProfiles(db: Queryable): Promise<Array<Profile & { source: string; stream: string }>> {
  const [has] = await db.query<{ table: boolean }>({
    text: `select to_regclass('tributary.profiles') is not null as table`,
  });
  if (!has?.table) return [];
  return db.query<Profile & { source: string; stream: string }>({
    text: `
      select source, stream, granularity, tick_ms as "tickMs", page_rows as "pageRows"
      from tributary.profiles order by source, stream`,
  });
}
