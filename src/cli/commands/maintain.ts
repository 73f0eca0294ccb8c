import { ConfigError } from '../../model/errors.ts';
import { STREAM_NAMES } from '../../model/streams.ts';
import type { Maintained, Rewrites } from '../../sinks/sink.ts';
import { command, type Options, parseStreams, show } from '../command.ts';
import { withStored } from '../config.ts';
import { figure, table } from '../terminal.ts';

const EXAMPLES = `Examples:
  tributary maintain                   every lake and every Iceberg table
  tributary maintain clicks --sink lake --json

Parquet lakes: a file keeps the columns that were known when it was last
written. Readers that merge schemas by name need nothing; for others this adds
the current columns to old files, as nulls.

Iceberg tables: a worker maintains them every five minutes, a sync at its end.
This does everything at once: it compacts every day's small files, expires old
snapshots, and removes files that no snapshot references.

It may run during a sync or a query, and can be repeated after an interruption.`;

export const registerMaintain = command('maintain', {
  does: 'compact Iceberg tables, and add new columns to old Parquet files',
  takes: ['[stream...]', `of lakes: ${STREAM_NAMES.join(', ')}; all if none is named`],
  options: ['config', 'sink', 'json'],
  more: EXAMPLES,
  async run(context, names: string[], options: Options) {
    const streams = names.length > 0 ? parseStreams(names) : STREAM_NAMES;
    const done = await withStored(context, options, async ({ sinks }) => {
      const [lakes, tables]: [Record<string, Rewrites>, Record<string, Maintained>] = [{}, {}];
      for (const sink of sinks.filter(({ name }) => (options.sink ?? name) === name)) {
        if (sink.rewrite) lakes[sink.name] = await sink.rewrite(streams);
        if (sink.maintain) tables[sink.name] = await sink.maintain();
      }
      return { lakes, tables };
    });
    if (Object.keys({ ...done.lakes, ...done.tables }).length === 0) throw nothingToDo(options.sink);
    const { columns } = context.terminal;
    return show(context, options, done, () =>
      [...describeLakes(done.lakes, columns), ...describeTables(done.tables, columns)].join('\n\n'),
    );
  },
});

const nothingToDo = (name: string | undefined): ConfigError =>
  new ConfigError(`the config has no lake and no Iceberg sink${name === undefined ? '' : ` "${name}"`}`, {
    next: 'tables in Postgres need no maintenance by tributary; for files, add a sink: see docs/lake.md and docs/iceberg.md',
  });

function describeLakes(done: Readonly<Record<string, Rewrites>>, columns: number): string[] {
  const rows = Object.entries(done).flatMap(([sink, streams]) =>
    Object.entries(streams).map(([stream, { files, rewritten, rows: written }]) => [
      sink,
      stream,
      ...[files, rewritten, written].map(figure),
    ]),
  );
  return rows.length > 0 ? [table(['lake', 'stream', 'files', 'rewritten', 'rows'], rows, columns)] : [];
}

function describeTables(done: Readonly<Record<string, Maintained>>, columns: number): string[] {
  const rows = Object.entries(done).flatMap(([sink, tables]) =>
    Object.entries(tables).map(([name, { joined, expired, removed, files }]) => [
      sink,
      name,
      ...[files, joined, removed, expired].map(figure),
    ]),
  );
  if (rows.length === 0) return [];
  const header = ['sink', 'table', 'data files', 'joined', 'removed', 'expired'];
  return [table(header, rows, columns), 'joined, removed: files · expired: snapshots'];
}
