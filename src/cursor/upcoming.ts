import type { Queryable } from './database.ts';

/** What the worker has written down of a stream: when it is due, and whether it waits for a person. */
export interface Upcoming {
  nextRunAt: Date | undefined;
  parked: { reason: string; nextStep: string | null; since: Date; nextProbeAt: Date } | undefined;
}

type ParkedRow = NonNullable<Upcoming['parked']> & { source: string; stream: string };

/** A state that no worker has seen yet has none of these tables. */
export async function readUpcoming(state: Queryable): Promise<(source: string, stream: string) => Upcoming> {
  const [has] = await state.query<{ schedules: boolean; parked: boolean }>({
    text: `select to_regclass('tributary.schedules') is not null as schedules, to_regclass('tributary.parked') is not null as parked`,
  });
  const schedules = !has?.schedules
    ? []
    : await state.query<{ source: string; stream: string; next: Date }>({
        text: 'select source, stream, next_run_at as next from tributary.schedules',
      });
  const parked = !has?.parked
    ? []
    : await state.query<ParkedRow>({
        text: 'select source, stream, reason, next_step as "nextStep", since, next_probe_at as "nextProbeAt" from tributary.parked',
      });
  return (source, stream) => ({
    nextRunAt: schedules.find((one) => one.source === source && one.stream === stream)?.next,
    // `*`: the whole source.
    parked: parked.find((one) => one.source === source && (one.stream === stream || one.stream === '*')),
  });
}
