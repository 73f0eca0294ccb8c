import { Option } from 'commander';
import { type AuditRecord, listAudit } from '../../cursor/audit.ts';
import type { Database } from '../../cursor/database/index.ts';
import { listRuns, RUN_STATES, type RunRecord } from '../../cursor/runs.ts';
import { STREAM_NAMES } from '../../model/streams.ts';
import { groupBy } from '../../sinks/files/group-by.ts';
import { command, limitOf, type Options, parseDateOption, show } from '../command.ts';
import { readState } from '../config.ts';
import { duration, type FittedColumn, figure, fittedTable, minute, shortened, wrap } from '../terminal.ts';
import { describeSinks } from './sync.ts';

const RUNS_EXAMPLES = `Examples:
  tributary runs
  tributary runs --stream sales --state refused --since 7d
  tributary runs --limit 500 --json | jq '.runs[].requests'

Newest first. The same rows are in the table tributary.runs. Times are UTC.`;

const AUDIT_EXAMPLES = `Examples:
  tributary runs audit
  tributary runs audit --limit 500 --json | jq '.entries[].actor'

Every change made by a command or in the control room: who, what and from where,
newest first. Times are UTC.`;

interface RunsOptions extends Options {
  stream?: string;
  state?: string;
  since?: string;
  limit: number;
}

export const registerRuns = command('runs', {
  does: 'show the history of runs: what each read, changed and cost',
  options: [
    new Option('--stream <NAME>', 'only this stream').choices(STREAM_NAMES),
    new Option('--state <STATE>', 'only runs in this state').choices(RUN_STATES),
    ['--since <DATE>', 'only runs that began since: 2026-11-01, 7d'],
    limitOf(20),
    ...(['config', 'source', 'json'] as const),
  ],
  more: RUNS_EXAMPLES,
  async run(context, options: RunsOptions) {
    const { limit } = options;
    const since = options.since === undefined ? undefined : parseDateOption('--since', options.since);
    const read = (state: Database) => listRuns(state, { ...options, since });
    const runs = await readState(context, options, () => [], read);
    return show(context, options, { runs }, () => describe(runs, limit, context.terminal.columns));
  },
  commands: {
    audit: {
      does: 'who changed what: cursors, backfills, records set aside, erasures',
      options: [limitOf(20), 'config', 'json'],
      more: AUDIT_EXAMPLES,
      async run(context, options: Options & { limit: number }) {
        const read = (state: Database) => listAudit(state, options);
        const entries = await readState(context, options, () => [], read);
        const table = (): string => `${fittedTable(AUDIT_COLUMNS, entries, context.terminal.columns)}\n\ntimes in UTC`;
        return show(context, options, { entries }, () =>
          entries.length === 0 ? 'no changes have been recorded yet' : table(),
        );
      },
    },
  },
});

const RUN_COLUMNS: ReadonlyArray<FittedColumn<RunRecord>> = [
  { header: 'started', of: (run) => minute(run.startedAt) },
  { header: 'kind', of: (run) => run.kind, spare: 3 },
  { header: 'stream', of: (run) => `${run.source}/${run.stream}` },
  { header: 'state', of: (run) => run.state },
  { header: 'read', of: (run) => figure(run.read), spare: 2 },
  { header: 'new', of: (run) => figure(run.new) },
  { header: 'changed', of: (run) => figure(run.changed), spare: 1 },
  { header: 'req', of: (run) => figure(run.requests), spare: 5 },
  { header: 'took', of: (run) => tookOf(run), spare: 4 },
];

function describe(runs: readonly RunRecord[], limit: number, columns: number): string {
  if (runs.length === 0) return 'no run matches';
  return [
    fittedTable(RUN_COLUMNS, runs, columns),
    ...[...reasonsOf(runs), ...runs.flatMap(sinksOf)].map((line) => wrap(line, 2, columns)),
    '',
    `times in UTC${runs.length === limit ? ` · the newest ${limit}; --limit shows more` : ''}`,
  ].join('\n');
}

/** The counts by sink, if they differ because a sink was added or emptied: the table shows the highest. */
const sinksOf = ({ startedAt, source, stream, sinks }: RunRecord): string[] =>
  sinks ? [`${minute(startedAt)}, ${source}/${stream} by sink: ${describeSinks(sinks)}`] : [];

const REASONS_SHOWN = 8;

/** Why runs are not done, newest first. Runs of a stream with the same reason share a line. */
function reasonsOf(runs: readonly RunRecord[]): string[] {
  const failed = runs.filter((run) => reasonOf(run) !== undefined);
  const lines = groupBy(failed, (run) => `${run.source}/${run.stream} ${run.state}: ${reasonOf(run)}`);
  const described = [...lines].map(([text, [newest, ...others]]) => {
    const also = others.length === 0 ? '' : ` and ${others.length} before`;
    return `${minute(newest?.startedAt)}${also}, ${text}`;
  });
  const more = described.length - REASONS_SHOWN;
  return [...described.slice(0, REASONS_SHOWN), ...(more > 0 ? [`${more} more reasons: see --json`] : [])];
}

/** Why a run failed, unless its state already says it. */
function reasonOf({ message, state }: RunRecord): string | undefined {
  if (message !== null && message !== state) return message;
  return state === 'incomplete' ? 'not all windows are certified: tributary status shows which, and why' : undefined;
}

const tookOf = ({ startedAt, finishedAt }: RunRecord): string =>
  finishedAt === null ? '' : duration((Date.parse(finishedAt) - Date.parse(startedAt)) / 1000);

/** The target of a sync of many streams is long; --json has all of it. */
const MOST_OF_TARGET = 30;

const AUDIT_COLUMNS: ReadonlyArray<FittedColumn<AuditRecord>> = [
  { header: 'when', of: ({ at }) => minute(at) },
  { header: 'who', of: ({ actor }) => actor },
  { header: 'what', of: ({ action, detail }) => ('failed' in detail ? `${action} (failed)` : action) },
  { header: 'of', of: ({ target }) => shortened(target ?? '', MOST_OF_TARGET), spare: 2 },
  { header: 'from', of: ({ from }) => from ?? '', spare: 1 },
];
