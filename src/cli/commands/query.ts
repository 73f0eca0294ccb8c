import { environment, hasState, withApp } from '../../app/index.ts';
import type { Config } from '../../config/index.ts';
import { type Database, withDatabase } from '../../cursor/database/index.ts';
import { ConfigError, Fault } from '../../model/errors.ts';
import type { Log } from '../../model/log.ts';
import { moment } from '../../model/window.ts';
import { command, EXIT, firstStep, limitOf, type Options } from '../command.ts';
import { figure, table } from '../terminal.ts';

const EXAMPLES = `Examples:
  tributary query "select * from attribution.coverage"
  tributary query "select count(*) from attribution.clicks" --json
  tributary query "select * from tributary.runs" --limit 5

Runs one read-only query on the Postgres sink, embedded or not. With a server of
your own, psql and every other client work as well.`;

export const registerQuery = command('query', {
  does: 'run a SQL query on the tables, including those of the embedded Postgres',
  takes: ['<sql>', 'one query: select, with, values or table'],
  options: [limitOf(100, 'how many rows at most'), 'config', 'sink', 'json'],
  more: EXAMPLES,
  async run({ terminal, log, document }, sql: string, options: Options & { limit: number }) {
    const { config } = environment.configOrDefaults(options.config);
    const sink = chooseSink(config, options.sink);
    const ask = (db: Database) => run(db, sql, options.limit);
    const { rows, isCut } =
      sink.url === undefined ? await withState(config, log, ask) : await withDatabase({ url: sink.url, max: 1 }, ask);
    if (options.json) terminal.out(document({ rows, isCut }));
    else terminal.out(describe(rows, isCut, options.limit, terminal.isInteractive ? terminal.columns : undefined));
    return EXIT.done;
  },
});

function chooseSink({ sinks }: Config, name: string | undefined): { url?: string | undefined } {
  const tables = Object.entries(sinks).flatMap(([key, sink]) => (sink.type === 'postgres' ? [{ key, sink }] : []));
  const chosen = tables.find(({ key }) => name === undefined || key === name);
  if (chosen) return chosen.sink;
  throw new ConfigError(name === undefined ? 'the config has no Postgres sink' : `"${name}" is not a Postgres sink`, {
    next:
      tables.length > 0
        ? `use one of: ${tables.map(({ key }) => key).join(', ')}`
        : 'DuckDB reads a lake: docs/lake.md',
  });
}

function withState<T>(config: Config, log: Log, ask: (db: Database) => Promise<T>): Promise<T> {
  if (hasState(config)) return withApp({ config, log }, ({ state }) => ask(state));
  throw new ConfigError('nothing has been synced yet', { next: firstStep(config) });
}

type Row = Record<string, unknown>;

/** Uses a cursor, which accepts nothing but a query, and does not fetch a large table to show its first rows. */
async function run(db: Database, sql: string, limit: number): Promise<{ rows: Row[]; isCut: boolean }> {
  const query = sql.trim().replace(/;+$/, '');
  const found = await db
    .transaction(async (tx) => {
      await tx.query({ text: 'set transaction read only' });
      await tx.query({ text: `declare result no scroll cursor for ${query}`, isSingle: true });
      return tx.query<Row>({ text: `fetch ${limit + 1} from result`, hasSameNames: true });
    })
    .catch((error: unknown) => {
      // Recovery: a lost connection is reported as elsewhere. Any other error is about the query.
      if (error instanceof Fault) throw error;
      throw refusal(query, error instanceof Error ? error.message : String(error));
    });
  return { rows: found.slice(0, limit), isCut: found.length > limit };
}

/** Replaces the messages of Postgres that are about the cursor: they would mislead. */
function refusal(query: string, says: string): ConfigError {
  const kept = 'nothing was changed';
  if (says.includes('multiple commands'))
    return new ConfigError('the query has more than one statement', { kept, next: 'run them one at a time' });
  const [first = ''] = query.replace(/^(\s|--.*|\/\*[\s\S]*?\*\/)+/, '').split(/[^a-z]/i, 1);
  if (says.includes('data-modifying') || /^(alter|create|delete|drop|insert|merge|truncate|update)$/i.test(first))
    return new ConfigError('query is read-only, and this statement would write', {
      kept,
      next: 'tributary forget erases rows; for anything else connect with psql',
    });
  const next = /relation .* does not exist/.test(says)
    ? 'tributary schema lists the tables and views'
    : 'correct the query: one select, with, values or table';
  return new ConfigError(says, { next });
}

function describe(rows: readonly Row[], isCut: boolean, limit: number, columns: number | undefined): string {
  const [first] = rows;
  if (!first) return 'no rows';
  const headers = Object.keys(first);
  const text = table(
    headers,
    rows.map((row) => headers.map((name) => cell(row[name]))),
    columns,
  );
  return isCut ? `${text}\n\nthe first ${figure(limit)} rows; --limit shows more` : text;
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (value instanceof Date) return moment(value.getTime());
  if (typeof value === 'object' && 'toPostgres' in value)
    return interval((value as { toPostgres(): string }).toPostgres());
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** The driver writes the smallest unit first, and every unit in the plural. */
const interval = (text: string): string =>
  (text.match(/\S+ \S+/g) ?? [text])
    .map((part) => part.replace(/^(-?1 \w+)s$/, '$1'))
    .reverse()
    .join(' ');
