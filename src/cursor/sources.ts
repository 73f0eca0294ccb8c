import { ConfigError } from '../model/errors.ts';
import type { Queryable } from './database.ts';

/** A name and the service behind it. Rows carry only the name: those of two services would mix under it. */
export interface SourceAddress {
  name: string;
  /** Normalised, as the config holds it. */
  baseUrl: string;
}

export interface MovedSource extends SourceAddress {
  was: string;
}

/** Sources that have another address than the one they were read from. */
export const findMoved = async (db: Queryable, sources: readonly SourceAddress[]): Promise<MovedSource[]> =>
  movedOf(sources, await knownAddresses(db));

function movedOf(sources: readonly SourceAddress[], known: ReadonlyMap<string, string>): MovedSource[] {
  return sources.flatMap((source) => {
    const was = known.get(source.name);
    return was === undefined || was === source.baseUrl ? [] : [{ ...source, was }];
  });
}

/** At the door of everything that asks the service: a name that is new is kept, one that has moved is refused. */
export async function checkSources(db: Queryable, sources: readonly SourceAddress[]): Promise<void> {
  const known = await knownAddresses(db);
  const [moved] = movedOf(sources, known);
  if (moved)
    throw new ConfigError(movedText(moved), { kept: 'everything; nothing was read or written', next: MOVED_FIX });
  const fresh = sources.filter(({ name }) => !known.has(name));
  if (fresh.length > 0) await keepAddresses(db, fresh);
}

/** Somebody said that it is the same service at another address. Returns the sources that moved. */
export async function adoptSources(db: Queryable, sources: readonly SourceAddress[]): Promise<string[]> {
  const moved = await findMoved(db, sources);
  await keepAddresses(db, sources);
  return moved.map(({ name }) => name);
}

export const movedText = ({ name, was, baseUrl }: MovedSource): string =>
  `source "${name}" was read from ${was} and now leads to ${baseUrl}: rows of two services would mix`;

export const MOVED_FIX =
  'give the other service a name of its own; if it is the same service at a new address, run tributary sync --adopt once';

/** Only of sources that something was read from: an address that was mistyped at first can be corrected. */
async function knownAddresses(db: Queryable): Promise<Map<string, string>> {
  const rows = await db.query<{ name: string; base_url: string }>({
    text: `
      select name, base_url from tributary.sources
      where exists (
        select from tributary.cursors where source = name and coalesce(newest_seen, complete_through) is not null)`,
  });
  return new Map(rows.map(({ name, base_url }) => [name, base_url]));
}

async function keepAddresses(db: Queryable, sources: readonly SourceAddress[]): Promise<void> {
  await db.query({
    text: `
      insert into tributary.sources (name, base_url) select * from unnest($1::text[], $2::text[])
      on conflict (name) do update set base_url = excluded.base_url, adopted_at = now()`,
    values: [sources.map(({ name }) => name), sources.map(({ baseUrl }) => baseUrl)],
  });
}
