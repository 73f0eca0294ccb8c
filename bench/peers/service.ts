import { DAY_MS, startOfDay } from '../../src/model/window.ts';
import { startSandbox } from '../../test/support/odd-service/service.ts';
import type { Traits } from '../../test/support/odd-service/traits.ts';

/** The service for every tool: the same leads each time, up to ten minutes before its start. */
export interface Service {
  baseUrl: string;
  apiKey: string;
  /** A day before all rows: the start of a first sync. */
  since: string;
  /** Adds rows for a second sync: new ones, ones of the newest second, and late ones. */
  arrivals(): void;
  /** The id of every visible row. */
  truth(): Set<string>;
  counts(): { requests: number; refused: number };
  close(): Promise<void>;
}

export interface ServiceOptions {
  rows: number;
  /** null: no limit. */
  perSecond: number | null;
  traits: Traits;
}

/** Dense enough that rows share seconds, like leads and sales of busy workspaces. */
const DAYS = 3;
/** Leads of one import, in one second. */
const IMPORTED = 300;
const MINUTE_MS = 60_000;
/** The initial age of the newest row. Arrivals fall into the time since, whose length does not depend on a sync's duration. */
const PAUSE_MS = 10 * MINUTE_MS;

/** The difficult one has field notes 1, 9 and 10: widened windows, unstable ties, short pages. */
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
  // The newest second needs a row for others to join.
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
