import { DAY_MS, startOfDay } from '../../src/model/window.ts';
import { startSandbox } from '../../test/support/odd-service/service.ts';
import type { Traits } from '../../test/support/odd-service/traits.ts';

/** The service that every tool reads: the same leads each time, up to ten minutes before it is opened. */
export interface Service {
  baseUrl: string;
  apiKey: string;
  /** A day before all rows: where a first sync is told to begin. */
  since: string;
  /** What a second sync should find: new rows, rows of the newest second that was there, and rows that came late. */
  arrivals(): void;
  /** The id of every row that any query could show. */
  truth(): Set<string>;
  counts(): { requests: number; refused: number };
  close(): Promise<void>;
}

export interface ServiceOptions {
  rows: number;
  /** null is no limit. */
  perSecond: number | null;
  traits: Traits;
}

/** Dense enough that rows share seconds, as leads and sales of busy workspaces do. */
const DAYS = 3;
/** Leads that one import wrote in one second. */
const IMPORTED = 300;
const MINUTE_MS = 60_000;
/** How old the newest row is at first. The time until now is for the arrivals: were it as long as a sync takes, a fast tool would meet them denser. */
const PAUSE_MS = 10 * MINUTE_MS;

/** Difficult are field notes 1, 9 and 10: widened windows, unstable ties, pages that come short. */
export const SERVERS = {
  calm: {},
  difficult: { widen: 'day', shuffleTies: true, dropAfterLimit: 0.1 },
} as const satisfies Record<string, Traits>;
export type ServerName = keyof typeof SERVERS;

export async function openService({ rows, perSecond, traits }: ServiceOptions): Promise<Service> {
  const historyEnd = Date.now() - PAUSE_MS;
  const { service, baseUrl, apiKey, close } = await startSandbox({
    days: DAYS,
    historyEnd,
    rows: { clicks: 1000, leads: rows - IMPORTED, sales: 0 },
    traits: { ...traits, ties: IMPORTED },
    requestsPerSecond: perSecond,
  });
  const newest = Math.floor(historyEnd / 1000) * 1000;
  // Something must stand in the newest second for others to join it.
  service.arrive('leads', 1, { from: newest, to: newest });
  return {
    baseUrl,
    apiKey,
    since: new Date(startOfDay(historyEnd - DAYS * DAY_MS)).toISOString(),
    arrivals() {
      service.arrive('leads', 20, { from: newest, to: newest });
      service.arrive('leads', 40, { from: newest - 10 * MINUTE_MS, to: newest - MINUTE_MS });
      service.arrive('leads', 400, { from: newest + 1000, to: newest + PAUSE_MS });
    },
    truth: () => new Set(service.ids('leads')),
    counts() {
      const { requests, byStatus } = service.log.totals();
      return { requests, refused: byStatus[429] ?? 0 };
    },
    close,
  };
}
