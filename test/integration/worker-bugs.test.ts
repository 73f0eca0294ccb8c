import { beforeEach, describe, expect, it } from 'vitest';
import { withSyncApp } from '../../src/app/index.ts';
import { scheduledStreamsOf } from '../../src/app/worker.ts';
import { type Backfill, enqueueBackfills, readBackfills } from '../../src/jobs/backfills.ts';
import { createQueue, type JobQueue } from '../../src/jobs/bull.ts';
import { recordWorkerTrouble } from '../../src/jobs/incidents.ts';
import type { ScheduledStream } from '../../src/jobs/schedule.ts';
import { runWorker } from '../../src/jobs/worker.ts';
import { DAY_MS, startOfDay } from '../../src/model/window.ts';
import type { Sink } from '../../src/sinks/sink.ts';
import { backfillStream } from '../../src/sync/backfill/backfill-stream.ts';
import type { StreamJob } from '../../src/sync/job.ts';
import { windowsOf } from '../support/backfills.ts';
import { openEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';
import { FAST, until, workerConfig } from '../support/workers.ts';

/** How a worker handles unknown errors, and work that never ends. */

const TODAY = startOfDay(Date.now());
const CHUNKS = [3, 2, 1].map((days) => ({ start: TODAY - days * DAY_MS, end: TODAY - (days - 1) * DAY_MS }));
const WINDOW = { start: TODAY - 3 * DAY_MS, end: TODAY };

type Fault = 'throws' | 'throws before its run' | 'hangs' | undefined;
const never = (): Promise<never> => new Promise(() => {});

const [{ db, url }, sandbox] = await Promise.all([
  forThisFile(openEngine()),
  smallSandbox({ rows: { clicks: 200 }, days: 4 }),
]);
const config = workerConfig({ stateUrl: url, queueUrl: undefined, sandboxes: { main: sandbox }, streams: ['clicks'] });
for (const source of Object.values(config.sources)) source.since = new Date(TODAY).toISOString().slice(0, 10);
/** The current fault of syncs and windows. */
const faults: { sync: Fault; window: Fault } = { sync: undefined, window: undefined };
const errors: Array<{ text: string; err?: unknown }> = [];
const bugs: string[] = [];

beforeEach(() => {
  errors.length = 0;
  bugs.length = 0;
  Object.assign(workerFaults, { maintenance: undefined, schedulers: undefined });
});

/** A job with an injected fault: a correct program has no bugs to test with. */
const faulty = ({ job, ...rest }: ScheduledStream): ScheduledStream => ({
  ...rest,
  job: withFault(job as StreamJob, () => faults.sync),
});
const withFault = (job: StreamJob, fault: () => Fault): StreamJob => ({
  ...job,
  requests() {
    if (fault() === 'throws before its run') throw new TypeError('requests of undefined');
    return job.requests();
  },
  async findSince(known, signal) {
    if (fault() === 'throws') throw new TypeError('since of undefined');
    return fault() === 'hangs' ? never() : job.findSince(known, signal);
  },
});

/** A sink with faulty maintenance, and a queue with faulty calls: the worker's work other than runs. */
const workerFaults: { maintenance: Fault; schedulers: Fault } = { maintenance: undefined, schedulers: undefined };
const inject = async (fault: Fault): Promise<void> => {
  if (fault === 'throws') throw new TypeError('length of undefined');
  if (fault === 'hangs') await never();
};
const maintained = (sink: Sink): Sink => ({
  ...sink,
  maintain: () => inject(workerFaults.maintenance).then(() => ({})),
});
const scheduling = (queue: JobQueue): JobQueue => ({
  ...queue,
  schedule: (...args) => inject(workerFaults.schedulers).then(() => queue.schedule(...args)),
});

async function withWorker(work: (queue: JobQueue) => Promise<void>): Promise<void> {
  const log = { ...silentLog, error: (fields: object, text: string) => void errors.push({ ...fields, text }) };
  const stop = new AbortController();
  await withSyncApp({ config, log }, async (app) => {
    const queue = await createQueue({ url: undefined, stateUrl: url, log });
    const worker = runWorker({
      ...app,
      log,
      queue: scheduling(queue),
      sinks: app.sinks.map(maintained),
      signal: stop.signal,
      holder: 'worker of a test',
      backfillHolder: 'backfills of a test',
      scheduled: scheduledStreamsOf(config, app).map(faulty),
      webhook: undefined,
      retentionMs: DAY_MS,
      readWindow: (deps, job, request) =>
        backfillStream(
          deps,
          withFault(job, () => faults.window),
          request,
        ),
      onBug: ({ source, stream }) => void bugs.push(`${source}/${stream}`),
      timings: { ...FAST, hangMs: 1500, graceMs: 300, closeMs: 500, maintainMs: 200 },
    });
    try {
      await work(queue);
    } finally {
      stop.abort();
      await worker;
      await queue.close();
    }
  });
}

const troubles = async (): Promise<string[]> =>
  (
    await db.query<{ said: string }>({
      text: `select kind || ': ' || message as said from tributary.incidents where closed_at is null order by id`,
    })
  ).map(({ said }) => said);
const isDone = async (): Promise<boolean> =>
  (
    await db.query<{ state: string }>({
      text: `select state from tributary.runs where kind in ('sync', 're-sweep') and finished_at is not null order by started_at desc limit 1`,
    })
  )[0]?.state === 'done';
async function add(queue: JobQueue): Promise<string> {
  const request = { source: 'main', stream: 'clicks', window: WINDOW, force: true, chunks: CHUNKS } as const;
  return (await enqueueBackfills({ state: db, queue }, [request]))[0] ?? '';
}
const read = async (id: string): Promise<Backfill> => (await readBackfills(db, id))[0] as Backfill;

describe.each<Exclude<Fault, undefined>>(['throws', 'throws before its run', 'hangs'])('a sync that %s', (fault) => {
  it('is logged, counted, an incident and an alert, and recovers when its cause is gone', async () => {
    faults.sync = fault;
    await withWorker(async () => {
      await until('it is an incident', async () => (await troubles()).length > 0);
      expect(await troubles()).toEqual([
        'failing: the last run failed: a bug in tributary ended it; the log says more',
      ]);
      await until('it is alerted', () => errors.some(({ text }) => text.startsWith('main/clicks failing')));
      expect(errors.filter(({ text }) => text === 'a bug ended this run').map(({ err }) => err)[0]).toBeInstanceOf(
        Error,
      );
      expect(bugs[0]).toBe('main/clicks');
      faults.sync = undefined;
      await until('it works again', isDone);
      await until('the incident is over', async () => (await troubles()).length === 0);
    });
  });
});

describe.each<Exclude<Fault, undefined>>(['throws', 'throws before its run', 'hangs'])('a window that %s', (fault) => {
  it('is logged and retried: its claim ends, and the others are read', async () => {
    await withWorker(async (queue) => {
      faults.window = fault;
      const id = await add(queue);
      await until('a bug was seen', () => bugs.length > 0);
      faults.window = undefined;
      await until('it is read', async () => (await read(id)).state === 'done');
      expect(errors.filter(({ text }) => text === 'a bug ended this run').length).toBe(bugs.length);
      const windows = await windowsOf(db, id);
      expect(windows.map(({ state }) => state)).toEqual(['done', 'done', 'done']);
      expect(Math.max(...windows.map(({ tries }) => tries))).toBeGreaterThan(1);
    });
  });
});

describe.each(['maintenance', 'schedulers'] as const)('the worker’s own work (%s)', (part) => {
  const what = { maintenance: 'the maintenance of sink "warehouse"', schedulers: 'looking after the schedulers' }[part];
  it.each(['throws', 'hangs'] as const)(
    'that %s is logged, an incident and an alert, and recovers when it works again',
    async (fault) => {
      await withWorker(async () => {
        workerFaults[part] = fault;
        const isTrouble = async () => (await troubles()).includes(`failing: a bug ended ${what}; the log says more`);
        await until('it is an incident', isTrouble);
        await until('it is alerted', () => errors.some(({ text }) => text.startsWith('worker failing: ')));
        const bug = errors.find(({ text }) => text === `a bug ended ${what}; it is tried again`);
        expect(String(bug?.err)).toContain(fault === 'hangs' ? 'no sign of life' : 'length of undefined');
        workerFaults[part] = undefined;
        await until('the incident is over', async () => !(await isTrouble()));
      });
    },
  );
});

it('the incident of a dead worker ends when another starts', async () => {
  await recordWorkerTrouble(db, 'a bug ended something');
  const isTrouble = async () => (await troubles()).includes('failing: a bug ended something');
  expect(await isTrouble()).toBe(true);
  await withWorker(async () => until('it is over', async () => !(await isTrouble())));
});

it('windows that throw every time are given up, as an incident', async () => {
  await withWorker(async (queue) => {
    faults.window = 'throws';
    const id = await add(queue);
    await until('it has failed', async () => (await read(id)).state === 'failed');
    expect((await read(id)).windows).toEqual({ queued: 0, running: 0, done: 0, failed: 3 });
    await until('it is an incident', async () => (await troubles()).length > 0);
    expect(await troubles()).toEqual([expect.stringMatching(`^failing: backfill ${id} gave up windows: a bug`)]);
    faults.window = undefined;
  });
});
