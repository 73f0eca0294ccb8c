import { Command, CommanderError } from 'commander';
import { ownVersion } from '../app/environment.ts';
import { ConfigError, Fault } from '../model/errors.ts';
import type { Log } from '../model/log.ts';
import { type Action, type Context, documentOf, EXIT, type ExitCode, exitCodeOf, type Register } from './command.ts';
import type { Terminal } from './terminal.ts';

/** In the order of the help. A command's file is loaded when the command is run, to keep the start fast. */
const COMMANDS: Readonly<Record<string, () => Promise<Register>>> = {
  demo: async () => (await import('./setup/demo.ts')).registerDemo,
  init: async () => (await import('./setup/init.ts')).registerInit,
  doctor: async () => (await import('./setup/doctor.ts')).registerDoctor,
  sync: async () => (await import('./commands/sync.ts')).registerSync,
  backfill: async () => (await import('./commands/backfill.ts')).registerBackfill,
  export: async () => (await import('./commands/export.ts')).registerExport,
  verify: async () => (await import('./commands/verify.ts')).registerVerify,
  worker: async () => (await import('./commands/worker.ts')).registerWorker,
  start: async () => (await import('./commands/worker.ts')).registerStart,
  status: async () => (await import('./commands/status.ts')).registerStatus,
  query: async () => (await import('./commands/query.ts')).registerQuery,
  runs: async () => (await import('./commands/runs.ts')).registerRuns,
  cursor: async () => (await import('./commands/cursor.ts')).registerCursor,
  quarantine: async () => (await import('./commands/quarantine.ts')).registerQuarantine,
  forget: async () => (await import('./commands/forget.ts')).registerForget,
  config: async () => (await import('./setup/config.ts')).registerConfig,
  schema: async () => (await import('./setup/schema.ts')).registerSchema,
  maintain: async () => (await import('./commands/maintain.ts')).registerMaintain,
  sandbox: async () => (await import('./setup/sandbox.ts')).registerSandbox,
};

/** Not in the list above: `completion` needs all commands, so it is loaded with all of them. */
const completion = async (): Promise<Register> => (await import('./setup/completion.ts')).registerCompletion;

const EXAMPLES = `
Examples:
  tributary demo                see it work, without a key or a database
  tributary init                write a config, step by step
  tributary sync                bring the tables up to date
  tributary sync --help         what a command does, with examples

Shell completion: tributary completion --help

Exit codes: 0 done · 1 a bug in tributary · 2 usage or config · 3 the service
refused · 4 incomplete, run it again · 130 interrupted, nothing lost`;

type RunOptions = Pick<Context, 'terminal' | 'signal'> & { createLog: () => Log };

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

/** Runs one command line and returns its exit code. Every error is caught here and printed as one message. */
export async function run(typed: readonly string[], { terminal, signal, createLog }: RunOptions): Promise<ExitCode> {
  const argv = normalized(typed);
  let code: ExitCode = EXIT.done;
  // The command's name in JSON errors, even if the command line cannot be parsed.
  let name = argv.find((word) => !word.startsWith('-')) ?? '';
  const action: Action =
    (work) =>
    async (...args) => {
      const command = args.at(-1);
      if (command instanceof Command) name = pathOf(command);
      const document: Context['document'] = (body, options) => documentOf(name, body, options);
      code = await work({ terminal, signal, log: createLog(), document }, ...args);
    };
  try {
    const program = await loadProgram(argv, action, terminal);
    await program.parseAsync([...argv], { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.done;
    const fault =
      error instanceof CommanderError ? new ConfigError(error.message.replace(/^error: /, '')) : asError(error);
    if (argv.includes('--json')) terminal.out(documentOf(name, {}, { error: fault }));
    if (fault instanceof Fault) {
      // Commander has already printed its own.
      if (error === fault) terminal.err(`${fault.describe()}\n`);
      return exitCodeOf(fault);
    }
    terminal.err(`this is a bug in tributary, please report it: ${fault.stack ?? fault.message}\n`);
    return EXIT.bug;
  } finally {
    terminal.live();
  }
}

/** The default subcommand of each group. */
const DEFAULT_SUBCOMMAND: Readonly<Record<string, string>> = {
  config: 'print',
  cursor: 'get',
  quarantine: 'list',
};

/** Deprecated names, accepted for one version. */
const DEPRECATED: ReadonlyArray<readonly [old: string, name: string]> = [
  ['-V', '-v'],
  ['backfills', 'backfill list'],
  ['lake rewrite', 'maintain'],
  ['iceberg maintain', 'maintain'],
  ['audit', 'runs audit'],
];

function renamed(typed: readonly string[]): readonly string[] {
  if (typed[0] === 'help') return [...typed.slice(1), '--help'];
  if (typed[0] === 'backfills' && typed[1] !== undefined && !typed[1].startsWith('-'))
    return ['backfill', ...typed.slice(1)];
  const line = typed.slice(0, 2).join(' ');
  const [old, name] = DEPRECATED.find(([old]) => line === old || line.startsWith(`${old} `)) ?? [];
  return old === undefined || name === undefined ? typed : [...name.split(' '), ...typed.slice(old.split(' ').length)];
}

/** Replaces deprecated names, adds the default subcommand, and keeps SQL that begins with a comment from being parsed as an option. */
function normalized(given: readonly string[]): readonly string[] {
  const typed = renamed(given);
  const [name = '', next] = typed;
  if (name === 'query') return typed.map((word) => (/^--\s/.test(word) ? ` ${word}` : word));
  const isBare = next === undefined || (next.startsWith('-') && next !== '--help' && next !== '-h');
  const added = isBare && Object.hasOwn(DEFAULT_SUBCOMMAND, name) ? DEFAULT_SUBCOMMAND[name] : undefined;
  return added === undefined ? typed : [name, added, ...typed.slice(1)];
}

const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}`.trimStart() : '';

/** The named command; all commands for the help, for completion, and to suggest one for a mistyped name. */
function commandsFor([name = '']: readonly string[]): Promise<Register[]> {
  if (name === '--version' || name === '-v') return Promise.resolve([]);
  const one = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  return Promise.all((one ? [one] : [...Object.values(COMMANDS), completion]).map((load) => load()));
}

export async function loadProgram(argv: readonly string[], action: Action, terminal: Terminal): Promise<Command> {
  const program = new Command('tributary')
    .description('Keeps a warehouse in sync with a link-attribution service: complete, without duplicates, resumable.')
    .version(ownVersion(), '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    // `backfill list --json`: the option is the subcommand's.
    .enablePositionalOptions()
    .addHelpText('after', EXAMPLES)
    .exitOverride();
  for (const register of await commandsFor(argv)) register(program, action);
  configure(program, ['tributary'], terminal);
  return program;
}

/** Commander's subcommands do not inherit these settings: throw instead of exiting, and write to our terminal. */
function configure(command: Command, path: readonly string[], terminal: Terminal): void {
  // `help sync` is `sync --help`.
  command.helpCommand(false);
  command.configureOutput({
    writeOut: (text) => terminal.out(text.trimEnd()),
    writeErr: terminal.err,
    // Piped help is 80 columns wide, as on the narrowest screen.
    getOutHelpWidth: () => 80,
    getErrHelpWidth: () => 80,
    outputError: (text, write) =>
      write(`${text.replace(/^error: /, '').trimEnd()}\nnext: see ${path.join(' ')} --help\n`),
  });
  for (const child of command.commands) {
    child.copyInheritedSettings(command);
    configure(child, [...path, child.name()], terminal);
  }
}
