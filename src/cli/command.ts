import type { Command } from 'commander';
import { Cancelled, ConfigError, type Fault, StopStream } from '../model/errors.ts';
import { stringifyJson } from '../model/json.ts';
import type { Log } from '../model/log.ts';
import type { Terminal } from './terminal/terminal.ts';

/** What every command gets. */
export interface Context {
  terminal: Terminal;
  log: Log;
  /** Aborted by the first Ctrl-C or SIGTERM. */
  signal: AbortSignal;
  /** The result for machines: JSON in the envelope that every command shares, as text. */
  document(body: object, options?: DocumentOptions): string;
}

export interface DocumentOptions {
  /** One of many, each on a line of its own. */
  isLine?: boolean;
  /** What kept the command from doing all that was asked for. */
  error?: Fault | undefined;
}

/** `--json` of every command: these three, and what is the command's own. A field may be added; none changes its meaning. */
export function documentOf(command: string, body: object, { isLine = false, error }: DocumentOptions = {}): string {
  const envelope = { format: 1, command, ...body, error: error ? errorJson(error) : null };
  return stringifyJson(envelope, isLine ? undefined : 2);
}

export const errorJson = (error: Fault) => ({
  message: error.message,
  faults: error instanceof ConfigError ? error.faults : [],
  kept: error.kept ?? null,
  next: error.next ?? null,
  exitCode: exitCodeOf(error),
});

export interface CommonOptions {
  config?: string;
  source?: string;
  sink?: string;
  json?: boolean;
}

/** A command adds itself to the program; its action returns the exit code. */
export type Register = (program: Command, action: Action) => void;
export type Action = <A extends unknown[]>(
  work: (context: Context, ...args: A) => Promise<ExitCode>,
) => (...args: A) => Promise<void>;

/** What the exit code says, for scripts. The numbers are a contract. */
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

/** Of several streams the gravest speaks: interrupted, then usage, refused, incomplete. */
export function gravest(codes: readonly ExitCode[]): ExitCode {
  const order: readonly ExitCode[] = [EXIT.interrupted, EXIT.usage, EXIT.refused, EXIT.incomplete];
  return order.find((code) => codes.includes(code)) ?? EXIT.done;
}
