import { ConfigError, Fault, StopStream } from './errors.ts';

/** One line of the doctor: what was looked at, how it is, and what to do about it. */
export interface Finding {
  /** `note`: it works, and somebody should know. `fault`: a sync would fail. */
  level: 'ok' | 'note' | 'fault';
  /** What was looked at: `state`, `sink warehouse`, `source main`. */
  subject: string;
  says: string;
  fix?: string | undefined;
  /** Of a fault, who can mend it: whoever holds the config, the service, or time. */
  mend?: 'config' | 'service' | 'later';
}

export const ok = (subject: string, says: string): Finding => ({ level: 'ok', subject, says });

export const note = (subject: string, says: string, fix?: string): Finding => ({ level: 'note', subject, says, fix });

/** What an error of the house means for the doctor. Anything else is a bug and is thrown on. */
export function findingOf(subject: string, error: unknown): Finding {
  if (!(error instanceof Fault)) throw error;
  const mend = error instanceof ConfigError ? 'config' : error instanceof StopStream ? 'service' : 'later';
  return { level: 'fault', subject, says: error.message, fix: error.next, mend };
}
