import { expect, it } from 'vitest';
import { insertBackfills } from '../../src/cursor/backfills.ts';
import { listBackfills } from '../../src/http/routes/backfills.ts';
import { type Extent, paceOf, readSyncsUnderWay } from '../../src/http/routes/under-way.ts';
import { DAY_MS, startOfDay } from '../../src/model/window.ts';
import { openEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';

/** How the control room shows a sync or a backfill while it reads, from the ledger that it writes. */

const engine = await forThisFile(openEngine());

const TODAY = startOfDay(Date.now());
const daysAgo = (days: number): string => new Date(TODAY - days * DAY_MS).toISOString();
const sql = (text: string, ...values: unknown[]) => engine.db.query({ text, values });

/** A stream that a process holds, with a cursor in each sink. */
async function held(source: string, sinks: readonly string[], since: string): Promise<void> {
  await sql(
    `insert into tributary.leases (source, stream, epoch, holder, expires_at) values ($1, 'clicks', 1, 'x', now() + interval '1 hour')`,
    source,
  );
  for (const sink of sinks)
    await sql(
      `insert into tributary.cursors (source, stream, sink, since) values ($1, 'clicks', $2, $3)`,
      source,
      sink,
      since,
    );
}

const run = (source: string, id: string, kind: string, secondsAgo: number) =>
  sql(
    `insert into tributary.runs (id, kind, source, stream, started_at) values ($1, $2, $3, 'clicks', now() - make_interval(secs => $4))`,
    ...[id, kind, source, secondsAgo],
  );

const proven = (source: string, sink: string, [from, to]: readonly [number, number], rows: number, runId: string) =>
  sql(
    `insert into tributary.windows (source, stream, sink, start_at, end_at, state, rows, run_id, read_at)
     values ($1, 'clicks', $2, $3, $4, 'certified', $5, $6, now())`,
    ...[source, sink, daysAgo(from), daysAgo(to), rows, runId],
  );

it('a first sync: its share of the time, according to the slowest sink', async () => {
  await held('first', ['warehouse', 'lake'], daysAgo(40));
  await run('first', 'first-1', 'sync', 100);
  const mine = async () => (await readSyncsUnderWay(engine.db)).filter(({ source }) => source === 'first');
  expect(await mine()).toMatchObject([{ kind: 'sync', id: 'first-1', progress: 0, rows: 0, etaSeconds: null }]);
  await proven('first', 'warehouse', [40, 10], 6000, 'first-1');
  await proven('first', 'lake', [40, 30], 2000, 'first-1');
  const [activity] = await mine();
  // Ten of a little more than forty days: today has begun.
  expect(activity?.progress).toBeGreaterThan(0.23);
  expect(activity?.progress).toBeLessThanOrEqual(0.25);
  expect(activity).toMatchObject({ rows: 2000, paused: false });
  expect(activity?.rowsPerSecond).toBeGreaterThan(15);
  expect(activity?.rowsPerSecond).toBeLessThanOrEqual(20);
  expect(activity?.etaSeconds).toBeGreaterThan(290);
});

it('a stream that catches up: its share of what it lacked; no figures for a poll, a dead run or a backfill', async () => {
  await held('later', ['warehouse'], daysAgo(100));
  await proven('later', 'warehouse', [100, 10], 90_000, 'before');
  await run('later', 'later-1', 'sync', 10);
  const [activity] = (await readSyncsUnderWay(engine.db)).filter(({ source }) => source === 'later');
  expect(activity).toMatchObject({ progress: 0, rows: 0 });
  await proven('later', 'warehouse', [10, 0], 10_000, 'before');
  const [poll] = (await readSyncsUnderWay(engine.db)).filter(({ source }) => source === 'later');
  expect(poll).toMatchObject({ progress: null, rows: null, rowsPerSecond: null, etaSeconds: null });
  await sql(`update tributary.leases set expires_at = now() - interval '1 s' where source = 'later'`);
  await held('other', ['warehouse'], daysAgo(100));
  await run('other', 'other-1', 'backfill', 10);
  const names = (await readSyncsUnderWay(engine.db)).map(({ source }) => source);
  expect(names).not.toContain('later');
  expect(names).not.toContain('other');
});

it('a backfill: by its priced rows, including the current window; by time without a price', async () => {
  await held('old', ['warehouse'], daysAgo(30));
  const window = { start: TODAY - 60 * DAY_MS, end: TODAY - 40 * DAY_MS };
  const chunks = [
    { start: window.start, end: TODAY - 50 * DAY_MS },
    { start: TODAY - 50 * DAY_MS, end: window.end },
  ];
  const of = { source: 'old', stream: 'clicks', window, force: false, chunks } as const;
  await insertBackfills(engine.db, [
    { ...of, id: 'priced', pricedRows: 10_000 },
    { ...of, id: 'unpriced' },
  ]);
  const read = async (id: string) => (await listBackfills(engine.db, id))[0];
  expect(await read('priced')).toMatchObject({ progress: 0, rows: 0, rowsPerSecond: null, etaSeconds: null });
  await run('old', 'old-1', 'backfill', 50);
  await sql(`update tributary.runs set started_at = now() where id = 'old-1'`);
  await sql(
    `update tributary.backfill_windows set state = 'running', claimed_until = now() + interval '1 minute'
     where backfill_id in ('priced', 'unpriced') and start_at = $1`,
    new Date(window.start).toISOString(),
  );
  expect(await read('priced')).toMatchObject({ progress: 0, rows: 0, running: true });
  expect(await read('unpriced')).toMatchObject({ progress: 0, rows: 0, running: true });
  // Half of the first window, a quarter of the time, and a tenth of the rows.
  await proven('old', 'warehouse', [60, 55], 1000, 'old-1');
  expect(await read('priced')).toMatchObject({ progress: 0.1, rows: 1000, running: true });
  expect(await read('unpriced')).toMatchObject({ progress: 0.25, rows: 1000 });
  expect((await read('priced'))?.etaSeconds).not.toBeNull();
  await sql(`update tributary.backfills set state = 'paused' where id = 'priced'`);
  expect(await read('priced')).toMatchObject({ progress: 0.1, rowsPerSecond: null, etaSeconds: null });
});

it('progress never goes back, and reaches 100% only at the end, however wrong the price was', () => {
  for (const pricedRows of [null, 0, 1, 500, 10_000, 1e9]) {
    let before = -1;
    for (let day = 0; day <= 20; day++) {
      // Most rows are in the last days.
      const rows = Math.round(10_000 * (day / 20) ** 4);
      const extent: Extent = { doneMs: day, openMs: 20 - day, rows, pricedRows, seconds: day };
      const { progress, etaSeconds } = paceOf(extent);
      expect(progress).toBeGreaterThanOrEqual(before);
      if (day < 20) expect(progress).toBeLessThan(1);
      if (etaSeconds !== null) expect(Number.isFinite(etaSeconds)).toBe(true);
      before = progress;
    }
    expect(before).toBe(1);
  }
});
