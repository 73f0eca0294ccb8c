import { type Instant, toIso } from '../model/instant.ts';
import type { StreamName } from '../model/streams.ts';
import type { Queryable } from './database.ts';
import { planSource } from './schedules.ts';
import { instantOf } from './sql.ts';
import { storableText } from './storable.ts';

/** The whole source: its key was refused, and every stream uses it. */
export const WHOLE_SOURCE = '*';

export interface Parked {
  source: string;
  /** One stream, or `*` for all of the source. */
  stream: string;
  reason: string;
  nextProbeAt: Instant;
}

export interface Refusal {
  source: string;
  stream: StreamName | typeof WHOLE_SOURCE;
  /** Of the config that was refused: with another one, it is worth asking again at once. */
  fingerprint: string;
  /** The service's own words; never holds the key. */
  reason: string;
  nextStep: string | undefined;
  nextProbeAt: Instant;
}

/** Parks, or keeps parked: the moment it began and the next probe stay when it is refused again. */
export async function park(db: Queryable, refusal: Refusal): Promise<void> {
  const { source, stream, fingerprint, reason, nextStep, nextProbeAt } = refusal;
  const [kept] = await db.query<{ probe: Instant }>({
    text: `
      insert into tributary.parked as p (source, stream, fingerprint, reason, next_step, next_probe_at)
      values ($1, $2, $3, $4, $5, $6)
      on conflict (source, stream) do update
        set reason = excluded.reason, next_step = excluded.next_step, fingerprint = excluded.fingerprint
      returning ${instantOf('next_probe_at')} as probe`,
    values: [source, stream, fingerprint, storableText(reason), nextStep ?? null, toIso(nextProbeAt)],
  });
  await planSource(db, source, stream, kept?.probe ?? nextProbeAt);
}

/** What keeps a stream from running: itself parked, or its source. */
export async function readParked(db: Queryable, source: string, stream: StreamName): Promise<Parked[]> {
  return db.query<Parked>({
    text: `
      select source, stream, reason, ${instantOf('next_probe_at')} as "nextProbeAt"
      from tributary.parked where source = $1 and stream in ($2, '*')`,
    values: [source, stream],
  });
}

/** Takes the probe that is due: one of many workers asks, the others wait for what comes of it. */
export async function claimProbe(
  db: Queryable,
  { source, stream }: Pick<Parked, 'source' | 'stream'>,
  backoff: (probes: number) => number,
): Promise<Instant | undefined> {
  const [due] = await db.query<{ probes: number; now: Instant }>({
    text: `
      select probes, ${instantOf('clock_timestamp()')} as now from tributary.parked
      where source = $1 and stream = $2 and next_probe_at <= clock_timestamp()`,
    values: [source, stream],
  });
  if (!due) return undefined;
  const next = due.now + backoff(due.probes + 1);
  const taken = await db.query({
    text: `
      update tributary.parked set probes = probes + 1, next_probe_at = $4
      where source = $1 and stream = $2 and probes = $3 returning source`,
    values: [source, stream, due.probes, toIso(next)],
  });
  return taken.length > 0 ? next : undefined;
}

/**
 * Somebody wants the stream now, and perhaps mended what it was refused for: it is due, and what keeps it parked is asked again
 * at once. From there on by itself as rarely as in the beginning: however often somebody tried, the mending may take effect later.
 */
export async function makeDue(db: Queryable, source: string, stream: StreamName): Promise<void> {
  await db.query({
    text: `
      with hurried as (
        update tributary.parked set next_probe_at = clock_timestamp(), probes = 0 where source = $1 and stream in ($2, '*'))
      update tributary.schedules set next_run_at = clock_timestamp(), failures = 0 where source = $1 and stream = $2`,
    values: [source, stream],
  });
}

/** It answers again: whatever waited for that is due now. */
export async function unpark(db: Queryable, { source, stream }: Pick<Parked, 'source' | 'stream'>): Promise<void> {
  const gone = await db.query<{ now: Instant }>({
    text: `
      delete from tributary.parked where source = $1 and stream = $2
      returning ${instantOf('clock_timestamp()')} as now`,
    values: [source, stream],
  });
  if (gone[0]) await planSource(db, source, stream, gone[0].now);
}

/** Parked under a config that has changed since, or that the config no longer has. */
export async function unparkChanged(
  db: Queryable,
  fingerprints: ReadonlyArray<{ source: string; stream: string; fingerprint: string }>,
): Promise<void> {
  const changed = await db.query<Pick<Parked, 'source' | 'stream'>>({
    text: `
      select source, stream from tributary.parked p where not exists (
        select from jsonb_to_recordset($1) as f (source text, stream text, fingerprint text)
        where f.source = p.source and p.stream in (f.stream, '*') and f.fingerprint = p.fingerprint)`,
    values: [JSON.stringify(fingerprints)],
  });
  for (const each of changed) await unpark(db, each);
}
