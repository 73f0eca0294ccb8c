import type { Queryable } from '../../cursor/database/index.ts';
import { type Nulled, type Sql, sql } from '../../cursor/database/sql.ts';
import { inChange } from '../files/change.ts';
import { NO_TABLE, UNSETTLED } from '../sink.ts';
import { currentSnapshot, type Metadata, type Snapshot } from './format/metadata.ts';
import { CATALOG, tableLock, type Version, type Warehouse } from './warehouse.ts';

/** The last version of a table that we committed. While the catalog names it, nobody else changed the table, and no file is read. */
interface Head {
  location: string;
  uuid: string;
  /** The current snapshot; null for a table without any. */
  snapshot: string | null;
  /** How often another program changed the table. */
  changes: number;
}

export const OURS = { 'engine-name': 'tributary' };

const idOf = (metadata: Metadata): string | null => {
  const id = currentSnapshot(metadata)?.['snapshot-id'];
  return id === undefined ? null : String(id);
};

const writeHead = ({ name }: Warehouse, table: string, { location, metadata }: Version, newChanges: Sql): Sql => sql`
  insert into tributary.iceberg_heads as h (sink, table_name, table_uuid, snapshot, location)
  values (${name}, ${table}, ${metadata['table-uuid']}, ${idOf(metadata)}, ${location})
  on conflict (sink, table_name) do update set table_uuid = excluded.table_uuid, snapshot = excluded.snapshot,
    location = excluded.location, changes = h.changes + ${newChanges}`;

/** Records our own commit. If it was based on a version other than our last, another program committed in between. */
export const recordHead = (warehouse: Warehouse, table: string, listed: Version, before: string | null): Sql =>
  writeHead(warehouse, table, listed, sql`case when h.location = ${before} then 0 else 1 end`);

/** Moves the head from `from`, our last known version, to a later one; `by` is 1 if another program changed the table. */
export const moveHead = (warehouse: Warehouse, table: string, listed: Version, by: 0 | 1, from: string | null): Sql =>
  writeHead(warehouse, table, listed, sql`${by} where h.location = ${from}`);

const selectHead = ({ name }: Warehouse, table: string): Sql => sql`
  select location, table_uuid as uuid, snapshot, changes from tributary.iceberg_heads where sink = ${name} and table_name = ${table}`;

/** With the catalog in the state: one statement, no file. Another catalog that a crash left ahead by our commits counts as unchanged. */
export async function identify(db: Queryable, warehouse: Warehouse, table: string): Promise<string> {
  const { catalog, namespace } = warehouse;
  const elsewhere = catalog.isInState ? undefined : await catalog.load(warehouse, table);
  const location = catalog.isInState
    ? sql`tributary.iceberg_location(${CATALOG}, ${namespace}, ${table})`
    : sql`${elsewhere?.location ?? null}::text`;
  const [found] = await db.query<Nulled<Head> & { current: string | null }>(sql`
    select h.*, ${location} as current from (select) one left join (${selectHead(warehouse, table)}) h on true`);
  if (!found || found.current === null) return NO_TABLE;
  const unsettled = `${found.current}${UNSETTLED}`;
  if (found.location === null) return unsettled;
  const head = found as Head;
  const change = elsewhere && changeSince(elsewhere.metadata, head);
  const isSame = head.location === found.current || change === 'none' || change === 'ours';
  return isSame ? `${head.uuid}, changed by others ${head.changes} times` : unsettled;
}

async function readHead(warehouse: Warehouse, table: string): Promise<Head | undefined> {
  const [head] = await warehouse.state.query<Head>(selectHead(warehouse, table));
  return head;
}

/** What changed since our head: nothing, only commits of ours that the state missed, only compaction by others, or anything else. */
function changeSince(metadata: Metadata, { uuid, snapshot }: Head): 'none' | 'ours' | 'compacted' | 'any' {
  if (metadata['table-uuid'] !== uuid) return 'any';
  const byId = new Map(metadata.snapshots.map((one) => [String(one['snapshot-id']), one]));
  const since: Snapshot[] = [];
  let at = idOf(metadata);
  while (at !== snapshot) {
    const found = at === null ? undefined : byId.get(at);
    // The table was rolled back or replaced, or the snapshots in between have expired.
    if (!found) return 'any';
    since.push(found);
    const parent = found['parent-snapshot-id'];
    at = parent === undefined || parent === null ? null : String(parent);
  }
  if (since.length === 0) return 'none';
  const others = since.filter(({ summary }) => summary['engine-name'] !== OURS['engine-name']);
  if (others.length === 0) return 'ours';
  return others.every(({ summary }) => summary.operation === 'replace') ? 'compacted' : 'any';
}

/** Moves the head to a version: the table's identity changes, for every source, and the index is rebuilt where rows may have moved. */
export async function settleHead(warehouse: Warehouse, table: string, listed: Version): Promise<void> {
  const { state } = warehouse;
  const head = await readHead(warehouse, table);
  if (head?.location === listed.location) return;
  const change = head ? changeSince(listed.metadata, head) : 'any';
  const by = change === 'none' || change === 'ours' ? 0 : 1;
  await state.transaction(async (tx) => {
    await tx.query(moveHead(warehouse, table, listed, by, head?.location ?? null));
    if (change === 'ours' || change === 'any') await tx.query(unsettleFeeds(warehouse, table));
  });
}

/** `settleHead` under the table's lock, if the table has changed. */
export async function noteChanges(warehouse: Warehouse, table: string): Promise<void> {
  const { state, catalog } = warehouse;
  const listed = await catalog.load(warehouse, table);
  if (!listed || (await readHead(warehouse, table))?.location === listed.location) return;
  await inChange(state, tableLock(warehouse, table), async () => {
    const now = await catalog.load(warehouse, table);
    if (now) await settleHead(warehouse, table, now);
  });
}

/** Makes the next commit of each source rebuild its index. */
export const unsettleFeeds = ({ name }: Warehouse, stream: string): Sql =>
  sql`update tributary.lake_tracks set unsettled = true where sink = ${name} and stream = ${stream}`;
