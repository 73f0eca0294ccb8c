import { type Command, Option } from 'commander';
import { Cancelled, ConfigError, Fault, StopStream } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import { stringifyJson } from '../model/json.ts';
import type { Log } from '../model/log.ts';
import { STREAM_NAMES, type StreamName, type SyncName } from '../model/streams.ts';
import { parseDate, type Window } from '../model/window.ts';
import type { Terminal } from './terminal.ts';

export interface Context {
  terminal: Terminal;
  log: Log;
  /** Aborted by the first Ctrl-C or SIGTERM. */
  signal: AbortSignal;
  /** The result as JSON, in the envelope that all commands share. */
  document(body: object, options?: DocumentOptions): string;
}

/** `isLine`: on one line, as one of many results. `error`: why the command did not do everything. */
type DocumentOptions = { isLine?: boolean; error?: Error | undefined };

/** `--json` of every command: these three fields, and the command's own. Fields may be added; none changes its meaning. */
export function documentOf(command: string, body: object, { isLine = false, error }: DocumentOptions = {}): string {
  const envelope = { format: 1, command, ...body, error: error ? errorJson(error) : null };
  return stringifyJson(envelope, isLine ? undefined : 2);
}

export const errorJson = (error: Error) => ({
  message: error instanceof Fault ? error.message : `this is a bug in tributary: ${error.message}`,
  faults: error instanceof ConfigError ? error.faults : [],
  kept: (error instanceof Fault && error.kept) || null,
  next: error instanceof Fault ? (error.next ?? null) : 'report it, with the output of the command',
  exitCode: error instanceof Fault ? exitCodeOf(error) : EXIT.bug,
});

/** The parsed values of options that several commands share. */
export interface Options {
  config?: string;
  source?: string;
  sink?: string;
  json?: boolean;
  yes?: boolean;
  dryRun?: boolean;
  from?: string;
  to?: string;
}

/** The arguments of commander's `option()`. */
type OptionParts =
  | [flags: string, does: string, usual?: string]
  | [string, string, (text: string) => unknown, unknown?];

export interface Definition {
  does: string;
  takes?: readonly [flags: string, does: string];
  /** In the order of the help; shared options by name. */
  options: ReadonlyArray<keyof Options | Option | OptionParts>;
  /** The help below the options: examples first. */
  more: string;
  run?(context: Context, ...args: never[]): Promise<ExitCode>;
  commands?: Readonly<Record<string, Definition>>;
}

export const command =
  (name: string, definition: Definition): Register =>
  (program, action) => {
    const { does, takes, options, more, run, commands = {} } = definition;
    const made = program.command(name).description(does).addHelpText('after', `\n${more}`);
    if (takes) made.argument(...takes);
    for (const option of options) {
      if (option instanceof Option) made.addOption(option);
      else made.option(...((typeof option === 'string' ? SHARED[option] : option) as [string, string]));
    }
    for (const [child, own] of Object.entries(commands)) command(child, own)(made, action);
    if (run) made.action(action(run as (context: Context, ...args: unknown[]) => Promise<ExitCode>));
  };

export type Register = (program: Command, action: Action) => void;
export type Action = <A extends unknown[]>(
  work: (context: Context, ...args: A) => Promise<ExitCode>,
) => (...args: A) => Promise<void>;

/** Prints the result of a command: JSON with `--json`, else text. */
export function show({ terminal, document }: Context, { json }: Options, body: object, text: () => string): ExitCode {
  if (json) terminal.out(document(body));
  else terminal.say(text());
  return EXIT.done;
}

/** Exit codes, for scripts. The numbers are a contract. */
export const EXIT = {
  done: 0,
  bug: 1,
  usage: 2,
  refused: 3,
  incomplete: 4,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export function exitCodeOf(fault: Fault): ExitCode {
  if (fault instanceof Cancelled) return EXIT.interrupted;
  if (fault instanceof ConfigError) return EXIT.usage;
  return fault instanceof StopStream ? EXIT.refused : EXIT.incomplete;
}

/** The most severe code of several streams: interrupted, then usage, refused, incomplete. */
export function mostSevere(codes: readonly ExitCode[]): ExitCode {
  const order: readonly ExitCode[] = [EXIT.interrupted, EXIT.usage, EXIT.refused, EXIT.incomplete];
  return order.find((code) => codes.includes(code)) ?? EXIT.done;
}

/** The forms of a date, for help and errors. Durations count back from now. */
const DATES = '2026-11-01, 2026-11-01T10:00Z, yesterday, 7d, 1mo';

const SHARED: Readonly<Record<keyof Options, [flags: string, does: string, usual?: string]>> = {
  config: ['--config <FILE>', 'the config file (default: config/tributary.yaml)'],
  source: ['--source <NAME>', 'only this source'],
  sink: ['--sink <NAME>', 'only this sink'],
  json: ['--json', 'print JSON instead of text'],
  dryRun: ['--dry-run', 'only show what would be changed'],
  yes: ['--yes', 'do not prompt; required without a terminal'],
  from: ['--from <DATE>', `the start of the range (required): ${DATES}`],
  to: ['--to <DATE>', 'the end of the range, exclusive', 'now'],
};

const FROM = 'say where the range begins, such as --from 7d: see --help';

export function parseWindow({ from, to = 'now' }: Options, now: Instant = Date.now()): Window {
  if (from === undefined) throw new ConfigError("required option '--from <DATE>' not specified", { next: FROM });
  const window = { start: parseDateOption('--from', from, now), end: parseDateOption('--to', to, now) };
  if (window.start < window.end) return window;
  throw new ConfigError(`--from (${from}) is not before --to (${to})`, {
    next: '--to is exclusive: for one day, give the next day as --to',
  });
}

/** All unknown names are reported in one error. */
export const parseStreams = (names: readonly string[]): StreamName[] => parseNames(names, STREAM_NAMES);

/** Accepts `links` too, the listing of all links. */
export const parseSyncNames = (names: readonly string[]): SyncName[] => parseNames(names, [...STREAM_NAMES, 'links']);

function parseNames<Name extends string>(names: readonly string[], known: readonly Name[]): Name[] {
  const isKnown = (name: string): name is Name => (known as readonly string[]).includes(name);
  const unknown = names.filter((name) => !isKnown(name));
  if (unknown.length === 0) return names.filter(isKnown);
  throw new ConfigError(`unknown stream: ${unknown.join(', ')}`, { next: `use ${known.join(', ')}` });
}

/** The next step for a user who has synced nothing yet. */
export const firstStep = ({ sources }: { sources: object }): string =>
  Object.keys(sources).length > 0
    ? 'tributary sync'
    : 'tributary init writes a config; tributary demo works without one';

/** Refuses a mistyped source, for which "nothing found" would mislead. */
export function checkSource(name: string | undefined, known: Iterable<string>): void {
  const names = [...new Set(known)];
  if (name === undefined || names.includes(name)) return;
  throw new ConfigError(`there is no source "${name}", neither in the config nor in the state`, {
    next: names.length > 0 ? `use one of: ${names.join(', ')}` : 'nothing has been synced yet',
  });
}

/** Parses a date as people type it, relative to this machine's clock. */
export function parseDateOption(flag: string, text: string, now: Instant = Date.now()): Instant {
  const instant = parseDate(text, now);
  if (instant !== undefined) return instant;
  throw new ConfigError(`${flag} is not a date: ${JSON.stringify(text)}`, {
    next: `write ${DATES} (that long ago), today or now; dates are UTC`,
  });
}

export const parseWhole =
  (flag: string, most: number, { least = 0, meant = '' } = {}) =>
  (text: string): number => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new ConfigError(`--${flag} must be a whole number from ${least}${meant} to ${most}`);
  };

export const limitOf = (usual: number, does = 'how many at most') =>
  ['--limit <N>', does, parseWhole('limit', 999_999, { least: 1 }), usual] satisfies OptionParts;
