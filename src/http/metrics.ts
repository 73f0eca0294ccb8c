import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { readBudgets, readBudgetUse } from '../cursor/budgets.ts';
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
  const rows = counter('rows', 'Rows that runs of this process read, by outcome.', 'source', 'stream', 'outcome');
  const runs = counter('runs', 'Runs of this process, by final state.', 'source', 'stream', 'state');
  const duration = new Histogram({
    name: 'tributary_run_duration_seconds',
    help: 'Duration of runs of this process.',
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
    ran({ source, stream: name, state, tally }: StreamReport) {
      for (const outcome of ['new', 'changed', 'unchanged', 'quarantined'] as const)
        rows.inc({ source, stream: name, outcome }, tally[outcome]);
      runs.inc({ source, stream: name, state });
    },
    /** For a run of this process that ended with a bug, and has no report. */
    broke: ({ source, stream: name }: Pick<StreamReport, 'source' | 'stream'>) =>
      runs.inc({ source, stream: name, state: 'failed' }),
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

/** Gauges for all processes, read from the state and the queue at each scrape. */
const HELP = {
  lag_seconds: 'From the watermark to now.',
  complete_through_timestamp_seconds: 'The watermark: complete up to here.',
  newest_seen_timestamp_seconds: 'Time of the newest event delivered.',
  max_lag_seconds: 'maxLag of the config.',
  last_success_timestamp_seconds: 'When the last successful sync ended.',
  first_sync: '1 until the stream has caught up once: until then, lag is expected.',
  parked: '1 if the stream is parked and needs action.',
  quarantined_records: 'Records that were set aside.',
  troubles: 'Where action is needed, by kind.',
  windows: 'Windows of the ledger, by state.',
  budget_share: 'Use of the request budget of a key in the last five minutes, 0 to 1.',
  budget_requests_per_second: 'The request budget of a key.',
  budget_too_many_requests: '429s in the last five minutes.',
  budget_paused_seconds: 'Remaining seconds of the pause after a 429.',
  queue_jobs: 'Jobs in the queue, by state.',
  up: '1 if the part responds: state, queue.',
  info: 'The version.',
};

/** A sample; null if it is unknown now, and omitted. */
type Figure = readonly [name: keyof typeof HELP, labels: Record<string, string>, value: number | null];

function gaugesOf(deps: Deps, registry: Registry): () => Promise<void> {
  const gauges = new Map<string, Gauge>();
  return async () => {
    const figures = await readFigures(deps);
    for (const gauge of gauges.values()) gauge.reset();
    for (const [short, labels, value] of figures) {
      if (value === null) continue;
      const [name, labelNames] = [`tributary_${short}`, Object.keys(labels)];
      const gauge = gauges.get(name) ?? new Gauge({ name, help: HELP[short], labelNames, registers: [registry] });
      gauges.set(name, gauge);
      gauge.set(labels, value);
    }
  };
}

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

/** Omits what cannot be read now instead of reporting zero: a stream whose lag is unknown is not up to date. */
async function readFigures(deps: Deps): Promise<Figure[]> {
  const { watch } = deps.dependencies;
  const stateFigures = async (): Promise<Figure[]> => [
    ...(await streamFigures(deps)),
    ...(await windowFigures(deps.state)),
    ...(await budgetFigures(deps)),
  ];
  // Recovery: `tributary_up` reports it, and the next scrape tries again.
  const [ofState, ofQueue] = await Promise.all([
    watch(stateFigures(), ['state']).catch(() => undefined),
    watch(queueFigures(deps.queue), ['queue']).catch(() => undefined),
  ]);
  return [
    ...(ofState ?? []),
    ...(ofQueue ?? []),
    ['up', { part: 'state' }, ofState ? 1 : 0],
    ['up', { part: 'queue' }, ofQueue ? 1 : 0],
    ['info', { version: deps.version }, 1],
  ];
}

async function streamFigures(deps: Deps): Promise<Figure[]> {
  const { streams, troubles } = await readOverview(deps);
  const each = streams.flatMap(({ source, stream, sinks, ...one }): Figure[] => {
    const of = { source, stream };
    return [
      ...sinks.flatMap(({ sink, completeThrough, newestSeen, lagSeconds }): Figure[] => [
        ['lag_seconds', { ...of, sink }, lagSeconds],
        ['complete_through_timestamp_seconds', { ...of, sink }, seconds(completeThrough)],
        ['newest_seen_timestamp_seconds', { ...of, sink }, seconds(newestSeen)],
      ]),
      ['max_lag_seconds', of, one.maxLagSeconds],
      ['last_success_timestamp_seconds', of, seconds(one.lastSuccessAt)],
      ['first_sync', of, one.firstSync ? 1 : 0],
      ['parked', of, one.parked === null ? 0 : 1],
      ['quarantined_records', of, one.quarantined],
    ];
  });
  const countOf = (kind: string): number => troubles.filter((trouble) => trouble.kind === kind).length;
  return [...each, ...INCIDENT_KINDS.map((kind): Figure => ['troubles', { kind }, countOf(kind)])];
}

async function windowFigures(state: Queryable): Promise<Figure[]> {
  const rows = await state.query<{ source: string; stream: string; sink: string; state: string; n: number }>(
    sql`select source, stream, sink, state, count(*) as n from tributary.windows group by 1, 2, 3, 4`,
  );
  return rows.map(({ n, ...labels }) => ['windows', labels, n]);
}

/** A key is identified by its sources; keys that are no longer in the config are omitted. */
async function budgetFigures({ state, keys }: Deps): Promise<Figure[]> {
  const used = await readBudgetUse(state, { minutes: 5, step: 5 });
  const budgets = await readBudgets(state);
  return keys.flatMap(({ hash, sources }): Figure[] => {
    const labels = { sources: sources.join(',') };
    const now = budgets.find(({ keyHash }) => keyHash === hash);
    if (!now) return [];
    const recent = used.filter(({ keyHash }) => keyHash === hash);
    return [
      ['budget_share', labels, Math.max(0, ...recent.map((use) => use.share))],
      ['budget_requests_per_second', labels, now.perSecond],
      ['budget_too_many_requests', labels, recent.reduce((all, use) => all + use.tooManyRequests, 0)],
      ['budget_paused_seconds', labels, now.pausedSeconds ?? 0],
    ];
  });
}

const STATES = ['waiting', 'active', 'delayed', 'prioritized', 'waiting-children', 'failed'] as const;

async function queueFigures({ queues }: JobQueue): Promise<Figure[]> {
  const counted = await Promise.all(
    Object.entries(queues).map(async ([queue, each]) => ({ queue, counts: await each.getJobCounts(...STATES) })),
  );
  return counted.flatMap(({ queue, counts }) =>
    Object.entries(counts).map(([state, value]): Figure => ['queue_jobs', { queue, state }, value]),
  );
}

const seconds = (iso: string | null): number | null => (iso === null ? null : Date.parse(iso) / 1000);
