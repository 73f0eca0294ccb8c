import type { RequestInfo } from './faults.ts';

export interface LoggedRequest extends RequestInfo {
  /** Arrival, in real time: budgets are kept in real time. */
  at: number;
  /** 0 while the request is under way, or when the connection was broken instead of answered. */
  status: number;
  rows: number;
}

/** The requests to the API (control requests are not among them), oldest first. */
export interface RequestLog {
  readonly entries: readonly LoggedRequest[];
  arrived(request: RequestInfo): LoggedRequest;
  answered(entry: LoggedRequest, status: number, rows?: number): void;
  totals(): { requests: number; byStatus: Record<string, number> };
  clear(): void;
}

const KEPT = 20_000;

export function createRequestLog(): RequestLog {
  const entries: LoggedRequest[] = [];
  let requests = 0;
  const byStatus: Record<string, number> = {};
  return {
    entries,
    arrived(request) {
      const entry = { ...request, at: Date.now(), status: 0, rows: 0 };
      entries.push(entry);
      if (entries.length > KEPT) entries.splice(0, KEPT / 2);
      requests += 1;
      return entry;
    },
    answered(entry, status, rows = 0) {
      entry.status = status;
      entry.rows = rows;
      byStatus[status] = (byStatus[status] ?? 0) + 1;
    },
    totals: () => ({ requests, byStatus: { ...byStatus } }),
    clear() {
      entries.length = 0;
    },
  };
}
