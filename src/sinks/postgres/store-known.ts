import type { Transaction } from '../../cursor/database.ts';
import { storableText } from '../../cursor/storable.ts';
import type { Row } from '../../model/flatten.ts';
import { createSanitizer, POSTGRES_TEXT, type Sanitizer } from '../sanitize-rows.ts';
import { selectChanged, sendSeen } from './compare.ts';
import { encodeCopy } from './copy-encoder.ts';
import { copyIntoStage, createStage, followStage, type Known, mergeStage, type Target } from './merge.ts';

export interface KnownRows {
  rows: readonly Row[];
  known: readonly Known[];
  sanitizer: Sanitizer;
}

/** Rows that the table has already: compared, and written where they changed. Returns how many did. */
export async function storeKnown(
  tx: Transaction,
  target: Target,
  { rows, known, sanitizer }: KnownRows,
  { source, runId }: { source: string; runId: string },
): Promise<number> {
  const { stream } = target;
  if (rows.length === 0) return 0;
  await sendSeen(tx, stream, sanitizer.all(rows));
  const found = await tx.query<{ event_id: string }>(selectChanged(target, known, source));
  if (found.length === 0) return 0;

  const ids = new Set(found.map(({ event_id }) => event_id));
  const changed = rows.filter(({ id }) => ids.has(storableText(id)));
  const kinds = [...stream.columns.map(({ kind }) => kind), 'json'] as const;
  await tx.query(createStage(stream));
  await tx.copyIn(copyIntoStage(), encodeCopy(kinds, createSanitizer(stream, POSTGRES_TEXT).all(changed)));
  await tx.query(
    mergeStage(
      target,
      known.filter(({ event_id }) => ids.has(event_id)),
      source,
      runId,
    ),
  );
  if (target.partition === 'month') await tx.query(followStage(target.schema, stream, source));
  return changed.length;
}
