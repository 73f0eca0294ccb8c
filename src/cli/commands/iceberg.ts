import { environment, withSinks } from '../../app/index.ts';
import { ConfigError } from '../../model/errors.ts';
import { abilityOf, type Maintained } from '../../sinks/sink.ts';
import { type CommonOptions, EXIT, type Register } from '../command.ts';
import { withConfig, withJson, withSink } from '../options.ts';
import { figure, table } from '../terminal/table.ts';

const EXAMPLES = `
Examples:
  tributary iceberg maintain           every table of every Iceberg sink
  tributary iceberg maintain --json

A sync joins small files and lets go of snapshots that are older than a day, a
little at a time. This does all of it at once: joins every day's small files,
lets go of old snapshots, and removes files that no snapshot names. It may run
beside a sync and beside readers, and again after it was interrupted.`;

export const registerIceberg: Register = (program, action) => {
  const iceberg = program.command('iceberg').description('look after Iceberg tables').addHelpText('after', EXAMPLES);
  const command = iceberg
    .command('maintain')
    .description('join small files, let go of old snapshots, remove what nobody names')
    .addHelpText('after', EXAMPLES);
  withJson(withSink(withConfig(command))).action(
    action(async ({ terminal, log }, options: CommonOptions) => {
      const { config } = environment.configOrDefaults(options.config);
      const done = await withSinks({ config, log }, async ({ sinks }) => {
        const maintained: Record<string, Maintained> = {};
        const chosen = sinks.filter(({ name, maintain }) => maintain && (options.sink ?? name) === name);
        if (chosen.length === 0) throw noTables(options.sink);
        for (const sink of chosen) maintained[sink.name] = await abilityOf(sink, 'maintain')();
        return maintained;
      });
      terminal.out(options.json ? JSON.stringify(done, null, 2) : describe(done));
      return EXIT.done;
    }),
  );
};

const noTables = (name: string | undefined): ConfigError =>
  new ConfigError(name === undefined ? 'the config has no Iceberg sink' : `the config has no Iceberg sink "${name}"`, {
    next: 'add a sink of type iceberg: see docs/lake.md',
  });

const describe = (done: Readonly<Record<string, Maintained>>): string =>
  table(
    ['sink', 'table', 'files joined', 'snapshots let go', 'files removed', 'data files now'],
    Object.entries(done).flatMap(([sink, tables]) =>
      Object.entries(tables).map(([name, { joined, expired, removed, files }]) => [
        sink,
        name,
        ...[joined, expired, removed, files].map(figure),
      ]),
    ),
  );
