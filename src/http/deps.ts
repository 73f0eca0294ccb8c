import type { Database } from '../cursor/database.ts';
import type { JobQueue } from '../jobs/bull.ts';
import type { Finding } from '../model/finding.ts';
import type { Flatten } from '../model/flatten.ts';
import type { Log } from '../model/log.ts';
import type { StreamName } from '../model/streams.ts';
import type { Sink } from '../sinks/sink.ts';
import type { StreamJob } from '../sync/job.ts';
import type { Dependencies } from './dependencies.ts';

/** What the control room looks at, and what it can set going. */
export interface ControlDeps {
  /** Connections of its own: what is shown must not wait for what is written, nor keep it waiting. */
  state: Database;
  queue: JobQueue;
  /** Whether these two answer. */
  dependencies: Dependencies;
  sinks: readonly Sink[];
  streams: readonly ConfiguredStream[];
  /** Whose budgets there are: a key is told by its sources. */
  keys: ReadonlyArray<{ hash: string; sources: readonly string[] }>;
  /** Tables that links can be counted in; undefined where the config has only files. */
  warehouse: { name: string; db: Database; schema: string } | undefined;
  /** A stream with further filters, on the budget that all share. */
  narrow(of: Pick<StreamJob, 'source' | 'stream'>, filters: Readonly<Record<string, string>>): StreamJob;
  /** Looks at everything that a sync needs. */
  examine(signal: AbortSignal): Promise<Finding[]>;
  /** As it is understood, with every secret masked. */
  config: object;
  log: Log;
  version: string;
  /** Aborted when the process ends. */
  signal: AbortSignal;
}

export interface ConfiguredStream {
  source: string;
  stream: StreamName;
  job: StreamJob;
  /** How records become rows, as the config says now. */
  flatten: Flatten;
  maxLagMs: number | undefined;
}
