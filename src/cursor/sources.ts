import { MAX_LIMIT } from '../api/params.ts';
import { type Profile, UNKNOWN_PROFILE } from '../extract/profile.ts';
import { ConfigError } from '../model/errors.ts';
import type { Row } from '../model/flatten.ts';
import { STREAMS, type StreamName } from '../model/streams.ts';
import { type Database, ifTable, type Queryable } from './database/index.ts';
import { raw, sql } from './database/sql.ts';
import { checkFence, type Lease } from './leases.ts';

/** A source's name and address. Rows only carry the name, so rows of two services under one name would mix. */
export interface SourceAddress {
  name: string;
  /** Normalised, as the config holds it. */
  baseUrl: string;
}

interface MovedSource extends SourceAddress {
  was: string;
}

export const findMoved = async (db: Queryable, sources: readonly SourceAddress[]): Promise<MovedSource[]> =>
  movedOf(sources, await knownAddresses(db));

const movedOf = (sources: readonly SourceAddress[], known: ReadonlyMap<string, string>): MovedSource[] =>
  sources
    .map((source) => ({ ...source, was: known.get(source.name) ?? source.baseUrl }))
    .filter(({ was, baseUrl }) => was !== baseUrl);

/** Called before the service is used: stores new names, and refuses a source whose address has changed. */
export async function checkSources(db: Queryable, sources: readonly SourceAddress[]): Promise<void> {
  const known = await knownAddresses(db);
  const [moved] = movedOf(sources, known);
  if (moved)
    throw new ConfigError(movedText(moved), { kept: 'everything; nothing was read or written', next: MOVED_FIX });
  const fresh = sources.filter(({ name }) => !known.has(name));
  if (fresh.length > 0) await keepAddresses(db, fresh);
}

/** The user confirmed (`--adopt`) that it is the same service at another address. Returns the sources that moved. */
export async function adoptSources(db: Queryable, sources: readonly SourceAddress[]): Promise<string[]> {
  const moved = await findMoved(db, sources);
  await keepAddresses(db, sources);
  const names = moved.map(({ name }) => name);
  // The workspace is learned again from the next rows.
  await db.query(
    sql`update tributary.sources set workspace = null where name = any(${sources.map(({ name }) => name)})`,
  );
  // The new server may behave differently, and need not return the newest row of the old one.
  await db.query(sql`delete from tributary.profiles where source = any(${names})`);
  await db.query(sql`update tributary.cursors set newest_seen = null where source = any(${names})`);
  return names;
}

export const movedText = ({ name, was, baseUrl }: MovedSource): string =>
  `source "${name}" was read from ${was} and now leads to ${baseUrl}: rows of two services would mix`;

export const MOVED_FIX =
  'give the other service a name of its own; if it is the same service at a new address, run tributary sync --adopt once';

export interface Workspace {
  id: string | null;
  keyHash: string | null;
}

/** Refuses only if both the key and the workspace have changed: keys are replaced, and links move between workspaces. */
export function createWorkspaceCheck(
  db: Queryable,
  { source, stream, keyHash }: { source: string; stream: StreamName; keyHash: string },
  known: Workspace | undefined,
): (rows: readonly Row[]) => Promise<void> {
  const column = STREAMS[stream].columns.findIndex(({ name }) => name === 'link_workspace_id');
  let isTrusted = false;
  return async (rows) => {
    if (isTrusted) return;
    const shown = new Set(rows.flatMap(({ values }) => (values[column] ? [String(values[column])] : [])));
    const [first] = shown;
    if (first === undefined) return;
    const was = known?.id ?? first;
    if (!shown.has(was)) {
      if (known?.keyHash === keyHash) return;
      throw new ConfigError(
        `source "${source}" has rows of workspace ${was}, and its key now shows workspace ${first}: rows of two workspaces would mix`,
        { kept: 'everything; nothing of the other workspace was written', next: WORKSPACE_FIX },
      );
    }
    isTrusted = true;
    if (known?.id === was && known.keyHash === keyHash) return;
    await db.query(sql`update tributary.sources set workspace = ${was}, key_hash = ${keyHash} where name = ${source}`);
  };
}

const WORKSPACE_FIX =
  'give the other workspace a source of its own; if its rows are meant to join those of the first, run tributary sync --adopt once';

/** Only of sources that rows were read from, so that an address that was mistyped at first can be corrected. */
async function knownAddresses(db: Queryable): Promise<Map<string, string>> {
  const rows = await db.query<{ name: string; base_url: string }>(sql`
    select name, base_url from tributary.sources
    where exists (
      select from tributary.cursors where source = name and coalesce(newest_seen, complete_through) is not null)
      or exists (select from tributary.runs where source = name and rows_read > 0)`);
  return new Map(rows.map(({ name, base_url }) => [name, base_url]));
}

async function keepAddresses(db: Queryable, sources: readonly SourceAddress[]): Promise<void> {
  const [names, urls] = [sources.map(({ name }) => name), sources.map(({ baseUrl }) => baseUrl)];
  await db.query(sql`
    insert into tributary.sources (name, base_url) select * from unnest(${names}::text[], ${urls}::text[])
    on conflict (name) do update set base_url = excluded.base_url, adopted_at = now()`);
}

export const UNKNOWN_SERVER: Profile = { ...UNKNOWN_PROFILE, pageRows: MAX_LIMIT };

/** A profile is stored as three columns, for people who query them, and a JSON object with the rest. */
export const PROFILE = `
  facts || jsonb_build_object('granularity', granularity, 'tickMs', tick_ms, 'pageRows', page_rows)`;

export async function writeProfile(db: Queryable, source: string, stream: StreamName, profile: Profile): Promise<void> {
  const { granularity, tickMs, pageRows, ...facts } = profile;
  await db.query(sql`
    insert into tributary.profiles (source, stream, granularity, tick_ms, page_rows, facts)
    values (${source}, ${stream}, ${granularity}, ${tickMs}, ${pageRows}, ${JSON.stringify(facts)})
    on conflict (source, stream) do update set granularity = excluded.granularity, tick_ms = excluded.tick_ms,
      page_rows = excluded.page_rows, facts = excluded.facts, updated_at = now()`);
}

export async function readKnownProfiles(db: Queryable): Promise<Array<Profile & { source: string; stream: string }>> {
  const read = sql`
    select source, stream, ${raw(PROFILE)} as profile from tributary.profiles p where exists (
      select from tributary.cursors c where (c.source, c.stream) = (p.source, p.stream) and c.newest_seen is not null)
    order by source, stream`;
  type Found = { source: string; stream: string; profile: Partial<Profile> };
  const rows = await ifTable(db, 'profiles', () => db.query<Found>(read));
  return rows.map(({ profile, ...of }) => ({ ...of, ...UNKNOWN_SERVER, ...profile }));
}

/** If the filters have changed, nothing is proven any more and everything is read again; rows stay. Returns whether they have changed. */
export async function changeFilters(
  db: Database,
  lease: Pick<Lease<StreamName>, 'source' | 'stream' | 'epoch'>,
  { from, to }: { from: string | undefined; to: string },
): Promise<boolean> {
  if (from === to) return false;
  return db.transaction(async (tx) => {
    await checkFence(tx, lease);
    const { source, stream } = lease;
    await tx.query(sql`
      insert into tributary.filters (source, stream, filters) values (${source}, ${stream}, ${to})
      on conflict (source, stream) do update set filters = excluded.filters, changed_at = now()`);
    if (from === undefined) return false;
    await tx.query(sql`delete from tributary.windows where source = ${source} and stream = ${stream}`);
    // newest_seen too: if the new filters exclude that event, it never shows again, and the end of the stream could not be proven.
    await tx.query(sql`
      update tributary.cursors set complete_through = null, newest_seen = null
      where source = ${source} and stream = ${stream}`);
    return true;
  });
}
