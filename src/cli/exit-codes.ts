import { Cancelled, ConfigError, type Fault, StopStream } from '../model/errors.ts';

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
