import { createFlatten } from '../../src/model/flatten.ts';
import type { Instant } from '../../src/model/instant.ts';
import { STREAMS } from '../../src/model/streams.ts';
import type { StreamPolicy } from '../../src/sync/job.ts';
import { createInProcessApi, type InProcessApi } from './in-process-api.ts';
import { createMemorySink, type MemorySink } from './memory-sink.ts';
import { createMemorySync, type MemorySyncOptions, type RunResult } from './memory-sync.ts';
import { createSandboxService, type SandboxService, type ServiceOptions } from './odd-service/service.ts';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
export const NOON = Date.UTC(2026, 10, 14, 12);
export const POLICY: StreamPolicy = { settleMs: 10 * MINUTE, lookbackMs: 15 * MINUTE, resweepMs: undefined };

/** The sandbox service in this process with a clock that the test moves, and a sync of its clicks at 1,000 rows a page. */
export interface SandboxSync {
  service: SandboxService;
  api: InProcessApi;
  sink: MemorySink;
  run(): Promise<RunResult>;
  pass(ms: number): void;
  now(): Instant;
  /** Events that are visible and not in the sink. */
  missing(): string[];
  watermark(): Instant | undefined;
}

export function createSandboxSync(
  { clicks, days = 3, ...options }: Omit<ServiceOptions, 'rows' | 'now'> & { clicks: number },
  sync: Partial<MemorySyncOptions> & { start?: Instant } = {},
): SandboxSync {
  let clock = sync.start ?? NOON;
  const service = createSandboxService({ ...options, days, rows: { clicks, leads: 0, sales: 0 }, now: () => clock });
  const api = createInProcessApi(service);
  const sink = createMemorySink(() => clock);
  const memory = createMemorySync({
    api,
    sink,
    flatten: createFlatten(STREAMS.clicks),
    since: clock - days * DAY - HOUR,
    policy: POLICY,
    now: () => clock,
    ...sync,
  });
  return {
    service,
    api,
    sink,
    run: memory.run,
    pass(ms) {
      clock += ms;
    },
    now: () => clock,
    missing: () => service.ids('clicks').filter((id) => !sink.rows.has(id)),
    watermark: () => sink.cursor()?.completeThrough,
  };
}
