import { withSyncApp } from '../../src/app/index.ts';
import type { Config } from '../../src/config/index.ts';
import { writeSchedules } from '../../src/cursor/schedules.ts';
import { runDueStream } from '../../src/jobs/run-job.ts';
import { byStreamKey, TIMINGS } from '../../src/jobs/schedule.ts';
import { silentLog } from '../../test/support/silent-log.ts';
import { withService } from '../service/start.ts';
import { configOf, sync } from '../support/engine.ts';
import { type Home, withHome } from '../support/home.ts';
import { burnt, median } from '../support/measure.ts';
import { type Report, ratio, type Section } from '../support/report.ts';

const ROWS = 10_000;
const FIRST_POLLS = 5;

/** (i) The cost of a poll without new rows, as a worker does it: most polls are of this kind. */
export const idle: Section = {
  title: 'An idle poll',
  run: (size) =>
    withHome((home) =>
      withService(ROWS, async ({ baseUrl, since }) => {
        const sinks = { warehouse: { type: 'postgres' } };
        const config = configOf({ url: home.url, baseUrl, since, source: 'main', sinks });
        await sync(config);
        return measure(home, config, size === 'quick' ? 20 : 500);
      }),
    ),
};

async function measure(home: Home, config: Config, polls: number): Promise<Report> {
  // Connections report their transactions when they close, so the first figure includes the cost of a process besides its polls.
  const few = await inProcess(home, config, FIRST_POLLS);
  const many = await inProcess(home, config, FIRST_POLLS + polls);
  const transactions = (many.transactions - few.transactions) / polls;
  const cpuMs = median(many.polls.slice(FIRST_POLLS).map((poll) => poll.cpuMs));
  const [rows, requests] = (['rows', 'requests'] as const).map((of) => Math.max(...many.polls.map((poll) => poll[of])));
  return {
    tables: [
      {
        head: ['polls', 'transactions', 'CPU here, ms, median', 'rows, most', 'requests, most'],
        rows: [[polls, ratio(transactions), ratio(cpuMs), rows ?? '?', requests ?? '?']],
      },
    ],
    bars: [
      { says: 'transactions of an idle poll', measured: transactions, most: 6 },
      { says: 'ms of CPU of an idle poll', measured: cpuMs, most: 15 },
      { says: 'rows of an idle poll', measured: rows ?? Number.NaN, most: 20 },
      { says: 'requests of an idle poll', measured: requests ?? Number.NaN, most: 1 },
    ],
  };
}

interface Poll {
  cpuMs: number;
  rows: number;
  requests: number;
}

/** Opens everything, polls, and closes everything. */
async function inProcess(
  { db }: Home,
  config: Config,
  number: number,
): Promise<{ transactions: number; polls: Poll[] }> {
  const before = await transactionsOf(db);
  const polls: Poll[] = [];
  await withSyncApp({ config, log: silentLog }, async ({ state, sinks, jobs }) => {
    const [job] = jobs;
    if (!job) throw new Error('a stream to poll');
    const { source, stream } = job;
    const plan = { job, schedule: 'every 1 ms from 0', maxLagMs: undefined, fingerprint: '' };
    await writeSchedules(state, [{ source, stream, plan: plan.schedule }]);
    const scheduled = byStreamKey([plan]);
    const deps = { state, sinks, log: silentLog, holder: 'bench', onProgress: () => {}, timings: TIMINGS, scheduled };
    for (let poll = 0; poll < number; poll++) {
      let report: Awaited<ReturnType<typeof runDueStream>>;
      const seconds = await burnt(async () => {
        report = await runDueStream(deps, job, new AbortController().signal);
      });
      if (report?.state !== 'done') throw report?.fault ?? new Error('a poll of the bench was not certified');
      polls.push({ cpuMs: seconds * 1000, rows: report.tally.read, requests: report.tally.requests });
    }
  });
  return { transactions: (await transactionsOf(db)) - before, polls };
}

async function transactionsOf(db: Home['db']): Promise<number> {
  const [found] = await db.query<{ n: number }>({
    text: 'select xact_commit + xact_rollback as n from pg_stat_database where datname = current_database()',
  });
  return found?.n ?? Number.NaN;
}
