import { byCommand, type SyncApp, withSyncApp } from '../../app/index.ts';
import { recordAudit } from '../../cursor/audit.ts';
import { holderOf } from '../../cursor/database/holders.ts';
import { isoOrNull } from '../../cursor/database/sql.ts';
import { differingSinks, type SinkTally } from '../../cursor/runs.ts';
import { Cancelled, type Fault, RetryLater } from '../../model/errors.ts';
import { toIso } from '../../model/instant.ts';
import { describeRange, type Window } from '../../model/window.ts';
import { groupBy } from '../../sinks/files/group-by.ts';
import { dueListings } from '../../sync/links/sync-links.ts';
import type { StreamReport } from '../../sync/run.ts';
import { type Outcome, syncAll } from '../../sync/sync-stream.ts';
import { rangeOf } from '../../sync/windows-to-read.ts';
import {
  type Context,
  command,
  EXIT,
  type ExitCode,
  errorJson,
  exitCodeOf,
  mostSevere,
  type Options,
  parseSyncNames,
} from '../command.ts';
import { configFor } from '../config.ts';
import { createProgressLine, noticesTo, withRetryLines } from '../progress.ts';
import { counted, type FittedColumn, figure, fittedTable, minute, percent, wrap } from '../terminal.ts';

const EXAMPLES = `Examples:
  tributary sync                          every stream of every source
  tributary sync leads sales --source eu  two streams of one source
  tributary sync links                    all links now, due or not
  tributary sync --json > summary.json    for a script

Run it again at any time: it continues from what is certified.`;

export const registerSync = command('sync', {
  does: 'bring the tables up to date',
  takes: ['[stream...]', 'clicks, leads, sales, links (default: all; links if due)'],
  options: [
    ['--adopt', 'accept a changed baseUrl as the same service at a new address, and continue with its rows'],
    ['--recount', 'count every row in the sinks now and re-read missing ones; without it, runs spread this over a day'],
    ...(['config', 'source', 'sink', 'json'] as const),
  ],
  more: EXAMPLES,
  run(context, names: string[], { adopt = false, ...options }: SyncOptions & { adopt?: boolean }) {
    const choice = { source: options.source, sink: options.sink, streams: parseSyncNames(names) };
    const config = configFor(context, options);
    const log = withRetryLines(context.log, context.terminal);
    const isAsked = choice.streams.includes('links');
    return withSyncApp({ config, log, choice, adopt }, async (app) => {
      const links = isAsked ? app.links : await dueListings(app.state, app.links);
      return syncAndReport(context, { ...app, links }, options);
    });
  },
});

interface SyncOptions extends Options {
  recount?: boolean;
}

/** Syncs and prints the result; `demo` uses it too. */
export async function syncAndReport(
  { terminal, log, signal, document }: Context,
  app: SyncApp,
  { json = false, recount = false }: Pick<SyncOptions, 'json' | 'recount'>,
): Promise<ExitCode> {
  const { state, sinks } = app;
  const jobs = [...app.jobs, ...app.links];
  const progress = createProgressLine(terminal, jobs.length);
  await recordAudit(state, { ...byCommand(jobs), action: 'sync.start' });
  const deps = { state, sinks, log, signal, holder: holderOf('sync'), onProgress: progress.update, recount };
  const outcomes = await syncAll({ ...deps, onNotice: noticesTo(terminal) }, jobs);
  progress.clear();
  return report(outcomes, app, { terminal, document, json });
}

export function report(
  outcomes: readonly Outcome[],
  app: SyncApp,
  { terminal, document, json, asked }: Pick<Context, 'terminal' | 'document'> & { json: boolean; asked?: Window },
): ExitCode {
  if (json) terminal.out(document(summaryJson(outcomes, app), { error: mostSevereFault(outcomes) }));
  // If nothing was read, the error message is enough.
  else if (outcomes.some(({ report: done, fault }) => !fault || done?.tally.read)) {
    const under = notes(outcomes, app, asked).map((line) =>
      line.startsWith('note') ? wrap(line, 9, terminal.columns) : line,
    );
    const summary = summaryTable(outcomes, { width: terminal.columns, ...(asked && { last: CERTIFIED }) });
    terminal.say([...(asked ? [describeRange(asked), ''] : []), summary, '', ...under].join('\n'));
  }
  for (const message of messages(outcomes)) terminal.err(`${message}\n`);
  return mostSevere(outcomes.map(codeOf));
}

/** The fault that sets the exit code. A stream that is not certified yet is a reason to run again. */
function mostSevereFault(outcomes: readonly Outcome[]): Fault | undefined {
  const code = mostSevere(outcomes.map(codeOf));
  const worst = outcomes.find((outcome) => outcome.fault && codeOf(outcome) === code);
  if (worst?.fault || code === EXIT.done) return worst?.fault;
  const note = outcomes.find(({ report }) => report?.note !== undefined)?.report?.note;
  if (note !== undefined) return new RetryLater(`the listing of links is ${note}`, { next: 'run it again' });
  return new RetryLater('not all windows are certified', { next: 'run it again; tributary status shows which' });
}

function codeOf({ fault, report }: Outcome): ExitCode {
  if (fault) return exitCodeOf(fault);
  return report?.state === 'done' ? EXIT.done : EXIT.incomplete;
}

/** Streams that failed for the same reason share a message, even if their numbers of tries differ. */
function messages(outcomes: readonly Outcome[]): string[] {
  const failed = outcomes.flatMap(({ fault, source, stream }) =>
    fault ? [{ fault, place: `${source}/${stream}` }] : [],
  );
  const byReason = groupBy(failed, ({ fault }) => fault.message.replace(/\d+(\.\d+)? (tries|s)\b/g, ''));
  return [...byReason.values()].flatMap(([first, ...others]) => {
    if (!first) return [];
    if (first.fault instanceof Cancelled) first.fault.next ??= 'run it again: it continues from what is certified';
    const also = others.map(({ place }) => place).join(', ');
    return `${first.fault.describe()}${also ? `\nalso: ${also}` : ''}`;
  });
}

type Tally = StreamReport['tally'];

interface FigureColumn extends Omit<FittedColumn<Tally>, 'of'> {
  of: (tally: Tally) => number;
  /** Shown only if it is not zero: such a column deserves attention. */
  isRare?: true;
}

const FIGURES: readonly FigureColumn[] = [
  { header: 'read', of: (tally) => tally.read, spare: 3 },
  { header: 'new', of: (tally) => tally.new },
  { header: 'changed', of: (tally) => tally.changed },
  { header: 'same', of: (tally) => tally.unchanged, spare: 1 },
  { header: 'aside', of: (tally) => tally.quarantined, isRare: true },
  { header: 'requests', of: (tally) => tally.requests, spare: 2 },
  { header: '429s', of: (tally) => tally.tooManyRequests, isRare: true },
];

const COMPLETE_THROUGH: FittedColumn<StreamReport> = {
  header: 'complete through',
  of: ({ cursor }) => minute(isoOrNull(cursor?.completeThrough)) || 'not certified yet',
};
/** Replaces `COMPLETE_THROUGH` for a backfill: the watermark says nothing about its range. */
const CERTIFIED: FittedColumn<StreamReport> = {
  header: 'certified',
  of: ({ range }) => (range ? percent(range.certified) : 'not all'),
};

/** The summary of a sync or a backfill: what was read, what changed, what is complete. Times are UTC. */
export function summaryTable(
  outcomes: readonly Outcome[],
  { last = COMPLETE_THROUGH, width = 80 }: { last?: FittedColumn<StreamReport>; width?: number } = {},
): string {
  const isNeeded = ({ of, isRare }: FigureColumn): boolean =>
    !isRare || outcomes.some(({ report }) => report && of(report.tally) > 0);
  const columns: Array<FittedColumn<Outcome>> = [
    { header: 'stream', of: ({ source, stream }) => `${source}/${stream}` },
    ...FIGURES.filter(isNeeded).map(({ of, ...column }) => ({
      ...column,
      of: ({ report }: Outcome) => (report ? figure(of(report.tally)) : ''),
    })),
    { header: last.header, of: ({ report }) => (report ? last.of(report) : 'not begun') },
  ];
  return fittedTable(columns, outcomes, width);
}

/** Notes under the table: budget, and data that deserves attention. */
export function notes(outcomes: readonly Outcome[], app: SyncApp, asked?: Window): string[] {
  const events = outcomes.filter(({ stream }) => stream !== 'links');
  const budgets = sourcesOf(events).map((source) => {
    const { requests, share, perSecond, pauses } = app.usage(source);
    const used = share === undefined ? '' : `, ${Math.round(share * 100)}% of ${perSecond}/s while there was work`;
    const slowed = pauses > 0 ? `, 429s: ${pauses}` : '';
    return `budget   ${source}: ${counted(requests, 'request')}${used}${slowed}`;
  });
  const places = app.sinks.map((sink) => `data in  ${sink.place}`);
  return [...budgets, ...grouped(outcomes, asked), ...places, `state in ${app.stateName} · times in UTC`];
}

function grouped(outcomes: readonly Outcome[], asked: Window | undefined): string[] {
  const all = outcomes.flatMap((outcome) =>
    notesOn(outcome, asked).map((note) => ({ note, name: `${outcome.source}/${outcome.stream}` })),
  );
  const names = groupBy(all, ({ note }) => note);
  return [...names].map(([note, own]) => `note     ${own.map(({ name }) => name).join(', ')}: ${note}`);
}

function notesOn({ stream, report }: Outcome, asked: Window | undefined): string[] {
  if (!report) return [];
  const { tally, state, fault, range, cursor } = report;
  const lines: string[] = [];
  if (range && asked && range.window.end < asked.end)
    lines.push(`read up to ${minute(toIso(range.window.end))}: syncs read newer events once they have settled`);
  if (range && cursor && range.window.start < cursor.since)
    lines.push(`before since, ${minute(toIso(cursor.since))}: status and coverage show it as also complete`);
  const sinks = differingSinks(tally);
  if (sinks) lines.push(`rows by sink: ${describeSinks(sinks)}`);
  const contradictions = counts(tally.contradictions);
  if (contradictions) lines.push(`deprecated names that contradict their field: ${contradictions} (the field won)`);
  const typeMismatches = counts(tally.typeMismatches);
  const place = stream === 'links' ? 'left out' : 'kept in _extra';
  if (typeMismatches) lines.push(`values that do not fit their column: ${typeMismatches} (${place})`);
  if (tally.quarantined > 0) lines.push(`${figure(tally.quarantined)} set aside: see tributary.quarantine`);
  if (report.note !== undefined) lines.push(report.note);
  else if (state === 'incomplete' && !fault) {
    const [first, ...more] = report.unproven;
    if (first) lines.push(`not certified: ${describeRange(first)}: ${first.note}`);
    lines.push(
      `${more.length > 0 ? `and ${counted(more.length, 'window')} more: ` : ''}tributary status shows which, and when they are retried`,
    );
  }
  return lines;
}

/** `warehouse 3 new, 0 changed · lake 14,000 new, 0 changed` */
export const describeSinks = (sinks: Record<string, SinkTally>): string =>
  Object.entries(sinks)
    .map(([sink, { new: added, changed }]) => `${sink} ${figure(added)} new, ${figure(changed)} changed`)
    .join(' · ');

export function summaryJson(outcomes: readonly Outcome[], app: SyncApp): object {
  return {
    streams: outcomes.map(({ source, stream, report, fault }) => ({
      source,
      stream,
      run: report?.runId ?? null,
      state: report?.state ?? 'not begun',
      ...report?.tally,
      completeThrough: isoOrNull(report?.cursor?.completeThrough),
      newestSeen: isoOrNull(report?.cursor?.newestSeen),
      // For a backfill: the part of the range old enough to be read, and its certified share.
      ...(report?.range && { ...rangeOf(report.range.window), certified: report.range.certified }),
      notCertified: (report?.unproven ?? []).map((part) => ({ ...rangeOf(part), note: part.note })),
      error: fault ? errorJson(fault) : null,
    })),
    budget: Object.fromEntries(sourcesOf(outcomes).map((source) => [source, app.usage(source)])),
  };
}

const sourcesOf = (outcomes: readonly Outcome[]): string[] => [...new Set(outcomes.map(({ source }) => source))];

const counts = (by: Record<string, number>): string =>
  Object.entries(by)
    .map(([column, n]) => `${column} ${figure(n)}`)
    .join(', ');
