import { createHash } from 'node:crypto';
import { CronExpressionParser } from 'cron-parser';
import type { Instant } from '../model/instant.ts';

/** When a stream is read: every so often, or at times of a calendar. The one home of cron-parser. */
export type Schedule = { every: number } | { cron: string; timezone: string };

/**
 * A schedule as the queue keeps it and as the state compares it. Streams that run every minute do not all run in the same
 * second: each has its own place in the minute, the same in every process, made from its name.
 */
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
  const interval = CronExpressionParser.parse(cron[1] ?? '', { tz: cron[2] ?? 'UTC', currentDate: new Date(after) });
  return interval.next().getTime();
}

/** How long it is between two runs; of a calendar, between the next two. */
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
    CronExpressionParser.parse(cron, { tz: timezone }).next();
    return undefined;
  } catch {
    return 'is no cron line such as "0 6 * * *" (every day at six)';
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
