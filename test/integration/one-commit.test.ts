import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readCursor } from '../../src/cursor/cursors.ts';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { readLedger } from '../../src/cursor/ledger.ts';
import { RetryLater } from '../../src/model/errors.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { createPostgresSink, type PostgresSink } from '../../src/sinks/postgres/postgres-sink.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { freshDatabase, stateDatabase, type TestDatabase } from '../support/postgres.ts';
import { readTable } from '../support/postgres-place.ts';
import {
  asEntries,
  certified,
  createWriter,
  MINUTE,
  NOON,
  receipt,
  rowOf,
  rowsOf,
  type SinkPlace,
} from '../support/sink-harness.ts';

/** Data and cursor stay consistent, whatever fails between them. Both databases are behind proxies that cut connections on demand. */

const stream = STREAMS.sales;
const schema = 'attribution';
const rows = [rowOf(stream, 'a', NOON, { link_id: 'l', link_url: 'u' }), rowOf(stream, 'b', NOON)];
const spans = [certified(NOON, NOON + MINUTE, 2)];
const rejected = [{ record: { odd: true }, reason: 'odd \0' }];
const REJECTED_ROWS = 1;

interface Home extends SinkPlace {
  db: Database;
  data: FaultProxy;
  cursors: FaultProxy;
  createSink(): PostgresSink;
}

async function openHome(isElsewhere: boolean): Promise<Home> {
  const homes: TestDatabase[] = [await stateDatabase()];
  if (isElsewhere) homes.push(await freshDatabase());
  const [stateUrl = '', dataUrl = stateUrl] = homes.map(({ url }) => url);
  const cursors = await startFaultProxy(stateUrl);
  const data = isElsewhere ? await startFaultProxy(dataUrl) : cursors;
  const state = connect({ url: cursors.url });
  const db = isElsewhere ? connect({ url: data.url }) : state;
  const createSink = () => createPostgresSink({ name: 'warehouse', db, schema, state });
  await createSink().prepare(stream);
  return {
    state,
    db,
    data,
    cursors,
    createSink,
    readRows: (known) => readTable(db, schema, known),
    async close() {
      await state.close();
      if (isElsewhere) await db.close();
      for (const proxy of new Set([cursors, data])) await proxy.close();
      for (const home of homes) await home.drop();
    },
  };
}

const quarantined = (home: Home, source: string) =>
  home.state.query({ text: 'select 1 from tributary.quarantine where source = $1', values: [source] });

describe.each([
  ['one database', false],
  ['two databases', true],
])('in %s', (_name, isElsewhere) => {
  let home: Home;
  beforeAll(async () => {
    home = await openHome(isElsewhere);
  });
  afterAll(() => home.close());

  it.each(['data', 'cursors'] as const)(
    'looks up a commit whose response was lost (%s), and does not repeat it',
    async (which) => {
      const writer = await createWriter(home, stream);
      const { source } = writer.lease;
      // With rejected records elsewhere, the state gets those first.
      const letThrough = isElsewhere && which === 'cursors' ? REJECTED_ROWS : 0;
      await home[which].fail({ kind: 'commit', lost: 'answer', letThrough });
      expect(await writer.commit(rows, { spans }, rejected)).toEqual(receipt({ new: 2 }));
      expect(home[which].hasFailed()).toBe(false);
      expect((await rowsOf(home, stream, source)).size).toBe(2);
      expect(await readLedger(home.state, writer.advance(), 0)).toMatchObject(asEntries(spans));
      expect(await readCursor(home.state, writer.advance())).toMatchObject({ completeThrough: NOON + MINUTE });
      expect(await quarantined(home, source)).toHaveLength(1);
      expect(await writer.commit(rows, { spans })).toEqual(receipt({ unchanged: 2 }));
    },
  );

  it('reports a commit that never arrived, and records nothing for it', async () => {
    const writer = await createWriter(home, stream);
    await home.data.fail({ kind: 'commit', lost: 'question', letThrough: 0 });
    await expect(writer.commit(rows, { spans })).rejects.toThrow(RetryLater);
    expect(await rowsOf(home, stream, writer.lease.source)).toEqual(new Map());
    expect(await readCursor(home.state, writer.advance())).toBeUndefined();
    expect(await writer.commit(rows, { spans })).toEqual(receipt({ new: 2 }));
  });
});

it('is one transaction if data and state share a database', async () => {
  const home = await openHome(false);
  try {
    const writer = await createWriter(home, stream);
    await writer.commit(rows, { spans }, rejected);
    const tables = [
      'attribution.sales',
      'attribution.links',
      ...['cursors', 'windows', 'quarantine', 'leases'].map((t) => `tributary.${t}`),
    ];
    const found = await home.db.query({
      text: tables.map((table) => `select xmin::text as tx from ${table}`).join(' union '),
    });
    expect(found).toHaveLength(1);
  } finally {
    await home.close();
  }
});

describe('data that was committed, and a state that missed it', () => {
  let home: Home;
  beforeAll(async () => {
    home = await openHome(true);
  });
  afterAll(() => home.close());

  /** The process dies after the data was committed: nothing of the state's transaction arrives. */
  async function crash() {
    const writer = await createWriter(home, stream);
    const noted = [{ ...certified(NOON, NOON + MINUTE), note: 'a note with \0 and \ud800' }];
    await home.cursors.fail({ kind: 'commit', lost: 'question', letThrough: REJECTED_ROWS });
    await expect(writer.commit(rows, { spans: noted, newestSeen: NOON + 0.125 }, rejected)).rejects.toThrow(RetryLater);
    const { source } = writer.lease;
    expect((await rowsOf(home, stream, source)).size).toBe(2);
    expect(await readCursor(home.state, writer.advance())).toBeUndefined();
    await writer.lease.release();
    const next = await createWriter(home, stream, source);
    const feed = { source, stream: stream.name };
    return {
      next,
      source,
      feed,
      recover: () => home.createSink().recover({ ...feed, epoch: next.lease.epoch }),
    };
  }

  it('is recorded by recover, once, and the rows are known', async () => {
    const { next, source, recover } = await crash();
    await recover();
    const recorded = { completeThrough: NOON + MINUTE, newestSeen: NOON + 0.125, since: NOON };
    expect(await readCursor(home.state, next.advance())).toMatchObject(recorded);
    expect(await readLedger(home.state, next.advance(), 0)).toMatchObject([
      { ...asEntries(spans)[0], note: 'a note with \ufffd and \ufffd' },
    ]);
    // Quarantined records are not lost either, although no receipt holds them.
    expect(await quarantined(home, source)).toHaveLength(1);
    const versions = { text: 'select xmin::text from tributary.cursors where source = $1', values: [source] };
    const before = await home.state.query(versions);
    await recover();
    expect(await home.state.query(versions)).toEqual(before);
    expect(await next.commit(rows, { spans })).toEqual(receipt({ unchanged: 2 }));
  });

  it('is not recorded by a holder that lost the lease', async () => {
    const { next, feed } = await crash();
    const recovery = home.createSink().recover({ ...feed, epoch: next.lease.epoch - 1 });
    await expect(recovery).rejects.toThrow(/lost its lease on the stream/);
    expect(await readCursor(home.state, next.advance())).toBeUndefined();
  });

  it('is not recorded again after a run has settled: a reset cursor stays reset', async () => {
    const writer = await createWriter(home, stream);
    const { source } = writer.lease;
    const feed = { source, stream: stream.name };
    const sink = home.createSink();
    await writer.commit(rows, { spans });
    await sink.publishProgress(feed);
    for (const table of ['cursors', 'windows']) {
      await home.state.query({ text: `delete from tributary.${table} where source = $1`, values: [source] });
    }
    await sink.recover({ ...feed, epoch: writer.lease.epoch });
    expect(await readCursor(home.state, writer.advance())).toBeUndefined();
    expect(await readLedger(home.state, writer.advance(), 0)).toEqual([]);
  });

  it('keeps the receipt of a commit that the state missed, even when a run settles', async () => {
    const { next, feed, recover } = await crash();
    await home.createSink().publishProgress(feed);
    await recover();
    expect(await readCursor(home.state, next.advance())).toMatchObject({ completeThrough: NOON + MINUTE });
  });
});
