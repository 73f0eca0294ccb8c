import type { Instant } from '../../model/instant.ts';
import type { Stretch } from './answer.ts';

/** The finest grain of an instant. */
export const CLOSED_MS = 0.001;

/** RULE overlap. Stretches join where their insides overlap. Two that only touch leave the instant between them open. */
export function withStretch(stretches: readonly Stretch[], { after, before }: Stretch): Stretch[] {
  const apart = stretches.filter((each) => each.before <= after || each.after >= before);
  const met = stretches.filter((each) => each.before > after && each.after < before);
  const joined = {
    after: Math.min(after, ...met.map((each) => each.after)),
    before: Math.max(before, ...met.map((each) => each.before)),
  };
  return [...apart, joined].sort((a, b) => a.after - b.after);
}

/** Every row of an instant is known: the stretches on both sides of it are one. */
export function withInstant(stretches: readonly Stretch[], at: Instant): Stretch[] {
  const left = stretches.find(({ before }) => before === at);
  const right = stretches.find(({ after }) => after === at);
  const apart = stretches.filter((each) => each !== left && each !== right);
  const closed = { after: left?.after ?? at - CLOSED_MS, before: right?.before ?? at + CLOSED_MS };
  return [...apart, closed].sort((a, b) => a.after - b.after);
}
