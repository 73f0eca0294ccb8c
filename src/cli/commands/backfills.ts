import { byCommand, environment } from '../../app/index.ts';
import { audited } from '../../cursor/audit.ts';
import { type Backfill, readBackfills } from '../../cursor/backfills.ts';
import { isoOrNull } from '../../cursor/database/sql.ts';
import { toIso } from '../../model/instant.ts';
import { rangeOf } from '../../sync/windows-to-read.ts';
import { type Context, type Definition, type ExitCode, type Options, show } from '../command.ts';
import { readState } from '../config.ts';
import { type FittedColumn, figure, fittedTable, percent } from '../terminal.ts';

const LIST_EXAMPLES = `Examples:
  tributary backfill list              queued backfills and their progress
  tributary backfill list --json

tributary backfill --queue adds one. What a backfill has read stays, even if it
is cancelled. "certified" is the share of the range that is certified in every
sink. "to" is exclusive. Times are UTC.`;

const VERBS = {
  pause: { does: 'pause after the current page; the rest waits', done: 'is paused' },
  resume: { does: 'resume a paused backfill', done: 'goes on' },
  cancel: { does: 'cancel a backfill permanently; what it has read stays', done: 'is cancelled' },
  retry: { does: 'read only the failed windows again', done: 'tries its failed windows again' },
} as const;

type Verb = keyof typeof VERBS;

/** The commands for what `backfill --queue` has added. */
export const QUEUED: Readonly<Record<string, Definition>> = {
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
        takes: ['<id>', 'as tributary backfill list shows it'],
        options: ['config', 'json'],
        more: `Example:\n  tributary backfill ${verb} 20261113180000-3fa9c1`,
        run: (context: Context, id: string, options: Options) => steer(context, verb as Verb, id, options),
      } satisfies Definition,
    ]),
  ),
};

async function listAll(context: Context, options: Options): Promise<ExitCode> {
  const all = await readState(context, options, () => [], readBackfills);
  return show(context, options, { backfills: all.map(toJson) }, () => describe(all, context.terminal.columns));
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

function describe(all: readonly Backfill[], columns: number): string {
  if (all.length === 0) return 'no backfill was ever given to the queue\nnext: tributary backfill --queue';
  const failed = all.filter(({ message }) => message !== null).map(({ id, message }) => `${id}: ${message}`);
  return [fittedTable(COLUMNS, all, columns), ...failed].join('\n');
}

const toJson = ({ start, end, createdAt, finishedAt, ...backfill }: Backfill): object => ({
  ...backfill,
  ...rangeOf({ start, end }),
  createdAt: toIso(createdAt),
  finishedAt: isoOrNull(finishedAt),
});
