import { environment, withSinks } from '../app.ts';
import { ConfigError } from '../model/errors.ts';
import type { Erasure } from '../sinks/sink.ts';
import { forget } from '../sync/forget.ts';
import type { CommonOptions, Register } from './command.ts';
import { EXIT } from './exit-codes.ts';
import { withConfig, withJson } from './options.ts';
import { figure, table } from './terminal/table.ts';

const EXAMPLES = `
Examples:
  tributary forget --source main --customer cus_8pQ2
  tributary forget --source main --click clk_77Xa
  tributary forget --source old-eu --everything     removes the source: rows, cursors, history

A forgotten customer's events stay, without name, e-mail, ip or metadata; a forgotten click is deleted. Both stay
forgotten: the service still has them, and later syncs leave them out. This cannot be undone.`;

interface ForgetOptions extends CommonOptions {
  source: string;
  customer?: string;
  click?: string;
  everything?: boolean;
}

export const registerForget: Register = (program, action) => {
  const command = program
    .command('forget')
    .description('erase a customer, a click or a whole source, and say what was touched')
    .requiredOption('--source <NAME>', 'the source that it is in')
    .option('--customer <ID>', 'a customer, by its id')
    .option('--click <ID>', 'a click, by its id')
    .option('--everything', 'the whole source')
    .addHelpText('after', EXAMPLES);
  withJson(withConfig(command)).action(
    action(async ({ terminal, log }, options: ForgetOptions) => {
      const erasure = erasureOf(options);
      const { config } = environment.configOrDefaults(options.config);
      const touched = await withSinks({ config, log }, ({ state, sinks }) => forget(state, sinks, erasure));
      const rows = Object.entries(touched).map(([place, n]) => [place, figure(n)]);
      terminal.out(options.json ? JSON.stringify({ touched }, null, 2) : table(['where', 'rows'], rows));
      return EXIT.done;
    }),
  );
};

function erasureOf({ source, customer, click, everything }: ForgetOptions): Erasure {
  const asked = [customer, click, everything].filter((one) => one !== undefined);
  if (asked.length !== 1) throw new ConfigError('say what to forget: one of --customer ID, --click ID or --everything');
  if (customer !== undefined) return { source, kind: 'customer', id: customer };
  return click === undefined ? { source, kind: 'source' } : { source, kind: 'click', id: click };
}
