import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { Fault } from '../model/errors.ts';
import { observe, type SpanEnd } from '../model/observed.ts';
import type { StreamReport } from '../sync/run.ts';
import type { ControlDeps } from './deps.ts';
import { readFigures } from './metrics-figures.ts';

/** The one home of prom-client. docs/monitoring.md describes every name; a test holds the two together. */
export interface Metrics {
  /** A run of this process ended. */
  ran(report: StreamReport): void;
  /** For Prometheus. */
  text(): Promise<string>;
  close(): void;
}

export const METRICS_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

type Deps = Pick<ControlDeps, 'state' | 'queue' | 'dependencies' | 'streams' | 'keys' | 'version'>;

export function createMetrics(deps: Deps): Metrics {
  const registers = [new Registry()];
  const [registry] = registers as [Registry];
  const stream = ['source', 'stream'] as const;
  const rows = new Counter({
    name: 'tributary_rows_total',
    help: 'Rows that runs of this process read, by what became of them.',
    labelNames: [...stream, 'outcome'],
    registers,
  });
  const runs = new Counter({
    name: 'tributary_runs_total',
    help: 'Runs of this process, by how they ended.',
    labelNames: [...stream, 'state'],
    registers,
  });
  const duration = new Histogram({
    name: 'tributary_run_duration_seconds',
    help: 'How long runs of this process took.',
    labelNames: [...stream, 'kind'],
    buckets: [0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600],
    registers,
  });
  const requests = new Counter({
    name: 'tributary_requests_total',
    help: 'Requests of this process to the service, by the HTTP status of the answer, or none.',
    labelNames: ['source', 'status'],
    registers,
  });
  const gauges = gaugesOf(deps, registry);
  const loop = measureLoop(registry);
  const unwatch = observe(({ name, attributes }) => (end) => {
    const { source = '', stream: of = '', kind = '' } = attributes;
    if (name === 'request') requests.inc({ source: String(source), status: statusOf(end) });
    if (name === 'run')
      duration.observe({ source: String(source), stream: String(of), kind: String(kind) }, end.seconds);
  });

  return {
    ran({ source, stream: name, state, tally }) {
      for (const outcome of ['new', 'changed', 'unchanged', 'quarantined'] as const)
        rows.inc({ source, stream: name, outcome }, tally[outcome]);
      runs.inc({ source, stream: name, state });
    },
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

/** `none`: the network failed, or the answer could not be used for another reason than its status. */
function statusOf({ error }: SpanEnd): string {
  if (error === undefined) return '200';
  const answer =
    error instanceof Fault && 'answer' in error ? (error.answer as { status?: number } | undefined) : undefined;
  return answer?.status === undefined ? 'none' : String(answer.status);
}

/** Figures that the state knows, for all processes: read when they are asked for. */
function gaugesOf(deps: Deps, registry: Registry): () => Promise<void> {
  const up = new Gauge({
    name: 'tributary_up',
    help: '1 where the part answers: state, queue.',
    labelNames: ['part'],
    registers: [registry],
  });
  const info = new Gauge({
    name: 'tributary_info',
    help: 'The version.',
    labelNames: ['version'],
    registers: [registry],
  });
  info.set({ version: deps.version }, 1);
  const known = new Map<string, Gauge>();
  return async () => {
    const { figures, isStateUp, isQueueUp } = await readFigures(deps);
    up.set({ part: 'state' }, isStateUp ? 1 : 0);
    up.set({ part: 'queue' }, isQueueUp ? 1 : 0);
    for (const gauge of known.values()) gauge.reset();
    for (const { name, help, labels, value } of figures) {
      const gauge =
        known.get(name) ?? new Gauge({ name, help, labelNames: Object.keys(labels), registers: [registry] });
      known.set(name, gauge);
      gauge.set(labels, value);
    }
  };
}

/** How long this process was busy at a stretch, between two looks of Prometheus. */
function measureLoop(registry: Registry): ReturnType<typeof monitorEventLoopDelay> {
  const histogram = monitorEventLoopDelay({ resolution: 20 });
  histogram.enable();
  new Gauge({
    name: 'tributary_event_loop_delay_seconds',
    help: 'Delay of the event loop since the last look: median, 99th percentile, and the longest.',
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
