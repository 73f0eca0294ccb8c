import { expect, it } from 'vitest';
import { withSyncApp } from '../../src/app/index.ts';
import type { Config } from '../../src/config/index.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { forget } from '../../src/sync/maintain/forget.ts';
import { moveCursor, resetCursor } from '../../src/sync/maintain/move-cursor.ts';
import { repairStream } from '../../src/sync/maintain/verify-job.ts';
import { configFor, openEngine, sourceOf, syncAllDone } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { silentLog } from '../support/silent-log.ts';
import { counts, TODAY, tenDays, verify, withJob } from '../support/verifying.ts';

/** `tributary.windows.rows` is the number of rows of that window in the sink, after any change. */

const engine = await forThisFile(openEngine());

const sql = <T>(config: Config, text: string): Promise<T[]> =>
  engine.db.query<T & Record<string, unknown>>({ text, values: [sourceOf(config)] });

/** The windows of every stream that disagree with the tables. */
async function wrong(config: Config): Promise<object[]> {
  const each = ['clicks', 'leads', 'sales'].map(
    (stream) => `
    select w.stream, w.start_at, w.end_at, w.rows as ledger, count(t.*)::int as sink
    from tributary.windows w left join attribution.${stream} t
      on t._source = w.source and t."timestamp" >= w.start_at and t."timestamp" < w.end_at
    where w.source = $1 and w.stream = '${stream}' group by 1, 2, 3, 4 having w.rows <> count(t.*)`,
  );
  return sql(config, each.join(' union all '));
}

it('after a first sync, late arrivals, a reset, a moved cursor and a forgotten click', async () => {
  const sandbox = await tenDays();
  const config = configFor(engine, sandbox);
  await syncAllDone(config);
  expect(await wrong(config)).toEqual([]);
  const [all] = await sql<{ n: number }>(config, 'select sum(rows)::int as n from tributary.windows where source = $1');
  expect(all?.n).toBeGreaterThan(1500);

  for (const days of [0.001, 1, 4]) {
    sandbox.service.arrive('clicks', 7, { from: Date.now() - days * DAY_MS, to: Date.now() - days * DAY_MS + 1000 });
  }
  await syncAllDone(config);
  expect(await wrong(config)).toEqual([]);

  await withSyncApp({ config, log: silentLog }, async ({ state, sinks }) => {
    const deps = { state, sinks, holder: 'test' };
    const feed = { source: sourceOf(config), sink: sinks[0]?.name ?? '' };
    await resetCursor(deps, { ...feed, stream: 'leads' });
    await moveCursor(deps, { ...feed, stream: 'clicks' }, { to: TODAY - 3.3 * DAY_MS, force: false });
    expect(await wrong(config)).toEqual([]);
    const [click] = await sql<{ id: string }>(
      config,
      'select event_id as id from attribution.clicks where _source = $1 limit 1',
    );
    await forget(deps, { source: feed.source, kind: 'click', id: click?.id ?? '' });
    expect(await wrong(config)).toEqual([]);
  });
  await syncAllDone(config);
  expect(await wrong(config)).toEqual([]);
});

it('has a window for each day with rows, and thus the rows of each day', async () => {
  const config = configFor(engine, await tenDays());
  await syncAllDone(config);
  const across = await sql(
    config,
    `select start_at, end_at, rows from tributary.windows where source = $1 and state = 'certified' and rows > 0
       and date_trunc('day', start_at, 'UTC') <> date_trunc('day', end_at - interval '1 microsecond', 'UTC')`,
  );
  expect(across).toEqual([]);
});

it('verify reports where the ledger and the sink disagree, and a repair corrects the ledger', async () => {
  const sandbox = await tenDays();
  const config = configFor(engine, sandbox);
  await syncAllDone(config);
  expect((await verify(config)).sinks[0]?.miscounted).toEqual([]);
  const [changed] = await sql<{ start: Date }>(
    config,
    `update tributary.windows set rows = rows + 79 where (source, stream, start_at) in (
       select source, stream, start_at from tributary.windows where source = $1 and stream = 'clicks' and rows > 0 limit 1)
     returning start_at as start`,
  );
  // A deleted row: it is read again, and counts once.
  await sql(
    config,
    `delete from attribution.clicks where _source = $1 and "timestamp" >= '${new Date(TODAY - 5 * DAY_MS).toISOString()}'
       and event_id = (select max(event_id) from attribution.clicks where _source = $1 and "timestamp" >= '${new Date(TODAY - 5 * DAY_MS).toISOString()}')`,
  );
  const result = await verify(config);
  const miscounted = result.sinks[0]?.miscounted ?? [];
  expect(miscounted).toContainEqual(expect.objectContaining({ start: changed?.start.getTime() }));
  const off = miscounted.map(({ ledger, sink }) => ledger - sink).sort((a, b) => a - b);
  expect([[1, 79], [80]]).toContainEqual(off);
  const { after } = await withJob(config, 'clicks', (deps, job) => repairStream(deps, job, result));
  expect(after && [counts(after), after.sinks[0]?.miscounted]).toEqual([
    { events: 1300, missing: 0, extra: 0, different: 0 },
    [],
  ]);
  expect(await wrong(config)).toEqual([]);
});
