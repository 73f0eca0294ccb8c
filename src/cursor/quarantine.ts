import { createHash } from 'node:crypto';
import { stringifyJson } from '../model/json.ts';
import type { StreamName } from '../model/streams.ts';
import type { Queryable } from './database.ts';
import { storableText } from './storable.ts';

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
    const kept = withoutSecrets(record, DEEPEST);
    await tx.query({
      text: `
        insert into tributary.quarantine as q (source, stream, digest, reason, record, run_id)
        values ($1, $2, $3, $4, $5, $6)
        on conflict (source, stream, digest) do update
          set reason = excluded.reason, record = excluded.record, last_at = now(), run_id = excluded.run_id`,
      // As text, because what made it unusable may be what jsonb refuses.
      values: [place.source, place.stream, digestOf(kept), storableText(reason), textOf(kept), place.runId],
    });
  }
}

/** Deep enough for anything that a person made; a record without a bottom would break JSON.stringify. */
const DEEPEST = 60;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** An unusable record has an odd shape, so the link's password is looked for everywhere, and in text that may be a link. */
function withoutSecrets(value: unknown, levels: number): unknown {
  if (typeof value === 'string')
    return /password[\\"'\s]*[:=]/i.test(value) ? '(left out: it names a password)' : value;
  if (typeof value !== 'object' || value === null) return value;
  if (levels === 0) return '(left out: too deep)';
  if (Array.isArray(value)) return value.map((inner) => withoutSecrets(inner, levels - 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) =>
      /password/i.test(key) && inner !== null ? [key, '(left out)'] : [key, withoutSecrets(inner, levels - 1)],
    ),
  );
}

/** Link and customer are joined when a record is read: with their counters in it, one record would be kept once a poll. */
function digestOf(record: unknown): string {
  const own = isObject(record) ? { ...record, link: idOf(record.link), customer: idOf(record.customer) } : record;
  return createHash('sha256').update(textOf(own)).digest('hex');
}

const idOf = (joined: unknown): unknown => (isObject(joined) && 'id' in joined ? joined.id : joined);

const textOf = (value: unknown): string => storableText(stringifyJson(value) ?? 'null');
