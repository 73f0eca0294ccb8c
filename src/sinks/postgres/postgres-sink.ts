import { lastCommit } from '../../cursor/cursors.ts';
import type { Database } from '../../cursor/database/index.ts';
import { quoteIdent } from '../../cursor/database/sql.ts';
import { applyAdvance, readCoverage } from '../../cursor/ledger.ts';
import { versionFinding } from '../../cursor/migrations/migrate.ts';
import { type Finding, findingOf, ok } from '../../model/errors.ts';
import { STREAM_NAMES } from '../../model/streams.ts';
import type { Abilities, SinkWith } from '../sink.ts';
import { type BatchOptions, openBatch } from './batch.ts';
import { findDifferences } from './compare.ts';
import { erase } from './erase.ts';
import { prepareWarehouse } from './prepare.ts';
import { readRows } from './read-rows.ts';
import { copyCursor, dropReceipt, readReceipt } from './receipts.ts';
import type { Partition } from './table.ts';

export interface PostgresSinkOptions extends Omit<BatchOptions, 'partition'> {
  name: string;
  partition?: Partition;
}

/** Large enough that a batch loads at full speed, small enough that two of them bound the memory. */
const BATCH_ROWS = 5000;

export type PostgresSink = SinkWith<Exclude<keyof Abilities, 'rewrite' | 'maintain'>>;

export function createPostgresSink(options: PostgresSinkOptions): PostgresSink {
  const { name, db, schema, state, partition = 'none' } = options;
  const isStateHere = db === state;
  return {
    name,
    place: `Postgres schema ${schema} (${[...STREAM_NAMES, 'links', 'customers'].join(', ')})`,
    batchRows: BATCH_ROWS,
    prepare: (stream) => prepareWarehouse({ db, schema, sink: name, isStateHere, partition }, stream),
    open: async (stream) => openBatch({ db, schema, state, partition }, stream),
    async recover({ source, stream, epoch }) {
      if (isStateHere) return;
      const track = { source, stream, sink: name };
      const receipt = await readReceipt(db, schema, track);
      // The data of this commit is there and the state was never told: tell it now, under our own lease.
      if (receipt && (await lastCommit(state, track)) !== receipt.commitId) {
        await state.transaction((tx) => applyAdvance(tx, { ...receipt, epoch }));
      }
    },
    async publishProgress({ source, stream }) {
      if (isStateHere) return;
      const track = { source, stream, sink: name };
      const [coverage, told] = [await readCoverage(state, track), await lastCommit(state, track)];
      if (!coverage || told === undefined) return;
      await copyCursor(db, schema, coverage);
      await dropReceipt(db, schema, track, told);
    },
    erase: (erasure) => erase(db, schema, erasure),
    check: () => checkPostgres(db, schema, `sink ${name}`, isStateHere ? 'the state database' : 'its database'),
    compare: (comparison) => findDifferences(db, schema, comparison),
    read: (stream, source, window) => readRows(db, schema, stream, { source, window }),
    close: async () => {},
  };
}

/** Tries out what a commit does, in a transaction that is rolled back: create, write, read. */
export async function checkPostgres(db: Database, schema: string, subject: string, place: string): Promise<Finding[]> {
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
        mend: 'config',
      });
    }
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

/** Tables that are there already may belong to somebody else. */
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
