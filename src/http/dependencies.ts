import { setTimeout as sleep } from 'node:timers/promises';
import type { Database, Queryable } from '../cursor/database/index.ts';
import type { JobQueue } from '../jobs/bull.ts';
import { Fault, type Finding } from '../model/errors.ts';
import type { Flatten } from '../model/flatten.ts';
import type { Log } from '../model/log.ts';
import type { StreamName } from '../model/streams.ts';
import type { Sink } from '../sinks/sink.ts';
import type { StreamJob } from '../sync/job.ts';
import { HttpError } from './http-error.ts';
import { flag, list, named, object, oneOf, orNull, text, type z } from './shapes.ts';

/** What the control room cannot do without: the state in Postgres, and the queue in Redis or Postgres. */
export const Readiness = named(
  'Readiness',
  object({
    ready: flag,
    parts: list(object({ part: oneOf(['state', 'queue']), name: text, ok: flag, message: orNull(text) })),
  }),
);
export type Readiness = z.infer<typeof Readiness>;
type Part = Readiness['parts'][number]['part'];

export interface Dependencies {
  /** Whether both answer. Streams are no part of it: one that is parked must not take the server out of its Service. */
  readiness(): Promise<Readiness>;
  /** Throws a 503 with its name where it does not answer. */
  check(part: Part): Promise<void>;
  /** Settles as `work` does, or throws a 503 with the name of the dependency that stopped answering meanwhile. */
  watch<T>(work: Promise<T>, parts?: readonly Part[]): Promise<T>;
}

/** Work that takes longer than this is slow, or its dependency hangs: then that is asked. Both together stay within two seconds. */
const SLOW_MS = 500;
const ANSWER_WITHIN_MS = 1000;

/** `probe` has a connection of its own: the others may all be waiting for an answer that never comes. */
export function createDependencies({ probe, queue }: { probe: Queryable; queue: JobQueue }): Dependencies {
  const asks: Readonly<Record<Part, () => Promise<unknown>>> = {
    state: () => probe.query({ text: 'select 1' }),
    queue: () => queue.waiting('sync'),
  };
  const places: Readonly<Record<Part, string>> = { state: 'Postgres, the state', queue: `the queue (${queue.place})` };
  const underWay = new Map<Part, Promise<string | null>>();

  /** One question at a time, whoever waits for it: a server that hangs must not be given a pile of them. */
  const faultOf = (part: Part): Promise<string | null> => {
    const known = underWay.get(part);
    if (known) return known;
    const asked = answerTo(asks[part]).finally(() => underWay.delete(part));
    underWay.set(part, asked);
    return asked;
  };

  return {
    async readiness() {
      const parts = await Promise.all(
        (['state', 'queue'] as const).map(async (part) => {
          const message = await faultOf(part);
          return { part, name: part, ok: message === null, message };
        }),
      );
      return { ready: parts.every(({ ok }) => ok), parts };
    },
    async check(part) {
      const fault = await faultOf(part);
      if (fault !== null) throw awayError(places[part], fault);
    },
    async watch(work, parts = ['state', 'queue']) {
      // Whoever loses the race may still fail later, when nobody listens any more.
      work.catch(() => {});
      const done = new AbortController();
      const away = async (): Promise<never> => {
        for (;;) {
          await idle(SLOW_MS, done.signal);
          const faults: Array<string | null> = await Promise.all(parts.map(faultOf));
          const at = faults.findIndex((fault) => fault !== null);
          const part = parts[at];
          if (part) throw awayError(places[part], faults[at] ?? '');
        }
      };
      const watching = away();
      watching.catch(() => {});
      try {
        return await Promise.race([work, watching]);
      } finally {
        done.abort();
      }
    },
  };
}

export const awayError = (place: string, why: string): HttpError =>
  new HttpError(503, `${place} is away: ${why}`, {
    kept: 'what was asked may have been done in part',
    next: 'it is tried again by itself; look at /readyz',
    retryAfter: 5,
  });

async function answerTo(work: () => Promise<unknown>): Promise<string | null> {
  const given = new AbortController();
  try {
    const asked = work();
    asked.catch(() => {});
    const late = idle(ANSWER_WITHIN_MS, given.signal).then(() => 'late');
    late.catch(() => {});
    return (await Promise.race([asked, late])) === 'late' ? 'it does not answer' : null;
  } catch (error) {
    // Recovery: this is what was asked.
    if (error instanceof Fault) return error.message;
    return 'it cannot be reached';
  } finally {
    given.abort();
  }
}

const STEP_MS = 100;

/** In steps: while this process is busy itself, answers lie unread and must not be taken for silence. */
async function idle(ms: number, signal: AbortSignal): Promise<void> {
  for (let waited = 0; waited < ms; waited += STEP_MS) await sleep(STEP_MS, undefined, { signal });
}

/** What the control room looks at, and what it can set going. */
export interface ControlDeps {
  /** Connections of its own: what is shown must not wait for what is written, nor keep it waiting. */
  state: Database;
  queue: JobQueue;
  /** Whether these two answer. */
  dependencies: Dependencies;
  sinks: readonly Sink[];
  streams: readonly ConfiguredStream[];
  /** Whose budgets there are: a key is told by its sources. */
  keys: ReadonlyArray<{ hash: string; sources: readonly string[] }>;
  /** Tables that links can be counted in; undefined where the config has only files. */
  warehouse: { name: string; db: Database; schema: string } | undefined;
  /** A stream with further filters, on the budget that all share. */
  narrow(of: Pick<StreamJob, 'source' | 'stream'>, filters: Readonly<Record<string, string>>): StreamJob;
  /** Looks at everything that a sync needs. */
  examine(signal: AbortSignal): Promise<Finding[]>;
  /** As it is understood, with every secret masked. */
  config: object;
  log: Log;
  version: string;
  /** Aborted when the process ends. */
  signal: AbortSignal;
}

export interface ConfiguredStream {
  source: string;
  stream: StreamName;
  job: StreamJob;
  /** How records become rows, as the config says now. */
  flatten: Flatten;
  maxLagMs: number | undefined;
}
