import { expect, it } from 'vitest';
import type { Database } from '../../src/cursor/database/index.ts';
import { quoteIdent } from '../../src/cursor/database/sql.ts';
import { BOOKKEEPING, STREAM_NAMES, STREAMS, type Stream } from '../../src/model/streams.ts';
import { createPostgresSink } from '../../src/sinks/postgres/postgres-sink.ts';
import { streamTable, tableDefinition } from '../../src/sinks/postgres/table.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { ODD_SCHEMA, postgresPlace } from '../support/postgres-place.ts';
import { createWriter, NOON, receipt, rowOf } from '../support/sink-harness.ts';

/** What is specific to the Postgres sink: the tables that it creates and then leaves alone. */

const place = await forThisFile(postgresPlace());

interface ColumnFacts {
  name: string;
  type: string;
  required: boolean;
  comment: string | null;
}

const columnsOf = (schema: string, stream: Stream): Promise<ColumnFacts[]> =>
  place.db.query<ColumnFacts & Record<string, unknown>>({
    text: `
      select a.attname::text as name, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required,
        col_description(a.attrelid, a.attnum) as comment
      from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and c.relname = $2 and a.attnum > 0 and not a.attisdropped order by a.attnum`,
    values: [schema, stream.name],
  });

const sinkIn = (schema: string) => createPostgresSink({ name: 'warehouse', db: place.db, schema, state: place.state });

it.each(STREAM_NAMES)('gives %s every column of its stream, with its type and a comment', async (name) => {
  const stream = STREAMS[name];
  await sinkIn('columns').prepare(stream);
  const found = await columnsOf('columns', stream);
  const known = [...stream.columns, ...BOOKKEEPING];
  expect(found.map((column) => column.name).sort()).toEqual(known.map((column) => column.name).sort());
  const types = {
    text: 'text',
    integer: 'bigint',
    number: 'numeric',
    boolean: 'boolean',
    timestamp: 'timestamp with time zone',
    json: 'jsonb',
  };
  for (const column of known) {
    const facts = found.find((other) => other.name === column.name);
    expect(facts?.type, column.name).toBe(types[column.kind]);
    const deprecated = 'deprecated' in column ? `Deprecated, use ${column.deprecated}. ` : '';
    expect(facts?.comment, column.name).toBe(`${deprecated}${column.doc}`);
  }
  expect(found.filter((column) => column.comment?.startsWith('Deprecated'))).not.toEqual([]);
});

it('requires a value only if every row has one: the id, the time, and our own columns', async () => {
  await sinkIn('columns').prepare(STREAMS.sales);
  const required = (await columnsOf('columns', STREAMS.sales)).filter((column) => column.required);
  expect(required.map((column) => column.name).sort()).toEqual(
    ['_first_synced_at', '_run_id', '_source', '_synced_at', 'event', 'event_id', 'timestamp'].sort(),
  );
});

it('updates an older table without losing its rows or its columns', async () => {
  const { columns } = STREAMS.sales;
  const older: Stream = { ...STREAMS.sales, columns: columns.filter(({ name }) => !/^sale_|^customer_/.test(name)) };
  // As an older version left it: without the views, which a newer one adds.
  await place.db.query({
    text: `create schema ${quoteIdent(ODD_SCHEMA)}; ${tableDefinition(ODD_SCHEMA, streamTable(older))}`,
  });
  const writer = await createWriter(place, older);
  await writer.commit([rowOf(older, 'old', NOON, { event_name: 'kept' })]);
  await place.db.query({ text: `alter table ${quoteIdent(ODD_SCHEMA)}.sales add column own_note text default 'mine'` });

  await place.createSink().prepare(STREAMS.sales);
  const [row] = await place.readRows(STREAMS.sales);
  expect(row).toMatchObject({ event_id: 'old', event_name: 'kept', sale_amount: null, customer_id: null });
  const facts = await columnsOf(ODD_SCHEMA, STREAMS.sales);
  expect(facts.find(({ name }) => name === 'own_note')).toBeDefined();
  expect(facts.find(({ name }) => name === 'sale_amount')?.comment).toMatch(/cents/);

  await writer.lease.release();
  const next = await createWriter(place, STREAMS.sales, writer.lease.source);
  const same = rowOf(STREAMS.sales, 'old', NOON, { event_name: 'kept', sale_amount: 5 });
  expect(await next.commit([same])).toEqual(receipt({ changed: 1 }));
});

it('restores a dropped column, even one that is never empty', async () => {
  await sinkIn('repaired').prepare(STREAMS.clicks);
  await place.db.query({
    text: `
      insert into repaired.clicks (_source, event_id, event, "timestamp", _first_synced_at, _synced_at, _run_id)
      values ('s', 'e', 'click', now(), now(), now(), 'r');
      alter table repaired.clicks drop column click_city cascade, drop column _run_id`,
  });
  await sinkIn('repaired').prepare(STREAMS.clicks);
  const names = (await columnsOf('repaired', STREAMS.clicks)).map((column) => column.name);
  expect(names).toEqual(expect.arrayContaining(['click_city', '_run_id']));
  expect(await place.db.query({ text: 'select event_id, _run_id from repaired.clicks' })).toEqual([
    { event_id: 'e', _run_id: null },
  ]);
});

it('does not touch a current table, even while it is being read', async () => {
  const sink = sinkIn('calm');
  await sink.prepare(STREAMS.leads);
  const versions = (): Promise<object[]> =>
    place.db.query({
      text: `
        select 'attribute' as what, attnum as place, xmin::text from pg_attribute where attrelid = 'calm.leads'::regclass
        union all select 'comment', objsubid, xmin::text from pg_description where objoid = 'calm.leads'::regclass
        union all select 'table', 0, xmin::text from pg_class where oid = 'calm.leads'::regclass
        order by 1, 2`,
    });
  const before = await versions();
  // A report holds this lock for hours; an ALTER or COMMENT would wait for it, and every reader for that.
  const reader = await place.db.begin();
  try {
    await reader.query({ text: 'lock table calm.leads in access share mode' });
    await place.db.transaction(async (tx) => {
      await tx.query({ text: "set local lock_timeout = '2s'" });
      const db: Database = { ...place.db, transaction: (work) => work(tx) };
      await createPostgresSink({ name: 'warehouse', db, schema: 'calm', state: db }).prepare(STREAMS.leads);
      const locks = await tx.query({
        text: `select mode from pg_locks where pid = pg_backend_pid() and relation = 'calm.leads'::regclass`,
      });
      expect(locks).toEqual([]);
    });
  } finally {
    await reader.rollback();
  }
  expect(await versions()).toEqual(before);
});

it('uses no name as SQL: the schema is exactly what the config says', async () => {
  const schema = `x" cascade; drop schema "columns`;
  await sinkIn('columns').prepare(STREAMS.clicks);
  await sinkIn(schema).prepare(STREAMS.clicks);
  const found = await place.db.query<{ name: string }>({ text: 'select nspname::text as name from pg_namespace' });
  expect(found.map(({ name }) => name)).toEqual(expect.arrayContaining([schema, 'columns']));
});

it('prints a definition that a DBA can run, to which prepare has nothing to add', async () => {
  await place.db.query({ text: 'create schema by_hand' });
  for (const name of STREAM_NAMES)
    await place.db.query({ text: tableDefinition('by_hand', streamTable(STREAMS[name])) });
  const oid = {
    text: `select array_agg(xmin::text order by attnum) from pg_attribute where attrelid = 'by_hand.sales'::regclass`,
  };
  const before = await place.db.query(oid);
  await sinkIn('by_hand').prepare(STREAMS.sales);
  expect(await place.db.query(oid)).toEqual(before);
});
