import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { Fault } from '../model/errors.ts';
import type { Action, Context } from './command.ts';
import { registerDemo } from './demo.ts';
import { EXIT, type ExitCode, exitCodeOf } from './exit-codes.ts';
import { registerSandbox } from './sandbox.ts';
import { registerSchema } from './schema.ts';
import { registerStatus } from './status.ts';
import { registerSync } from './sync.ts';

const COMMANDS = [registerDemo, registerSandbox, registerSync, registerStatus, registerSchema];

/** Runs one command line and returns its exit code. Every error ends here, as one message. */
export async function run(argv: readonly string[], context: Context): Promise<ExitCode> {
  const { terminal } = context;
  let code: ExitCode = EXIT.done;
  const action: Action =
    (work) =>
    async (...args) => {
      code = await work(context, ...args);
    };

  const program = new Command('tributary')
    .description('Keeps a warehouse in sync with a link-attribution service: complete, without doubles, resumable.')
    .version(version())
    .configureOutput({ writeOut: (text) => terminal.out(text.trimEnd()), writeErr: terminal.err })
    .helpCommand(true)
    .exitOverride();
  for (const register of COMMANDS) register(program, action);
  // Commands inherit nothing they were not told: each throws instead of exiting, and writes where we write.
  for (const command of program.commands) command.copyInheritedSettings(program);

  try {
    await program.parseAsync([...argv], { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    if (error instanceof Fault) {
      terminal.err(`${error.describe()}\n`);
      return exitCodeOf(error);
    }
    terminal.err(
      `this is a bug in tributary: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    );
    return EXIT.bug;
  }
}

function version(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}
