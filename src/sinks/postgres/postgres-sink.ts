import { lastCommit } from '../../cursor/cursors.ts';
import type { Database } from '../../cursor/database/index.ts';
import { quoteIdent } from '../../cursor/database/sql.ts';
import { carryRows } from '../../cursor/holdings/window-rows.ts';
import { checkFence } from '../../cursor/leases.ts';
import { applyAdvance, readCoverage } from '../../cursor/ledger.ts';
import { versionFinding } from '../../cursor/migrations/migrate.ts';
import { type Finding, findingOf, note, ok } from '../../model/errors.ts';
import type { Log } from '../../model/log.ts';
import { STREAM_NAMES, STREAMS, type StreamName } from '../../model/streams.ts';
import { type Abilities, describeColumns, type SinkWith } from '../sink.ts';
import type { IndexName } from '../views/postgres-indexes.ts';
import { type BatchOptions, openBatch } from './batch.ts';
import { createDaysDue, publishColumns, publishDays } from './beside.ts';
import { findDifferences, readRows } from './compare.ts';
import { countErased, erase, prune } from './erase.ts';
import {
  attestTable,
  countRows,
  glanceAt,
  identifyElsewhere,
  identifyTable,
  isMissing,
  releaseKeys,
  removeOthers,
} from './holdings.ts';
import { copyCursor, readReceipt, settleReceipt } from './receipts.ts';
import type { Partition } from './table.ts';
import { refillEntities } from './upkeep/entities.ts';
import { findViewFaults } from './upkeep/keep-views.ts';
import { prepareWarehouse, shapeOf, type Warehouse } from './upkeep/prepare.ts';
import { viewsOf } from './views.ts';

interface PostgresSinkOptions extends Omit<BatchOptions, 'partition' | 'preparation'> {
  name: string;
  partition?: Partition;
  indexes?: readonly IndexName[];
  /** Told of what is not as it should be and stops nothing. */
  log?: Pick<Log, 'warn'>;
}

/** Large enough that a batch loads at full speed, small enough that two of them bound the memory. */
const BATCH_ROWS = 5000;

/** Counted in less than 50 ms of the server: a million rows take 67 polls. */
const COUNTED_ROWS = 15_000;

export type PostgresSink = SinkWith<Exclude<keyof Abilities, 'rewrite' | 'maintain' | 'releaseKeys'>>;

export function createPostgresSink(options: PostgresSinkOptions): PostgresSink {
  const { name, db, schema, state, partition = 'none', indexes = [] } = options;
  const isStateHere = db === state;
  const daysDue = createDaysDue();
  const warehouse = { db, schema, sink: name, isStateHere, partition, indexes };
  /** By stream: the columns that were asked for, and the shape of the whole warehouse that they were found in. */
  const prepared = new Map<StreamName, { columns: string; shape: string }>();

  const preparation: BatchOptions['preparation'] = {
    async holds(tx, stream) {
      const known = prepared.get(stream.name);
      if (!known || known.columns !== describeColumns(stream)) return false;
      return (await shapeOf(tx, warehouse)) === known.shape;
    },
    forget: (stream) => void prepared.delete(stream.name),
  };
  return {
    name,
    place: `Postgres schema ${schema} (${[...STREAM_NAMES, 'links', 'customers'].join(', ')})`,
    batchRows: BATCH_ROWS,
    async prepare(stream) {
      const columns = describeColumns(stream);
      if (prepared.get(stream.name)?.columns === columns) return;
      const { shape, faults } = await prepareWarehouse(warehouse, stream);
      prepared.set(stream.name, { columns, shape });
      for (const { view, says, fix } of faults) options.log?.warn({ sink: name, view, fix }, says);
    },
    open: async (stream) => daysDue.watched(openBatch({ db, schema, state, partition, preparation }, stream)),
    async recover({ source, stream, epoch }) {
      if (isStateHere) return false;
      const track = { source, stream, sink: name };
      const receipt = await readReceipt(db, schema, track);
      // Any other receipt is of tables or of a state that were restored: what the tables hold is counted then.
      if (!receipt?.advance || receipt.follows !== (await lastCommit(state, track))) return false;
      // The data was committed but the state was never told: tell it now, under our own lease.
      const count = countRows(db, { schema, stream: STREAMS[stream], source });
      const rows = { added: [], removed: [], count, isAfterCrash: true };
      const advance = { ...receipt.advance, epoch };
      await state.transaction(async (tx) => applyAdvance(tx, await checkFence(tx, advance), advance, rows));
      return true;
    },
    async publishProgress({ source, stream }, isReopened = false) {
      if (isStateHere && !isReopened && !daysDue.isDue({ source, stream })) return;
      const track = { source, stream, sink: name };
      const [coverage, told] = [await readCoverage(state, track), await lastCommit(state, track)];
      if (!coverage || told === undefined) return;
      try {
        await publishDays(db, schema, state, track);
        daysDue.settle(track);
        if (isStateHere) return;
        await copyCursor(db, schema, coverage);
        await publishColumns(db, schema, state);
        await settleReceipt(db, schema, track, told);
      } catch (error) {
        // Recovery: somebody dropped the tables; the next commit makes them again.
        if (!isMissing(error)) throw error;
      }
    },
    async erase(erasure) {
      const { touched, clicks } = await erase(db, schema, erasure);
      const track = { source: erasure.source, stream: 'clicks', sink: name } as const;
      await state.transaction((tx) => carryRows(tx, track, { added: [], removed: clicks }));
      return touched;
    },
    countErased: (erasure) => countErased(db, schema, erasure),
    check: () => checkPostgres(warehouse, `sink ${name}`, isStateHere ? 'the state database' : 'its database'),
    compare: (comparison) => findDifferences(db, schema, comparison),
    isInState: isStateHere,
    countedRows: COUNTED_ROWS,
    tableOf: (stream) => `${schema}.${stream}`,
    identify: (tx, { source, stream }, known) =>
      isStateHere
        ? identifyTable(tx, schema, stream)
        : identifyElsewhere(db, schema, { source, stream, sink: name }, known),
    attest: (stream, source, windows) => attestTable(db, { schema, stream, source }, windows),
    ...(partition === 'month' && {
      releaseKeys: (stream, source, windows) => releaseKeys(db, { schema, stream, source }, windows),
    }),
    removeForeign: (stream, source, windows) => removeOthers(db, { schema, stream, source }, windows),
    glance: (stream, source, windows) => glanceAt(db, { schema, stream, source }, windows),
    refillEntities: (source, isThorough) => refillEntities(db, schema, source, isThorough),
    prune: (stream, source, before) => prune(db, { schema, stream, source }, partition, before),
    read: (stream, source, window) => readRows(db, schema, stream, { source, window }),
    close: async () => {},
  };
}

/** Tries out what a commit does, in a transaction that is rolled back: create, write, read. */
async function checkPostgres(warehouse: Warehouse, subject: string, place: string): Promise<Finding[]> {
  const { db, schema } = warehouse;
  const findings: Finding[] = [];
  try {
    findings.push(await versionFinding(db, subject, place));
    await tryOut(db, schema);
    findings.push(ok(subject, `schema ${schema}: can create, write and read`));
    const locked = await tablesNotOurs(db, schema);
    if (locked.length > 0) {
      findings.push({
        level: 'fault',
        subject,
        says: `may not write ${locked.map((table) => `${schema}.${table}`).join(', ')}`,
        fix: `grant select, insert, update, delete on all tables in schema ${quoteIdent(schema)} to this user, or make it their owner`,
        fixBy: 'config',
      });
    }
    for (const { says, fix } of await findViewFaults(db, schema, viewsOf(warehouse)))
      findings.push(note(subject, says, fix));
  } catch (error) {
    findings.push(findingOf(subject, error));
  }
  return findings;
}

async function tryOut(db: Database, schema: string): Promise<void> {
  const tx = await db.begin();
  try {
    const [found] = await tx.query<{ schema: string | null }>({
      text: 'select to_regnamespace($1)::text as schema',
      values: [quoteIdent(schema)],
    });
    if (!found?.schema) await tx.query({ text: `create schema ${quoteIdent(schema)}` });
    const probe = `${quoteIdent(schema)}.tributary_doctor`;
    await tx.query({ text: `create table ${probe} (n int)` });
    await tx.query({ text: `insert into ${probe} values (1)` });
    await tx.query({ text: `select n from ${probe}` });
  } finally {
    await tx.rollback();
  }
}

/** Existing tables may belong to another role. */
async function tablesNotOurs(db: Database, schema: string): Promise<string[]> {
  const rows = await db.query<{ name: string }>({
    text: `
      select c.relname as name from pg_class c
      where c.relnamespace = to_regnamespace($1) and c.relkind in ('r', 'p')
        and not (has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
          and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))
      order by 1`,
    values: [quoteIdent(schema)],
  });
  return rows.map(({ name }) => name);
}
