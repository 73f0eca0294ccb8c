import type { Command } from 'commander';
import type { Log } from '../model/log.ts';
import type { ExitCode } from './exit-codes.ts';
import type { Terminal } from './terminal/terminal.ts';

/** What every command gets. */
export interface Context {
  terminal: Terminal;
  log: Log;
  /** Aborted by the first Ctrl-C or SIGTERM. */
  signal: AbortSignal;
}

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
