import type { Command } from 'commander';
import { environment } from '../../app/index.ts';
import { writeYaml } from '../../config/document.ts';
import { DEFAULT_CONFIG } from '../../config/index.ts';
import { printable } from '../../config/print.ts';
import { EXIT, type Options, type Register, withOptions } from '../command.ts';
import { counted } from '../terminal.ts';

const CHECK = `
Examples:
  tributary config check
  tributary config check --config staging.yaml

Reports all errors at once, with line and column. It contacts neither the
service nor a database; tributary doctor does.`;

const PRINT = `
Examples:
  tributary config print
  tributary config print --json | jq .sources

Prints the config with defaults and environment variables filled in. Keys,
passwords, tokens and salts are masked.`;

export const registerConfig: Register = (program, action) => {
  const config = program
    .command('config')
    .description('check the config, or print it with defaults filled in')
    .addHelpText('after', '\nExample:\n  tributary config check\n  tributary config print');
  const common = (command: Command): Command => withOptions(command, 'config', 'json');
  common(config.command('check').description('report every error in the config').addHelpText('after', CHECK)).action(
    action(async ({ terminal, document }, options: Options) => {
      const file = options.config ?? DEFAULT_CONFIG;
      const { config, warnings } = environment.config(file);
      const [sources, sinks] = [Object.keys(config.sources), Object.keys(config.sinks)];
      if (options.json) terminal.out(document({ file, sources, sinks, warnings }));
      else {
        for (const warning of warnings) terminal.err(`note: ${warning}\n`);
        terminal.out(`${file} is sound: ${counted(sources.length, 'source')}, ${counted(sinks.length, 'sink')}`);
      }
      return EXIT.done;
    }),
  );
  common(
    config
      .command('print')
      .description('the config with defaults filled in, secrets masked')
      .addHelpText('after', PRINT),
  ).action(
    action(async ({ terminal, document }, options: Options) => {
      const shown = printable(environment.configOrDefaults(options.config).config);
      terminal.out(options.json ? document(shown) : writeYaml(shown));
      return EXIT.done;
    }),
  );
};
