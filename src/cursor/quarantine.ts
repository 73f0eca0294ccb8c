import { createHash } from 'node:crypto';
import { isObject } from '../model/extra.ts';
import { createMentions } from '../model/forgotten.ts';
import { stringifyJson } from '../model/json.ts';
import { DEFAULT_PRIVACY } from '../model/privacy.ts';
import type { StreamName } from '../model/streams.ts';
import { createRedact } from '../model/withhold.ts';
import type { Queryable } from './database.ts';
import { readForgotten } from './forgotten.ts';
import { storableText } from './storable.ts';

/** A record that could not be used, and why. */
export interface Rejected {
  record: unknown;
  reason: string;
}

/** The reader has left out what the settings call private; whoever else comes here must not bring a link's password either. */
const redact = createRedact(DEFAULT_PRIVACY);

/** Keeps each record once, however often it is read again. Written with the batch it came with, so neither is lost. */
export async function quarantine(
  tx: Queryable,
  place: { source: string; stream: StreamName; runId: string },
  rejected: readonly Rejected[],
): Promise<void> {
  if (rejected.length === 0) return;
  const isForgotten = createMentions(await readForgotten(tx, place.source));
  for (const { record, reason } of rejected) {
    const kept = redact(record);
    if (isForgotten(kept)) continue;
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

/** Link and customer are joined when a record is read: with their counters in it, one record would be kept once a poll. */
function digestOf(record: unknown): string {
  const own = isObject(record) ? { ...record, link: idOf(record.link), customer: idOf(record.customer) } : record;
  return createHash('sha256').update(textOf(own)).digest('hex');
}

const idOf = (joined: unknown): unknown => (isObject(joined) && 'id' in joined ? joined.id : joined);

const textOf = (value: unknown): string => storableText(stringifyJson(value) ?? 'null');
