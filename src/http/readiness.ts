import { setTimeout as sleep } from 'node:timers/promises';
import type { Queryable } from '../cursor/database.ts';
import type { JobQueue } from '../jobs/bull.ts';
import { Fault } from '../model/errors.ts';
import type { StreamName } from '../model/streams.ts';
import type { Readiness, ReadinessPart } from './api-types.ts';
import type { ConfiguredStream, ControlDeps } from './deps.ts';

type Deps = Pick<ControlDeps, 'state' | 'queue' | 'streams'>;

/** What does not answer within this is away: whoever probes us gives up soon too. */
const ANSWER_WITHIN_MS = 2000;

/** State and queue answer, and every stream had a successful run within its target. */
export async function readReadiness({ state, queue, streams }: Deps): Promise<Readiness> {
  const [stateFault, queueFault] = await Promise.all([
    faultOf(() => state.query({ text: 'select 1' })),
    faultOf(() => queueAnswers(queue)),
  ]);
  const parts: ReadinessPart[] = [
    { part: 'state', name: 'state', ok: stateFault === null, message: stateFault },
    { part: 'queue', name: 'queue', ok: queueFault === null, message: queueFault },
    // What a stream did cannot be known while the state is away; that part says so already.
    ...(stateFault === null ? await streamParts(state, streams) : []),
  ];
  return { ready: parts.every(({ ok }) => ok), parts };
}

const queueAnswers = (queue: JobQueue): Promise<unknown> => queue.waiting('sync');

async function faultOf(work: () => Promise<unknown>): Promise<string | null> {
  const given = new AbortController();
  try {
    const late = sleep(ANSWER_WITHIN_MS, 'late', { signal: given.signal });
    // Whoever loses the race may still fail later, when nobody listens any more.
    late.catch(() => {});
    const first = await Promise.race([work(), late]);
    return first === 'late' ? 'does not answer' : null;
  } catch (error) {
    // Recovery: this is what was asked.
    if (error instanceof Fault) return error.message;
    return error instanceof Error && error.message !== '' ? error.message : 'cannot be reached';
  } finally {
    given.abort();
  }
}

interface StreamRow {
  source: string;
  stream: StreamName;
  age: number;
  succeeded: boolean;
  running: boolean;
  parked: string | null;
}

async function streamParts(state: Queryable, streams: readonly ConfiguredStream[]): Promise<ReadinessPart[]> {
  const rows = await state.query<StreamRow>({
    text: `
      select s.source, s.stream, p.reason as parked, d.finished_at is not null as succeeded,
        extract(epoch from clock_timestamp() - coalesce(d.finished_at, s.created_at))::float8 * 1000 as age,
        exists (
          select from tributary.leases l
          where (l.source, l.stream) = (s.source, s.stream) and l.expires_at > clock_timestamp()
        ) as running
      from tributary.schedules s
      left join lateral (
        select finished_at from tributary.runs r where (r.source, r.stream) = (s.source, s.stream)
          and r.state = 'done' and r.kind = 'sync' order by started_at desc limit 1
      ) d on true
      left join lateral (
        select reason from tributary.parked p where p.source = s.source and p.stream in (s.stream, '*') limit 1
      ) p on true`,
  });
  return streams.map((stream): ReadinessPart => {
    const row = rows.find((one) => one.source === stream.source && one.stream === stream.stream);
    const message = row ? troubleOf(row, targetOf(stream)) : null;
    return { part: 'stream', name: `${stream.source}/${stream.stream}`, ok: message === null, message };
  });
}

/** A run that takes long is no trouble while it lasts: its lease is alive, and so is its process. */
function troubleOf({ parked, running, age, succeeded }: StreamRow, targetMs: number): string | null {
  if (parked !== null) return `parked: ${parked}`;
  if (running || age <= targetMs) return null;
  const minutes = Math.round(age / 60_000);
  return succeeded
    ? `the last successful run was ${minutes} min ago, and ${Math.round(targetMs / 60_000)} min are allowed`
    : `no run has succeeded in the ${minutes} min since the stream was added`;
}

/** `maxLag` where it is set; otherwise three turns, and a quarter of an hour at least: a slow answer is no outage. */
const targetOf = ({ maxLagMs, job }: ConfiguredStream): number => maxLagMs ?? Math.max(3 * job.everyMs, 15 * 60_000);

/** For whoever has not signed in: which part, and not why. */
export const withoutMessages = ({ ready, parts }: Readiness): Readiness => ({
  ready,
  parts: parts.map((part) => ({ ...part, message: null })),
});
