/** A request, for the log and for faults that apply to some requests only. */
export interface RequestInfo {
  method: string;
  path: string;
  query: Readonly<Record<string, string>>;
}

/** A response that replaces the real one. With only `status` set, it is the error envelope of that status. */
export interface FaultRule {
  status?: number;
  code?: string;
  message?: string;
  /** The raw body; without it an error envelope is written. */
  body?: string;
  headers?: Readonly<Record<string, string>>;
  /** Wait this long first; then send the real response if no status is set. */
  delayMs?: number;
  /** Never answer. The socket stays open until the client or the sandbox closes it. */
  hang?: boolean;
  /** Send half of the real response, then break the connection. */
  cut?: boolean;
  drop?: boolean;
  /** The number of requests it applies to (default 1). */
  times?: number;
  /** Only for requests whose query has all these values. */
  match?: Readonly<Record<string, string>>;
  /** Only for this endpoint, such as /links. */
  path?: string;
  when?: (request: RequestInfo) => boolean;
}

const RESPONSE = ['status', 'code', 'message', 'body', 'headers'] as const;
const FAILURES = ['delayMs', 'hang', 'cut', 'drop'] as const;
const CONDITIONS = ['times', 'match', 'path'] as const;
/** The part of a fault that JSON can carry; `when` is for tests in this process. */
export const FAULT_KEYS = [...RESPONSE, ...FAILURES, ...CONDITIONS] satisfies (keyof FaultRule)[];

export function createFaults() {
  let queue: { plan: FaultRule; left: number }[] = [];
  const hits = ({ match, path, when }: FaultRule, request: RequestInfo): boolean =>
    (path === undefined || path === request.path) &&
    Object.entries(match ?? {}).every(([name, value]) => request.query[name] === value) &&
    (when?.(request) ?? true);
  return {
    add(...plans: FaultRule[]): void {
      queue.push(...plans.map((plan) => ({ plan, left: plan.times ?? 1 })));
    },
    clear(): void {
      queue = [];
    },
    get pending(): number {
      return queue.reduce((sum, { left }) => sum + left, 0);
    },
    /** The fault for this request; counts it as used once. */
    take(request: RequestInfo): FaultRule | undefined {
      const entry = queue.find(({ plan }) => hits(plan, request));
      if (!entry) return undefined;
      entry.left -= 1;
      if (entry.left <= 0) queue = queue.filter((other) => other !== entry);
      return entry.plan;
    },
  };
}

export interface LoggedRequest extends RequestInfo {
  /** Arrival in real time, by which budgets are counted. */
  at: number;
  /** 0 while the request is in progress, or if the connection was broken instead. */
  status: number;
  rows: number;
}

const KEPT = 20_000;

export type RequestLog = ReturnType<typeof createRequestLog>;

/** The requests to the API, without control requests, oldest first. */
export function createRequestLog() {
  const entries: LoggedRequest[] = [];
  let requests = 0;
  const byStatus: Record<string, number> = {};
  return {
    entries: entries as readonly LoggedRequest[],
    arrived(request: RequestInfo): LoggedRequest {
      const entry = { ...request, at: Date.now(), status: 0, rows: 0 };
      entries.push(entry);
      if (entries.length > KEPT) entries.splice(0, KEPT / 2);
      requests += 1;
      return entry;
    },
    answered(entry: LoggedRequest, status: number, rows = 0): void {
      entry.status = status;
      entry.rows = rows;
      byStatus[status] = (byStatus[status] ?? 0) + 1;
    },
    totals: () => ({ requests, byStatus: { ...byStatus } }),
    clear(): void {
      entries.length = 0;
    },
  };
}
