import { createHash } from 'node:crypto';
import { stringifyJson } from '../model/json.ts';
import type { StreamName } from '../model/streams.ts';
import type { Queryable } from './database.ts';

/** A record that could not be used, and why. */
export interface Rejected {
  record: unknown;
  reason: string;
}

/** Keeps each record once, however often it is read again. Written with the batch it came with, so neither is lost. */
export async function quarantine(
  tx: Queryable,
  place: { source: string; stream: StreamName; runId: string },
  rejected: readonly Rejected[],
): Promise<void> {
  for (const { record, reason } of rejected) {
    const text = storable(record);
    await tx.query({
      text: `
        insert into tributary.quarantine as q (source, stream, digest, reason, record, run_id)
        values ($1, $2, $3, $4, $5, $6)
        on conflict (source, stream, digest) do update set last_at = now(), run_id = excluded.run_id`,
      values: [place.source, place.stream, createHash('sha256').update(text).digest('hex'), reason, text, place.runId],
    });
  }
}

/** The record as text, because what made it unusable may be what jsonb refuses; without the link's password. */
function storable(record: unknown): string {
  return stringifyJson(withoutPassword(record)).replaceAll('\0', '\ufffd');
}

function withoutPassword(record: unknown): unknown {
  if (typeof record !== 'object' || record === null || !('link' in record)) return record;
  const { link } = record;
  if (typeof link !== 'object' || link === null || !('password' in link)) return record;
  return { ...record, link: { ...link, password: null } };
}
