import type { Database, Queryable, Transaction } from '../cursor/database/index.ts';
import type { CountRows, RowChanges } from '../cursor/holdings/window-rows.ts';
import type { Advance } from '../cursor/ledger.ts';
import type { Rejected } from '../cursor/quarantine.ts';
import type { Kind } from '../model/columns.ts';
import { ConfigError, type Finding, RetryLater } from '../model/errors.ts';
import type { Row } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import type { Stream, StreamName } from '../model/streams.ts';
import type { Window } from '../model/window.ts';

/**
 * The target of rows. `commit` decides the order in which data and cursor are written: whatever happens in between,
 * a cursor never claims more than the sink holds. `Sink` is what every sink must implement; `Abilities` are optional.
 */
export interface Sink extends Partial<Abilities> {
  readonly name: string;
  /** Where the data is, for display. */
  readonly place: string;
  /** Rows per commit: enough to load at full speed, few enough that two batches fit in memory. */
  readonly batchRows: number;
  /** The sink stores rows by time, so a batch of one contiguous range is cheaper than one of several ranges. */
  readonly isByTime?: boolean;
  /** Most rows that one run counts, if counting reads them: this bounds the cost of the daily count. Default: all. */
  readonly countedRows?: number;
  /** How long rows are kept. Default: for ever. */
  readonly keepMs?: number;
  /** Whether the identity is read from the state database, in the transaction that takes the lease. */
  readonly isInState?: boolean;
  /** The table or folder of a stream, for display. */
  tableOf?(stream: StreamName): string;
  /** Creates or migrates what the stream needs. Safe to call from several processes at once. */
  prepare(stream: Stream): Promise<void>;
  open(stream: Stream): Promise<Batch>;
  /** Throws if `erase` could not reach everything. Called before cursors and ledger of a source are dropped. */
  checkErasure?(erasure: Erasure): Promise<void>;
  close(): Promise<void>;
}

/** What only some sinks can do. Callers that can do without it write `sink.recover?.(…)`; others use `abilityOf`. */
export interface Abilities {
  /** After a crash between data and cursor: moves the cursor to what the sink holds; returns whether it moved. Called with the lease. */
  recover(feed: LeasedFeed): Promise<boolean>;
  /** After a run: publishes how far the stream is complete, beside the data. */
  publishProgress(feed: Omit<LeasedFeed, 'epoch'>, isReopened?: boolean): Promise<void>;
  /** Erases a customer, a click or a source. Returns the number of affected rows by place. */
  erase(erasure: Erasure): Promise<Record<string, number>>;
  /** Returns the number of rows that `erase` would affect, by place. Without it, the events are read and counted. */
  countErased(erasure: Erasure): Promise<Record<string, number>>;
  /** For `doctor`: tests whether the sink can create, write and read, and cleans up. */
  check(): Promise<readonly Finding[]>;
  /** Compares a window of the sink with the rows that it should hold. Changes nothing. */
  compare(comparison: Comparison): Promise<Difference[]>;
  /**
   * A text that does not change unless somebody else replaced, restored or changed what the sink holds of the stream. Called at the
   * start of every run, so it has to be cheap: at most one statement. `lastCommit` is the state's last commit.
   */
  identify(state: Queryable, feed: Omit<LeasedFeed, 'epoch'>, lastCommit: string | undefined): Promise<string>;
  /** What the sink holds of a source in each window, counted in the data and not taken from records of earlier commits. */
  attest(stream: Stream, source: string, windows: readonly Asked[]): Promise<Held[]>;
  /** Whether each window has any row: the first check of a replaced sink, if counting is slow. */
  glance(stream: Stream, source: string, windows: readonly Window[]): Promise<boolean[]>;
  /** Before these windows are filled again: drops the keys of rows that are gone, so that they count as new. */
  releaseKeys(stream: Stream, source: string, windows: readonly Window[]): Promise<void>;
  /** Removes the rows of other writers that `attest` reports in these windows. A file with rows of both is rewritten. */
  removeForeign(stream: Stream, source: string, windows: readonly Window[]): Promise<void>;
  /** Removes rows of a window that are marked as missing because their events moved to another day, if the sink has them there. */
  removeMoved(stream: Stream, source: string, window: Window): Promise<void>;
  /** Restores missing links and customers from the events: all that are missing, or only if the source has none left. */
  refillEntities(source: string, isThorough: boolean): Promise<Refilled[]>;
  /** Deletes a few thousand rows, or some files, of events before an instant. Returns whether there are more. */
  prune(stream: Stream, source: string, before: Instant): Promise<boolean>;
  /** Reads the rows of a window in time order, a few thousand at a time, to compare two sinks. */
  read(stream: Stream, source: string, window: Window): AsyncGenerator<Row[]>;
  /** Rewrites files that lack current columns. */
  rewrite(streams: readonly StreamName[]): Promise<Rewrites>;
  /** Merges a listing of all links atomically: readers see the previous listing or this one. Returns what changed. */
  replaceLinks(snapshot: LinksSnapshot): Promise<Receipt>;
  /** Joins small files and removes those that no reader can use any more. */
  maintain(options?: MaintainOptions): Promise<Maintained>;
}

/** An identity with this ending requests an attestation, and changes afterwards. */
export const UNSETTLED = '?';
/** Unsettled, because a table that is gone must be looked for in every run. */
export const NO_TABLE = `no table${UNSETTLED}`;

export interface Asked extends Window {
  /** The expected number of rows: if there are more, the sink tells whether events are there twice. */
  rows?: number;
}

export interface Held {
  /** Rows that Tributary wrote, vanished ones included. */
  rows: number;
  /** Describes rows of another writer: how many, where, whose, since when. Such a window is not complete, whatever was read. */
  foreign?: string | undefined;
}

/** Rows of a table that were missing and are restored. */
export interface Refilled {
  table: string;
  rows: number;
}

const WITHOUT = {
  erase: 'cannot erase rows',
  compare: 'cannot be compared with the service',
  identify: 'cannot identify itself',
  attest: 'cannot count its rows',
  glance: 'cannot tell whether it has rows',
  removeForeign: 'cannot remove rows of other writers',
  prune: 'cannot delete old rows',
  read: 'cannot be read back',
  replaceLinks: 'cannot hold a listing of links',
} as const satisfies Partial<Record<keyof Abilities, string>>;

export function abilityOf<A extends keyof typeof WITHOUT>(sink: Sink, ability: A): Abilities[A] {
  const found = sink[ability];
  if (found) return found.bind(sink) as Abilities[A];
  throw new ConfigError(`sink "${sink.name}" ${WITHOUT[ability]}`, {
    where: { sink: sink.name },
    kept: 'everything; nothing was changed',
    next: 'choose another sink with --sink',
  });
}

export const countsIn =
  (sink: Sink, stream: Stream, source: string): CountRows =>
  async (windows) =>
    (await abilityOf(sink, 'attest')(stream, source, windows)).map(({ rows }) => rows);

export interface Comparison {
  stream: Stream;
  source: string;
  window: Window;
  /** The expected rows, in the stream's columns. */
  rows: readonly Row[];
  /** Whether the rows are complete for the window, so that any other row of the sink is extra. */
  isWhole: boolean;
}

export interface Difference {
  /** Missing in the sink; extra in the sink and not marked as vanished; or stored with other content. */
  kind: 'missing' | 'extra' | 'different';
  id: string;
  at: Instant;
  columns: readonly string[];
}

export type Erasure = { source: string } & ({ kind: 'customer' | 'click'; id: string } | { kind: 'source' });

/** All links of a source, as one listing showed them. */
export interface LinksSnapshot {
  source: string;
  runId: string;
  epoch: number;
  /** When the listing began, by the service's clock. */
  at: Instant;
  /** The same by the clock of the state: rows that were observed since then are newer. */
  startedAt: Instant;
  /** Whether the listing is complete: links that it lacks are gone. */
  isProven: boolean;
  /** Values are in the order of the columns of `LINKS`. */
  rows: readonly Row[];
  /** Whether to keep earlier versions of links. */
  keepHistory: boolean;
}

/** By stream: how many files there are, and how many of them were rewritten. */
export type Rewrites = Record<string, { files: number; rewritten: number; rows: number }>;

export interface MaintainOptions {
  /** Do only the steps that are due, as a sync or a worker does by itself. */
  isDueOnly?: boolean;
  /** Ends the maintenance early, between two steps. */
  signal?: AbortSignal;
}

/** By table: files joined, snapshots expired, files removed, and files left. */
export type Maintained = Record<string, { joined: number; expired: number; removed: number; files: number }>;

export interface LeasedFeed {
  source: string;
  stream: StreamName;
  epoch: number;
}

/** Another process changed the columns and nothing was written: read the columns, prepare and write again. */
export class ShapeChanged extends RetryLater {
  readonly wider: Readonly<Record<string, Kind>>;

  constructor(table: string, wider: Readonly<Record<string, Kind>>) {
    const columns = Object.entries(wider).map(([name, kind]) => `${name} (${kind} now)`);
    const which = columns.length > 0 ? `: ${columns.join(', ')}` : '';
    super(`another process changed the columns of ${table} meanwhile${which}`, { next: 'run again' });
    this.wider = wider;
  }
}

/** The columns of a stream as one text, to tell whether they changed. */
export const describeColumns = ({ columns }: Stream): string =>
  columns.map(({ name, kind }) => `${name} ${kind}`).join();

/** Rows being written. Nothing is visible before `commit`, and nothing ever after `abort`. */
export interface Batch {
  write(rows: readonly Row[]): Promise<void>;
  commit(advance: Advance, rejected?: readonly Rejected[]): Promise<Receipt>;
  abort(): Promise<void>;
}

/** The result of a commit. New, changed and unchanged add up to the distinct events of the batch. */
export interface Receipt {
  new: number;
  changed: number;
  unchanged: number;
  /** Rows with characters that the sink cannot store, which were replaced and flagged. */
  sanitized: number;
}

/** A written batch: the receipt, and the changes by which the ledger updates its numbers of rows. */
export interface Stored extends RowChanges {
  receipt: Receipt;
}

/** Runs a transaction. If the connection breaks during COMMIT, `isThere` looks up the outcome, instead of a blind retry. */
export async function resolveInDoubt<T>(
  db: Database,
  work: (tx: Transaction) => Promise<T>,
  isThere: () => Promise<boolean>,
): Promise<T> {
  let done: { result: T } | undefined;
  try {
    return await db.transaction(async (tx) => {
      const result = await work(tx);
      done = { result };
      return result;
    });
  } catch (error) {
    // Recovery: only a COMMIT that was sent can be in doubt; anything earlier was rolled back.
    if (done && error instanceof RetryLater && (await isThere())) return done.result;
    throw error;
  }
}
