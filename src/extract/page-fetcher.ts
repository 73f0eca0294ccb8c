import { ANSWER_TOO_LARGE, type Page } from '../api/client.ts';
import type { EventsApi } from '../api/events-api.ts';
import type { Lane } from '../api/limiter.ts';
import { BadRecord, RetryLater, StopStream } from '../model/errors.ts';
import type { Flatten, Row } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import { processMemory } from '../model/memory.ts';
import type { StreamName } from '../model/streams.ts';
import { firstStep, type Step } from './page-steps.ts';
import { noticeAnswer, type Profile } from './profile.ts';
import type { Observation, Stamped } from './proof/answer.ts';
import type { Admission, Evidence } from './proof/evidence.ts';
import type { ServiceClock } from './service-clock.ts';

/** A page to ask for. Without an end, everything there is, the future included. */
export interface PageRequest {
  order: 'asc' | 'desc';
  start: Instant;
  end?: Instant | undefined;
  /** The first page, as long as may be, unless said otherwise. */
  step?: Pick<Step, 'page' | 'limit'> | undefined;
}

export interface PageResult extends Observation {
  readonly rows: readonly Row[];
  readonly rejected: readonly Rejection[];
  /** What it was worth as evidence. */
  readonly admission: Admission;
}

/** The rows of a page that are in order, oldest first; none where it proves nothing. */
export const lineOf = ({ admission }: PageResult): readonly Stamped[] =>
  admission.kind === 'counts' ? admission.line : [];

/** Something that could not be read, and why. */
export interface Rejection {
  record: unknown;
  reason: string;
}

export interface RequestContext {
  lane: Lane;
  signal: AbortSignal;
}

/** Fetches pages and takes each in as evidence. What to fetch next is up to the strategies; what it proves is not. */
export interface PageFetcher {
  fetch(request: PageRequest): Promise<PageResult>;
  /** The same where the failure of this very page is an answer too: undefined then. With `once` it is not tried again. */
  attempt(request: PageRequest, options?: { once?: boolean }): Promise<PageResult | undefined>;
  /** Throws where the service is not there at all, or refuses the stream whatever is asked. */
  assertThere(): Promise<void>;
  /** Every page that was fetched since the last call: what became evidence must be delivered, whoever asked for it. */
  take(): PageResult[];
  readonly evidence: Evidence;
  readonly profile: Profile;
  /** What a page may hold; `profile.pageRows` is what the service could put on one lately. */
  readonly mostRows: number;
  readonly clock: ServiceClock;
}

export interface PageFetcherOptions extends RequestContext {
  api: EventsApi;
  stream: StreamName;
  filters: Readonly<Record<string, string>>;
  flatten: Flatten;
  evidence: Evidence;
  profile: Profile;
  mostRows: number;
  clock: ServiceClock;
  earliest: Instant;
  /** Told of each answer: how long it took, how large it was, and its rows. */
  onAnswer(answer: Pick<Page, 'tookMs' | 'bytes'>, rows: readonly Row[]): void;
}

/** A usual page of 1000 fits where memory is not scarce. */
const MOST_BYTES = processMemory.bytes / 48;

/** Future-dated events exist; asking this far ahead sees them. */
const AHEAD_MS = 366 * 86_400_000;
/** Nothing can be there: only a service that is down or refuses the stream fails to say so. */
const FAR_AHEAD_MS = 300 * 86_400_000;

export function createPageFetcher(options: PageFetcherOptions): PageFetcher {
  const { api, stream, filters, flatten, evidence, profile, mostRows, clock, earliest, lane, signal, onAnswer } =
    options;
  const fetched: PageResult[] = [];
  // Fixed, so that pages of one question are pages of one question.
  const ahead = clock.now() + AHEAD_MS;

  async function ask(request: PageRequest, tries?: number): Promise<PageResult> {
    const { order, start, end = ahead, step = firstStep(profile.pageRows) } = request;
    const query = { order, start: Math.max(start, earliest), end, page: step.page, limit: step.limit };
    const asked = { stream, filters, start: query.start, end, sortOrder: order, page: step.page, limit: step.limit };
    const { records, serverNow, ...told } = await api.page(asked, { lane, signal, ...(tries && { tries }) });
    if (serverNow !== undefined) clock.set(serverNow);
    const { rows: shown, rejected } = flattenAll(records, flatten);
    const rows = withoutRepeats(shown);
    const count = records.length - (shown.length - rows.length);
    onAnswer(told, rows);
    // A chain holds a few pages, and its sinks hold more: of large rows it asks for fewer.
    if (told.bytes > MOST_BYTES)
      profile.pageRows = Math.min(profile.pageRows, Math.ceil((records.length * MOST_BYTES) / told.bytes));
    const answer = { query, rows, count, answeredAt: clock.now() };
    // What is remembered of a row is not all that it holds.
    const admission = evidence.admit({ ...answer, rows: rows.map(({ id, at }) => ({ id, at })) });
    noticeAnswer(profile, answer, admission);
    const page = { ...answer, rejected, admission };
    fetched.push(page);
    return page;
  }

  /** An answer that lacks what was seen before is asked for once more, otherwise: what two questions do not show is gone. */
  async function agreed(request: PageRequest, tries?: number): Promise<PageResult> {
    const page = await ask(request, tries);
    if (page.admission.kind !== 'contradicts') return page;
    const again = await ask({ ...request, start: request.start - 1 }, tries);
    return again.admission.kind === 'counts' ? again : page;
  }

  return {
    evidence,
    profile,
    mostRows,
    clock,
    take: () => fetched.splice(0),
    fetch: (request) => agreed(request),
    async attempt(request, { once = false } = {}) {
      try {
        return await agreed(request, once ? 1 : undefined);
      } catch (error) {
        // Recovery: that this page fails is what the caller wants to know.
        if (mayBeThisPage(error)) return undefined;
        if (!once || !(error instanceof RetryLater)) throw error;
        // A fault of the network says nothing of the page: it is tried again like any other.
        return this.attempt(request);
      }
    },
    async assertThere() {
      const start = clock.now() + FAR_AHEAD_MS;
      const asked = { stream, filters, start, end: start + AHEAD_MS, sortOrder: 'asc', page: 1, limit: 1 } as const;
      await api.page(asked, { lane, signal });
    },
  };
}

/** Failures that another page may get round. 401, 403 and the like would fail for any. */
export function mayBeThisPage(error: unknown): error is RetryLater | StopStream {
  // Without an answer nothing is known of the page: nobody listens there, or the network is down.
  if (error instanceof RetryLater) return error.answer !== undefined && error.answer.status !== 429;
  if (!(error instanceof StopStream) || !error.answer) return false;
  return [413, 422].includes(error.answer.status) || error.answer.code === ANSWER_TOO_LARGE;
}

/** A row that stands on a page twice is one row, in its last version. */
function withoutRepeats(rows: readonly Row[]): readonly Row[] {
  const once = new Map(rows.map((row) => [`${row.at} ${row.id}`, row]));
  return once.size === rows.length ? rows : [...once.values()];
}

export function flattenAll(records: readonly unknown[], flatten: Flatten): { rows: Row[]; rejected: Rejection[] } {
  const rows: Row[] = [];
  const rejected: Rejection[] = [];
  for (const record of records) {
    try {
      rows.push(flatten(record));
    } catch (error) {
      if (!(error instanceof BadRecord)) throw error;
      // Recovery: the record goes to quarantine with its reason; the page goes on.
      rejected.push({ record: error.remains, reason: error.message });
    }
  }
  return { rows, rejected };
}
