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
import { leadsThroughPooler } from '../cursor/database/index.ts';
import { ConfigError, Fault } from '../model/errors.ts';
import type { Log } from '../model/log.ts';
import type { QueuedJob } from './payloads.ts';
import { checkRedis, openConsumer, openProducer, redisFault, redisPlace } from './redis.ts';
import { nextRun } from './schedule.ts';

/** The one home of BullMQ: the same few verbs on Redis and on Postgres. */
export type JobQueue = Awaited<ReturnType<typeof createQueue>>;

/** Backfills have a queue and workers of their own: however many wait, a sync is taken up at once. */
type QueueName = 'sync' | 'backfill';
export type BullQueue = Queue;

interface Scheduled {
  job: QueuedJob;
  /** As `scheduleText` writes it. */
  schedule: string;
}

interface WorkOptions {
  concurrency: number;
  /** A job whose worker is silent for so long is given to another. */
  lockMs: number;
  /** Returns how long to put the job off, or nothing when it is through. */
  handle(data: unknown): Promise<number | undefined>;
}

interface QueueOptions {
  /** Redis, or undefined for the state database. */
  url: string | undefined;
  /** To the state database itself, not to a pooler before it. */
  stateUrl: string;
  log: Log;
}

const QUEUES = ['sync', 'backfill'] as const;
const SCHEMA = 'tributary_queue';
const PREFIX = 'tributary';
/** Finished jobs are removed: the outcome is in the `runs` table. */
const ONCE = { removeOnComplete: true, removeOnFail: true } as const;

export async function createQueue({ url, stateUrl, log }: QueueOptions) {
  await (url === undefined ? checkDirect(stateUrl) : checkRedis(url));
  const home = url === undefined ? onPostgres(stateUrl) : onRedis(url);
  const { Queue, Worker, FlowProducer } = home.classes;
  const settings = {
    repeatStrategy: (after: number, { pattern }: { pattern?: string }) => nextRun(pattern ?? '', after),
  };
  const listen = complain(log, home.place);

  const producer = { connection: home.produce(), prefix: PREFIX };
  const queues = {
    sync: new Queue('sync', { ...producer, settings }),
    backfill: new Queue('backfill', producer),
  };
  const flows = new FlowProducer(producer);
  const workers: Worker[] = [];
  // All of them before any is waited for: an error that nobody listens to ends the process.
  flows.on('error', listen);
  for (const queue of QUEUES) queues[queue].on('error', listen);
  const close = async (): Promise<void> => {
    // One that was told to close is not waited for again: its jobs may have been given up.
    await Promise.all(workers.filter(({ closing }) => !closing).map((worker) => worker.close()));
    await flows.close();
    for (const queue of QUEUES) await queues[queue].close();
    home.leave();
  };
  try {
    for (const queue of QUEUES) await queues[queue].waitUntilReady();
  } catch (error) {
    // Recovery: none here. What is open would keep the process from ending.
    await close();
    throw home.fault(error);
  }
  const optionsOf = ({ id }: QueuedJob) => ({ ...ONCE, jobId: id });
  /** A server that is away is no bug, whatever its driver throws. */
  const withFault =
    <A extends unknown[], T>(verb: (...args: A) => Promise<T>) =>
    (...args: A): Promise<T> =>
      verb(...args).catch((error: unknown) => {
        throw home.fault(error);
      });

  return {
    place: home.place,
    queues: queues as unknown as Readonly<Record<QueueName, BullQueue>>,
    enqueue: withFault(async (queue: QueueName, job: QueuedJob): Promise<void> => {
      await queues[queue].add(job.name, job.data, optionsOf(job));
    }),
    /** Brings the schedulers to what is wanted. Those that are right are left alone: their next job stays where it is. */
    schedule: withFault(async (wanted: readonly Scheduled[], { removeOthers }: { removeOthers: boolean }) => {
      const known = new Map((await queues.sync.getJobSchedulers()).map(({ key, pattern }) => [key, pattern]));
      for (const { job, schedule } of wanted) {
        if (known.get(job.id) === schedule) continue;
        const template = { name: job.name, data: job.data, opts: ONCE };
        try {
          await queues.sync.upsertJobScheduler(job.id, { pattern: schedule }, template);
        } catch (error) {
          // Recovery: of workers that start in the same moment one is first, and the others need nothing more.
          const made = await queues.sync.getJobScheduler(job.id);
          if (made?.pattern !== schedule) throw error;
        }
      }
      if (!removeOthers) return;
      const wantedIds = new Set(wanted.map(({ job }) => job.id));
      for (const id of known.keys()) if (!wantedIds.has(id)) await queues.sync.removeJobScheduler(id);
    }),
    /** A parent with children: it comes up when they are all through. */
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
    promote: withFault(async (queue: QueueName, id: string) => {
      const job = await queues[queue].getJob(id);
      if (await job?.isDelayed()) await job?.promote();
    }),
    /** Jobs that could be taken up now, if somebody were free. */
    waiting: withFault((queue: QueueName): Promise<number> => queues[queue].getWaitingCount()),
    async work(queue: QueueName, { handle, concurrency, lockMs }: WorkOptions): Promise<Worker> {
      const worker: Worker = new Worker(
        queue,
        async (job: Job, token?: string) => {
          const putOff = await handle(job.data);
          if (putOff === undefined) return;
          await job.moveToDelayed(Date.now() + putOff, token);
          throw new DelayedError();
        },
        {
          connection: home.consume(),
          prefix: PREFIX,
          concurrency,
          settings,
          lockDuration: lockMs,
          stalledInterval: lockMs,
          // A job is not at fault when its process dies again and again: the state decides what is due.
          maxStalledCount: 1000,
          // How soon to look for Redis or Postgres again after a restart of theirs.
          runRetryDelay: 1000,
          skipVersionCheck: true,
        },
      ) as unknown as Worker;
      worker.on('error', listen);
      // The last net: whatever a handler lets through would be gone with its job.
      worker.on('failed', (job, error) => {
        const fault = home.fault(error);
        if (fault instanceof Fault)
          log.warn({ queue, job: job?.name, reason: fault.message }, 'a job failed; it comes again');
        else log.error({ queue, job: job?.name, err: error }, 'a bug ended this job');
      });
      workers.push(worker);
      await withFault(() => worker.waitUntilReady())();
      return worker;
    },
    close,
  };
}

type Home = ReturnType<typeof onRedis>;

function onRedis(url: string) {
  const open: Array<() => void> = [];
  const keep = (redis: ReturnType<typeof openProducer>): unknown => {
    // Without a listener every lost connection would be printed; the queue's own listener tells of it.
    redis.on('error', () => {});
    open.push(() => redis.disconnect());
    return redis;
  };
  return {
    place: redisPlace(url),
    classes: withBackend(createRedisBackend) as unknown as BackendClasses<IQueueBackend, unknown>,
    /** Connections, or what they are made from. */
    produce: (): unknown => keep(openProducer(url)),
    consume: (): unknown => keep(openConsumer(url)),
    /** Closes them all, also those that a worker waits for in vain: they would keep the process from ending. */
    leave: () => {
      for (const disconnect of open) disconnect();
    },
    fault: (error: unknown): unknown => redisFault(error, redisPlace(url)),
  };
}

/** LISTEN wakes the workers, and a pooler swallows it: jobs would wait for a long time. */
export async function checkDirect(stateUrl: string): Promise<void> {
  if (!(await leadsThroughPooler(stateUrl))) return;
  throw new ConfigError('the state database is behind a connection pooler, which the queue cannot use', {
    kept: 'everything; no job was added or taken',
    next: 'set state.directUrl to the database itself, for the queue alone, or queue.url to a Redis',
  });
}

/** BullMQ sends only short queries: without an answer for this long, waiting for its small pool included, the connection is dead. */
const SILENCE_MS = 60_000;

/** BullMQ opens its own few connections: its LISTEN and its short queries shall not wait behind our commits. */
function onPostgres(url: string): Home {
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
    classes: withBackend(createGuardedBackend) as unknown as Home['classes'],
    produce: () => connection,
    consume: () => connection,
    leave: () => {},
    fault: (error) => databaseFault(error, addressOf(url)),
  };
}

/** Our client does not answer a stranger. The pool takes it from its settings, LISTEN from the module it has loaded. */
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

/** Logs once that a server is away, not at every attempt to reconnect. */
function complain(log: Log, place: string): (error: Error) => void {
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
