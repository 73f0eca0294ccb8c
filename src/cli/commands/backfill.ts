import { Option } from 'commander';
import { byCommand, environment, type SyncApp, withSyncApp } from '../../app/index.ts';
import { withClosers } from '../../app/resources.ts';
import { DEFAULT_CONFIG } from '../../config/index.ts';
import { type AuditEntry, audited, recordAudit } from '../../cursor/audit.ts';
import { type Backfill, readBackfills } from '../../cursor/backfills.ts';
import { holderOf } from '../../cursor/database/holders.ts';
import { isoOrNull } from '../../cursor/database/sql.ts';
import { Cancelled } from '../../model/errors.ts';
import { toIso } from '../../model/instant.ts';
import { describeRange } from '../../model/window.ts';
import { costOf, type Price, priceBackfill, reportPrices, sourcesOf } from '../../sync/backfill/price.ts';
import { type BackfillRequest, unreadChunks } from '../../sync/backfill/unread.ts';
import { sum } from '../../sync/estimate.ts';
import type { StreamJob } from '../../sync/job.ts';
import { backfillAll } from '../../sync/sync-stream.ts';
import { rangeOf } from '../../sync/windows-to-read.ts';
import {
  type Context,
  command,
  type Definition,
  type ExitCode,
  type Options,
  parseStreams,
  parseWindow,
  show,
} from '../command.ts';
import { configFor, readState } from '../config.ts';
import { createBackfillLine, noticesTo, waitsTo, withRetryLines } from '../progress.ts';
import { counted, duration, type FittedColumn, figure, fittedTable, minute, percent, table } from '../terminal.ts';
import { report } from './sync.ts';

const EXAMPLES = `Examples:
  tributary backfill --from 2026-07-01 --to 2026-10-01 --dry-run   the cost
  tributary backfill --from 2026-07-01 --to 2026-10-01             do it now
  tributary backfill --from 2026-07-01 --to 2026-10-01 --queue     for workers
  tributary backfill clicks --from 90d --to now --force            read again
  tributary backfill list                              list the queued backfills

It reads only what is not certified yet, and yields to syncs: while another
process holds the lease on the stream, it waits and says so. --to is exclusive.
Ctrl-C loses nothing: run it again to continue. A range before "since" is shown
as also complete in tributary status and in coverage.`;

type BackfillOptions = Options & { plan?: boolean; queue?: boolean; force?: boolean; wait?: boolean };

const LIST_EXAMPLES = `Examples:
  tributary backfill list              queued backfills and their progress
  tributary backfill list --json

tributary backfill --queue adds one. What a backfill has read stays, even if it
is cancelled. "certified" is the share of the range that is certified in every
sink. "to" is exclusive. Times are UTC.`;

const VERBS = {
  pause: { does: 'pause after the current page; the rest waits', done: 'is paused' },
  resume: { does: 'resume a paused backfill', done: 'is resumed' },
  cancel: { does: 'cancel a backfill permanently; what it has read stays', done: 'is cancelled' },
  retry: { does: 'read only the failed windows again', done: 'retries its failed windows' },
} as const;

type Verb = keyof typeof VERBS;

/** The commands for queued backfills. */
const QUEUED: Readonly<Record<string, Definition>> = {
  list: {
    does: 'queued backfills and their progress',
    options: ['config', 'json'],
    more: LIST_EXAMPLES,
    run: listAll,
  },
  ...Object.fromEntries(
    Object.entries(VERBS).map(([verb, { does }]) => [
      verb,
      {
        does,
        takes: ['<id>', 'the id in tributary backfill list'],
        options: ['config', 'json'],
        more: `Example:\n  tributary backfill ${verb} 20261113180000-3fa9c1`,
        run: (context: Context, id: string, options: Options) => steer(context, verb as Verb, id, options),
      } satisfies Definition,
    ]),
  ),
};

export const registerBackfill = command('backfill', {
  does: 'read a range of dates into the sinks',
  takes: ['[stream...]', 'clicks, leads, sales (default: all streams of the config)'],
  options: [
    ['--dry-run', 'only estimate the cost: rows, requests, time on each plan'],
    new Option('--plan', 'deprecated name of --dry-run').hideHelp(),
    ['--queue', 'enqueue it for the workers instead of running it here'],
    ['--force', 'also read what is already certified'],
    ['--no-wait', 'for scripts: exit with code 4 if a sync holds a stream for more than half a minute'],
    ...(['from', 'to', 'config', 'source', 'sink', 'json'] as const),
  ],
  more: EXAMPLES,
  commands: QUEUED,
  async run(context, names: string[], options: BackfillOptions) {
    const choice = { source: options.source, sink: options.sink, streams: parseStreams(names) };
    const request = { window: parseWindow(options), force: options.force === true };
    const config = configFor(context, options);
    const log = withRetryLines(context.log, context.terminal);
    return withSyncApp({ config, log, choice, attach: true }, (app) => {
      if (options.dryRun || options.plan) return price(context, app, request, options);
      return (options.queue ? enqueue : backfill)(context, app, request, options);
    });
  },
});

async function price(
  context: Context,
  { state, sinks, jobs }: SyncApp,
  request: BackfillRequest,
  options: Options,
): Promise<ExitCode> {
  const { terminal, signal } = context;
  const prices = new Map<StreamJob, Price>();
  const say = (): ExitCode => {
    terminal.live();
    const known = jobs.filter((job) => prices.has(job));
    const inOrder = known.flatMap((job) => prices.get(job) ?? []);
    const text = (): string => describePrices(inOrder, known, request, terminal.columns);
    return show(context, options, reportPrices(inOrder, known), text);
  };
  try {
    await Promise.all(
      jobs.map(async (job) => {
        prices.set(job, await priceBackfill({ state, sinks, signal }, job, request));
        terminal.live('prices', `estimated ${prices.size} of ${jobs.length} streams; Ctrl-C shows these`);
      }),
    );
  } catch (error) {
    // Recovery: shows the estimates so far, then rethrows.
    if (error instanceof Cancelled && !options.json && prices.size > 0) say();
    throw error;
  }
  return say();
}

/** Splits the range into windows, which any worker reads, now or later. */
async function enqueue(context: Context, app: SyncApp, request: BackfillRequest, options: Options): Promise<ExitCode> {
  const { log, signal } = context;
  const { config } = environment.config(options.config ?? DEFAULT_CONFIG);
  const { openQueue } = await import('../../app/worker.ts');
  const { enqueueBackfills } = await import('../../jobs/backfills.ts');
  return withClosers(async (closers) => {
    const queue = await openQueue(config, { log, stateUrl: app.stateUrl }, closers);
    const { window, force = false } = request;
    const requests = await Promise.all(
      app.jobs.map(async (job) => {
        const chunks = await unreadChunks({ ...app, signal }, job, request);
        return { source: job.source, stream: job.stream, window, force, chunks };
      }),
    );
    const ids = await audited(app.state, entryOf(app.jobs, request), () =>
      enqueueBackfills({ state: app.state, queue }, requests),
    );
    const backfills = requests.map(({ chunks, source, stream }, i) => {
      return { id: ids[i], source, stream, windows: chunks.length };
    });
    const lines = backfills.map(({ id, source, stream, windows }) => `${source}/${stream}: ${id}, windows: ${windows}`);
    const text = [...lines, 'next: tributary backfill list shows their progress'].join('\n');
    return show(context, options, { backfills }, () => text);
  });
}

const entryOf = (jobs: SyncApp['jobs'], { window, force = false }: BackfillRequest): AuditEntry => ({
  ...byCommand(jobs),
  action: 'backfill.start',
  detail: { ...rangeOf(window), force },
});

async function backfill(
  { terminal, log, signal, document }: Context,
  app: SyncApp,
  request: BackfillRequest,
  { json = false, wait = true }: { json?: boolean; wait?: boolean },
): Promise<ExitCode> {
  const { state, sinks, jobs } = app;
  const line = createBackfillLine(terminal, jobs.length, () => app.usage(jobs[0]?.source ?? '').share);
  const onWait = waitsTo(terminal, '; with --queue, the workers would do it');
  const callbacks = { onProgress: line.update, onNotice: noticesTo(terminal), ...(wait && { onWait }) };
  const deps = { state, sinks, log, signal, holder: holderOf('backfill'), isWatched: terminal.isInteractive };
  await recordAudit(state, entryOf(jobs, request));
  const outcomes = await backfillAll({ ...deps, ...callbacks }, jobs, request);
  line.clear();
  return report(outcomes, app, { terminal, document, json, asked: request.window });
}

const GUESSED = '~ is an estimate from the density of events in samples';

function describePrices(
  prices: readonly Price[],
  jobs: readonly StreamJob[],
  { window: asked, force = false }: BackfillRequest,
  columns: number,
): string {
  const rows = prices.map((price) => [
    `${price.source}/${price.stream}`,
    figure(price.toRead.length),
    percent(price.certified),
    `${price.isCounted ? '' : '~'}${figure(price.rows)}`,
    figure(price.requests),
  ]);
  const [first] = prices;
  const isNothing = prices.every(({ toRead }) => toRead.length === 0);
  const isCut = first !== undefined && first.window.end < asked.end;
  return [
    `estimate for ${first ? describeRange(first.window) : ''}`,
    ...(isCut ? [`up to ${minute(toIso(first.window.end))}: syncs read newer events once they have settled`] : []),
    '',
    table(['stream', 'windows', 'certified', 'rows', 'requests'], rows, columns),
    '',
    ...(isNothing ? [] : sourcesOf(jobs).flatMap((source) => describeSource(source, prices, jobs))),
    `the estimate used ${counted(sum(prices.map(({ probes }) => probes)), 'request')}; nothing was written`,
    ...(isNothing || prices.every(({ isCounted }) => isCounted) ? [] : [GUESSED]),
    isNothing
      ? 'nothing to do: the range is already certified; --force reads it again'
      : `next: the same without --dry-run; ${force ? 'certified windows are read again' : 'certified windows are skipped'}`,
  ].join('\n');
}

function describeSource(source: string, prices: readonly Price[], jobs: readonly StreamJob[]): string[] {
  const { current, others, pollShare } = costOf(source, prices, jobs);
  return [
    `${source}: ${duration(current.seconds)} at ${current.perSecond}/s (${others.map(({ plan, seconds }) => `${plan} ${duration(seconds)}`).join(' · ')})`,
    `  syncs go first (about ${Math.max(1, Math.round(pollShare * 100))}% of the budget) and wait for one request at most`,
  ];
}

async function listAll(context: Context, options: Options): Promise<ExitCode> {
  const all = await readState(context, options, () => [], readBackfills);
  return show(context, options, { backfills: all.map(toJson) }, () => describeQueued(all, context.terminal.columns));
}

async function steer(context: Context, verb: Verb, id: string, options: Options): Promise<ExitCode> {
  const { log } = context;
  const { config } = environment.configOrDefaults(options.config);
  const { withQueue } = await import('../../app/worker.ts');
  const { steerBackfill } = await import('../../jobs/backfills.ts');
  const [after] = await withQueue({ config, log }, async (deps) => {
    await audited(deps.state, { ...byCommand(), action: `backfill.${verb}`, target: id }, () =>
      steerBackfill(deps, id, verb),
    );
    return readBackfills(deps.state, id);
  });
  const body = { backfills: after ? [toJson(after)] : [] };
  return show(context, options, body, () => `backfill ${id} ${VERBS[verb].done}`);
}

const COLUMNS: ReadonlyArray<FittedColumn<Backfill>> = [
  { header: 'id', of: ({ id }) => id },
  { header: 'stream', of: ({ source, stream }) => `${source}/${stream}` },
  { header: 'from', of: ({ start }) => toIso(start).slice(0, 10) },
  { header: 'to', of: ({ end }) => toIso(end).slice(0, 10) },
  { header: 'state', of: ({ state }) => state },
  {
    header: 'windows',
    of: ({ windows: { queued, running, done, failed } }) => `${done}/${queued + running + done + failed}`,
    spare: 2,
  },
  { header: 'rows', of: ({ rows }) => figure(rows), spare: 1 },
  { header: 'certified', of: ({ certified }) => percent(certified) },
];

function describeQueued(all: readonly Backfill[], columns: number): string {
  if (all.length === 0) return 'no backfill has been queued yet\nnext: tributary backfill --queue';
  const failed = all.filter(({ message }) => message !== null).map(({ id, message }) => `${id}: ${message}`);
  return [fittedTable(COLUMNS, all, columns), ...failed].join('\n');
}

const toJson = ({ start, end, createdAt, finishedAt, ...backfill }: Backfill): object => ({
  ...backfill,
  ...rangeOf({ start, end }),
  createdAt: toIso(createdAt),
  finishedAt: isoOrNull(finishedAt),
});
