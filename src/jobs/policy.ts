import { Cancelled, type Fault, RetryLater, StopStream } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';

/** What follows from how a run ended, by the recovery that its fault stands for. Pure: the turn asks, the policy answers. */
export type Consequence =
  /** At its next time. */
  | { kind: 'go on' }
  /** At once: it was interrupted, and nothing is wrong. */
  | { kind: 'resume' }
  /** Earlier than planned, if the plan is a rare one. */
  | { kind: 'retry'; afterMs: number }
  /** Asking again cannot help: the whole source where its key is what was refused, else this stream. */
  | { kind: 'park'; whole: boolean; fault: StopStream };

const FIRST_RETRY_MS = 30_000;
const LONGEST_RETRY_MS = 15 * 60_000;

export function consequenceOf(fault: Fault | undefined, failures: number): Consequence {
  if (!fault) return { kind: 'go on' };
  if (fault instanceof Cancelled) return { kind: 'resume' };
  if (fault instanceof StopStream) return { kind: 'park', whole: isKeyRefused(fault), fault };
  const asked = fault instanceof RetryLater ? (fault.afterMs ?? 0) : 0;
  const afterMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures, 10));
  return { kind: 'retry', afterMs: Math.max(asked, afterMs) };
}

/** The key, its permissions or its plan: what every stream of the source needs. */
export const isKeyRefused = (fault: Fault): boolean =>
  fault instanceof StopStream && (fault.answer?.status === 401 || fault.answer?.status === 403);

/** A failed run waits no longer than its plan says, however often it failed: the service has its own pauses for that. */
export const retryAt = (now: Instant, afterMs: number, planned: Instant): Instant => Math.min(planned, now + afterMs);

const FIRST_PROBE_MS = 15 * 60_000;
const RAREST_PROBE_MS = 6 * 3_600_000;

/** How long what is parked is left alone after so many probes: 15 min, 30 min, … 6 h. */
export const probeAfterMs = (probes: number): number =>
  Math.min(RAREST_PROBE_MS, FIRST_PROBE_MS * 2 ** Math.min(probes, 10));
