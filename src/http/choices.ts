import { type Instant, parseDate, toIso } from '../model/instant.ts';
import type { StreamName } from '../model/streams.ts';
import { DAY_MS, startOfDay, type Window } from '../model/window.ts';
import type { Sink } from '../sinks/sink.ts';
import type { StreamJob } from '../sync/job.ts';
import type { ConfiguredStream } from './dependencies.ts';
import { HttpError } from './http-error.ts';

/** What somebody chose: streams, sinks, dates. What is left open means all of it; what is not there is refused, not passed over. */

export function chooseStreams(
  streams: readonly ConfiguredStream[],
  { source, streams: wanted = [] }: { source?: string | undefined; streams?: readonly StreamName[] | undefined },
): ConfiguredStream[] {
  const sources = [...new Set(streams.map((one) => one.source))];
  if (source !== undefined && !sources.includes(source))
    throw new HttpError(404, 'there is no such source in the config', { next: `use one of: ${sources.join(', ')}` });
  const chosen = streams.filter(
    (one) => (source === undefined || one.source === source) && (wanted.length === 0 || wanted.includes(one.stream)),
  );
  const idle = wanted.filter((stream) => !chosen.some((one) => one.stream === stream));
  if (idle.length > 0)
    throw new HttpError(404, `${idle.join(', ')} is not synced here`, {
      next: 'choose among the streams of the config',
    });
  return chosen;
}

/** What is doubtful about the filters of these streams. */
export const warningsOf = (streams: ReadonlyArray<{ job: StreamJob }>): string[] =>
  streams.flatMap(({ job }) => job.warnings);

/** One sink by its name, or all of them. */
export function chooseSinks(sinks: readonly Sink[], only: string | undefined): readonly Sink[] {
  const chosen = sinks.filter(({ name }) => name === (only ?? name));
  if (chosen.length > 0) return chosen;
  throw new HttpError(404, 'there is no such sink in the config', {
    next: `use one of: ${sinks.map(({ name }) => name).join(', ')}`,
  });
}

/** `from` and `to`, each with what it is when nobody said. */
export function chooseWindow(
  { from, to }: { from?: string | undefined; to?: string | undefined },
  usual: Window = { start: 0, end: 0 },
  now: Instant = Date.now(),
): Window {
  const window = {
    start: from === undefined ? usual.start : chooseDate('from', from, now),
    end: to === undefined ? usual.end : chooseDate('to', to, now),
  };
  if (window.start < window.end) return window;
  throw new HttpError(409, `from (${toIso(window.start)}) is not before to (${toIso(window.end)})`, {
    next: 'to is exclusive: for one day, give the next day as to',
  });
}

export function chooseDate(name: string, value: string, now: Instant = Date.now()): Instant {
  const instant = parseDate(value, now);
  if (instant !== undefined) return instant;
  throw new HttpError(409, `${name} is no date`, {
    next: 'write 2026-11-01, 2026-11-01T10:00Z, 7d (that long ago) or now; dates are UTC',
  });
}

export const isoDay = (at: Instant): string => toIso(startOfDay(at)).slice(0, 10);

/** The day after the last one that has a part in it. */
export const endOfDays = (end: Instant): Instant => startOfDay(end - 1) + DAY_MS;

export const isoOrNull = (at: Instant | null | undefined): string | null =>
  at === null || at === undefined ? null : toIso(at);

/** What cannot be undone is asked for with its name said twice, as people type it again: a slip of one field destroys nothing. */
export function checkConfirmed(given: string, name: string): void {
  if (given === name) return;
  throw new HttpError(409, 'confirm is not the name of the source', {
    kept: 'everything; nothing was changed',
    next: 'give the name of the source in confirm too',
  });
}
