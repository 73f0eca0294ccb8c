import { type EventsQuery, type Page, toSearchParams } from '../../src/api/client.ts';
import type { PageOptions } from '../../src/api/events-api.ts';
import { createFlatten } from '../../src/model/flatten.ts';
import type { Instant } from '../../src/model/instant.ts';
import { STREAMS } from '../../src/model/streams.ts';
import type { StreamPolicy } from '../../src/sync/job.ts';
import { createMemorySink } from './memory-sink.ts';
import { createMemorySync, type MemorySyncOptions } from './memory-sync.ts';
import { createSandboxService, type SandboxService, type ServiceOptions } from './odd-service/service.ts';
import { answerOf } from './service-error.ts';

/** The sandbox service without HTTP: its parsed answers, and its errors as the typed errors of src/api. */
function createInProcessApi(service: SandboxService) {
  const queries: EventsQuery[] = [];
  const api = {
    queries,
    /** Called before each answer; an error that it throws replaces the answer. */
    onRequest: (_query: EventsQuery, _count: number): void => {},
    /** Called with the records of each answer. */
    onAnswer: (_records: readonly unknown[]): void => {},
    stats: () => ({ requests: queries.length, retries: 0, tooManyRequests: 0, bytes: 0 }),
    async page(query: EventsQuery, _options: PageOptions): Promise<Page> {
      queries.push(query);
      api.onRequest(query, queries.length);
      const { body } = answerOf(() => service.list(toSearchParams(query)));
      const records = JSON.parse(body) as unknown[];
      api.onAnswer(records);
      return { records, serverNow: service.now(), bytes: body.length, tookMs: 0 };
    },
  };
  return api;
}

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
export const NOON = Date.UTC(2026, 10, 14, 12);
export const POLICY: StreamPolicy = { settleMs: 10 * MINUTE, lookbackMs: 15 * MINUTE, resweepMs: undefined };

export type SandboxSync = ReturnType<typeof createSandboxSync>;

/** The sandbox service in this process with a simulated clock, and a sync of its clicks at 1,000 rows a page. */
export function createSandboxSync(
  { clicks, days = 3, ...options }: Omit<ServiceOptions, 'rows' | 'now'> & { clicks: number },
  sync: Partial<MemorySyncOptions> & { start?: Instant } = {},
) {
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
    pass(ms: number) {
      clock += ms;
    },
    now: () => clock,
    /** Visible events that the sink lacks. */
    missing: () => service.ids('clicks').filter((id) => !sink.rows.has(id)),
    watermark: () => sink.cursor()?.completeThrough,
  };
}
