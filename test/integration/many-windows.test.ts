import { expect, it } from 'vitest';
import { connect } from '../../src/cursor/database/index.ts';
import { readOverview } from '../../src/http/routes/overview.ts';
import { checkNewBackfills, enqueueBackfills } from '../../src/jobs/backfills.ts';
import { stateDatabase } from '../support/postgres.ts';

/** Backfills of several streams with so many windows in total, and a large ledger. */
it('the overview does not wait for 20,000 queued windows', async () => {
  const home = await stateDatabase();
  const db = connect({ url: home.url, max: 4 });
  await db.query({
    text: `
      insert into tributary.cursors (source, stream, sink, since, complete_through)
        select 'main', stream, sink, now() - interval '400 days', now()
        from unnest(array['clicks', 'leads', 'sales']) stream, unnest(array['warehouse', 'lake']) sink`,
  });
  await db.query({
    text: `
      insert into tributary.windows (source, stream, sink, start_at, end_at, state, rows, proven_at, run_id)
        select source, stream, sink, now() - make_interval(days => n + 1), now() - make_interval(days => n), 'certified', 9, now(), 'run'
        from tributary.cursors, generate_series(0, 399) n`,
  });
  await db.query({
    text: `
      insert into tributary.backfills (id, source, stream, start_at, end_at, force, state)
        select 'b' || n, 'main', (array['clicks', 'leads', 'sales'])[1 + n % 3], now() - interval '400 days', now(), true,
          case when n < 50 then 'queued' else 'done' end
        from generate_series(0, 99) n`,
  });
  await db.query({
    text: `
      insert into tributary.backfill_windows (backfill_id, start_at, end_at, state)
        select id, now() - make_interval(days => n + 1), now() - make_interval(days => n), case b.state when 'done' then 'done' else 'queued' end
        from tributary.backfills b, generate_series(0, 399) n`,
  });
  await db.query({ text: 'analyze' });
  const overview = () => readOverview({ state: db, streams: [], listings: [], version: '1' });
  expect((await overview()).activities).toHaveLength(50);
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const began = performance.now();
    await work();
    return performance.now() - began;
  };
  const count = {
    text: 'select count(*) from tributary.backfill_windows w join tributary.backfills b on b.id = w.backfill_id',
  };
  // Relative to counting the windows, to be independent of load: it was 350 times.
  const ratios: number[] = [];
  for (let i = 0; i < 7; i++) ratios.push((await timed(overview)) / (await timed(() => db.query(count))));
  // The median is about 4; with one query per backfill it is 11.
  expect(ratios.sort((a, b) => a - b)[3]).toBeLessThan(7);
  await expect(
    checkNewBackfills(db, [{ source: 'other', stream: 'clicks', window: { start: 0, end: 1 }, force: false }]),
  ).rejects.toThrow('20000 windows of other backfills are already waiting');
  await db.close();
  await home.drop();
});

it('adds one of several concurrent backfills of the same range, and none for a part of it', async () => {
  const home = await stateDatabase();
  const db = connect({ url: home.url, max: 5 });
  const queue = { flow: async () => {}, enqueue: async () => {}, promote: async () => {} };
  const window = { start: Date.UTC(2026, 0, 1), end: Date.UTC(2026, 0, 2) };
  const add = (asked = window, force = false) =>
    enqueueBackfills({ state: db, queue }, [
      { source: 'main', stream: 'clicks', window: asked, force, chunks: [asked] },
    ]);
  const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => add()));
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [String(outcome.reason)] : []));
  for (const reason of refused) expect(reason).toContain('already reads this range and has not ended');
  await expect(add({ ...window, end: window.end - 1 })).rejects.toThrow('already reads this range');
  // A larger range is another backfill, and so is a forced one of a certified range.
  await add({ ...window, end: window.end + 1 });
  await add(window, true);
  await expect(add()).rejects.toThrow('already reads this range');
  await db.close();
  await home.drop();
});
