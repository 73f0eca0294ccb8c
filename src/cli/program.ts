import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { Fault } from '../model/errors.ts';
import type { Log } from '../model/log.ts';
import { registerBackfill } from './backfill.ts';
import type { Action, Context } from './command.ts';
import { registerDemo } from './demo.ts';
import { EXIT, type ExitCode, exitCodeOf } from './exit-codes.ts';
import { registerExport } from './export.ts';
import { registerForget } from './forget.ts';
import { registerSandbox } from './sandbox.ts';
import { registerSchema } from './schema.ts';
import { registerStart } from './start.ts';
import { registerStatus } from './status.ts';
import { registerSync } from './sync.ts';
import type { Terminal } from './terminal/terminal.ts';
import { registerVerify } from './verify.ts';
import { registerWorker } from './worker.ts';

const COMMANDS = [
  registerDemo,
  registerSync,
  registerBackfill,
  registerExport,
  registerVerify,
  registerWorker,
  registerStart,
  registerStatus,
  registerSchema,
  registerForget,
  registerSandbox,
];

const EXAMPLES = `
Examples:
  tributary demo                see it work, without a key or a database
  tributary sync                bring the tables up to date
  tributary sync --help         what a command does, with examples

Exit codes: 0 done · 1 a bug of tributary · 2 usage or config · 3 the service
refused · 4 incomplete, run it again · 130 interrupted, nothing lost`;

export interface Surroundings extends Pick<Context, 'terminal' | 'signal'> {
  createLog: () => Log;
}

/** Runs one command line and returns its exit code. Every error ends here, as one message. */
export async function run(argv: readonly string[], { terminal, signal, createLog }: Surroundings): Promise<ExitCode> {
  let code: ExitCode = EXIT.done;
  const action: Action =
    (work) =>
    async (...args) => {
      code = await work({ terminal, signal, log: createLog() }, ...args);
    };
  try {
    await createProgram(action, terminal).parseAsync([...argv], { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    if (error instanceof Fault) {
      terminal.err(`${error.describe()}\n`);
      return exitCodeOf(error);
    }
    const details = error instanceof Error ? (error.stack ?? error.message) : String(error);
    terminal.err(`this is a bug in tributary, please report it: ${details}\n`);
    return EXIT.bug;
  }
}

function createProgram(action: Action, terminal: Terminal): Command {
  const program = new Command('tributary')
    .description('Keeps a warehouse in sync with a link-attribution service: complete, without doubles, resumable.')
    .version(version(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .addHelpText('after', EXAMPLES)
    .exitOverride();
  for (const register of COMMANDS) register(program, action);
  for (const command of [program, ...program.commands]) {
    // Commands inherit nothing they were not told: each throws instead of exiting, and writes where we write.
    if (command !== program) command.copyInheritedSettings(program);
    const help = ['tributary', ...(command === program ? [] : [command.name()]), '--help'].join(' ');
    command.configureOutput({
      writeOut: (text) => terminal.out(text.trimEnd()),
      writeErr: terminal.err,
      outputError: (text, write) => write(`${text.replace(/^error: /, '').trimEnd()}\nnext: see ${help}\n`),
    });
  }
  return program;
}

function version(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}
