import { setTimeout as sleep } from 'node:timers/promises';
import type { Database, Queryable } from '../cursor/database/index.ts';
import { sql } from '../cursor/database/sql.ts';
import type { JobQueue } from '../jobs/bull.ts';
import { Fault, type Finding } from '../model/errors.ts';
import type { Flatten } from '../model/flatten.ts';
import { type Instant, toIso } from '../model/instant.ts';
import type { Log } from '../model/log.ts';
import type { StreamName } from '../model/streams.ts';
import { DAY_MS, describeInstant, parseDate, startOfDay, type Window } from '../model/window.ts';
import type { Sink } from '../sinks/sink.ts';
import type { StreamJob } from '../sync/job.ts';
import { HttpError, listOf, named, z } from './answers.ts';

/** The servers that the control room needs: the state in Postgres, and the queue in Redis or Postgres. */
export const Readiness = named('Readiness', {
  ready: z.boolean(),
  parts: listOf({
    part: z.enum(['state', 'queue']),
    name: z.string(),
    ok: z.boolean(),
    message: z.string().nullable(),
  }),
});
export type Readiness = z.infer<typeof Readiness>;
type Part = Readiness['parts'][number]['part'];

/** After this long, the dependency is pinged to distinguish slow work from a hang. Both together take less than two seconds. */
const SLOW_MS = 500;
const ANSWER_WITHIN_MS = 1000;

/** `probe` has its own connection, because all others may be waiting for a response that never comes. */
export function createDependencies({ probe, queue }: { probe: Queryable; queue: JobQueue }) {
  const probes: Readonly<Record<Part, () => Promise<unknown>>> = {
    state: () => probe.query(sql`select 1`),
    queue: () => queue.waiting('sync'),
  };
  const places: Readonly<Record<Part, string>> = { state: 'Postgres, the state', queue: `the queue (${queue.place})` };
  const running = new Map<Part, Promise<string | null>>();

  /** Callers share one probe, so that probes of a server that hangs do not pile up. */
  const faultOf = (part: Part): Promise<string | null> => {
    const probe = running.get(part) ?? faultIn(probes[part]).finally(() => running.delete(part));
    running.set(part, probe);
    return probe;
  };
  /** Throws a 503 that names the dependency if it does not answer. */
  const check = async (part: Part): Promise<void> => {
    const fault = await faultOf(part);
    if (fault !== null) throw unavailable(places[part], fault);
  };

  return {
    /** Whether both respond. Streams do not count: a parked stream must not remove this pod from its Kubernetes Service. */
    async readiness(): Promise<Readiness> {
      const parts = await Promise.all(
        (['state', 'queue'] as const).map(async (part) => {
          const message = await faultOf(part);
          return { part, name: part, ok: message === null, message };
        }),
      );
      return { ready: parts.every(({ ok }) => ok), parts };
    },
    check,
    /** Settles like `work`, or throws a 503 that names the dependency that stopped responding meanwhile. */
    async watch<T>(work: Promise<T>, parts: readonly Part[] = ['state', 'queue']): Promise<T> {
      // The loser of the race may still reject later; without a handler that would end the process.
      work.catch(() => {});
      const done = new AbortController();
      const checkRepeatedly = async (): Promise<never> => {
        for (;;) {
          await idle(SLOW_MS, done.signal);
          await Promise.all(parts.map(check));
        }
      };
      const watching = checkRepeatedly();
      watching.catch(() => {});
      try {
        return await Promise.race([work, watching]);
      } finally {
        done.abort();
      }
    },
  };
}

const unavailable = (place: string, why: string): HttpError =>
  new HttpError(503, `${place} is unavailable: ${why}`, {
    kept: 'the request may have been carried out in part',
    next: 'it is retried automatically; see /readyz',
    retryAfter: 5,
  });

/** Why a probe failed, or null. */
function faultIn(probe: () => Promise<unknown>): Promise<string | null> {
  const settled = new AbortController();
  const late = idle(ANSWER_WITHIN_MS, settled.signal).then(
    () => 'it does not answer',
    () => null,
  );
  // Recovery: a failed probe means that the dependency is down.
  const asked = probe().then(
    () => null,
    (error: unknown) => (error instanceof Fault ? error.message : 'it cannot be reached'),
  );
  return Promise.race([asked, late]).finally(() => settled.abort());
}

const STEP_MS = 100;

/** Waits in steps: while this process is busy, responses wait in the socket, and must not count as missing. */
async function idle(ms: number, signal: AbortSignal): Promise<void> {
  for (let waited = 0; waited < ms; waited += STEP_MS) await sleep(STEP_MS, undefined, { signal });
}

/** What the control room reads, and what it can start. */
export interface ControlDeps {
  /** A separate pool: views must not wait for syncs, nor make syncs wait. */
  state: Database;
  queue: JobQueue;
  dependencies: ReturnType<typeof createDependencies>;
  sinks: readonly Sink[];
  streams: readonly ConfiguredStream[];
  listings: ReadonlyArray<{ source: string; stream: 'links'; maxLagMs: number | undefined }>;
  /** The API keys, each identified by its sources, never by the key. */
  keys: ReadonlyArray<{ hash: string; sources: readonly string[] }>;
  /** The tables for figures of links; undefined if the config has no Postgres sink. */
  warehouse: { name: string; db: Database; schema: string } | undefined;
  /** A stream with additional filters, on the budget that all requests of its key share. */
  narrow(of: Pick<StreamJob, 'source' | 'stream'>, filters: Readonly<Record<string, string>>): StreamJob;
  examine(signal: AbortSignal): Promise<Finding[]>;
  config: object;
  log: Log;
  version: string;
  signal: AbortSignal;
}

interface ConfiguredStream extends Pick<StreamJob, 'source' | 'stream'> {
  job: StreamJob;
  /** Converts records to rows under the current config. */
  flatten: Flatten;
  maxLagMs: number | undefined;
}

type Chosen<Name> = { source?: string | undefined; streams?: readonly Name[] | undefined };

/** The streams that a request chose. An omitted choice means all; an unknown name is refused, not skipped. */
export function chooseStreams(
  streams: readonly ConfiguredStream[],
  { source, streams: wanted = [] }: Chosen<StreamName>,
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

/** The streams that a request chose, as the audit trail names them. */
export const targetOf = ({ source = '*', streams = ['*'] }: Chosen<string>): string =>
  streams.map((name) => `${source}/${name}`).join(', ');

export const warningsOf = (streams: ReadonlyArray<{ job: StreamJob }>): string[] =>
  streams.flatMap(({ job }) => job.warnings);

export function chooseSinks(sinks: readonly Sink[], only: string | undefined): readonly Sink[] {
  const chosen = sinks.filter(({ name }) => name === (only ?? name));
  if (chosen.length > 0) return chosen;
  throw new HttpError(404, 'there is no such sink in the config', {
    next: `use one of: ${sinks.map(({ name }) => name).join(', ')}`,
  });
}

/** `from` and `to`, each with its default. */
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
  const [first, last] = [describeInstant(window.start), describeInstant(window.end)];
  throw new HttpError(409, `from (${first}) is not before to (${last})`, {
    next: 'to is exclusive: for one day, give the next day as to',
  });
}

export function chooseDate(name: string, value: string, now: Instant = Date.now()): Instant {
  const instant = parseDate(value, now);
  if (instant !== undefined) return instant;
  throw new HttpError(409, `${name} is not a date`, {
    next: 'write 2026-11-01, 2026-11-01T10:00Z, 7d (that long ago) or now; dates are UTC',
  });
}

export const isOr = (wanted: string | undefined, is: string): boolean => wanted === undefined || wanted === is;

export const isoDay = (at: Instant): string => toIso(startOfDay(at)).slice(0, 10);

/** The day after the last day that the range touches. */
export const endOfDays = (end: Instant): Instant => startOfDay(end - 1) + DAY_MS;

/** An irreversible request must name its target twice, so that one wrong field destroys nothing. */
export function checkConfirmed(given: string, name: string): void {
  if (given === name) return;
  throw new HttpError(409, 'confirm is not the name of the source', {
    kept: 'everything; nothing was changed',
    next: 'repeat the name of the source in confirm',
  });
}
