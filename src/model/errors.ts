/** Errors by what the caller does next: wait (RetryLater), stop the stream, quarantine the record, ask the user, or end. */

import type { Instant } from './instant.ts';

/** Where it happened. Outer layers add what inner ones do not know. */
export interface Where {
  source?: string;
  stream?: string;
  window?: string;
  sink?: string;
}

export interface FaultDetails {
  where?: Where;
  /** What was kept: the first question of anyone who reads an error. */
  kept?: string | undefined;
  next?: string | undefined;
  cause?: unknown;
  answer?: ServiceAnswer | undefined;
}

/** The service's answer, if there was one. Never holds the key. */
export interface ServiceAnswer {
  /** 0 if no answer came. */
  status: number;
  code: string;
  message: string;
  docUrl?: string;
  /** The service's own clock, from the Date header. */
  serverNow?: Instant | undefined;
}

export abstract class Fault extends Error {
  readonly where: Where;
  kept: string | undefined;
  next: string | undefined;
  readonly answer: ServiceAnswer | undefined;

  constructor(message: string, details: FaultDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.where = { ...details.where };
    this.kept = details.kept;
    this.next = details.next;
    this.answer = details.answer;
  }

  /** Adds where it happened. Values from an inner layer stay, as they are more precise. */
  at(where: Where): this {
    Object.assign(this.where, { ...where, ...this.where });
    return this;
  }

  /** Sets the underlying error as a non-enumerable cause: loggers list enumerable fields, and it may hold secrets. */
  because(cause: unknown): this {
    return Object.defineProperty(this, 'cause', { value: cause });
  }

  describe(): string {
    const { source, stream, window, sink } = this.where;
    const place = [[source, stream].filter(Boolean).join('/'), window, sink && `in ${sink}`].filter(Boolean).join(' ');
    const lines = [place ? `${place}: ${this.message}` : this.message];
    if (this.kept) lines.push(`kept: ${this.kept}`);
    if (this.next) lines.push(`next: ${this.next}`);
    return lines.join('\n');
  }
}

/** The same request may succeed later: 429, 5xx, network errors, truncated answers. */
export class RetryLater extends Fault {
  /** How long the service asked us to wait, already clamped. */
  readonly afterMs: number | undefined;

  constructor(message: string, details: FaultDetails & { afterMs?: number | undefined } = {}) {
    super(message, details);
    this.afterMs = details.afterMs;
  }
}

/** Repeating the request cannot help: the stream stops, its cursor stays. */
export class StopStream extends Fault {}

/** The status of the service's answer; undefined if the network failed, or the answer was unusable for a reason other than its status. */
export function statusOf(error: unknown): number | undefined {
  if (error === undefined) return 200;
  return error instanceof Fault ? error.answer?.status || undefined : undefined;
}

/** One record that cannot be used. It goes to quarantine with this reason; the rest of its page is used. */
export class BadRecord extends Fault {
  remains: unknown;
}

/** The request or the config is impossible: lists every fault found, each with its place. */
export class ConfigError extends Fault {
  readonly faults: readonly string[];

  constructor(message: string, details: FaultDetails & { faults?: readonly string[] } = {}) {
    super([message, ...(details.faults ?? []).map((fault) => `  ${fault}`)].join('\n'), details);
    this.faults = details.faults ?? [];
  }
}

export class Cancelled extends Fault {}

/** One line of `doctor`: what was checked, the result, and what to do about it. */
export interface Finding {
  /** `note`: it works, but deserves attention. `fault`: a sync would fail. */
  level: 'ok' | 'note' | 'fault';
  subject: string;
  says: string;
  fix?: string | undefined;
  /** Who fixes a fault: the owner of the config, the service, or time. */
  fixBy?: 'config' | 'service' | 'later';
}

export const ok = (subject: string, says: string): Finding => ({ level: 'ok', subject, says });

export const note = (subject: string, says: string, fix?: string): Finding => ({ level: 'note', subject, says, fix });

export function failing(subject: string, says: string, fix: string): Finding {
  return { level: 'fault', subject, says, fix, fixBy: 'config' };
}

/** One of our errors as a finding. Any other error is a bug and is rethrown. */
export function findingOf(subject: string, error: unknown): Finding {
  if (!(error instanceof Fault)) throw error;
  const fixBy = error instanceof ConfigError ? 'config' : error instanceof StopStream ? 'service' : 'later';
  return { level: 'fault', subject, says: error.message, fix: error.next, fixBy };
}
