import { lastCommit } from '../../cursor/cursors.ts';
import type { Database, Transaction } from '../../cursor/database/index.ts';
import { nameIn, raw, storableText } from '../../cursor/database/sql.ts';
import { withoutForgotten } from '../../cursor/forgotten.ts';
import { checkFence } from '../../cursor/leases.ts';
import { type Advance, applyAdvance } from '../../cursor/ledger.ts';
import { quarantine } from '../../cursor/quarantine.ts';
import { RetryLater } from '../../model/errors.ts';
import type { Row } from '../../model/flatten.ts';
import { type Entity, entitiesOf, type Stream } from '../../model/streams.ts';
import { commitOnce, gather } from '../files/commit.ts';
import { createSanitizer, newestById, newestEntities, POSTGRES_TEXT, type Sanitizer } from '../merge-rule.ts';
import { type Batch, resolveInDoubt, ShapeChanged, type Stored } from '../sink.ts';
import { readReceipt, writeReceipt } from './beside.ts';
import { pickValues, selectChanged, sendSeen } from './compare.ts';
import { encodeCopy, encodeRows } from './copy-encoder.ts';
import { countRows, isMissing } from './holdings.ts';
import {
  changedStage,
  copyIntoTable,
  entityStage,
  followStage,
  type Known,
  markMissing,
  mergeEntity,
  mergeStage,
  selectKnown,
  type Target,
} from './merge.ts';
import { copyIntoKeys, ensureMonths, KEY_KINDS } from './months.ts';
import { sendStage } from './staged.ts';
import { checkShape, describeTable, type Partition } from './table.ts';

export interface BatchOptions {
  db: Database;
  schema: string;
  /** The database of the cursors. The same object as `db` if data and state share a database: then a commit is one transaction. */
  state: Database;
  partition: Partition;
  /** What this process remembers of the tables it prepared. Others may change them at any time. */
  preparation: {
    /** Whether tables and views are still as they were prepared for the stream. Called while the stream's table is locked. */
    holds(tx: Transaction, stream: Stream): Promise<boolean>;
    /** Makes the next preparation check everything again. */
    forget(stream: Stream): void;
  };
}

/** Collects rows and writes them in one short transaction, so that none is open while a page is requested. */
export function openBatch({ db, schema, state, partition, preparation }: BatchOptions, stream: Stream): Batch {
  /** If the state is in another database, the data is committed first, with a receipt that recovery reads after a crash. */
  const storeElsewhere = (load: PostgresLoad, advance: Advance, follows: string | undefined): Promise<Stored> => {
    const work = async (tx: Transaction): Promise<Stored> => {
      const stored = await store(tx, load, advance.spans);
      await writeReceipt(tx, schema, advance, follows);
      return stored;
    };
    const isThere = async (): Promise<boolean> =>
      (await readReceipt(db, schema, advance))?.commitId === advance.commitId;
    return resolveInDoubt(db, work, isThere);
  };

  return gather(stream, async ({ rows, advance, rejected }) => {
    const isHere = db === state;
    // With two databases, rejected records are stored first: after a crash, a receipt restores the cursor but not these records.
    if (!isHere && rejected.length > 0) {
      await state.transaction(async (tx) => {
        await checkFence(tx, advance);
        await quarantine(tx, advance, rejected);
      });
    }
    const times = rows.map(({ at }) => at);
    if (partition === 'month') await ensureMonths(db, { schema, stream: stream.name }, times);
    return commitOnce(
      state,
      advance,
    )(async (tx) => {
      // Checked before any row is written, and locked until the end: a writer without the lease must not change the data.
      const fence = await checkFence(tx, advance);
      const { source, runId } = advance;
      const kept = await withoutForgotten(tx, source, stream, rows);
      const load = { schema, stream, partition, preparation, source, runId, rows: kept };
      const stored = isHere
        ? await store(tx, load, advance.spans)
        : await storeElsewhere(load, advance, await lastCommit(tx, advance));
      if (isHere) await quarantine(tx, advance, rejected);
      await applyAdvance(tx, fence, advance, { ...stored, count: countRows(isHere ? tx : db, load) });
      return stored.receipt;
    });
  });
}

interface PostgresLoad extends Target, Pick<BatchOptions, 'preparation'> {
  rows: readonly Row[];
}

/** Writes a batch in a transaction: new rows straight into the table, known rows through a staging table that is compared with it. */
async function store(tx: Transaction, load: PostgresLoad, spans: Advance['spans']): Promise<Stored> {
  const { schema, stream, partition, source, runId, rows } = load;
  await holdShape(tx, load);
  const distinct = newestById(rows);
  const ids = [...distinct.keys()];
  const found = ids.length > 0 ? await tx.query<Known>(selectKnown(load, ids)) : [];
  const known = new Map(found.map(({ event_id, at }) => [event_id, at]));
  // Before the insert, so that new rows need no check. The merge unmarks an event that moved elsewhere.
  for (const span of spans) if (span.whole) await tx.query(markMissing(load, span, ids));

  const [newRows, hits]: [Row[], Row[]] = [[], []];
  for (const row of distinct.values()) (known.has(storableText(row.id)) ? hits : newRows).push(row);
  const sanitizer = createSanitizer(stream, POSTGRES_TEXT);
  if (newRows.length > 0) {
    const chunks = encodeRows(stream, newRows, [source, runId], sanitizer);
    const written = await tx.copyIn(copyIntoTable(schema, stream), chunks);
    if (written !== newRows.length) throw droppedRows(schema, stream, newRows.length - written);
    const keys = newRows.map(({ id, at }) => [source, storableText(id), at]);
    if (partition === 'month') await tx.copyIn(copyIntoKeys(schema, stream), encodeCopy(KEY_KINDS, keys));
  }
  const changed = await storeKnown(tx, { ...load, rows: hits }, found, sanitizer);
  for (const entity of entitiesOf(stream)) await storeEntity(tx, load, entity);
  const moved = changed.filter(({ id, at }) => known.get(storableText(id)) !== at);
  return {
    receipt: {
      ...{ new: newRows.length, changed: changed.length, unchanged: hits.length - changed.length },
      sanitized: sanitizer.sanitized(),
    },
    added: [...newRows, ...moved].map(({ at }) => at),
    removed: moved.flatMap(({ id }) => known.get(storableText(id)) ?? []),
  };
}

/** A trigger that drops rows must not make them count as stored. */
const droppedRows = (schema: string, { name }: Stream, rows: number): RetryLater =>
  new RetryLater(`${rows} of the rows for ${schema}.${name} did not arrive: a trigger or a rule drops them`, {
    kept: 'everything committed before; nothing of this batch was written',
    next: 'remove what drops them (\\d+ of the table shows triggers and rules), and run again',
  });

async function storeEntity(tx: Transaction, load: PostgresLoad, entity: Entity): Promise<void> {
  const { stream, rows } = load;
  const newest = newestEntities(entity, stream, rows, POSTGRES_TEXT);
  if (newest.length === 0) return;
  const indexes = entity.columns.map(({ name }) => stream.columns.findIndex((column) => column.name === name));
  const values = pickValues(createSanitizer(stream, POSTGRES_TEXT).all(newest), indexes);
  await tx.query(mergeEntity(load, entity, await sendStage(tx, entityStage(entity), values)));
}

/** Locks the columns of the table until the end of the transaction and checks that the rows fit them. */
async function holdShape(tx: Transaction, { schema, stream, preparation }: PostgresLoad): Promise<void> {
  try {
    await tx.query(raw(`lock table only ${nameIn(schema, stream.name)} in row exclusive mode`));
  } catch (error) {
    // Recovery: somebody dropped the table or its schema; the next preparation creates both again.
    if (!isMissing(error)) throw error;
    preparation.forget(stream);
    throw new ShapeChanged(stream.name, {});
  }
  if (await preparation.holds(tx, stream)) return;
  preparation.forget(stream);
  const present = await describeTable(tx, schema, stream.name);
  if (present) checkShape(stream, present);
}

/** Compares rows that the table already has and writes the changed ones. Returns the changed rows. */
async function storeKnown(tx: Transaction, load: PostgresLoad, known: readonly Known[], sanitizer: Sanitizer) {
  const { stream, partition, rows } = load;
  if (rows.length === 0) return [];
  const seen = await sendSeen(tx, stream, sanitizer.all(rows));
  const found = await tx.query<{ event_id: string }>(selectChanged(load, seen, known));
  if (found.length === 0) return [];

  const ids = new Set(found.map(({ event_id }) => event_id));
  const changed = rows.filter(({ id }) => ids.has(storableText(id)));
  const values = [...createSanitizer(stream, POSTGRES_TEXT).all(changed)];
  const staged = await sendStage(tx, changedStage(stream), values);
  const changedKnown = known.filter(({ event_id }) => ids.has(event_id));
  await tx.query(mergeStage(load, staged, changedKnown));
  if (partition === 'month') await tx.query(followStage(load, staged));
  return changed;
}
