import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { Cancelled, type Fault, RetryLater, StopStream } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import { HOUR_MS } from '../model/window.ts';
import type { AnyJob } from '../sync/job.ts';

/** When a stream is read: at a fixed interval or by a cron expression. Only this module imports cron-parser. */
type Schedule = { every: number } | { cron: string; timezone: string };

/** Loaded only for cron expressions: the package brings its own date library, and every command checks the config. */
const cronParser = (): typeof import('cron-parser').CronExpressionParser =>
  createRequire(import.meta.url)('cron-parser').CronExpressionParser;

/** The offset is a hash of the stream's name, so that streams do not all run in the same second. */
export function scheduleText(schedule: Schedule, name: string): string {
  if ('cron' in schedule) return `cron ${schedule.cron} in ${schedule.timezone}`;
  return `every ${schedule.every} ms from ${hashOf(name) % schedule.every}`;
}

/** The first scheduled time after `after`. Both the queue's schedulers and the state use this, so they agree. */
export function nextRun(text: string, after: Instant): Instant {
  const every = /^every (\d+) ms from (\d+)$/.exec(text);
  if (every) {
    const [period, offset] = [Number(every[1]), Number(every[2])];
    return (Math.floor((after - offset) / period) + 1) * period + offset;
  }
  const cron = /^cron (.*) in (\S+)$/.exec(text);
  if (!cron) throw new Error(`no schedule: ${text}`);
  const interval = cronParser().parse(cron[1] ?? '', { tz: cron[2] ?? 'UTC', currentDate: new Date(after) });
  return interval.next().getTime();
}

export function periodOf(schedule: Schedule): number {
  if ('every' in schedule) return schedule.every;
  const text = scheduleText(schedule, '');
  const next = nextRun(text, Date.now());
  return nextRun(text, next) - next;
}

/** What is wrong with a cron expression, for an error message; undefined if it is valid. */
export function cronFault(cron: string, timezone: string): string | undefined {
  if (!isTimezone(timezone)) return undefined; // Reported by the check of the time zone.
  if (cron.trim().split(/\s+/).length !== 5) return 'must have five fields: minute, hour, day, month and weekday';
  try {
    cronParser().parse(cron, { tz: timezone }).next();
    return undefined;
  } catch {
    return 'is not a valid cron expression, such as "0 6 * * *" (every day at six)';
  }
}

export function isTimezone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

const hashOf = (name: string): number => createHash('sha256').update(name).digest().readUIntBE(0, 6);

export interface ScheduledStream {
  job: AnyJob;
  /** As `scheduleText` writes it. */
  schedule: string;
  /** The lag above which an alert is sent. */
  maxLagMs: number | undefined;
  /** A hash of everything that the service could refuse: key, address, filters. They cannot be recovered from it. */
  fingerprint: string;
}

export type ScheduledStreams = ReadonlyMap<string, ScheduledStream>;

export const streamKey = (source: string, stream: string): string => `${source}/${stream}`;

export const byStreamKey = (streams: readonly ScheduledStream[]): ScheduledStreams =>
  new Map(streams.map((each) => [streamKey(each.job.source, each.job.stream), each]));

export type Timings = Readonly<typeof TIMINGS>;

/** Intervals and limits of the worker. Tests use shorter ones. */
export const TIMINGS = {
  /** How often due streams whose jobs the queue has lost are enqueued again. */
  tickMs: 5000,
  /** How often schedulers are restored and alerts are sent. */
  watchMs: 30_000,
  /** When a stream is due again if its worker dies during the run: slightly longer than a lease. */
  recheckMs: 75_000,
  /** After this long without a renewal, a job goes to another worker. */
  lockMs: 30_000,
  /** After this long a run yields to waiting streams, and continues when it is due again. */
  sliceMs: 120_000,
  maintainMs: 300_000,
  /** How soon a backfill window checks again whether its stream is free. */
  busyMs: 15_000,
  /** A run that sends no request and commits nothing for this long is aborted. Longer than any pause that a service asks for. */
  hangMs: 20 * 60_000,
  graceMs: 60_000,
  /** How long runs may take to end after SIGTERM: the whole shutdown, with the cleanup after them, takes at most 25 s. */
  closeMs: 20_000,
};

/** What to do after a run, according to the fault that ended it. Pure. */
type Consequence =
  /** Runs at its next scheduled time. */
  | { kind: 'go on' }
  /** Runs at once: it was interrupted, and nothing is wrong. */
  | { kind: 'resume' }
  /** Runs earlier than scheduled if the interval is long, never later: pauses after a 429 are the limiter's job. */
  | { kind: 'retry'; afterMs: number }
  /** Retrying cannot help. Parks the whole source if its key was refused, else only this stream. */
  | { kind: 'park'; whole: boolean; fault: StopStream };

const FIRST_RETRY_MS = 30_000;
const LONGEST_RETRY_MS = 15 * 60_000;

export function consequenceOf(fault: Fault | undefined, failures: number): Consequence {
  if (!fault) return { kind: 'go on' };
  if (fault instanceof Cancelled) return { kind: 'resume' };
  if (fault instanceof StopStream) return { kind: 'park', whole: isKeyRefused(fault), fault };
  const asked = fault instanceof RetryLater ? (fault.afterMs ?? 0) : 0;
  const afterMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures, 10));
  return { kind: 'retry', afterMs: Math.max(asked, afterMs) };
}

/** The service refused the key, its permissions or its plan, which all streams of the source depend on. */
export const isKeyRefused = (fault: Fault): boolean =>
  fault instanceof StopStream && (fault.answer?.status === 401 || fault.answer?.status === 403);

const FIRST_PROBE_MS = 15 * 60_000;
const RAREST_PROBE_MS = 6 * HOUR_MS;

/** The delay before the next probe of a parked stream, after this many probes: 15 min, 30 min, … 6 h. */
export const probeAfterMs = (probes: number): number =>
  Math.min(RAREST_PROBE_MS, FIRST_PROBE_MS * 2 ** Math.min(probes, 10));
