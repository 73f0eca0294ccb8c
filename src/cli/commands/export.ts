import { extname } from 'node:path';
import { Option } from 'commander';
import { type ExportRules, readExportRules, withJobs } from '../../app/index.ts';
import { ConfigError } from '../../model/errors.ts';
import { toIso } from '../../model/instant.ts';
import { describeRange, type Window } from '../../model/window.ts';
import {
  createFileTarget,
  createRowFile,
  createSpool,
  createStreamTarget,
  FORMATS,
  type Format,
} from '../../sinks/export.ts';
import type { StreamJob } from '../../sync/job.ts';
import { type ExportReport, exportStream } from '../../sync/maintain/export-stream.ts';
import { rangeOf } from '../../sync/windows-to-read.ts';
import { type Context, command, EXIT, type ExitCode, type Options, parseStreams, parseWindow } from '../command.ts';
import { configFor } from '../config.ts';
import { createBackfillLine, withRetryLines } from '../progress.ts';
import { figure, minute } from '../terminal.ts';

const EXAMPLES = `Examples:
  tributary export clicks --from 7d --out clicks.parquet
  tributary export sales --from 1mo --out de.csv --filter country=DE
  tributary export leads --from yesterday --to today --out - | jq .event_name

It keeps no state. If there is a state database, forgotten customers and clicks
are left out. Exit code 0: the file has every event that the service returns; 4:
events may be missing. "certified" also means that no event can be added later,
because the range ended longer ago than the settle time (10 minutes). --to is
exclusive.`;

type ExportOptions = Options & {
  out: string;
  filter?: string[];
  force?: boolean;
  keepFormulas?: boolean;
};

export const registerExport = command('export', {
  does: 'write a range of dates into one file: Parquet, CSV or NDJSON',
  takes: ['<stream>', 'clicks, leads or sales'],
  options: [
    new Option(
      '--out <FILE>',
      'a .parquet, .csv or .ndjson file; - is NDJSON on standard output',
    ).makeOptionMandatory(),
    ['--filter <NAME=VALUE...>', "a query parameter of the service, in addition to the config's filters"],
    ['--force', 'replace the file if it exists'],
    ['--keep-formulas', 'CSV: leave cells that begin with = + - @ as they are'],
    ...(['from', 'to', 'config', 'source', 'json'] as const),
  ],
  more: EXAMPLES,
  async run(context, name: string, options: ExportOptions) {
    const [stream] = parseStreams([name]);
    if (!stream) throw new Error('a name that is parsed is a stream');
    const config = configFor(context, options);
    const choice = { source: options.source, streams: [stream], filters: parseFilters(options.filter ?? []) };
    const log = withRetryLines(context.log, context.terminal);
    return withJobs({ config, log, choice }, async ([job, ...others]) => {
      if (!job) throw new Error('at least one stream is chosen');
      if (others.length > 0) {
        const sources = [job, ...others].map(({ source }) => source).join(', ');
        throw new ConfigError(`several sources have ${stream}: ${sources}`, { next: 'choose one with --source' });
      }
      const window = parseWindow(options);
      return write(context, options, { job, window, ...(await readExportRules(config, job, context.log)) });
    });
  },
});

function parseFilters(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
      if (name !== undefined && value !== undefined) return [name, value];
      throw new ConfigError(`--filter ${JSON.stringify(text)} is not NAME=VALUE`, {
        next: 'write --filter country=DE',
      });
    }),
  );
}

async function write(
  { terminal, signal, document }: Context,
  options: ExportOptions,
  { job, window, scrub, evolved }: { job: StreamJob; window: Window } & ExportRules,
): Promise<ExitCode> {
  const format = formatOf(options.out);
  const isPipe = options.out === '-';
  const target = isPipe
    ? createStreamTarget(process.stdout)
    : await createFileTarget(options.out, { replace: options.force === true });
  const file = createRowFile(format, job.stream, target, { keepFormulas: options.keepFormulas === true, evolved });
  const line = createBackfillLine(terminal, 1);
  // A pipe gets rows as they are read; only a file can wait for the newest version of each.
  const spool = isPipe ? undefined : await createSpool(options.out);
  const watching = { signal, onProgress: line.update, isWatched: terminal.isInteractive };
  const output = { window, file, scrub, ...(spool && { spool }) };
  const report = await exportStream(job, { ...output, ...watching }).finally(() => line.clear());
  const text = options.json
    ? document(exportJson(report, options.out, window), { isLine: true })
    : describeExport(report, options.out, window);
  // If standard output has the rows, the report goes to standard error.
  if (isPipe) terminal.err(`${text}\n`);
  else if (options.json) terminal.out(text);
  else terminal.say(text);
  return report.doubts.length === 0 ? EXIT.done : EXIT.incomplete;
}

function formatOf(out: string): Format {
  if (out === '-') return 'ndjson';
  const format = FORMATS.find((known) => extname(out) === `.${known}`);
  if (format) return format;
  throw new ConfigError(`--out ${out}: the file extension sets the format, and this one is unknown`, {
    next: `use ${FORMATS.map((known) => `.${known}`).join(', ')}, or - for NDJSON on standard output`,
  });
}

export function describeExport(report: ExportReport, out: string, window: Window): string {
  const { certified, rows, requests, doubts, rejected, changed, settledThrough } = report;
  const kept = out === '-' ? 'first was printed' : 'newest is in the file';
  return [
    `${figure(rows)} events in ${out === '-' ? 'standard output' : out}, requests: ${figure(requests)}`,
    `range: ${describeRange(window)}`,
    certified
      ? 'certified: every event of the range is there, each once'
      : doubts.length > 0
        ? 'NOT certified: some events may be missing'
        : 'complete as the service shows it now, but not certified:',
    ...doubts.map((doubt) => `  ${describeRange(doubt)}: ${doubt.note}`),
    ...(window.end > settledThrough
      ? [`note: events since ${minute(toIso(settledThrough))} may still arrive late`]
      : []),
    ...(rejected > 0 ? [`note: ${figure(rejected)} records could not be used and were left out`] : []),
    ...(changed > 0 ? [`note: ${figure(changed)} events were returned twice with different times; the ${kept}`] : []),
  ].join('\n');
}

const exportJson = ({ doubts, settledThrough, ...figures }: ExportReport, out: string, window: Window): object => ({
  out,
  ...rangeOf(window),
  doubts: doubts.map((doubt) => ({ ...rangeOf(doubt), note: doubt.note })),
  settledThrough: toIso(settledThrough),
  ...figures,
});
