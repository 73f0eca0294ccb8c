import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { readBudgets, readBudgetUse } from '../cursor/budget-use.ts';
import type { Queryable } from '../cursor/database/index.ts';
import { sql } from '../cursor/database/sql.ts';
import type { JobQueue } from '../jobs/bull.ts';
import { INCIDENT_KINDS } from '../jobs/incidents.ts';
import { statusOf } from '../model/errors.ts';
import { observe } from '../model/log.ts';
import type { StreamReport } from '../sync/run.ts';
import type { ControlDeps } from './dependencies.ts';
import { readOverview } from './routes/overview.ts';

export const METRICS_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

type Deps = Pick<ControlDeps, 'state' | 'queue' | 'dependencies' | 'streams' | 'listings' | 'keys' | 'version'>;

export type Metrics = ReturnType<typeof createMetrics>;

/** The only user of prom-client. docs/monitoring.md describes every metric; a test compares the two. */
export function createMetrics(deps: Deps) {
  const registry = new Registry();
  const counter = (name: string, help: string, ...labelNames: string[]): Counter =>
    new Counter({ name: `tributary_${name}_total`, help, labelNames, registers: [registry] });
  const rows = counter(
    'rows',
    'Rows that runs of this process read, by what became of them.',
    'source',
    'stream',
    'outcome',
  );
  const runs = counter('runs', 'Runs of this process, by how they ended.', 'source', 'stream', 'state');
  const duration = new Histogram({
    name: 'tributary_run_duration_seconds',
    help: 'How long runs of this process took.',
    labelNames: ['source', 'stream', 'kind'],
    buckets: [0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600],
    registers: [registry],
  });
  const asked = 'Requests of this process to the service, by the HTTP status of the answer, or none.';
  const requests = counter('requests', asked, 'source', 'status');
  const gauges = gaugesOf(deps, registry);
  const loop = measureLoop(registry);
  const unwatch = observe(({ name, attributes }) => (end) => {
    const { source = '', stream: of = '', kind = '' } = attributes;
    if (name === 'request') requests.inc({ source: String(source), status: String(statusOf(end.error) ?? 'none') });
    if (name === 'run')
      duration.observe({ source: String(source), stream: String(of), kind: String(kind) }, end.seconds);
  });

  return {
    /** A run of this process ended. */
    ran({ source, stream: name, state, tally }: StreamReport) {
      for (const outcome of ['new', 'changed', 'unchanged', 'quarantined'] as const)
        rows.inc({ source, stream: name, outcome }, tally[outcome]);
      runs.inc({ source, stream: name, state });
    },
    /** A bug ended a run of this process, which has no report. */
    broke: ({ source, stream: name }: Pick<StreamReport, 'source' | 'stream'>) =>
      runs.inc({ source, stream: name, state: 'failed' }),
    /** In the text format of Prometheus. */
    async text() {
      await gauges();
      return registry.metrics();
    },
    close() {
      unwatch();
      loop.disable();
    },
  };
}

/** Figures of all processes, read from the state at each scrape. */
function gaugesOf(deps: Deps, registry: Registry): () => Promise<void> {
  const gaugeOf = (name: string, help: string, labelNames: string[]): Gauge =>
    new Gauge({ name, help, labelNames, registers: [registry] });
  const up = gaugeOf('tributary_up', '1 where the part answers: state, queue.', ['part']);
  const info = gaugeOf('tributary_info', 'The version.', ['version']);
  info.set({ version: deps.version }, 1);
  const known = new Map<string, Gauge>();
  return async () => {
    const { figures, isStateUp, isQueueUp } = await readFigures(deps);
    up.set({ part: 'state' }, isStateUp ? 1 : 0);
    up.set({ part: 'queue' }, isQueueUp ? 1 : 0);
    for (const gauge of known.values()) gauge.reset();
    for (const { name, help, labels, value } of figures) {
      const gauge = known.get(name) ?? gaugeOf(name, help, Object.keys(labels));
      known.set(name, gauge);
      gauge.set(labels, value);
    }
  };
}

/** The event loop's delay since the last scrape. */
function measureLoop(registry: Registry): ReturnType<typeof monitorEventLoopDelay> {
  const histogram = monitorEventLoopDelay({ resolution: 20 });
  histogram.enable();
  new Gauge({
    name: 'tributary_event_loop_delay_seconds',
    help: 'Delay of the event loop since the last scrape: median, 99th percentile, and the longest.',
    labelNames: ['stat'],
    registers: [registry],
    collect() {
      this.set({ stat: 'p50' }, histogram.percentile(50) / 1e9);
      this.set({ stat: 'p99' }, histogram.percentile(99) / 1e9);
      this.set({ stat: 'max' }, histogram.max / 1e9);
      histogram.reset();
    },
  });
  return histogram;
}

/** One sample line. */
interface Figure {
  name: string;
  help: string;
  labels: Record<string, string>;
  value: number;
}

/** What cannot be read now is left out, not reported as zero: a stream whose lag is unknown is not up to date. */
async function readFigures(deps: Deps): Promise<{ figures: Figure[]; isStateUp: boolean; isQueueUp: boolean }> {
  const { watch } = deps.dependencies;
  const stateFigures = async (): Promise<Figure[]> => [
    ...(await streamFigures(deps)),
    ...(await windowFigures(deps.state)),
    ...(await budgetFigures(deps)),
  ];
  const [ofState, ofQueue] = await Promise.all([
    orNothing(watch(stateFigures(), ['state'])),
    orNothing(watch(queueFigures(deps.queue), ['queue'])),
  ]);
  return {
    figures: [...(ofState ?? []), ...(ofQueue ?? [])],
    isStateUp: ofState !== undefined,
    isQueueUp: ofQueue !== undefined,
  };
}

/** Recovery: `tributary_up` reports it, and the next scrape tries again. */
const orNothing = <T>(work: Promise<T>): Promise<T | undefined> => work.catch(() => undefined);

async function streamFigures(deps: Deps): Promise<Figure[]> {
  const { streams, troubles } = await readOverview(deps);
  const figures: Figure[] = [];
  const add = (name: string, help: string, labels: Record<string, string>, value: number | null): void => {
    if (value !== null) figures.push(figure(name, help, labels, value));
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
    add('first_sync', '1 until the stream has caught up once: it is behind by nature.', labels, one.firstSync ? 1 : 0);
    add('parked', '1 where the stream is parked until somebody acts.', labels, one.parked === null ? 0 : 1);
    add('quarantined_records', 'Records that were set aside.', labels, one.quarantined);
  }
  for (const kind of INCIDENT_KINDS)
    add('troubles', 'Where action is needed, by kind.', { kind }, troubles.filter((each) => each.kind === kind).length);
  return figures;
}

async function windowFigures(state: Queryable): Promise<Figure[]> {
  const rows = await state.query<{ source: string; stream: string; sink: string; state: string; n: number }>(
    sql`select source, stream, sink, state, count(*) as n from tributary.windows group by 1, 2, 3, 4`,
  );
  return rows.map(({ n, ...labels }) => figure('windows', 'Windows of the ledger, by state.', labels, n));
}

/** A key is named by its sources; keys that are no longer in the config are left out. */
async function budgetFigures({ state, keys }: Deps): Promise<Figure[]> {
  const used = await readBudgetUse(state, { minutes: 5, step: 5 });
  const budgets = await readBudgets(state);
  return keys.flatMap(({ hash, sources }) => {
    const labels = { sources: sources.join(',') };
    const now = budgets.find(({ keyHash }) => keyHash === hash);
    if (!now) return [];
    const recent = used.filter(({ keyHash }) => keyHash === hash);
    const refused = recent.reduce((all, use) => all + use.tooManyRequests, 0);
    const share = Math.max(0, ...recent.map((use) => use.share));
    return [
      figure('budget_share', 'Use of the request budget of a key in the last five minutes, 0 to 1.', labels, share),
      figure('budget_requests_per_second', 'The request budget of a key.', labels, now.perSecond),
      figure('budget_too_many_requests', '429s in the last five minutes.', labels, refused),
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
