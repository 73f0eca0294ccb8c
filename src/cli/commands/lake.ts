import { environment, withSinks } from '../../app/index.ts';
import { ConfigError } from '../../model/errors.ts';
import { STREAM_NAMES } from '../../model/streams.ts';
import { abilityOf, type Maintained, type Rewrites } from '../../sinks/sink.ts';
import { type CommonOptions, EXIT, parseStreams, type Register, withConfig, withJson, withSink } from '../command.ts';
import { figure, table } from '../terminal.ts';

const LAKE_EXAMPLES = `
Examples:
  tributary lake rewrite               every stream of every lake
  tributary lake rewrite clicks --json

A file keeps the columns that were known when it was last written. Readers that
merge schemas by name need nothing; for others this adds the current columns to
old files, as nulls. Files that have them are not rewritten. It may run during a
sync, and can be repeated after an interruption.`;

export const registerLake: Register = (program, action) => {
  const lake = program
    .command('lake')
    .description('maintain lakes of Parquet files')
    .addHelpText('after', LAKE_EXAMPLES);
  const command = lake
    .command('rewrite')
    .description('add the current columns to old Parquet files')
    .argument('[stream...]', `${STREAM_NAMES.join(', ')}; all if none is named`)
    .addHelpText('after', LAKE_EXAMPLES);
  withJson(withSink(withConfig(command))).action(
    action(async ({ terminal, log, document }, names: string[], options: CommonOptions) => {
      const streams = names.length > 0 ? parseStreams(names) : STREAM_NAMES;
      const { config } = environment.configOrDefaults(options.config);
      const done = await withSinks({ config, log }, async ({ sinks }) => {
        const rewrites: Record<string, Rewrites> = {};
        const lakes = sinks.filter(({ name, rewrite }) => rewrite && (options.sink ?? name) === name);
        if (lakes.length === 0) throw noLake(options.sink);
        for (const sink of lakes) rewrites[sink.name] = await abilityOf(sink, 'rewrite')(streams);
        return rewrites;
      });
      if (options.json) terminal.out(document({ lakes: done }));
      else terminal.say(describeRewrites(done, terminal.columns));
      return EXIT.done;
    }),
  );
};

const noLake = (name: string | undefined): ConfigError =>
  new ConfigError(name === undefined ? 'the config has no lake' : `the config has no lake "${name}"`, {
    next: 'add a sink of type parquet: see docs/lake.md',
  });

const describeRewrites = (done: Readonly<Record<string, Rewrites>>, columns: number): string =>
  table(
    ['lake', 'stream', 'files', 'rewritten', 'rows'],
    Object.entries(done).flatMap(([sink, rewrites]) =>
      Object.entries(rewrites).map(([stream, { files, rewritten, rows }]) => [
        sink,
        stream,
        figure(files),
        figure(rewritten),
        figure(rows),
      ]),
    ),
    columns,
  );

const ICEBERG_EXAMPLES = `
Examples:
  tributary iceberg maintain           every table of every Iceberg sink
  tributary iceberg maintain --json

A worker does what is due every five minutes, a sync at its end: it joins small
files and expires snapshots that were replaced a day ago. This does all of it at
once: it joins every day's small files, expires old snapshots, and removes files
that no snapshot lists. It may run during a sync or a query, and can be repeated
after an interruption.`;

export const registerIceberg: Register = (program, action) => {
  const iceberg = program
    .command('iceberg')
    .description('maintain Iceberg tables')
    .addHelpText('after', ICEBERG_EXAMPLES);
  const command = iceberg
    .command('maintain')
    .description('join small files, expire old snapshots, remove unreferenced files')
    .addHelpText('after', ICEBERG_EXAMPLES);
  withJson(withSink(withConfig(command))).action(
    action(async ({ terminal, log, document }, options: CommonOptions) => {
      const { config } = environment.configOrDefaults(options.config);
      const done = await withSinks({ config, log }, async ({ sinks }) => {
        const maintained: Record<string, Maintained> = {};
        const chosen = sinks.filter(({ name, maintain }) => maintain && (options.sink ?? name) === name);
        if (chosen.length === 0) throw noTables(options.sink);
        for (const sink of chosen) maintained[sink.name] = await abilityOf(sink, 'maintain')();
        return maintained;
      });
      if (options.json) terminal.out(document({ sinks: done }));
      else terminal.say(describeMaintained(done, terminal.columns));
      return EXIT.done;
    }),
  );
};

const noTables = (name: string | undefined): ConfigError =>
  new ConfigError(name === undefined ? 'the config has no Iceberg sink' : `the config has no Iceberg sink "${name}"`, {
    next: 'add a sink of type iceberg: see docs/iceberg.md',
  });

function describeMaintained(done: Readonly<Record<string, Maintained>>, columns: number): string {
  const rows = Object.entries(done).flatMap(([sink, tables]) =>
    Object.entries(tables).map(([name, { joined, expired, removed, files }]) => [
      sink,
      name,
      ...[files, joined, removed, expired].map(figure),
    ]),
  );
  return [
    table(['sink', 'table', 'data files', 'joined', 'removed', 'expired'], rows, columns),
    '',
    'joined, removed: files · expired: snapshots',
  ].join('\n');
}
