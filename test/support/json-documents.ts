import { z } from 'zod';

/**
 * What `--json` of each command prints. `docs/json-schema.json` is generated from it, and `test/integration/cli-json.test.ts` checks
 * the commands against it. Fields may be added to any object: readers ignore unknown ones.
 */

const { looseObject: object, array: list, string: text, number, boolean: flag } = z;
const moment = z.iso.datetime();
const orNull = <T extends z.ZodType>(type: T) => z.union([type, z.null()]);
const stream = z.enum(['clicks', 'leads', 'sales']);

const error = object({
  message: text(),
  faults: list(text()).describe('every fault of a config, with its line and column'),
  kept: orNull(text()).describe('what is safe'),
  next: orNull(text()).describe('what to do now'),
  exitCode: number(),
});

const feed = { source: text(), stream: z.enum([...stream.options, 'links']) };
const range = object({ start: moment, end: moment.describe('exclusive') });
const between = { from: moment, to: moment.describe('exclusive') };
const span = object(between);

/** Of a backfill: the part of the range that was old enough to read; absent if it was cancelled. */
const backfilled = {
  from: moment.optional(),
  to: moment.optional().describe('exclusive'),
  certified: number().optional().describe('the share of the range that every sink has proven, 0 to 1'),
};

const written = object({ new: number(), changed: number(), unchanged: number() });

const synced = (more: z.ZodRawShape = {}) => ({
  streams: list(
    object({
      ...more,
      ...feed,
      run: orNull(text()),
      state: text().describe('done, incomplete, refused, interrupted, failed, or not begun'),
      read: number().optional(),
      new: number().optional(),
      changed: number().optional(),
      unchanged: number().optional(),
      sinks: z
        .record(text(), written)
        .optional()
        .describe('rows by sink; the figures above are of the one that got most'),
      quarantined: number().optional(),
      requests: number().optional(),
      completeThrough: orNull(moment),
      newestSeen: orNull(moment),
      notCertified: list(span.extend({ note: text() })).describe('what of it is not certified, and why'),
      error: orNull(error),
    }),
  ),
  budget: z.record(text(), object({ requests: number(), perSecond: number() })),
});

const cursors = {
  cursors: list(
    object({
      ...feed,
      sink: text(),
      since: moment,
      completeThrough: orNull(moment),
      newestSeen: orNull(moment),
    }),
  ),
};

const backfill = object({
  ...feed,
  id: text(),
  from: moment,
  to: moment,
  state: text(),
  rows: number(),
  certified: number(),
});
const differences = { missing: number(), extra: number(), different: number(), events: number() };
const comparison = object({
  ...feed,
  ...between,
  against: text(),
  requests: number(),
  events: number(),
  sinks: list(
    object({
      ...differences,
      sink: text(),
      days: list(object({ ...differences, day: z.iso.date() })),
      neverRead: list(span),
      miscounted: list(span.extend({ ledger: number(), sink: number() })),
    }),
  ),
  notComparable: list(span.extend({ note: text() })),
});

const quarantined = { ...feed, id: number(), reason: text(), run: text(), firstAt: moment, lastAt: moment };

/** A worker's output for each run. */
const turn = {
  ...feed,
  runId: text(),
  state: text(),
  new: number(),
  requests: number(),
  completeThrough: orNull(moment),
};

/** The fields of each command beside the envelope. */
const BODIES: Readonly<Record<string, z.ZodRawShape>> = {
  demo: synced(),
  sandbox: { baseUrl: z.url(), apiKey: text() },
  init: { file: text(), tested: flag() },
  doctor: {
    findings: list(
      object({
        level: z.enum(['ok', 'note', 'fault']),
        subject: text(),
        says: text(),
        fix: text().optional(),
      }),
    ),
  },
  sync: synced(),
  backfill: synced(backfilled),
  'backfill --dry-run': {
    streams: list(
      object({
        ...feed,
        ...between,
        toRead: list(span),
        certified: number().describe('the share that is proven already, 0 to 1'),
        rows: number(),
        isCounted: flag().describe('false: rows and requests are estimates'),
        requests: number(),
        probes: number(),
      }),
    ),
    sources: z.record(
      text(),
      object({ current: object({ perSecond: number(), seconds: number() }), pollShare: number() }),
    ),
  },
  'backfill --queue': { backfills: list(object({ ...feed, id: text(), windows: number() })) },
  'backfill list': { backfills: list(backfill) },
  'backfill pause': { backfills: list(backfill) },
  'backfill resume': { backfills: list(backfill) },
  'backfill cancel': { backfills: list(backfill) },
  'backfill retry': { backfills: list(backfill) },
  export: {
    out: text(),
    ...between,
    certified: flag(),
    doubts: list(span.extend({ note: text() })),
    settledThrough: moment,
    rows: number(),
    requests: number(),
    rejected: number(),
    changed: number(),
  },
  verify: {
    streams: list(comparison.extend({ repaired: orNull(comparison), error: orNull(object({ message: text() })) })),
  },
  worker: turn,
  start: turn,
  status: {
    streams: list(
      object({
        ...feed,
        sink: orNull(text()).describe('null: nothing was ever written'),
        since: orNull(moment).describe('where completeness is counted from'),
        completeThrough: orNull(moment).describe(
          'every event from since up to this time that matches the filters is in the sink, except those set aside',
        ),
        filters: orNull(text()).describe('such as country=US,CA&trigger=-qr; null: every event is read'),
        setAside: number().describe('records that are kept in quarantine'),
        quarantined: number().describe('deprecated name of setAside'),
        alsoComplete: list(range).describe('proven outside of since … completeThrough: backfilled, or beyond a gap'),
        newestSeen: orNull(moment).describe('time of the newest event delivered, proven or not'),
        lagSeconds: orNull(number()).describe('from completeThrough to now'),
        firstSync: flag().describe('it has not caught up yet, not even once; until then it is never late'),
        coverage: list(range.extend({ state: z.enum(['certified', 'uncertified', 'gap', 'open']) })).describe(
          'all time from since to now: uncertified was read, a gap was skipped, open was not reached yet',
        ),
        uncertifiedWindows: number().describe('windows that were read and could not be proven'),
        uncertified: list(
          range.extend({ reason: orNull(text()), tries: number(), nextTryAt: orNull(moment) }),
        ).describe('the first twenty of them: why, failed tries in a row, and when a sync tries again'),
        parkedWindows: number().describe('those that five runs could not prove: tried once a day'),
        byHandWindows: number().describe('windows that were marked complete unread, by cursor set --force'),
        parked: orNull(
          object({ reason: text(), nextStep: orNull(text()), since: moment, nextProbeAt: orNull(moment) }),
        ).describe('why the stream waits, what to do, and when the worker tries again'),
        lastRun: orNull(
          object({
            ...{ id: text(), kind: text().describe('sync, re-sweep, backfill, repair or retry') },
            state: text().describe('running, done, incomplete, refused, interrupted or failed'),
            ...{ startedAt: moment, finishedAt: orNull(moment), message: orNull(text()) },
          }),
        ),
        failing: flag().describe('the last three syncs ended early without having read a row'),
        nextRunAt: orNull(moment).describe('null: no worker has scheduled it'),
      }),
    ),
    sources: list(
      object({
        source: text(),
        requestsLastHour: number().describe('of runs that ended within the last hour'),
        tooManyRequestsLastHour: number().describe('how many of them were answered with 429'),
        requestsPerSecond: orNull(number()).describe('what the config grants'),
        shareOfBudget: orNull(number()).describe('the requests as a share of what the hour would have allowed'),
      }),
    ),
    needs: list(
      object({
        ...feed,
        kind: z.enum(['parked', 'late', 'uncertified', 'sink_changed', 'failed', 'unsynced']),
        message: text(),
      }),
    ).describe('where action is needed; status --check exits with 4 if there is any. unsynced: with --check only'),
  },
  query: { rows: list(z.record(text(), z.unknown())), isCut: flag().describe('there are more rows than --limit') },
  runs: {
    runs: list(
      object({
        ...feed,
        id: text(),
        kind: text(),
        state: text(),
        startedAt: moment,
        finishedAt: orNull(moment),
        read: number(),
        new: number(),
        changed: number(),
        unchanged: number(),
        quarantined: number(),
        requests: number(),
        sinks: orNull(z.record(text(), written)).describe('null if every sink got the same'),
        message: orNull(text()),
      }),
    ),
  },
  'cursor get': cursors,
  'cursor set': cursors,
  'cursor reset': cursors,
  'quarantine list': { total: number(), records: list(object(quarantined)) },
  'quarantine show': { ...quarantined, record: z.unknown() },
  'quarantine retry': { retried: list(object({ id: number(), reason: orNull(text()) })) },
  'quarantine drop': { dropped: number() },
  forget: { touched: z.record(text(), number()) },
  'runs audit': {
    entries: list(
      object({
        id: text(),
        at: moment,
        actor: text(),
        action: text(),
        target: orNull(text()),
        from: orNull(text()),
        detail: z.record(text(), z.unknown()),
      }),
    ),
  },
  'config check': { file: text(), sources: list(text()), sinks: list(text()), warnings: list(text()) },
  'config print': { sources: z.record(text(), z.unknown()), sinks: z.record(text(), z.unknown()) },
  maintain: {
    lakes: z.record(text(), z.record(text(), object({ files: number(), rewritten: number(), rows: number() }))),
    tables: z.record(
      text(),
      z.record(text(), object({ joined: number(), expired: number(), removed: number(), files: number() })),
    ),
  },
};

const envelope = (command: string, body: z.ZodRawShape) =>
  object({ format: z.literal(1), command: z.literal(command), ...body, error: orNull(error) });

/** The output of a command that succeeded. */
export const DOCUMENTS: Readonly<Record<string, z.ZodType>> = Object.fromEntries(
  Object.entries(BODIES).map(([name, body]) => [name, envelope(name.replace(/ --.*/, ''), body)]),
);

/** The output of any command that failed before it had results. */
export const FAILURE = object({ format: z.literal(1), command: text(), error });

export const jsonSchema = (): object => ({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'What tributary prints with --json',
  description:
    'A command prints one document of its own, or `failure`. worker, start and status --watch print one a line.',
  $defs: Object.fromEntries(
    [...Object.entries(DOCUMENTS), ['failure', FAILURE] as const].map(([name, type]) => {
      const { $schema: _, ...schema } = z.toJSONSchema(type);
      return [name, schema];
    }),
  ),
});
