import { environment } from '../app/index.ts';
import { DEFAULT_CONFIG } from '../config/index.ts';
import type { CommonOptions, Context, Register } from './command.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { withConfig, withJson } from './options.ts';
import { leaveInTime, tellOf } from './worker.ts';

const EXAMPLES = `
Examples:
  tributary start                      then open http://127.0.0.1:7070
  tributary start --json >> runs.ndjson

The worker, and its control room: a page, /api, /metrics, /healthz, /readyz and
/queues. It is for this machine only, unless http.host and http.token say
otherwise. Ctrl-C or SIGTERM ends what is in hand and loses nothing.`;

export const registerStart: Register = (program, action) => {
  const command = program
    .command('start')
    .description('the worker with its control room: page, API, health, metrics')
    .addHelpText('after', EXAMPLES);
  withJson(withConfig(command)).action(action(start));
};

async function start({ terminal, log, signal }: Context, options: CommonOptions): Promise<ExitCode> {
  const { config, warnings } = environment.config(options.config ?? DEFAULT_CONFIG);
  for (const warning of warnings) terminal.err(`note: ${warning}\n`);
  leaveInTime(signal);
  // Only here: a web server and a queue are more than all other commands need together.
  const { runStartApp } = await import('../app/start.ts');
  await runStartApp({
    config,
    log,
    signal,
    onListening: (url) => terminal.err(`control room: ${url}\n`),
    ...tellOf(terminal, options),
  });
  return EXIT.done;
}
