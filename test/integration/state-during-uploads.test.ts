import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { acquireLease } from '../../src/cursor/leases.ts';
import type { Row } from '../../src/model/flatten.ts';
import { LINKS, STREAMS } from '../../src/model/streams.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { createS3Store } from '../../src/sinks/files/store/s3-store.ts';
import { createParquetSink } from '../../src/sinks/parquet/parquet-sink.ts';
import { forget } from '../../src/sync/maintain/forget.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { icebergS3Place, KEEP_NOTHING } from '../support/iceberg-place.ts';
import { lakeOf, s3Place } from '../support/lake-place.ts';
import { startS3 } from '../support/s3-server.ts';
import { certified, createWriter, MINUTE, NOON, rowOf, rowsOf } from '../support/sink-harness.ts';

const server = await forThisFile(startS3());
Object.assign(process.env, server.environment);

interface Place {
  stateUrl: string;
}

/** Checks the state's connections during every upload and deletion. Returns the requests during which a transaction was open. */
async function watchUploads(
  { stateUrl }: Place,
  work: () => Promise<unknown>,
): Promise<{ seen: number; open: string[] }> {
  const observer = connect({ url: stateUrl, name: 'observer', max: 1 });
  const [open, counts]: [string[], number[]] = [[], []];
  server.hold = async ({ method, url }) => {
    if (method !== 'PUT' && method !== 'DELETE') return;
    const found = await observer.query({
      text: `select from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`,
    });
    counts.push(found.length);
    if (found.length > 0) open.push(`${method} ${url?.replace(/\?.*|[0-9a-f-]{36}/g, '')}`);
  };
  try {
    await work();
  } finally {
    server.hold = async () => {};
    await observer.close();
  }
  return { seen: counts.length, open };
}

const stream = STREAMS.sales;
const sale = (id: string, day: number, amount: number) =>
  rowOf(stream, id, NOON + day * DAY_MS, {
    sale_amount: amount,
    customer_id: `c-${id}`,
    link_id: 'l1',
    link_domain: 'd',
  });
const DAYS = [0, 1, 2];

describe('no transaction of the state is open during uploads', () => {
  it('to a lake: commits, links, erasure, retention', async () => {
    const place = await s3Place(server);
    try {
      const writer = await createWriter(place, stream, 'one');
      const watched = await watchUploads(place, async () => {
        const sink = place.createSink();
        await sink.prepare(stream);
        const spans = [certified(NOON, NOON + 3 * DAY_MS)];
        await writer.commit(
          DAYS.map((day) => sale(`e${day}`, day, 1)),
          { spans },
        );
        await writer.commit([sale('e0', 0, 2), sale('new', 1, 3)]);
        await sink.erase({ source: 'one', kind: 'customer', id: 'c-e1' });
        await sink.publishProgress({ source: 'one', stream: 'sales' });
        await sink.replaceLinks(await listing(place));
        await sink.prune?.(stream, 'one', NOON + DAY_MS);
      });
      expect(watched.seen).toBeGreaterThanOrEqual(9);
      expect(watched.open).toEqual([]);
      expect([...(await rowsOf(place, stream, 'one')).keys()].sort()).toEqual(['e1', 'e2', 'new']);
    } finally {
      await place.close();
    }
  });

  it('to Iceberg tables: commits, links, joins, erasure, retention', async () => {
    const place = await icebergS3Place(server);
    try {
      const writer = await createWriter(place, stream, 'one');
      const watched = await watchUploads(place, async () => {
        const sink = place.createSink(KEEP_NOTHING);
        await sink.prepare(stream);
        const spans = [certified(NOON, NOON + 3 * DAY_MS)];
        await writer.commit(
          DAYS.map((day) => sale(`e${day}`, day, 1)),
          { spans },
        );
        await writer.commit([sale('e0', 0, 2), sale('new', 1, 3)]);
        await sink.replaceLinks(await listing(place));
        await sink.maintain();
        await sink.erase({ source: 'one', kind: 'customer', id: 'c-e1' });
        await sink.publishProgress({ source: 'one', stream: 'sales' });
        await sink.prune?.(stream, 'one', Math.floor(NOON / DAY_MS) * DAY_MS + DAY_MS);
      });
      expect(watched.seen).toBeGreaterThanOrEqual(30);
      expect(watched.open).toEqual([]);
      expect([...(await rowsOf(place, stream, 'one')).keys()].sort()).toEqual(['e1', 'e2', 'new']);
    } finally {
      await place.close();
    }
  });
});

/** Runs `meanwhile` during the first request of this kind for a file with rows. */
function during(wanted: 'HEAD' | 'PUT', meanwhile: () => Promise<unknown>): void {
  let isFirst = true;
  server.hold = async ({ method, url }) => {
    if (method !== wanted || !url?.includes('.parquet') || !isFirst) return;
    isFirst = false;
    await meanwhile();
  };
}

describe.each([
  ['a lake', s3Place],
  ['Iceberg tables', icebergS3Place],
] as const)('an upload to %s', (_, createPlace) => {
  let place: Awaited<ReturnType<typeof s3Place>> | Awaited<ReturnType<typeof icebergS3Place>>;
  beforeAll(async () => {
    place = await createPlace(server);
    await place.createSink().prepare(stream);
  });
  afterEach(() => {
    server.hold = async () => {};
  });
  afterAll(() => place.close());

  it('delays a forget, and restores nothing that it erased', async () => {
    const writer = await createWriter(place, stream, 'forgetful');
    let forgetting: Promise<unknown> | undefined;
    let first = '';
    during('PUT', async () => {
      const deps = { state: place.state, sinks: [place.createSink()], holder: 'a test' };
      forgetting = forget(deps, { source: 'forgetful', kind: 'customer', id: 'c-e0' });
      first = await Promise.race([forgetting.then(() => 'forgotten'), sleep(700).then(() => 'waits')]);
    });
    await writer.commit([sale('e0', 0, 1)]);
    expect(Object.values((await forgetting) as object)).toContain(1);
    expect(first).toBe('waits');
    expect((await rowsOf(place, stream, 'forgetful')).get('e0')).toMatchObject({ customer_id: null });
  });

  it('may take longer than the timeout of its lock, which it renews', async () => {
    const writer = await createWriter(place, stream, 'slow');
    const held = `source = 'locked files' and expires_at > now()`;
    during('PUT', async () => {
      await place.state.query({
        text: `update tributary.leases set expires_at = now() + interval '15 s' where ${held}`,
      });
      const renewed = `select from tributary.leases where ${held} + interval '20 s'`;
      while ((await place.state.query({ text: renewed })).length === 0) await sleep(100);
    });
    await writer.commit([sale('e0', 0, 1)]);
    expect((await rowsOf(place, stream, 'slow')).size).toBe(1);
  });

  it('of a process that lost its lock is not recorded, and the next commit stores each event once', async () => {
    const writer = await createWriter(place, stream, 'late');
    await writer.commit([sale('e0', 0, 1)]);
    during('PUT', () =>
      place.state.query({
        text: `update tributary.leases set epoch = epoch + 1, expires_at = now() where source = 'locked files'`,
      }),
    );
    const spans = [certified(NOON, NOON + DAY_MS)];
    await expect(writer.commit([sale('e0', 0, 2), sale('e1', 0, 1)], { spans })).rejects.toThrow(/stopped for so long/);
    expect(await place.state.query({ text: `select from tributary.windows where source = 'late'` })).toEqual([]);
    await writer.commit([sale('e0', 0, 2), sale('e1', 1, 1)], { spans });
    const rows = await rowsOf(place, stream, 'late');
    expect([...rows].map(([id, row]) => [id, row.sale_amount])).toEqual(
      expect.arrayContaining([
        ['e0', 2],
        ['e1', 1],
      ]),
    );
    const [window] = await place.state.query({
      text: `select sum(rows)::int as rows from tributary.windows where source = 'late'`,
    });
    expect(window).toEqual({ rows: 1 });
  });
});

describe('a lake: a process that lost its lock', () => {
  let place: Awaited<ReturnType<typeof s3Place>>;
  const elsewhere: Database[] = [];
  beforeAll(async () => {
    place = await s3Place(server);
    await place.createSink().prepare(stream);
  });
  afterEach(async () => {
    server.hold = async () => {};
    for (const state of elsewhere.splice(0)) await state.close();
  });
  afterAll(() => place.close());

  /** Another process takes the lock, as if the holder had stopped, and commits a sale. */
  async function overtake(writer: Awaited<ReturnType<typeof createWriter>>, row: Row): Promise<void> {
    const state = connect({ url: place.stateUrl, name: 'another process' });
    elsewhere.push(state);
    await state.query({ text: `update tributary.leases set expires_at = now() where source = 'locked files'` });
    const store = createS3Store({ url: `s3://${server.bucket}/${place.prefix}`, pathStyle: true });
    const batch = await createParquetSink({ ...lakeOf(place), state, store }).open(stream);
    await batch.write([row]);
    await batch.commit(writer.advance());
  }

  it('between looking an event up and writing it duplicates nothing', async () => {
    const writer = await createWriter(place, stream, 'reading');
    await writer.commit([sale('e0', 0, 1)]);
    during('HEAD', () => overtake(writer, sale('e1', 0, 1)));
    await expect(writer.commit([sale('e1', 0, 1)])).rejects.toThrow(/stopped for so long/);
    expect([...(await rowsOf(place, stream, 'reading')).keys()].sort()).toEqual(['e0', 'e1']);
  });

  it('between two of its files does not write the second', async () => {
    const writer = await createWriter(place, stream, 'between');
    during('PUT', () => overtake(writer, sale('other', 2, 1)));
    await expect(writer.commit([sale('e0', 0, 1), sale('e1', 1, 1)])).rejects.toThrow(/stopped for so long/);
    expect([...(await rowsOf(place, stream, 'between')).keys()].sort()).toEqual(['e0', 'other']);
  });

  it('and uploads while the new holder does duplicates nothing', async () => {
    const writer = await createWriter(place, stream, 'both');
    await writer.commit([sale('e0', 0, 1)]);
    let [other, sent]: Promise<void>[] = [];
    let arrived = (): void => {};
    const otherSends = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    server.hold = async ({ method, url }) => {
      if (method !== 'PUT' || !url?.includes('/sales/')) return;
      if (!other) {
        other = overtake(writer, sale('other', 2, 1));
        await otherSends;
        sent = sleep(500);
      } else {
        arrived();
        await sent;
      }
    };
    await expect(writer.commit([sale('e1', 1, 1)])).rejects.toThrow(/stopped for so long/);
    await other;
    server.hold = async () => {};
    await writer.commit([sale('e1', 0, 1)]);
    expect([...(await rowsOf(place, stream, 'both')).keys()].sort()).toEqual(['e0', 'e1', 'other']);
  });

  it('during an upload duplicates nothing, even if an event in it returns with the time of another day', async () => {
    const writer = await createWriter(place, stream, 'sending');
    await writer.commit([sale('e0', 0, 1)]);
    during('PUT', () => overtake(writer, sale('other', 2, 1)));
    await expect(writer.commit([sale('e1', 1, 1)])).rejects.toThrow(/stopped for so long/);
    await writer.commit([sale('e1', 0, 1)]);
    expect([...(await rowsOf(place, stream, 'sending')).keys()].sort()).toEqual(['e0', 'e1', 'other']);
  });
});

async function listing({ state }: Awaited<ReturnType<typeof s3Place>> | Awaited<ReturnType<typeof icebergS3Place>>) {
  const { epoch } = await acquireLease(state, 'one', 'links', 'a test');
  const values = LINKS.columns.map(({ name, kind }) => (name === 'link_id' ? 'l1' : kind === 'text' ? 'x' : null));
  const row = { id: 'l1', at: NOON, values, extra: null, contradictions: [], typeMismatches: [] };
  const run = { source: 'one', runId: 'r', epoch, at: NOON, startedAt: NOON + MINUTE, isProven: true };
  return { ...run, rows: [row], keepHistory: false };
}
