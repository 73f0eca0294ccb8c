/**
 * Errors are grouped by what the caller does next, not by where they come from:
 * wait (RetryLater), stop the stream (StopStream), set the record aside (BadRecord),
 * ask the person (ConfigError), or leave (Cancelled).
 */

/** Where it happened. Outer layers fill in what the inner ones could not know. */
export interface Where {
  source?: string;
  stream?: string;
  window?: string;
  sink?: string;
}

export interface FaultDetails {
  where?: Where;
  /** What is safe: the reader of an error wants to know this first. */
  kept?: string;
  /** What the person can do now. */
  next?: string;
  cause?: unknown;
}

/** What the service said, so far as it said anything. Never holds the key. */
export interface ServiceAnswer {
  status: number;
  code: string;
  message: string;
  docUrl?: string;
}

export abstract class Fault extends Error {
  readonly where: Where;
  kept: string | undefined;
  next: string | undefined;

  constructor(message: string, details: FaultDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.where = { ...details.where };
    this.kept = details.kept;
    this.next = details.next;
  }

  /** Adds where it happened. What an inner layer said stays: it stood closer. */
  at(where: Where): this {
    Object.assign(this.where, { ...where, ...this.where });
    return this;
  }

  /** The whole message for a person: where, what happened, what was kept, what to do. */
  describe(): string {
    const { source, stream, window, sink } = this.where;
    const place = [[source, stream].filter(Boolean).join('/'), window, sink && `in ${sink}`].filter(Boolean).join(' ');
    const lines = [place ? `${place}: ${this.message}` : this.message];
    if (this.kept) lines.push(`kept: ${this.kept}`);
    if (this.next) lines.push(`next: ${this.next}`);
    return lines.join('\n');
  }
}

/** The same request may succeed later: 429, 5xx, network faults, answers cut short. */
export class RetryLater extends Fault {
  /** How long the service asked us to wait, already clamped. */
  readonly afterMs: number | undefined;
  readonly answer: ServiceAnswer | undefined;

  constructor(message: string, details: FaultDetails & { afterMs?: number | undefined; answer?: ServiceAnswer } = {}) {
    super(message, details);
    this.afterMs = details.afterMs;
    this.answer = details.answer;
  }
}

/** Asking again as it is cannot help: the stream stops, its cursor stays. */
export class StopStream extends Fault {
  readonly answer: ServiceAnswer | undefined;

  constructor(message: string, details: FaultDetails & { answer?: ServiceAnswer } = {}) {
    super(message, details);
    this.answer = details.answer;
  }
}

/** One record that cannot be used. It goes to quarantine with this reason; its page goes on. */
export class BadRecord extends Fault {
  /** What may be kept of the record: what is private is left out of it. */
  remains: unknown;
}

/** The person asked for something that cannot be: every fault found, each with its place. */
export class ConfigError extends Fault {
  readonly faults: readonly string[];

  constructor(message: string, details: FaultDetails & { faults?: readonly string[] } = {}) {
    super([message, ...(details.faults ?? []).map((fault) => `  ${fault}`)].join('\n'), details);
    this.faults = details.faults ?? [];
  }
}

/** Somebody pressed Ctrl-C or sent SIGTERM. Nothing is wrong and nothing is lost. */
export class Cancelled extends Fault {
  constructor(message = 'interrupted', details: FaultDetails = {}) {
    super(message, details);
  }
}

/** One line of the doctor: what was looked at, how it is, and what to do about it. */
export interface Finding {
  /** `note`: it works, and somebody should know. `fault`: a sync would fail. */
  level: 'ok' | 'note' | 'fault';
  /** What was looked at: `state`, `sink warehouse`, `source main`. */
  subject: string;
  says: string;
  fix?: string | undefined;
  /** Of a fault, who can fix it: whoever holds the config, the service, or time. */
  fixBy?: 'config' | 'service' | 'later';
}

export const ok = (subject: string, says: string): Finding => ({ level: 'ok', subject, says });

export const note = (subject: string, says: string, fix?: string): Finding => ({ level: 'note', subject, says, fix });

/** What an error of the house means for the doctor. Anything else is a bug and is thrown on. */
export function findingOf(subject: string, error: unknown): Finding {
  if (!(error instanceof Fault)) throw error;
  const fixBy = error instanceof ConfigError ? 'config' : error instanceof StopStream ? 'service' : 'later';
  return { level: 'fault', subject, says: error.message, fix: error.next, fixBy };
}
