import type { StreamJob } from '../sync/job.ts';

/** A stream and how it is to be kept: what the config says, ready to work with. */
export interface StreamPlan {
  job: StreamJob;
  /** As `scheduleText` writes it. */
  schedule: string;
  /** How far behind it may be before somebody is told. */
  maxLagMs: number | undefined;
  /** Changes with anything that the service could refuse: key, address, filters. Nobody can read them from it. */
  fingerprint: string;
}

export type Plans = ReadonlyMap<string, StreamPlan>;

export const planKey = (source: string, stream: string): string => `${source}/${stream}`;

export const plansByKey = (plans: readonly StreamPlan[]): Plans =>
  new Map(plans.map((plan) => [planKey(plan.job.source, plan.job.stream), plan]));

export type Pace = Readonly<typeof PACE>;

/** How often things are looked at. Tests look more often. */
export const PACE = {
  /** Due streams are given to a queue that forgot them. */
  tickMs: 5000,
  /** Schedulers are looked after, and troubles looked for. */
  watchMs: 30_000,
  /** A run that is not heard of is looked for again: a little longer than a lease lives. */
  recheckMs: 75_000,
  /** A job whose worker is silent for so long is given to another. */
  lockMs: 30_000,
  /** After so long a run gives its place to others who wait, and goes on at its next turn. */
  sliceMs: 120_000,
  /** How soon a window of a backfill asks again whether its stream is free. */
  busyMs: 15_000,
  /** How long runs have to end after SIGTERM: they are gone within 25 s, also with what comes after them. */
  closeMs: 20_000,
};
