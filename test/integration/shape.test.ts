import { expect, it } from 'vitest';
import { connect } from '../../src/cursor/database/index.ts';
import { ConfigError } from '../../src/model/errors.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { createPostgresSink } from '../../src/sinks/postgres/postgres-sink.ts';
import { viewsOf } from '../../src/sinks/postgres/views.ts';
import type { Sink } from '../../src/sinks/sink.ts';
import { openFeed, recordOf } from '../support/feed.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { stateDatabase } from '../support/postgres.ts';
import { postgresPlace } from '../support/postgres-place.ts';
import { createWriter, NOON, rowOf } from '../support/sink-harness.ts';

/** Tables that change during writes. Binary COPY would silently store wrong values. */

const schema = 'attribution';
const VIEWS = viewsOf({ schema, sink: 'warehouse', isStateHere: true })
  .map(({ name }) => `${schema}.${name}`)
  .join(', ');
const place = await forThisFile(postgresPlace({ schema }));

const feedInto = (sink: Sink, stream: 'clicks' | 'leads' | 'sales') =>
  openFeed({ state: place.state, sinks: [sink], stream });

const valuesOf = async (stream: string, source: string, name: string): Promise<unknown[]> =>
  (
    await place.db.query<{ value: unknown }>({
      text: `select to_jsonb(t) -> '${name}' #>> '{}' as value from ${schema}.${stream} t where _source = $1 order by event_id`,
      values: [source],
    })
  ).map(({ value }) => value);

/** A sink that runs `meanwhile` between prepare and commit, once. */
function withMeanwhile(meanwhile: () => Promise<unknown>, sink: Sink = place.createSink()): Sink {
  let isDone = false;
  return {
    ...sink,
    async open(stream) {
      if (!isDone) {
        isDone = true;
        await meanwhile();
      }
      return sink.open(stream);
    },
  };
}

it.each([
  ['an integer into numeric', 's1', 7, 0.5],
  ['an integer into text', 's2', 7, 'many'],
  ['a boolean into text', 's3', true, 'maybe'],
  ['text into JSON', 's4', 'x', { deep: 1 }],
  ['a time into text', 's5', '2026-11-14T10:00:00Z', 'never'],
])(
  'writes a batch whose column another process widened between prepare and commit: %s',
  async (_n, key, mine, theirs) => {
    const other = await feedInto(place.createSink(), 'clicks');
    const first = await feedInto(place.createSink(), 'clicks');
    await first.send([recordOf('before', { [key]: mine })]);
    const late = await feedInto(
      withMeanwhile(() => other.send([recordOf('wide', { [key]: theirs })])),
      'clicks',
    );
    const tally = await late.send([recordOf('late', { [key]: mine })]);
    expect(tally).toMatchObject({ new: 1, changed: 0 });
    expect(await valuesOf('clicks', late.source, key)).toEqual([String(mine)]);
    const [wide] = await valuesOf('clicks', other.source, key);
    expect(wide).toBe(typeof theirs === 'object' ? '{"deep": 1}' : String(theirs));
  },
);

it('restores a column that is dropped between prepare and commit', async () => {
  const drop = { text: `alter table ${schema}.sales drop column dropped` };
  await (await feedInto(place.createSink(), 'sales')).send([recordOf('a', { dropped: 1 })]);
  const late = await feedInto(
    withMeanwhile(() => place.db.query(drop)),
    'sales',
  );
  await late.send([recordOf('b', { dropped: 2 })]);
  expect(await valuesOf('sales', late.source, 'dropped')).toEqual(['2']);
});

it('notices what another process did to tables that this one prepared long ago', async () => {
  const sink = place.createSink();
  const other = await feedInto(place.createSink(), 'clicks');
  const mine = await feedInto(sink, 'clicks');
  await mine.send([recordOf('a', { grown: 1 })]);
  const widens = () => other.send([recordOf('wide', { grown: 'x' })]);
  const late = await feedInto(withMeanwhile(widens, sink), 'clicks');
  await late.send([recordOf('b', { grown: 2 })]);
  expect(await valuesOf('clicks', late.source, 'grown')).toEqual(['2']);
});

it('creates dropped tables and views again, in a process that created them before', async () => {
  const own = await postgresPlace({ schema });
  try {
    const feed = await openFeed({ state: own.state, sinks: [own.createSink()], stream: 'leads' });
    const names = async (): Promise<unknown[]> =>
      (
        await own.db.query<{ n: string }>({
          text: `select relname as n from pg_class where relnamespace = '${schema}'::regnamespace and relkind in ('r', 'v') order by 1`,
        })
      ).map(({ n }) => n);
    await feed.send([recordOf('a')]);
    const all = await names();
    await own.db.query({ text: `drop view ${schema}.coverage` });
    // The first commit after that notices, the next run checks closely.
    for (const id of ['b', 'c']) await feed.send([recordOf(id)]);
    expect(await names()).toEqual(all);
    for (const gone of [`table ${schema}.leads`, `schema ${schema}`]) {
      await own.db.query({ text: `drop ${gone} cascade` });
      expect(await feed.send([recordOf('d')])).toMatchObject({ new: 1 });
      await feed.send([recordOf('d')]);
      expect(await names()).toEqual(all);
    }
  } finally {
    await own.close();
  }
});

it('handles a table with more columns than a new state knows', async () => {
  await (await feedInto(place.createSink(), 'leads')).send([recordOf('a', { lost: 1 }), recordOf('b', { lost: 'x' })]);
  const home = await stateDatabase();
  const state = connect({ url: home.url });
  try {
    const sink = createPostgresSink({ name: 'warehouse', db: place.db, schema, state });
    const feed = await openFeed({ state, sinks: [sink], stream: 'leads' });
    const { schemaChanges } = await feed.send([recordOf('c', { lost: 3 })]);
    expect(schemaChanges).toEqual(['lost → lost (integer)', 'lost → lost (integer → text)']);
    expect(await valuesOf('leads', feed.source, 'lost')).toEqual(['3']);
  } finally {
    await state.close();
    await home.drop();
  }
});

it.each([
  ['when the table is prepared', 'prepare'],
  ['when a batch is written', 'commit'],
])('names a column whose type was changed, %s', async (_name, moment) => {
  const odd = await postgresPlace({ schema });
  try {
    const sink = odd.createSink();
    await sink.prepare(STREAMS.sales);
    const writer = await createWriter(odd, STREAMS.sales);
    await odd.db.query({
      text: `drop view ${VIEWS}; alter table ${schema}.sales alter sale_amount type numeric,
        alter sale_currency type varchar`,
    });
    const act =
      moment === 'prepare'
        ? odd.createSink().prepare(STREAMS.sales)
        : writer.commit([rowOf(STREAMS.sales, 'a', NOON, { sale_amount: 5 })]);
    await expect(act).rejects.toThrow(ConfigError);
    await expect(act).rejects.toThrow(
      'table sales has columns of another type: sale_amount is numeric and must be bigint',
    );
    expect(await odd.readRows(STREAMS.sales)).toEqual([]);
  } finally {
    await odd.close();
  }
});
