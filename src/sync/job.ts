import type { EventsApi } from '../api/events-api.ts';
import type { Database, Queryable } from '../cursor/database/index.ts';
import type { Listing } from '../extract/links/listing.ts';
import type { Probe } from '../extract/probe.ts';
import type { Profile, Reader } from '../extract/reader.ts';
import { StopStream } from '../model/errors.ts';
import { type Instant, parseDuration, parseInstant } from '../model/instant.ts';
import type { Log } from '../model/log.ts';
import type { StreamName, SyncName } from '../model/streams.ts';
import { DAY_MS, startOfDay } from '../model/window.ts';
import type { Sink } from '../sinks/sink.ts';
import type { UnknownFields } from './schema-evolution.ts';

export interface StreamPolicy {
  lookbackMs: number;
  /** Events may arrive this late: nothing younger is certified. */
  settleMs: number;
  resweepMs: number | undefined;
}

export interface StreamJob {
  source: string;
  stream: StreamName;
  keyHash: string;
  policy: StreamPolicy;
  unknownFields: UnknownFields;
  /** The filters as one text. Completeness only refers to events that pass them. */
  filters: string;
  warnings: readonly string[];
  createReader(profile: Profile, since: Instant, options?: ReadingOptions): Reader;
  /** Requests a single page, for planning. */
  probe: Probe;
  /** The rate limit of the key by its plan, shared by all its streams and processes. */
  requestsPerSecond: number;
  everyMs: number;
  /** The start of the stream, given the start that earlier syncs used. */
  findSince(known: Instant | undefined, signal: AbortSignal): Promise<Instant>;
  /** The number of requests sent for this stream so far, and of those answered with 429. */
  requests(): { requests: number; tooManyRequests: number };
}

/** Syncs the listing of all links of a source: a snapshot, without windows and filters. */
export interface LinksJob extends Pick<StreamJob, 'source' | 'keyHash' | 'everyMs' | 'requests'> {
  stream: 'links';
  /** Also keeps earlier versions of each link. */
  keepHistory: boolean;
  list(options: { hadLinks: boolean; signal: AbortSignal; onSeen(links: number): void }): Promise<Listing>;
}

export type AnyJob = StreamJob | LinksJob;

export const isOfEvents = (job: AnyJob): job is StreamJob => job.stream !== 'links';

interface ReadingOptions {
  /** Overrides the settle time of the config. */
  settleMs?: number;
  hasShown?: boolean;
}

export interface SyncDeps {
  state: Database;
  sinks: readonly Sink[];
  log: Log;
  signal: AbortSignal;
  holder: string;
  /** Called with the holder that a backfill waits for. With it, the backfill waits without limit; without it, half a minute. */
  onWait?(waiting: { source: string; stream: SyncName; holder: string }): void;
  onProgress(progress: SyncProgress): void;
  /** Called with notices that a user should see before the work continues; without it, they are logged. */
  onNotice?(notice: { source: string; stream: SyncName; text: string }): void;
  /** Counts all rows of the sinks in this run instead of spread over a day. */
  recount?: boolean;
  /** Progress is displayed: a backfill first spends a few requests on an estimate of where the rows are. */
  isWatched?: boolean;
  /** Called in the transaction that ends a run, unless the run ended with a fault. */
  onEnd?(tx: Queryable): Promise<void>;
}

/** What commands need that only change the state and the sinks. */
export type MaintainDeps = Pick<SyncDeps, 'state' | 'sinks' | 'holder'>;

export interface SyncProgress {
  source: string;
  stream: SyncName;
  rows: number;
  requests: number;
  through: Instant | undefined;
  done?: number;
  /** Set if the work is recorded as a run in the history. */
  runId?: string;
}

interface SinceQuestion {
  /** A date, a duration back from the first sync, or `all`. */
  since: string;
  known: Instant | undefined;
  api: EventsApi;
  stream: StreamName;
  filters: Readonly<Record<string, string>>;
  signal: AbortSignal;
}

const SECOND_MS = 1000;

/** Earlier than the launch of any such service. */
export const BEFORE_ALL = Date.UTC(2000, 0, 1);

/** A longer duration or an earlier date moves the start back later. Nothing moves it forward: a duration is counted from the first sync. */
export async function resolveSince(question: SinceQuestion): Promise<Instant> {
  const { since, known } = question;
  if (since === 'all') return known ?? findBeginning(question);
  const wanted = parseInstant(since) ?? startOfDay(Date.now() - (parseDuration(since) ?? 0));
  return Math.min(wanted, known ?? wanted);
}

/** Services refuse a start before their launch: binary search finds the first second that is accepted. */
async function findBeginning({ api, stream, filters, signal }: SinceQuestion): Promise<Instant> {
  const isAccepted = async (start: Instant): Promise<boolean> => {
    const query = { stream, start, end: start + DAY_MS, sortOrder: 'asc', page: 1, limit: 1, filters } as const;
    try {
      await api.page(query, { lane: 'fresh', signal });
      return true;
    } catch (error) {
      if (error instanceof StopStream && error.answer?.status === 422) return false;
      throw error;
    }
  };
  if (await isAccepted(BEFORE_ALL)) return BEFORE_ALL;
  let refused = BEFORE_ALL;
  let accepted = Date.now();
  while (accepted - refused > SECOND_MS) {
    const middle = Math.floor((accepted + refused) / 2 / SECOND_MS) * SECOND_MS;
    if (await isAccepted(middle)) accepted = middle;
    else refused = middle;
  }
  return accepted;
}
