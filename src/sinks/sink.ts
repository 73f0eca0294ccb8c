import type { Queryable, Transaction } from '../cursor/database/index.ts';
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
 * Where rows go. `commit` decides the order in which data and cursor are written: whatever happens in between,
 * a cursor never claims more than the sink holds. This is all that a sink must do; `Abilities` are what it may do besides.
 */
export interface Sink extends Partial<Abilities> {
  readonly name: string;
  /** For people: where the data is. */
  readonly place: string;
  /** Rows per commit: enough to load at full speed, few enough that two batches fit in memory. */
  readonly batchRows: number;
  /** It keeps rows in order of time: a batch that is one stretch of it is cheaper than several pieces. */
  readonly isByTime?: boolean;
  /** Rows that one run counts, where counting reads them: what the daily count costs a poll. Absent: all. */
  readonly countedRows?: number;
  /** How long rows are kept; absent: for ever. */
  readonly keepMs?: number;
  /** Its identity is read from the state database, in the transaction that takes the lease. */
  readonly isInState?: boolean;
  /** For people: the table or folder of a stream. */
  tableOf?(stream: StreamName): string;
  /** Creates or migrates what the stream needs. Safe to call from several processes at once. */
  prepare(stream: Stream): Promise<void>;
  open(stream: Stream): Promise<Batch>;
  /** Throws where `erase` could not reach everything: asked before cursors and ledger of a source are dropped. */
  checkErasure?(erasure: Erasure): Promise<void>;
  close(): Promise<void>;
}

/** What only some sinks can do. Callers that can do without write `sink.recover?.(…)`; others use `abilityOf`. */
export interface Abilities {
  /** After a crash between data and cursor: brings the cursor up to what the sink holds. Called with the lease, before reading. Returns whether it moved. */
  recover(feed: LeasedFeed): Promise<boolean>;
  /** After a run: publishes how far the stream is complete, beside the data. */
  publishProgress(feed: Omit<LeasedFeed, 'epoch'>, isReopened?: boolean): Promise<void>;
  /** Erases a customer, a click or a source. Returns the number of affected rows by place. */
  erase(erasure: Erasure): Promise<Record<string, number>>;
  /** How many rows of which place `erase` would affect. Without it, the events are read and counted. */
  countErased(erasure: Erasure): Promise<Record<string, number>>;
  /** For `doctor`: tests whether the sink can create, write and read, and leaves nothing behind. */
  check(): Promise<readonly Finding[]>;
  /** Compares a window of the sink with the rows that it should hold. Changes nothing. */
  compare(comparison: Comparison): Promise<Difference[]>;
  /**
   * A text that stays the same for as long as nobody else replaced, restored or wrote what the sink holds of the stream. Asked at the
   * start of every run, so it has to be cheap: at most a statement. `lastCommit` is the one that the state knows.
   */
  identify(state: Queryable, feed: Omit<LeasedFeed, 'epoch'>, lastCommit: string | undefined): Promise<string>;
  /** What the sink holds of a source in each of these windows: counted, not looked up in what was written down. */
  attest(stream: Stream, source: string, windows: readonly Asked[]): Promise<Held[]>;
  /** Whether there is any row in each of these windows: where counting takes time, the first look at a sink that was replaced. */
  glance(stream: Stream, source: string, windows: readonly Window[]): Promise<boolean[]>;
  /** Before these windows are filled again: drops what is remembered of rows that are gone, so that they count as new. */
  releaseKeys(stream: Stream, source: string, windows: readonly Window[]): Promise<void>;
  /** Removes rows of other writers from these windows, which `attest` names; where the two share a file, what is left is written anew. */
  removeForeign(stream: Stream, source: string, windows: readonly Window[]): Promise<void>;
  /** Removes rows of a window that are marked as missing because their events moved to another day, where the sink holds them, too. */
  removeMoved(stream: Stream, source: string, window: Window): Promise<void>;
  /** Writes links and customers again that are gone, from the events; all that lack, or only where a source has none left. */
  refillEntities(source: string, isThorough: boolean): Promise<Refilled[]>;
  /** Deletes a few thousand rows, or some files, of events before a moment. Returns whether there are more. */
  prune(stream: Stream, source: string, before: Instant): Promise<boolean>;
  /** The rows of a window in order of time, a few thousand at a time: for comparing two sinks. */
  read(stream: Stream, source: string, window: Window): AsyncGenerator<Row[]>;
  /** Rewrites files that were written with fewer columns. */
  rewrite(streams: readonly StreamName[]): Promise<Rewrites>;
  /** Takes over a listing of all links, in one step: readers see the one before or this one. Returns what it changed. */
  replaceLinks(snapshot: LinksSnapshot): Promise<Receipt>;
  /** Joins small files and removes those that no reader can use any more. */
  maintain(options?: MaintainOptions): Promise<Maintained>;
}

/** An identity that ends so asks for a close look, and is another one afterwards. */
export const UNSETTLED = '?';

export interface Asked extends Window {
  /** As many rows as should be there: if there are more, the sink says whether events are there twice. */
  rows?: number;
}

export interface Held {
  /** Rows that Tributary wrote, vanished ones included. */
  rows: number;
  /** Rows of another writer, in words: how many, where, whose, since when. Such a window is not complete, whatever was read. */
  foreign?: string | undefined;
}

/** Rows of a table that were gone and are there again. */
export interface Refilled {
  table: string;
  rows: number;
}

const WITHOUT = {
  erase: 'cannot erase rows',
  compare: 'cannot be compared with the service',
  identify: 'cannot identify itself',
  attest: 'cannot count its rows',
  glance: 'cannot be looked at',
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
  /** In the stream's columns. */
  rows: readonly Row[];
  /** The rows are complete for the window, so any other row of the sink is extra. */
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
  /** The same by the clock of the state: what was observed since then is newer. */
  startedAt: Instant;
  /** All links are in it: others are gone. */
  isProven: boolean;
  /** Their values are in the order of the columns of `LINKS`. */
  rows: readonly Row[];
  /** Also keep what each link was before. */
  keepHistory: boolean;
}

/** By stream: how many files there are, and how many of them were rewritten. */
export type Rewrites = Record<string, { files: number; rewritten: number; rows: number }>;

export interface MaintainOptions {
  /** Only what keeps the sink in good order: what a sync or a worker does by itself. */
  isDueOnly?: boolean;
  /** Ends it early, between two steps. */
  signal?: AbortSignal;
}

/** By table: files joined, snapshots expired, files removed, and files that are left. */
export type Maintained = Record<string, { joined: number; expired: number; removed: number; files: number }>;

export interface LeasedFeed {
  source: string;
  stream: StreamName;
  epoch: number;
}

/** Another process changed the columns meanwhile, and nothing was written: read them, prepare and write again. */
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

/** Rows being written. Nothing is visible before `commit`, and nothing at all after `abort`. */
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
  /** Rows with characters that the sink cannot hold, which were replaced and flagged. */
  sanitized: number;
}

/** A batch as it was written: the receipt, and what the ledger has to know to carry its numbers of rows on. */
export interface Stored extends RowChanges {
  receipt: Receipt;
}

/** If the connection breaks during COMMIT, the outcome is looked up, not blindly repeated. */
export async function resolveInDoubt<T>(
  work: (tx: Transaction) => Promise<T>,
  run: (work: (tx: Transaction) => Promise<T>) => Promise<T>,
  isThere: () => Promise<boolean>,
): Promise<T> {
  let done: { result: T } | undefined;
  try {
    return await run(async (tx) => {
      const result = await work(tx);
      done = { result };
      return result;
    });
  } catch (error) {
    // Recovery: only a commit that was sent can be in doubt; anything earlier was rolled back.
    if (done && error instanceof RetryLater && (await isThere())) return done.result;
    throw error;
  }
}
