import type { Database } from '../cursor/database.ts';
import type { Probe } from '../extract/probe.ts';
import type { Profile, Reader } from '../extract/reader.ts';
import type { Instant } from '../model/instant.ts';
import type { Log } from '../model/log.ts';
import type { StreamName } from '../model/streams.ts';
import type { Sink } from '../sinks/sink.ts';
import type { Upkeep } from './bring-up-to-date.ts';
import type { UnknownFields } from './evolver.ts';

/** One stream of a source, ready to be synced. */
export interface StreamJob {
  source: string;
  stream: StreamName;
  upkeep: Upkeep;
  unknownFields: UnknownFields;
  /** What the stream is narrowed to, as one text: completeness holds only for that. */
  filters: string;
  /** What is doubtful about them, for people. */
  warnings: readonly string[];
  createReader(profile: Profile, since: Instant, options?: ReadingOptions): Reader;
  /** One look at the service, for planning. */
  probe: Probe;
  /** What the plan grants the key, over all its streams and processes. */
  requestsPerSecond: number;
  /** How often it is synced. */
  everyMs: number;
  /** Where the first sync begins, given where it once did. */
  findSince(known: Instant | undefined, signal: AbortSignal): Promise<Instant>;
  /** Requests sent for this stream so far, and how many of them were refused for speed. */
  requests(): { requests: number; tooManyRequests: number };
}

export interface ReadingOptions {
  /** Nothing younger is called complete: by default what the config says. */
  settleMs?: number;
  /** Earlier runs with these filters saw rows. */
  hasShown?: boolean;
}

export interface SyncDeps {
  state: Database;
  sinks: readonly Sink[];
  log: Log;
  signal: AbortSignal;
  /** Who is at work, for others who find the stream taken. */
  holder: string;
  /** Told for whom a backfill waits; it waits for as long as that takes then, and half a minute without it. */
  onWait?(waiting: { source: string; stream: StreamName; holder: string }): void;
  onProgress(progress: SyncProgress): void;
}

export interface SyncProgress {
  source: string;
  stream: StreamName;
  rows: number;
  requests: number;
  through: Instant | undefined;
  /** From 0 to 1, where the work has an end. */
  done?: number;
}
