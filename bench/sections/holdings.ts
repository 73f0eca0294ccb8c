import { withSyncApp } from '../../src/app/index.ts';
import type { Config } from '../../src/config/index.ts';
import type { Queryable } from '../../src/cursor/database/index.ts';
import { type Attestation, certifiedBefore } from '../../src/cursor/holdings/attestations.ts';
import { STREAMS } from '../../src/model/streams.ts';
import type { Window } from '../../src/model/window.ts';
import { abilityOf, type Sink } from '../../src/sinks/sink.ts';
import { countOn } from '../../src/sync/holdings/count.ts';
import { silentLog } from '../../test/support/silent-log.ts';
import { withService } from '../service/start.ts';
import { configOf, sync } from '../support/engine.ts';
import { withHome } from '../support/home.ts';
import { median, timed } from '../support/measure.ts';
import { serverCpuSeconds, serverOf } from '../support/proc.ts';
import { count, type Report, ratio, type Section } from '../support/report.ts';

/** (j) The cost of checks on a large table: its identity at every poll, its row counts spread over the polls of a day. */
export const holdings: Section = {
  title: 'Asking a sink what it holds',
  run: (size) =>
    withHome(({ db, url }) =>
      withService(TEMPLATE, async ({ baseUrl, since }) => {
        const config = configOf({ url, baseUrl, since, source: SOURCE, sinks: { warehouse: { type: 'postgres' } } });
        await sync(config);
        return measure(db, config, size === 'quick' ? 100_000 : 10_000_000);
      }),
    ),
};

const SOURCE = 'main';
const TEMPLATE = 1000;
const DAYS = 400;

async function measure(db: Queryable, config: Config, rows: number): Promise<Report> {
  await multiply(db, rows / TEMPLATE);
  return withSyncApp({ config, log: silentLog }, async ({ state, sinks: [sink] }) => {
    if (!sink) throw new Error('a sink to ask');
    const feed = { source: SOURCE, stream: 'clicks', sink: sink.name } as const;
    const windows = (before: number | undefined) => certifiedBefore(state, feed, { before, most: 400 });
    const identify: number[] = [];
    for (let i = 0; i < 50; i++) identify.push(await msOf(() => abilityOf(sink, 'identify')(state, feed, undefined)));
    const all = await windows(undefined);
    const looked = await msOf(() => abilityOf(sink, 'glance')(STREAMS.clicks, SOURCE, all));
    const [backend] = await db.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' });
    const server = serverOf(backend?.pid);
    const before = serverCpuSeconds(server);
    const polls = await countAll(sink, windows);
    const cpuMs = ((serverCpuSeconds(server) - before) * 1000) / polls.length;
    return {
      tables: [
        {
          head: [
            'rows',
            'identity, ms',
            'first look at a replaced table, ms',
            'polls of a count',
            'CPU of Postgres a poll, ms',
            'a poll, ms, median',
          ],
          rows: [
            [count(rows), ratio(median(identify)), ratio(looked), polls.length, ratio(cpuMs), ratio(median(polls))],
          ],
        },
      ],
      bars: [{ says: 'ms of Postgres of a poll that counts', measured: cpuMs, most: 50 }],
    };
  });
}

const msOf = async (work: () => Promise<unknown>): Promise<number> => (await timed(work)) * 1000;

/** In sequence, as runs do. */
async function countAll(
  sink: Sink,
  windows: (before: number | undefined) => ReturnType<typeof certifiedBefore>,
): Promise<number[]> {
  const ask = (asked: readonly Window[]) => abilityOf(sink, 'attest')(STREAMS.clicks, SOURCE, asked);
  const polls: number[] = [];
  let next: Attestation['next'];
  do {
    polls.push(
      await msOf(async () => {
        const counted = await countOn(ask, { windows, from: next, rows: sink.countedRows ?? 0 });
        if (counted.suspects.length > 0) throw new Error('the bench filled the table, and the count differs');
        next = counted.next;
      }),
    );
  } while (next);
  return polls;
}

/** Copies the rows of a sync so many times, spread over more than a year, with ledger entries. */
async function multiply(db: Queryable, times: number): Promise<void> {
  const columns = await db.query<{ name: string }>({
    text: `select quote_ident(column_name) as name from information_schema.columns where table_schema = 'attribution' and table_name = 'clicks' order by ordinal_position`,
  });
  const names = columns.map(({ name }) => name);
  const start = `date_trunc('day', now()) - interval '${DAYS} days'`;
  const apart = `(interval '${DAYS} days' / ${times * TEMPLATE})`;
  const copied = (name: string): string => {
    if (name === 'event_id') return `c.event_id || '-' || n`;
    return name === '"timestamp"' ? `${start} + ${apart} * (n * ${TEMPLATE} + place)` : `c.${name}`;
  };
  await db.query({
    text: 'create table attribution.template as select *, row_number() over () - 1 as place from attribution.clicks',
  });
  await db.query({ text: 'truncate attribution.clicks' });
  // In steps, each far below a statement's time limit.
  const step = 100;
  for (let from = 0; from < times; from += step)
    await db.query({
      text: `
        insert into attribution.clicks (${names}) select ${names.map(copied)}
        from generate_series(${from}, ${Math.min(times, from + step) - 1}) n, attribution.template c order by n, place`,
    });
  await db.query({ text: 'vacuum analyze attribution.clicks' });
  await db.query({ text: `delete from tributary.windows` });
  await db.query({
    text: `
      insert into tributary.windows (source, stream, sink, start_at, end_at, state, rows, read_at, proven_at, run_id)
      select '${SOURCE}', 'clicks', 'warehouse', day, day + interval '1 day', 'certified', count(*), now(), now(), 'bench'
      from (select date_trunc('day', "timestamp") as day from attribution.clicks) d group by day`,
  });
}
