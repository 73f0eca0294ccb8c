import { byCommand, type SyncApp, withSyncApp } from '../../app/index.ts';
import { unknownName } from '../../app/parts.ts';
import { recordAudit } from '../../cursor/audit.ts';
import { holderOf } from '../../cursor/database/holders.ts';
import { ConfigError } from '../../model/errors.ts';
import { toIso } from '../../model/instant.ts';
import { describeInstant, describeRange, type Window } from '../../model/window.ts';
import type { Sink } from '../../sinks/sink.ts';
import { isClean, type SinkResult, totalOf, type VerifyResult } from '../../sync/maintain/comparison.ts';
import { THE_SERVICE } from '../../sync/maintain/verify.ts';
import { isSound, type Repair, reportRepair, verifyJob } from '../../sync/maintain/verify-job.ts';
import {
  type Context,
  command,
  EXIT,
  type ExitCode,
  exitCodeOf,
  mostSevere,
  type Options,
  parseStreams,
  parseWindow,
  show,
} from '../command.ts';
import { configFor } from '../config.ts';
import { createBackfillLine, noticesTo, waitsTo, withRetryLines } from '../progress.ts';
import { counted, figure, table } from '../terminal.ts';

const EXAMPLES = `Examples:
  tributary verify --from 7d --to now                 sinks against the service
  tributary verify sales --from 2026-10-01 --to 2026-11-01 --repair
  tributary verify --from 30d --to now --between warehouse lake

It reads the range from the service again and lists, day by day, rows that are
missing, extra or different in a sink. Counters and names of links and customers
change on their own and are not compared. The row count of each window in the
ledger is compared with the sink's. Days that differ from the service are no
longer certified: status says so, and the next sync reads them again.
Exit code 0: no differences; 4: some.`;

type VerifyOptions = Options & { repair?: boolean; between?: string[] };

export const registerVerify = command('verify', {
  does: 'compare what the sinks hold with the service, or with each other',
  takes: ['[stream...]', 'clicks, leads, sales (default: all streams of the config)'],
  options: [
    ['--repair', 'read the days that differ again now, and compare again'],
    ['--between <SINK...>', 'compare two sinks with each other, without requests to the service'],
    ...(['from', 'to', 'config', 'source', 'sink', 'json'] as const),
  ],
  more: EXAMPLES,
  async run(context, names: string[], options: VerifyOptions) {
    const { between, repair } = options;
    if (between && (between.length !== 2 || between[0] === between[1]))
      throw new ConfigError('--between takes two sinks', { next: 'write --between warehouse lake' });
    if (between && repair)
      throw new ConfigError('--repair cannot be combined with --between', { next: 'use --repair without --between' });
    const window = parseWindow(options);
    const choice = { source: options.source, sink: options.sink, streams: parseStreams(names) };
    const config = configFor(context, options);
    const log = withRetryLines(context.log, context.terminal);
    return withSyncApp({ config, log, choice, attach: true }, (app) => verify(context, app, window, options));
  },
});

async function verify(context: Context, app: SyncApp, window: Window, options: VerifyOptions): Promise<ExitCode> {
  const { terminal, log, signal } = context;
  const { state, sinks, jobs } = app;
  const line = createBackfillLine(terminal, jobs.length);
  const callbacks = { onProgress: line.update, onWait: waitsTo(terminal), onNotice: noticesTo(terminal) };
  const deps = { state, sinks, log, signal, holder: holderOf('verify'), ...callbacks };
  const between = options.between && pairOf(options.between, sinks);
  const { repair = false } = options;
  const results: Repair[] = [];
  if (repair) await recordAudit(state, { ...byCommand(jobs), action: 'verification.repair' });
  // One stream after another, so that results are in the requested order.
  for (const job of jobs) results.push(await verifyJob(deps, job, window, { repair, between }));
  line.clear();
  show(context, options, { streams: results.map(reportRepair) }, () => results.map(describeRepair).join('\n\n'));
  return mostSevere(results.map(codeOf));
}

function codeOf(repair: Repair): ExitCode {
  if (repair.fault) return exitCodeOf(repair.fault);
  return isSound(repair) ? EXIT.done : EXIT.incomplete;
}

/** The sinks of exactly two names, which the command has checked. */
function pairOf(names: readonly string[], sinks: readonly Sink[]): [Sink, Sink] {
  const known = sinks.map(({ name }) => name);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw unknownName('sink', unknown, known);
  return names.map((name) => sinks[known.indexOf(name)]) as [Sink, Sink];
}

const SHOWN = 5;

function describeRepair({ before, after, fault }: Repair): string {
  // If nothing could be compared, there is only the fault to report.
  if (fault && before.sinks.length === 0) return fault.describe();
  const lines = [describeResult(before)];
  if (fault) lines.push(`the repair stopped: ${fault.describe()}`);
  if (after) lines.push('after the repair:', describeResult(after));
  const last = after ?? before;
  if (!fault && last.against === THE_SERVICE && !isClean(last))
    lines.push(`  no longer certified: the next sync reads these days again${after ? '' : '; --repair does it now'}`);
  return lines.join('\n');
}

function describeResult(result: VerifyResult): string {
  const { source, stream, window, against, events, requests, sinks, doubts } = result;
  const cost = requests > 0 ? `, requests: ${figure(requests)}` : '';
  return [
    `${source}/${stream} ${describeRange(window)}`,
    `  ${against}: ${counted(events, 'event')}${cost}`,
    ...sinks.map(describeSink),
    ...doubts.map((doubt) => `  not comparable: ${describeRange(doubt)}: ${doubt.note}`),
  ].join('\n');
}

function describeSink(result: SinkResult): string {
  const { sink, days, examples, windows, neverRead } = result;
  const others = describeOthers(result);
  if (windows.length === 0) {
    const match = `  ${sink}: ${days.length === 1 ? 'the day matches' : `all ${days.length} days match`}`;
    return [...(result.foreign.length === 0 ? [match] : []), ...others].join('\n');
  }
  const total = totalOf(result);
  const rows = days
    .filter(({ missing, extra, different }) => missing + extra + different > 0)
    .map((day) => [toIso(day.day).slice(0, 10), ...figures(day)]);
  const lines = table(['day', 'events', 'missing', 'extra', 'different'], [...rows, ['all days', ...figures(total)]]);
  return [
    `  ${sink}: does NOT match`,
    ...lines.split('\n').map((line) => `  ${line}`),
    ...examples.slice(0, SHOWN).map(({ kind, id, at, columns }) => {
      const fields = columns.length > 0 ? ` in ${columns.join(', ')}` : '';
      return `  e.g. ${kind}: ${id} of ${describeInstant(at)}${fields}`;
    }),
    ...neverRead.map((window) => `  never read into ${sink}: ${describeRange(window)}`),
    ...(neverRead.length > 0 ? ['  a sync, a backfill or --repair fills it'] : []),
    ...others,
  ].join('\n');
}

/** The first few, and the number of the rest. */
const someOf = <T>(all: readonly T[], describe: (one: T) => string[]): string[] => [
  ...all.slice(0, SHOWN).flatMap(describe),
  ...(all.length > SHOWN ? [`  and ${all.length - SHOWN} more`] : []),
];

const describeOthers = ({ sink, foreign, miscounted }: SinkResult): string[] => [
  ...someOf(foreign, ({ what, ...day }) => [`  ${sink}, ${describeRange(day)}: ${what}`]),
  ...someOf(miscounted, (window) => [
    `  tributary.windows has a wrong count for ${sink}, ${describeRange(window)}:`,
    `    ${figure(window.ledger)} rows by the ledger, ${figure(window.sink)} in the sink`,
  ]),
  ...(miscounted.length > 0 ? ['  --repair recounts'] : []),
];

const figures = (of: { events: number; missing: number; extra: number; different: number }): string[] =>
  [of.events, of.missing, of.extra, of.different].map(figure);
