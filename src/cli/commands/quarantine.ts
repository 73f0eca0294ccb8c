import { byCommand, environment, withApp } from '../../app/index.ts';
import type { Config } from '../../config/index.ts';
import { type AuditEntry, audited } from '../../cursor/audit.ts';
import { holderOf } from '../../cursor/database/holders.ts';
import {
  countQuarantined,
  dropQuarantined,
  listQuarantined,
  masked,
  type Quarantined,
} from '../../cursor/quarantine.ts';
import { ConfigError } from '../../model/errors.ts';
import { createFlatten } from '../../model/flatten.ts';
import { parseJson, stringifyJson } from '../../model/json.ts';
import { STREAMS } from '../../model/streams.ts';
import { groupBy } from '../../sinks/files/group-by.ts';
import { type Retried, retryQuarantined } from '../../sync/maintain/retry-quarantined.ts';
import { type Context, command, EXIT, type ExitCode, limitOf, type Options, show } from '../command.ts';
import { checkKnown, readState, withStored } from '../config.ts';
import { confirm, counted, type FittedColumn, fittedTable, minute } from '../terminal.ts';

const LIST = `Examples:
  tributary quarantine list
  tributary quarantine list --source main --json`;

const SHOW = `Examples:
  tributary quarantine show 17
  tributary quarantine show 17 --raw     with addresses, names and e-mails

Personal data is masked unless --raw is given; a link's password is never kept.`;

const RETRY = `Examples:
  tributary quarantine retry 17 18
  tributary quarantine retry --all       after an upgrade

Processes the kept records again. Valid records are written to every sink and
leave the quarantine; the rest stay, with their reasons.`;

const DROP = `Examples:
  tributary quarantine drop 17
  tributary quarantine drop --all --source main --yes

Deletes the kept records; with --all it asks first, and without a terminal it
needs --yes. If a sync reads them again, it sets them aside again.`;

type QuarantineOptions = Options & { raw?: boolean; all?: boolean; limit: number };

const CHOSEN = { takes: ['[id...]', 'numbers in the list'] } as const;
const ALL = ['--all', 'all of them'] as const;

export const registerQuarantine = command('quarantine', {
  does: 'list unusable records, retry or drop them',
  options: [],
  more: 'Example:\n  tributary quarantine list\n  tributary quarantine retry --all',
  commands: {
    list: {
      does: 'what was set aside, and why',
      options: ['source', limitOf(20), 'config', 'json'],
      more: LIST,
      run: list,
    },
    show: {
      does: 'one record, with personal data masked',
      takes: ['<id>', 'its number in the list'],
      options: [['--raw', 'with the personal data that was kept'], 'config', 'json'],
      more: SHOW,
      run: showOne,
    },
    retry: {
      ...CHOSEN,
      does: 'process records again',
      options: [[...ALL], 'source', 'config', 'json'],
      more: RETRY,
      run: retry,
    },
    drop: {
      ...CHOSEN,
      does: 'delete records permanently',
      options: ['dryRun', 'yes', [...ALL], 'source', 'config', 'json'],
      more: DROP,
      run: drop,
    },
  },
});

async function list(context: Context, options: QuarantineOptions): Promise<ExitCode> {
  const { source, limit } = options;
  const nothing = { records: [] as Quarantined[], total: 0 };
  const { records, total } = await readState(
    context,
    options,
    () => nothing,
    async (state) => ({
      records: await listQuarantined(state, { source, limit }),
      total: await countQuarantined(state, { source }),
    }),
  );
  return show(context, options, { total, records: records.map(head) }, () =>
    describeList(records, total, context.terminal.columns),
  );
}

async function showOne(
  { terminal, log, document }: Context,
  id: string,
  { raw = false, ...options }: QuarantineOptions,
): Promise<ExitCode> {
  const { config } = environment.configOrDefaults(options.config);
  const [record] = await withApp({ config, log }, ({ state }) => listQuarantined(state, { ids: idsOf([id]) }));
  if (!record) throw unknown([id]);
  if (options.json) terminal.out(document({ ...head(record), record: shown(record.record, raw) }));
  else {
    terminal.say(describeOne(record));
    terminal.out(`\n${stringifyJson(shown(record.record, raw), 2)}`);
  }
  return EXIT.done;
}

async function retry(context: Context, ids: string[], options: QuarantineOptions): Promise<ExitCode> {
  const filter = filterOf(ids, options);
  const results = await withStored(context, options, async ({ config, state, sinks }) => {
    const records = await chosenOf(listQuarantined(state, filter), ids);
    return audited(state, entryOf('retry', records), async () => {
      const retried: Retried[] = [];
      for (const job of jobsOf(records, config)) {
        retried.push(...(await retryQuarantined({ state, sinks, holder: holderOf('quarantine retry') }, job)));
      }
      return retried;
    });
  });
  const retried = results.map((one) => ({ ...one, reason: one.reason ?? null }));
  show(context, options, { retried }, () => describeRetried(results));
  return results.every(({ reason }) => reason === undefined) ? EXIT.done : EXIT.incomplete;
}

async function drop(context: Context, ids: string[], options: QuarantineOptions): Promise<ExitCode> {
  const { log } = context;
  const filter = filterOf(ids, options);
  const { config } = environment.configOrDefaults(options.config);
  const dropped = await withApp({ config, log }, async ({ state }) => {
    await checkKnown(state, config, options.source);
    const records = await chosenOf(listQuarantined(state, filter), ids);
    if (options.dryRun) return records.length;
    if (options.all && records.length > 0) {
      await confirm(context, `Delete ${counted(records.length, 'record')} permanently?`, options);
    }
    const chosen = records.map(({ id }) => id);
    return audited(state, entryOf('drop', records), () => dropQuarantined(state, chosen));
  });
  const text = `${counted(dropped, 'record')} ${options.dryRun ? 'would be dropped; nothing was changed' : 'dropped'}`;
  return show(context, options, { dropped, dryRun: options.dryRun === true }, () => text);
}

/** One record is named by its id, as in the control room; several by a count. */
const entryOf = (verb: 'retry' | 'drop', records: readonly Quarantined[]): AuditEntry => ({
  ...byCommand(),
  action: `quarantine.${verb}`,
  target: records.length === 1 ? String(records[0]?.id) : undefined,
  detail: { records: records.length },
});

/** Records by stream, with the current config of each stream. */
function jobsOf(records: readonly Quarantined[], config: Config) {
  return [...groupBy(records, ({ source, stream }) => `${source}/${stream}`).values()].map((own) => {
    const { source, stream } = own[0] as Quarantined;
    const unknownFields = config.sources[source]?.streams[stream]?.unknownFields ?? 'evolve';
    return { source, stream, unknownFields, flatten: createFlatten(STREAMS[stream], config.privacy), records: own };
  });
}

function idsOf(texts: readonly string[]): number[] {
  const odd = texts.find((text) => !/^\d{1,15}$/.test(text));
  if (odd !== undefined) throw new ConfigError('an id must be a number', { next: 'see tributary quarantine list' });
  return texts.map(Number);
}

function filterOf(texts: readonly string[], { all, source }: QuarantineOptions) {
  if (texts.length > 0 === (all === true)) {
    throw new ConfigError('no records were named', {
      next: 'give their numbers, or --all; see tributary quarantine list',
    });
  }
  return { ids: all ? undefined : idsOf(texts), source };
}

/** All ids must exist, or nothing is done: a mistyped id must not be reported as done. */
async function chosenOf(found: Promise<Quarantined[]>, ids: readonly string[]): Promise<Quarantined[]> {
  const records = await found;
  const missing = ids.filter((id) => !records.some((record) => record.id === Number(id)));
  if (missing.length > 0) throw unknown(missing);
  return records;
}

const unknown = (ids: readonly string[]): ConfigError =>
  new ConfigError(`there is no record ${ids.join(', ')} in quarantine`, { next: 'see tributary quarantine list' });

const shown = (record: string, raw: boolean): unknown => {
  const value = parseJson(record);
  return raw ? value : masked(value);
};

function describeList(records: readonly Quarantined[], total: number, columns: number): string {
  if (records.length === 0) return 'nothing was set aside';
  const more = total > records.length ? ` · the newest ${records.length} of ${total}; --limit shows more` : '';
  return [fittedTable(COLUMNS, records, columns), '', `times in UTC${more}`].join('\n');
}

const COLUMNS: ReadonlyArray<FittedColumn<Quarantined>> = [
  { header: 'id', of: ({ id }) => String(id) },
  { header: 'stream', of: ({ source, stream }) => `${source}/${stream}` },
  { header: 'last seen', of: ({ lastAt }) => minute(lastAt) },
  { header: 'reason', of: ({ reason }) => reason },
];

function describeOne({ id, source, stream, reason, runId, firstAt, lastAt }: Quarantined): string {
  return [
    `record ${id} of ${source}/${stream}`,
    `reason: ${reason}`,
    `seen:   ${minute(firstAt)} to ${minute(lastAt)} UTC, last by run ${runId}`,
  ].join('\n');
}

function describeRetried(results: readonly Retried[]): string {
  if (results.length === 0) return 'nothing was set aside';
  const stuck = results.filter(({ reason }) => reason !== undefined);
  const done = results.length - stuck.length;
  return [
    `${counted(done, 'record')} written, ${stuck.length} still unusable`,
    ...stuck.map(({ id, reason }) => `${id}: ${reason}`),
  ].join('\n');
}

const head = ({ runId: run, record: _, ...rest }: Quarantined): object => ({ ...rest, run });
