import { environment, withSinks } from '../../app/index.ts';
import { ConfigError } from '../../model/errors.ts';
import { STREAM_NAMES } from '../../model/streams.ts';
import { abilityOf, type Rewrites } from '../../sinks/sink.ts';
import { type CommonOptions, EXIT, type Register } from '../command.ts';
import { parseStreams, withConfig, withJson, withSink } from '../options.ts';
import { figure, table } from '../terminal/table.ts';

const EXAMPLES = `
Examples:
  tributary lake rewrite               every stream of every lake
  tributary lake rewrite clicks --json

A file keeps the columns that were known when it was last written. Readers that
unite columns by name need nothing; for others this gives old files the columns
of today, as nulls. Files that have them are not touched. It may run beside a
sync, and again after it was interrupted.`;

export const registerLake: Register = (program, action) => {
  const lake = program.command('lake').description('look after lakes of Parquet files').addHelpText('after', EXAMPLES);
  const command = lake
    .command('rewrite')
    .description('bring old Parquet files up to the columns of today')
    .argument('[stream...]', `${STREAM_NAMES.join(', ')}; all of them where none is named`)
    .addHelpText('after', EXAMPLES);
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
      terminal.out(options.json ? document({ lakes: done }) : describe(done));
      return EXIT.done;
    }),
  );
};

const noLake = (name: string | undefined): ConfigError =>
  new ConfigError(name === undefined ? 'the config has no lake' : `the config has no lake "${name}"`, {
    next: 'add a sink of type parquet: see docs/lake.md',
  });

const describe = (done: Readonly<Record<string, Rewrites>>): string =>
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
  );
