import type { Instant } from '../model/instant.ts';
import type { StreamName } from '../model/streams.ts';
import type { Queryable } from './database.ts';
import type { Track } from './ledger.ts';
import { instantOf } from './sql.ts';

/** How far a stream has come in a sink. */
export interface Cursor {
  since: Instant;
  completeThrough: Instant | undefined;
  newestSeen: Instant | undefined;
}

export async function readCursor(db: Queryable, { source, stream, sink }: Track): Promise<Cursor | undefined> {
  type Found = { since: Instant; through: Instant | null; newest: Instant | null };
  const [row] = await db.query<Found>({
    text: `
      select ${instantOf('since')} as since, ${instantOf('complete_through')} as through,
        ${instantOf('newest_seen')} as newest
      from tributary.cursors where source = $1 and stream = $2 and sink = $3`,
    values: [source, stream, sink],
  });
  if (!row) return undefined;
  return {
    since: row.since,
    completeThrough: row.through ?? undefined,
    newestSeen: row.newest ?? undefined,
  };
}

/** Where several sinks stand together: no further than the one that is furthest behind. */
export async function lowestCursor(
  db: Queryable,
  { source, stream, sinks }: { source: string; stream: StreamName; sinks: readonly string[] },
): Promise<Cursor | undefined> {
  const cursors = await Promise.all(sinks.map((sink) => readCursor(db, { source, stream, sink })));
  const known = cursors.filter((cursor) => cursor !== undefined);
  if (known.length === 0) return undefined;
  return {
    since: Math.min(...known.map((cursor) => cursor.since)),
    completeThrough: lowest(cursors.map((cursor) => cursor?.completeThrough)),
    newestSeen: lowest(cursors.map((cursor) => cursor?.newestSeen)),
  };
}

const lowest = (instants: ReadonlyArray<Instant | undefined>): Instant | undefined =>
  instants.reduce((a, b) => (a === undefined || b === undefined ? undefined : Math.min(a, b)));

/** Which commit the state was last told of. */
export async function lastCommit(db: Queryable, { source, stream, sink }: Track): Promise<string | undefined> {
  const [row] = await db.query<{ last_commit: string | null }>({
    text: 'select last_commit from tributary.cursors where source = $1 and stream = $2 and sink = $3',
    values: [source, stream, sink],
  });
  return row?.last_commit ?? undefined;
}

/** The cursor as the view `coverage` shows it. */
export async function cursorRow(db: Queryable, { source, stream, sink }: Track): Promise<CursorRow | undefined> {
  const [row] = await db.query<CursorRow>({
    text: `
      select source, stream, complete_through, newest_seen, updated_at from tributary.cursors
      where source = $1 and stream = $2 and sink = $3`,
    values: [source, stream, sink],
  });
  return row;
}

export interface CursorRow {
  source: string;
  stream: string;
  complete_through: Date | null;
  newest_seen: Date | null;
  updated_at: Date;
}
