import { readBudgets, readBudgetUse } from '../cursor/budget-use.ts';
import type { Queryable } from '../cursor/database.ts';
import type { JobQueue } from '../jobs/bull.ts';
import type { ControlDeps } from './deps.ts';
import { readOverview } from './routes/overview.ts';

/** One line of what Prometheus gets. */
export interface Figure {
  name: string;
  help: string;
  labels: Record<string, string>;
  value: number;
}

type Deps = Pick<ControlDeps, 'state' | 'queue' | 'dependencies' | 'streams' | 'keys' | 'version'>;

/** What a part cannot say now is left out, not said as zero: a stream whose lag is unknown is not up to date. */
export async function readFigures(deps: Deps): Promise<{ figures: Figure[]; isStateUp: boolean; isQueueUp: boolean }> {
  const { watch } = deps.dependencies;
  const ofTheState = async (): Promise<Figure[]> => [
    ...(await streamFigures(deps)),
    ...(await windowFigures(deps.state)),
    ...(await budgetFigures(deps)),
  ];
  const [ofState, ofQueue] = await Promise.all([
    orNothing(watch(ofTheState(), ['state'])),
    orNothing(watch(queueFigures(deps.queue), ['queue'])),
  ]);
  return {
    figures: [...(ofState ?? []), ...(ofQueue ?? [])],
    isStateUp: ofState !== undefined,
    isQueueUp: ofQueue !== undefined,
  };
}

/** Recovery: `tributary_up` tells of it, and Prometheus asks again. */
const orNothing = <T>(work: Promise<T>): Promise<T | undefined> => work.catch(() => undefined);

async function streamFigures(deps: Deps): Promise<Figure[]> {
  const { streams, troubles } = await readOverview(deps);
  const figures: Figure[] = [];
  const add = (name: string, help: string, labels: Record<string, string>, value: number | null): void => {
    if (value !== null) figures.push({ name: `tributary_${name}`, help, labels, value });
  };
  for (const { source, stream, ...one } of streams) {
    const labels = { source, stream };
    for (const { sink, completeThrough, newestSeen, lagSeconds } of one.sinks) {
      const track = { ...labels, sink };
      add('lag_seconds', 'From the watermark to now.', track, lagSeconds);
      add('complete_through_timestamp_seconds', 'The watermark: complete up to here.', track, seconds(completeThrough));
      add('newest_seen_timestamp_seconds', 'Time of the newest event delivered.', track, seconds(newestSeen));
    }
    add('max_lag_seconds', 'maxLag of the config.', labels, one.maxLagSeconds);
    add('last_success_timestamp_seconds', 'When the last successful sync ended.', labels, seconds(one.lastSuccessAt));
    add('parked', '1 where the stream waits for a person.', labels, one.parked === null ? 0 : 1);
    add('quarantined_records', 'Records that were set aside.', labels, one.quarantined);
  }
  for (const kind of ['parked', 'late', 'uncertified'])
    add('troubles', 'What needs a person, by kind.', { kind }, troubles.filter((each) => each.kind === kind).length);
  return figures;
}

async function windowFigures(state: Queryable): Promise<Figure[]> {
  const rows = await state.query<{ source: string; stream: string; sink: string; state: string; n: number }>({
    text: 'select source, stream, sink, state, count(*) as n from tributary.windows group by 1, 2, 3, 4',
  });
  return rows.map(({ n, ...labels }) => ({
    name: 'tributary_windows',
    help: 'Windows of the ledger, by state.',
    labels,
    value: n,
  }));
}

/** A key is told by its sources; keys that the config no longer has are left out. */
async function budgetFigures({ state, keys }: Deps): Promise<Figure[]> {
  const used = await readBudgetUse(state, { minutes: 5, step: 5 });
  const budgets = await readBudgets(state);
  return keys.flatMap(({ hash, sources }) => {
    const labels = { sources: sources.join(',') };
    const now = budgets.find(({ keyHash }) => keyHash === hash);
    if (!now) return [];
    const recent = used.filter(({ keyHash }) => keyHash === hash);
    const sum = (of: (use: (typeof used)[number]) => number): number => recent.reduce((all, use) => all + of(use), 0);
    const share = Math.max(0, ...recent.map((use) => use.share));
    return [
      figure('budget_share', 'Use of the request budget of a key in the last five minutes, 0 to 1.', labels, share),
      figure('budget_requests_per_second', 'The request budget of a key.', labels, now.perSecond),
      figure(
        'budget_too_many_requests',
        '429s in the last five minutes.',
        labels,
        sum((use) => use.tooManyRequests),
      ),
      figure('budget_paused_seconds', 'What is left of the pause after a 429.', labels, now.pausedSeconds ?? 0),
    ];
  });
}

const figure = (name: string, help: string, labels: Record<string, string>, value: number): Figure => ({
  name: `tributary_${name}`,
  help,
  labels,
  value,
});

const STATES = ['waiting', 'active', 'delayed', 'prioritized', 'waiting-children', 'failed'] as const;

async function queueFigures({ queues }: JobQueue): Promise<Figure[]> {
  const counted = await Promise.all(
    Object.entries(queues).map(async ([queue, each]) => ({ queue, counts: await each.getJobCounts(...STATES) })),
  );
  return counted.flatMap(({ queue, counts }) =>
    Object.entries(counts).map(([state, value]) =>
      figure('queue_jobs', 'Jobs in the queue, by state.', { queue, state }, value),
    ),
  );
}

const seconds = (iso: string | null): number | null => (iso === null ? null : Date.parse(iso) / 1000);
