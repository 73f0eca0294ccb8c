import {
  type BackendClasses,
  createPostgresBackend,
  createRedisBackend,
  DelayedError,
  type IQueueBackend,
  type Job,
  type Queue,
  type Worker,
  withBackend,
} from 'bullmq';
import { Client } from '../cursor/database/connection.ts';
import { addressOf, databaseFault } from '../cursor/database/errors.ts';
import { isBehindPooler } from '../cursor/database/index.ts';
import { ConfigError, Fault } from '../model/errors.ts';
import type { Log } from '../model/log.ts';
import type { QueuedJob } from './payloads.ts';
import { checkRedis, openConsumer, openProducer, redisFault, redisPlace } from './redis.ts';
import { nextRun } from './schedule.ts';

/** The only module that imports BullMQ. Offers the same operations on Redis and on Postgres. */
export type JobQueue = Awaited<ReturnType<typeof createQueue>>;

/** Backfills have their own queue and workers, so that a sync starts at once however many backfill windows wait. */
type QueueName = 'sync' | 'backfill';
export type BullQueue = Queue;

interface Scheduled {
  job: QueuedJob;
  /** As `scheduleText` writes it. */
  schedule: string;
}

interface WorkOptions {
  concurrency: number;
  /** A job whose worker does not renew it for this long goes to another worker. */
  lockMs: number;
  /** Returns for how long to delay the job, or undefined when it is done. */
  handle(data: unknown): Promise<number | undefined>;
}

interface QueueOptions {
  /** Redis, or undefined for the state database. */
  url: string | undefined;
  /** Must point to the state database directly, not to a pooler. */
  stateUrl: string;
  log: Log;
}

const QUEUES = ['sync', 'backfill'] as const;
const SCHEMA = 'tributary_queue';
const PREFIX = 'tributary';
/** Finished jobs are removed: the `runs` table has the outcome. */
const ONCE = { removeOnComplete: true, removeOnFail: true } as const;

export async function createQueue({ url, stateUrl, log }: QueueOptions) {
  await (url === undefined ? checkDirect(stateUrl) : checkRedis(url));
  const backend = url === undefined ? onPostgres(stateUrl) : onRedis(url);
  const { Queue, Worker, FlowProducer } = backend.classes;
  const settings = {
    repeatStrategy: (after: number, { pattern }: { pattern?: string }) => nextRun(pattern ?? '', after),
  };
  const onError = createErrorLogger(log, backend.place);

  const producer = { connection: backend.produce(), prefix: PREFIX };
  const queues = {
    sync: new Queue('sync', { ...producer, settings }),
    backfill: new Queue('backfill', producer),
  };
  const flows = new FlowProducer(producer);
  const workers: Worker[] = [];
  // Attached before the first await: an `error` event without a listener ends the process.
  flows.on('error', onError);
  for (const queue of QUEUES) queues[queue].on('error', onError);
  const close = async (): Promise<void> => {
    // Workers that are already closing are not awaited again: their jobs may have been given up.
    await Promise.all(workers.filter(({ closing }) => !closing).map((worker) => worker.close()));
    await flows.close();
    for (const queue of QUEUES) await queues[queue].close();
    backend.disconnect();
  };
  try {
    for (const queue of QUEUES) await queues[queue].waitUntilReady();
  } catch (error) {
    // Recovery: none. Open connections would keep the process alive, so they are closed first.
    await close();
    throw backend.fault(error);
  }
  const optionsOf = ({ id }: QueuedJob) => ({ ...ONCE, jobId: id });
  /** Turns driver errors of an unavailable server into faults: an outage is not a bug. */
  const withFault =
    <A extends unknown[], T>(operation: (...args: A) => Promise<T>) =>
    (...args: A): Promise<T> =>
      operation(...args).catch((error: unknown) => {
        throw backend.fault(error);
      });

  return {
    place: backend.place,
    queues: queues as unknown as Readonly<Record<QueueName, BullQueue>>,
    enqueue: withFault(async (queue: QueueName, job: QueuedJob): Promise<void> => {
      await queues[queue].add(job.name, job.data, optionsOf(job));
    }),
    /** Creates and updates schedulers. Those that are up to date are not touched, so that their next job keeps its time. */
    schedule: withFault(async (wanted: readonly Scheduled[], { removeOthers }: { removeOthers: boolean }) => {
      const known = new Map((await queues.sync.getJobSchedulers()).map(({ key, pattern }) => [key, pattern]));
      for (const { job, schedule } of wanted) {
        if (known.get(job.id) === schedule) continue;
        const template = { name: job.name, data: job.data, opts: ONCE };
        try {
          await queues.sync.upsertJobScheduler(job.id, { pattern: schedule }, template);
        } catch (error) {
          // Recovery: another worker that started at the same time created the same scheduler first; nothing is left to do.
          const made = await queues.sync.getJobScheduler(job.id);
          if (made?.pattern !== schedule) throw error;
        }
      }
      if (!removeOthers) return;
      const wantedIds = new Set(wanted.map(({ job }) => job.id));
      for (const id of known.keys()) if (!wantedIds.has(id)) await queues.sync.removeJobScheduler(id);
    }),
    /** Adds a parent with its children. The parent runs once all children are done. */
    flow: withFault(async (parent: QueuedJob, children: readonly QueuedJob[]): Promise<void> => {
      const queueName = 'backfill';
      await flows.add({
        name: parent.name,
        queueName,
        data: parent.data,
        opts: optionsOf(parent),
        children: children.map((job) => ({ name: job.name, queueName, data: job.data, opts: optionsOf(job) })),
      });
    }),
    /** Ends the delay of a backfill job. */
    promote: withFault(async (id: string) => {
      const job = await queues.backfill.getJob(id);
      if (await job?.isDelayed()) await job?.promote();
    }),
    /** The number of jobs that are ready to run and wait for a free worker. */
    waiting: withFault((queue: QueueName): Promise<number> => queues[queue].getWaitingCount()),
    async work(queue: QueueName, { handle, concurrency, lockMs }: WorkOptions): Promise<Worker> {
      const worker: Worker = new Worker(
        queue,
        async (job: Job, token?: string) => {
          const delayMs = await handle(job.data);
          if (delayMs === undefined) return;
          await job.moveToDelayed(Date.now() + delayMs, token);
          throw new DelayedError();
        },
        {
          connection: backend.consume(),
          prefix: PREFIX,
          concurrency,
          settings,
          lockDuration: lockMs,
          stalledInterval: lockMs,
          // Stalls mean that the worker process died, not that the job is bad: the state decides what is due.
          maxStalledCount: 1000,
          // Delay before reconnecting to Redis or Postgres after they restart.
          runRetryDelay: 1000,
          skipVersionCheck: true,
        },
      ) as unknown as Worker;
      worker.on('error', onError);
      // Errors that a handler does not catch would otherwise disappear with the job.
      worker.on('failed', (job, error) => {
        const fault = backend.fault(error);
        if (fault instanceof Fault)
          log.warn({ queue, job: job?.name, reason: fault.message }, 'a job failed; it is enqueued again when due');
        else log.error({ queue, job: job?.name, err: error }, 'a bug ended this job');
      });
      workers.push(worker);
      await withFault(() => worker.waitUntilReady())();
      return worker;
    },
    close,
  };
}

type Backend = ReturnType<typeof onRedis>;

function onRedis(url: string) {
  const open: Array<() => void> = [];
  const keep = (redis: ReturnType<typeof openProducer>): unknown => {
    // Without a listener, ioredis prints every lost connection; the queue's own listener already logs it.
    redis.on('error', () => {});
    open.push(() => redis.disconnect());
    return redis;
  };
  return {
    place: redisPlace(url),
    classes: withBackend(createRedisBackend) as unknown as BackendClasses<IQueueBackend, unknown>,
    /** Returns a connection, or the options to open one. */
    produce: (): unknown => keep(openProducer(url)),
    consume: (): unknown => keep(openConsumer(url)),
    /** Closes all connections, including those that still try to reconnect: they would keep the process alive. */
    disconnect: () => {
      for (const disconnect of open) disconnect();
    },
    fault: (error: unknown): unknown => redisFault(error, redisPlace(url)),
  };
}

/** Workers wake up on LISTEN, which does not work through a pooler: jobs would start late. */
export async function checkDirect(stateUrl: string): Promise<void> {
  if (!(await isBehindPooler(stateUrl))) return;
  throw new ConfigError('the state database is behind a connection pooler, which the queue cannot use', {
    kept: 'everything; no job was added or taken',
    next: 'set state.directUrl to the database itself, for the queue alone, or queue.url to a Redis',
  });
}

/** BullMQ only sends short queries: if one takes longer than this, including the wait for its small pool, the connection is dead. */
const SILENCE_MS = 60_000;

/** BullMQ has its own small pool, so that LISTEN and its short queries do not wait behind our commits. */
function onPostgres(url: string): Backend {
  const connection = {
    connectionString: url,
    schema: SCHEMA,
    migrate: true,
    max: 2,
    application_name: 'tributary queue',
    connectionTimeoutMillis: SILENCE_MS,
    query_timeout: SILENCE_MS,
  };
  return {
    place: 'the state database',
    classes: withBackend(createGuardedBackend) as unknown as Backend['classes'],
    produce: () => connection,
    consume: () => connection,
    disconnect: () => {},
    fault: (error) => databaseFault(error, addressOf(url)),
  };
}

/** Makes BullMQ use our `Client`, which protects the password: its pool via the settings, its LISTEN client via `pgModule`. */
export const createGuardedBackend: typeof createPostgresBackend = (
  name,
  { connection: settings, ...rest },
  options,
) => {
  const backend = createPostgresBackend(name, { ...rest, connection: Object.assign({ Client }, settings) }, options);
  const { connection } = backend as unknown as { connection: { pgModule: unknown } };
  if (!('pgModule' in connection)) throw new Error('this version of BullMQ makes its LISTEN client in another way');
  connection.pgModule = { Client };
  return backend;
};

/** Logs an outage once, not at every attempt to reconnect. */
function createErrorLogger(log: Log, place: string): (error: Error) => void {
  let last = '';
  return (error) => {
    const reason = ('code' in error && typeof error.code === 'string' ? error.code : '') || error.message;
    if (reason === last) return;
    last = reason;
    setTimeout(() => {
      last = '';
    }, 30_000).unref();
    log.warn({ place, reason }, 'the queue reported an error; due streams are queued again when it is available');
  };
}
