import type { Register } from './command.ts';
import { withConfig, withJson } from './options.ts';
import { work } from './worker.ts';

const EXAMPLES = `
Example:
  tributary start --config tributary.yaml

The worker in one command. Its web page (health, metrics, dashboard) comes with
a later version.`;

export const registerStart: Register = (program, action) => {
  const command = program
    .command('start')
    .description('the worker, and with a later version its web page')
    .addHelpText('after', EXAMPLES);
  withJson(withConfig(command)).action(action(work));
};
