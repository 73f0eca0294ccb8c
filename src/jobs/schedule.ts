import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { Cancelled, type Fault, RetryLater, StopStream } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import { HOUR_MS } from '../model/window.ts';
import type { AnyJob } from '../sync/job.ts';

/** When a stream is read: every so often, or at times of a calendar. The one home of cron-parser. */
type Schedule = { every: number } | { cron: string; timezone: string };

/** Loaded where there is a cron line: it brings a calendar of its own, and every command checks the config. */
const cronParser = (): typeof import('cron-parser').CronExpressionParser =>
  createRequire(import.meta.url)('cron-parser').CronExpressionParser;

/** Each stream has its own place in the minute, made from its name: not all of them run in the same second. */
export function scheduleText(schedule: Schedule, name: string): string {
  if ('cron' in schedule) return `cron ${schedule.cron} in ${schedule.timezone}`;
  return `every ${schedule.every} ms from ${placeOf(name) % schedule.every}`;
}

/** The first moment after the given one. Both the queue's scheduler and the state ask here, so they agree. */
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

export function periodOf(schedule: Schedule, now: Instant = Date.now()): number {
  if ('every' in schedule) return schedule.every;
  const text = scheduleText(schedule, '');
  const next = nextRun(text, now);
  return nextRun(text, next) - next;
}

/** What is wrong with a cron line, for the person who wrote it; undefined when nothing is. */
export function cronFault(cron: string, timezone: string): string | undefined {
  if (!isTimezone(timezone)) return undefined; // Said where the time zone is checked.
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

const placeOf = (name: string): number => createHash('sha256').update(name).digest().readUIntBE(0, 6);

export interface ScheduledStream {
  job: AnyJob;
  /** As `scheduleText` writes it. */
  schedule: string;
  /** How far behind it may be before an alert is sent. */
  maxLagMs: number | undefined;
  /** Changes with anything that the service could refuse: key, address, filters. Nobody can read them from it. */
  fingerprint: string;
}

export type ScheduledStreams = ReadonlyMap<string, ScheduledStream>;

export const streamKey = (source: string, stream: string): string => `${source}/${stream}`;

export const byStreamKey = (streams: readonly ScheduledStream[]): ScheduledStreams =>
  new Map(streams.map((each) => [streamKey(each.job.source, each.job.stream), each]));

export type Timings = Readonly<typeof TIMINGS>;

/** How often things are looked at. Tests look more often. */
export const TIMINGS = {
  /** How often due streams that the queue has lost are enqueued again. */
  tickMs: 5000,
  /** How often schedulers are restored and alerts are looked for. */
  watchMs: 30_000,
  /** When a stream whose run has gone silent is due again: a little longer than a lease. */
  recheckMs: 75_000,
  /** After this long without a renewal, a job goes to another worker. */
  lockMs: 30_000,
  /** After this long a run makes room for streams that wait, and goes on when it is due again. */
  sliceMs: 120_000,
  maintainMs: 300_000,
  /** How soon a window of a backfill asks again whether its stream is free. */
  busyMs: 15_000,
  /** A run that sends no request and commits nothing for so long is told to end. Longer than any pause that a service asks for. */
  hangMs: 20 * 60_000,
  graceMs: 60_000,
  /** How long runs have to end after SIGTERM: they are gone within 25 s, also with what comes after them. */
  closeMs: 20_000,
};

/** What follows from how a run ended, by the recovery that its fault stands for. Pure. */
type Consequence =
  /** At its next time. */
  | { kind: 'go on' }
  /** At once: it was interrupted, and nothing is wrong. */
  | { kind: 'resume' }
  /** Earlier than scheduled, if the schedule is a rare one; never later: pauses after a 429 are up to the limiter. */
  | { kind: 'retry'; afterMs: number }
  /** Asking again cannot help. Parks the whole source if its key was refused, else this stream. */
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

/** The key, its permissions or its plan: what every stream of the source needs. */
export const isKeyRefused = (fault: Fault): boolean =>
  fault instanceof StopStream && (fault.answer?.status === 401 || fault.answer?.status === 403);

const FIRST_PROBE_MS = 15 * 60_000;
const RAREST_PROBE_MS = 6 * HOUR_MS;

/** How long what is parked is left alone after so many probes: 15 min, 30 min, … 6 h. */
export const probeAfterMs = (probes: number): number =>
  Math.min(RAREST_PROBE_MS, FIRST_PROBE_MS * 2 ** Math.min(probes, 10));
