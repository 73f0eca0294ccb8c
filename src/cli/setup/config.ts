import { environment } from '../../app/index.ts';
import { writeYaml } from '../../config/document.ts';
import { DEFAULT_CONFIG } from '../../config/index.ts';
import { printable } from '../../config/print.ts';
import { command, EXIT, type Options } from '../command.ts';
import { counted } from '../terminal.ts';

const CHECK = `Examples:
  tributary config check
  tributary config check --config staging.yaml

Reports all errors at once, with line and column. It contacts neither the
service nor a database; tributary doctor does.`;

const PRINT = `Examples:
  tributary config print
  tributary config print --json | jq .sources

Prints the config with defaults and environment variables filled in. Keys,
passwords, tokens and salts are masked.`;

export const registerConfig = command('config', {
  does: 'check the config, or print it with defaults filled in',
  options: [],
  more: 'Example:\n  tributary config check\n  tributary config print',
  commands: {
    check: {
      does: 'report every error in the config',
      options: ['config', 'json'],
      more: CHECK,
      async run({ terminal, document }, options: Options) {
        const file = options.config ?? DEFAULT_CONFIG;
        const { config, warnings } = environment.config(file);
        const [sources, sinks] = [Object.keys(config.sources), Object.keys(config.sinks)];
        if (options.json) terminal.out(document({ file, sources, sinks, warnings }));
        else {
          for (const warning of warnings) terminal.err(`note: ${warning}\n`);
          terminal.out(`${file} is valid: ${counted(sources.length, 'source')}, ${counted(sinks.length, 'sink')}`);
        }
        return EXIT.done;
      },
    },
    print: {
      does: 'the config with defaults filled in, secrets masked',
      options: ['config', 'json'],
      more: PRINT,
      async run({ terminal, document }, options: Options) {
        const shown = printable(environment.configOrDefaults(options.config).config);
        terminal.out(options.json ? document(shown) : writeYaml(shown));
        return EXIT.done;
      },
    },
  },
});
