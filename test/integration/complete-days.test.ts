import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { STREAM_NAMES } from '../../src/model/streams.ts';
import { DAY_MS, startOfDay } from '../../src/model/window.ts';
import { backfill, configFor, type Engine, openEngine, sourceOf, statesOf, syncAllDone } from '../support/engine.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { sandboxWith } from '../support/sandbox.ts';

/** Which days are complete enough for a report, and which events arrived after a day was. */

describe.each([
  ['the database of the state', false],
  ['another database', true],
])('days in %s', (_name, isElsewhere) => {
  let state: Engine;
  let warehouse: Engine;
  let sandbox: Sandbox;
  let config: ReturnType<typeof configFor>;
  const today = startOfDay(Date.now());
  const dayAgo = (days: number): string => new Date(today - days * DAY_MS).toISOString().slice(0, 10);

  beforeAll(async () => {
    state = await openEngine();
    warehouse = isElsewhere ? await openEngine() : state;
    sandbox = await sandboxWith(['unknownFields'], { rows: { clicks: 400, leads: 80, sales: 40 }, days: 13 });
    // Eight days ago at 18:00: only six hours of that day are read.
    const since = new Date(today - 8 * DAY_MS + 18 * 3_600_000).toISOString();
    config = configFor(state, sandbox, { since, ...(isElsewhere && { sinkUrl: warehouse.url }) });
    await syncAllDone(config);
    const window = { start: today - 12 * DAY_MS, end: today - 10 * DAY_MS };
    expect(statesOf(await backfill(config, { window }))).toEqual(['done', 'done', 'done']);
  });
  afterAll(async () => {
    await state.close();
    if (isElsewhere) await warehouse.close();
  });

  const read = <T>(text: string) =>
    warehouse.db.query<T & Record<string, unknown>>({ text, values: [sourceOf(config)] });

  it('are complete from midnight to midnight, both synced and backfilled', async () => {
    for (const stream of STREAM_NAMES) {
      const days = await read<{ date: string; rows: number; counted: number }>(
        `select date::text, rows, (select count(*) from attribution.${stream} e
            where e._source = d.source and (e."timestamp" at time zone 'UTC')::date = d.date) as counted
          from attribution.complete_days d where source = $1 and stream = '${stream}' and date < '${dayAgo(0)}' order by 1`,
      );
      expect(days.map(({ date }) => date)).toEqual([12, 11, 7, 6, 5, 4, 3, 2, 1].map(dayAgo));
      expect(days.map(({ rows }) => rows)).toEqual(days.map(({ counted }) => counted));
      expect(days.some(({ rows }) => rows > 0)).toBe(true);
    }
  });

  it.each(['performance', 'revenue'])(
    'is_complete of daily_link_%s means all of the day, in every stream',
    async (view) => {
      const days = await read<{ date: string; is_complete: boolean }>(
        `select distinct date::text, is_complete from attribution.daily_link_${view} where source = $1 and date < '${dayAgo(0)}' order by 1`,
      );
      expect(days.length).toBeGreaterThan(view === 'performance' ? 9 : 3);
      const complete = [12, 11, 7, 6, 5, 4, 3, 2, 1].map(dayAgo);
      for (const { date, is_complete } of days) expect([date, is_complete]).toEqual([date, complete.includes(date)]);
      if (view === 'performance') expect(days.map(({ date }) => date)).toContain(dayAgo(8));
    },
  );

  it('are not complete if one stream is not', async () => {
    const { db } = state;
    const feed = `where source = $1 and stream = 'sales' and start_at < '${dayAgo(10)}'`;
    const values = [sourceOf(config)];
    const gone = await db.query({ text: `delete from tributary.windows ${feed} returning *`, values });
    if (isElsewhere) await syncAllDone(config);
    const at = `select bool_or(is_complete) as is from attribution.daily_link_performance where source = $1 and date < '${dayAgo(10)}'`;
    expect(await read(at)).toEqual([{ is: false }]);
    await db.query({
      text: `insert into tributary.windows select * from jsonb_populate_recordset(null::tributary.windows, $1)`,
      values: [JSON.stringify(gone)],
    });
    await syncAllDone(config);
    expect(await read(at)).toEqual([{ is: true }]);
  });

  it('distinguish late events from those of a first sync or a backfill', async () => {
    const count = (arrival: string) =>
      read<{ n: number }>(
        `select count(*)::int as n from attribution.events where source = $1 and arrival = '${arrival}'`,
      );
    expect(await count('late')).toEqual([{ n: 0 }]);
    const [before] = await count('backfilled');
    expect(before?.n).toBeGreaterThan(200);
    const from = today - 5.5 * DAY_MS;
    const ids = sandbox.service.arrive('leads', 3, { from, to: from + 3_600_000 });
    const window = { start: today - 6 * DAY_MS, end: today - 5 * DAY_MS };
    await backfill(config, { window, force: true }, { streams: ['leads'] });
    const late = await read<{ event_id: string }>(
      `select event_id, event, date::text from attribution.events where source = $1 and arrival = 'late' order by 1`,
    );
    expect(late).toEqual([...ids].sort().map((event_id) => ({ event_id, event: 'lead', date: dayAgo(6) })));
    expect(await count('backfilled')).toEqual([before]);
  });

  it('list new columns of the tables, newest first', async () => {
    const shown = await warehouse.db.query<Record<string, unknown>>({
      text: 'select stream, column_name, type, field, source from attribution.new_columns',
    });
    const log = await state.db.query<Record<string, unknown>>({
      text: 'select stream, name, path, source from tributary.columns order by id desc',
    });
    expect(log.length).toBeGreaterThan(2);
    expect(
      shown.map(({ stream, column_name, field, source }) => ({ stream, name: column_name, path: field, source })),
    ).toEqual(log);
    const types = await warehouse.db.query<{ type: string }>({
      text: `select distinct format_type(a.atttypid, -1) = case n.type when 'timestamptz' then 'timestamp with time zone' else n.type end as is
        from attribution.new_columns n join pg_attribute a on a.attrelid = ('attribution.' || n.stream)::regclass and a.attname = n.column_name`,
    });
    expect(types).toEqual([{ is: true }]);
  });
});
