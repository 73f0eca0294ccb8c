import { randomUUID } from 'node:crypto';
import { eitherSignal } from '../../api/cancel.ts';
import { holderOf } from '../../cursor/database/holders.ts';
import { Cancelled, Fault } from '../../model/errors.ts';
import { toIso } from '../../model/instant.ts';
import type { Sink } from '../../sinks/sink.ts';
import type { SyncDeps } from '../../sync/job.ts';
import { isSound, type Repair, reportRepair, verifyJob } from '../../sync/maintain/verify-job.ts';
import {
  choice,
  count,
  date,
  day,
  HttpError,
  listOf,
  moment,
  named,
  of,
  range,
  share,
  shortText,
  warnings,
  z,
} from '../answers.ts';
import { type ControlDeps, chooseSinks, chooseStreams, chooseWindow, targetOf } from '../dependencies.ts';
import { type Route, route } from '../route.ts';

const counts = { events: count, missing: count, extra: count, different: count };

const result = {
  ...of,
  ...range,
  against: z.string(),
  requests: count,
  events: count,
  sinks: listOf({
    sink: z.string(),
    ...counts,
    days: listOf({ day, ...counts }),
    neverRead: listOf(range),
    miscounted: listOf({ ...range, ledger: count, sink: count }).describe(
      'windows whose row count in the ledger differs from that in the sink',
    ),
    foreign: listOf({ ...range, what: z.string() }).describe('days that hold rows of another writer'),
    examples: listOf({
      kind: z.enum(['missing', 'extra', 'different']),
      id: z.string(),
      at: moment,
      columns: z.array(z.string()).readonly(),
    }),
  }),
  notComparable: listOf({ ...range, note: z.string() }),
};

const VerificationHead = z.strictObject({
  id: z.string(),
  state: z.enum(['running', 'done', 'failed', 'cancelled']),
  streams: listOf(of),
  ...range,
  repair: z.boolean(),
  startedAt: moment,
  finishedAt: moment.nullable(),
  progress: share,
  clean: z.boolean().nullable().describe('whether every sink holds what it should, after the repair if there was one'),
  message: z.string().nullable().describe('what stopped it'),
  warnings,
});

const Verification = named(
  'Verification',
  VerificationHead.extend({
    results: listOf({
      ...result,
      repaired: z.nullable(z.strictObject(result)),
      error: z.nullable(
        z.strictObject({ message: z.string(), kept: z.string().nullable(), next: z.string().nullable() }),
      ),
    }),
  }),
);
export type Verification = z.infer<typeof Verification>;

type VerifyJob = ReturnType<typeof jobOf>;

const KEPT = 20;
const REPORT_EVERY_MS = 2000;

/** `now` is replaced as a whole on every change. */
type Entry = { now: Verification; stop: AbortController; done: Promise<void> };

type VerificationRuns = ReturnType<typeof createVerificationRuns>;

/**
 * Running and finished comparisons, kept only in this process: a lost one can be started again, and nothing else depends
 * on it. They share the budget with syncs, which go first.
 */
export function createVerificationRuns(
  { state, log, signal }: Pick<ControlDeps, 'state' | 'log' | 'signal'>,
  onChange: () => void,
) {
  const entries: Entry[] = [];

  async function run(entry: Entry, { jobs, sinks, window, repair, between }: VerifyJob): Promise<void> {
    const either = eitherSignal(signal, entry.stop.signal);
    const update = (change: Partial<Verification>): void => {
      entry.now = { ...entry.now, ...change };
    };
    let reportedAt = performance.now();
    const results: Repair[] = [];
    const deps: SyncDeps = {
      state,
      sinks,
      log,
      signal: either.signal,
      holder: holderOf('control room, verify'),
      onProgress({ done = 0 }) {
        update({ progress: Math.max(entry.now.progress, (results.length + Math.min(1, done)) / jobs.length) });
        if (performance.now() - reportedAt < REPORT_EVERY_MS) return;
        reportedAt = performance.now();
        onChange();
      },
    };
    try {
      for (const job of jobs) {
        results.push(await verifyJob(deps, job, window, { repair, between }));
        update({ progress: results.length / jobs.length, results: results.map(reportRepair) });
      }
      const refused = results.find(({ before }) => before.sinks.length === 0)?.fault;
      if (refused) update({ state: 'failed', message: refused.describe() });
      else update({ state: 'done', clean: results.every(isSound) });
    } catch (error) {
      // Recovery: the error is reported with what was found so far; the user decides whether to try again.
      if (error instanceof Cancelled) update({ state: 'cancelled' });
      else if (error instanceof Fault) update({ state: 'failed', message: error.describe() });
      else {
        log.error({ err: error }, 'a verification failed because of a bug');
        update({ state: 'failed', message: 'this is a bug in tributary; see the log of the server for details' });
      }
    } finally {
      either.release();
      update({ finishedAt: toIso(Date.now()) });
      onChange();
    }
  }

  const entryOf = (id: string): Entry => {
    const found = entries.find(({ now }) => now.id === id);
    if (!found)
      throw new HttpError(404, 'there is no such verification', {
        next: 'verifications are lost when the process restarts; start it again',
      });
    return found;
  };

  return {
    /** Newest first. */
    all: () => entries.map(({ now }) => now),
    find: (id: string) => entryOf(id).now,
    /** Throws while another is running. */
    start(asked: VerifyJob) {
      if (entries.some(({ now }) => now.state === 'running'))
        throw new HttpError(409, 'a verification is already running', { next: 'wait until it ends, or cancel it' });
      const entry: Entry = { now: begun(asked), stop: new AbortController(), done: Promise.resolve() };
      entries.unshift(entry);
      entries.splice(KEPT);
      entry.done = run(entry, asked);
      onChange();
      return entry.now;
    },
    cancel(id: string) {
      const entry = entryOf(id);
      if (entry.now.state !== 'running')
        throw new HttpError(409, `the verification is ${entry.now.state}`, { kept: 'nothing was changed' });
      entry.stop.abort();
      return entry.now;
    },
    async close() {
      for (const { stop } of entries) stop.abort();
      await Promise.all(entries.map(({ done }) => done));
    },
  };
}

const begun = ({ jobs, window, repair }: VerifyJob): Verification => ({
  id: randomUUID(),
  state: 'running',
  streams: jobs.map(({ source, stream }) => ({ source, stream })),
  from: toIso(window.start),
  to: toIso(window.end),
  repair,
  startedAt: toIso(Date.now()),
  finishedAt: null,
  progress: 0,
  clean: null,
  message: null,
  warnings: jobs.flatMap((job) => job.warnings),
  results: [],
});

const Verifications = named('Verifications', { verifications: z.array(VerificationHead) });

export type Verifications = z.infer<typeof Verifications>;

const VerifyRequest = named('VerifyRequest', {
  ...choice,
  sink: shortText.optional().describe('default: every sink'),
  from: date,
  to: date,
  repair: z.boolean().default(false).describe('reads the days that differ again, and compares again'),
  between: z
    .array(shortText)
    .length(2)
    .optional()
    .describe('two sinks: the second is compared with the first, without requests to the service'),
});

type Deps = Pick<ControlDeps, 'sinks' | 'streams'>;

export const verificationRoutes = (deps: Deps, runs: VerificationRuns): Route[] => [
  route('GET /api/verifications', {
    summary: 'Comparisons of this process since it started, newest first.',
    answer: Verifications,
    handle: async () => ({ verifications: runs.all().map(({ results: _, ...head }) => head) }),
  }),
  route('POST /api/verifications', {
    summary:
      'Compares what the sinks have with the service, or two sinks with each other. Runs in the background, one at a time.',
    body: VerifyRequest,
    status: 202,
    answer: Verification,
    audit: ({ body }) => ({
      action: body.repair ? 'verification.repair' : 'verification.start',
      target: targetOf(body),
      detail: { from: body.from, to: body.to },
    }),
    handle: async ({ body }) => runs.start(jobOf(deps, body)),
  }),
  route('GET /api/verifications/{id}', {
    summary: 'One verification with its results so far, by stream, sink and day.',
    answer: Verification,
    handle: async ({ id }) => runs.find(id),
  }),
  route('POST /api/verifications/{id}/cancel', {
    summary: 'Cancels a verification after the current page; its results so far are kept.',
    answer: Verification,
    audit: ({ id }) => ({ action: 'verification.cancel', target: id }),
    handle: async ({ id }) => runs.cancel(id),
  }),
];

function jobOf(deps: Deps, body: z.infer<typeof VerifyRequest>) {
  const { source, streams, sink, repair, between } = body;
  if (between && repair)
    throw new HttpError(409, 'repair cannot be combined with between', { next: 'omit repair or between' });
  return {
    jobs: chooseStreams(deps.streams, { source, streams }).map(({ job }) => job),
    sinks: chooseSinks(deps.sinks, sink),
    window: chooseWindow(body),
    repair,
    between: between && pairOf(deps.sinks, between),
  };
}

function pairOf(sinks: readonly Sink[], names: readonly string[]): [Sink, Sink] {
  const [first, second] = names.flatMap((name) => chooseSinks(sinks, name));
  if (first && second && first !== second) return [first, second];
  throw new HttpError(409, 'between takes two sinks', { next: 'name two different ones' });
}
