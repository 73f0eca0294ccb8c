import type { EventsApi } from '../../src/api/events-api.ts';
import { emptyTally, type Tally } from '../../src/cursor/runs.ts';
import { UNKNOWN_PROFILE } from '../../src/extract/profile.ts';
import { createReader, type Profile, type Slice } from '../../src/extract/reader.ts';
import { Fault } from '../../src/model/errors.ts';
import type { Flatten } from '../../src/model/flatten.ts';
import type { Instant } from '../../src/model/instant.ts';
import { STREAMS, type StreamName } from '../../src/model/streams.ts';
import type { Window } from '../../src/model/window.ts';
import { createCommitter } from '../../src/sync/committer.ts';
import type { StreamPolicy } from '../../src/sync/job.ts';
import { bringUpToDate } from '../../src/sync/sync-stream.ts';
import { unsettled } from '../../src/sync/windows-to-read.ts';
import type { MemorySink } from './memory-sink.ts';

export interface MemorySyncOptions {
  api: EventsApi;
  sink: MemorySink;
  stream?: StreamName;
  flatten: Flatten;
  since: Instant;
  policy: StreamPolicy;
  now: () => Instant;
  mostRows?: number;
  /** Whether to commit after a slice was added. The real committer waits for 5,000 rows. */
  commitsNow?: (slice: Slice) => boolean;
  onWindow?: (window: Window) => void;
  /** How many windows are read at once, and the size at which a half is given away. */
  lanes?: number;
  pagesWorth?: number;
  /** Errors other than the service's that end a run, not the test. */
  isCrash?: (error: unknown) => boolean;
}

export interface RunResult {
  error: Error | undefined;
  hasDoubts: boolean;
  requests: number;
  tally: Tally;
}

/** `syncStream` with a sink in memory and no database: the real reader and the real committer. */
export function createMemorySync(options: MemorySyncOptions): { run(): Promise<RunResult>; profile(): Profile } {
  const { api, sink, stream = 'clicks', flatten, since, policy, now, mostRows = 1000 } = options;
  let profile: Profile = { ...UNKNOWN_PROFILE, pageRows: mostRows };
  let runs = 0;

  async function run(): Promise<RunResult> {
    runs += 1;
    const before = api.stats().requests;
    const tally = emptyTally();
    const reader = createReader({
      api,
      stream,
      filters: {},
      flatten,
      profile,
      mostRows,
      now,
      settleMs: policy.settleMs,
    });
    const base = { source: 'main', runId: `run${runs}`, epoch: 1, since };
    const committer = createCommitter({
      sinks: [sink],
      // Without a database there are no evolved columns: unknown fields stay in `_extra`.
      evolver: { evolve: async (rows) => ({ stream: STREAMS[stream], rows: [...rows] }), widenColumns: async () => {} },
      base: () => base,
      tally,
      serverNow: reader.serverNow,
      onCommit: () => {},
    });
    const add: typeof committer.add = async (slice, sinks) => {
      await committer.add(slice, sinks);
      if (options.commitsNow?.(slice)) await committer.flush();
    };
    let error: Error | undefined;
    let asked: Window | undefined;
    try {
      try {
        asked = await bringUpToDate({
          policy,
          since,
          sinks: [
            {
              sink: sink.name,
              completeThrough: sink.cursor()?.completeThrough,
              newestSeen: sink.cursor()?.newestSeen,
              ledger: () => sink.ledger(),
            },
          ],
          reader,
          committer: { add, flush: committer.flush },
          signal: new AbortController().signal,
          chainsAtOnce: () => options.lanes ?? 2,
          ...(options.pagesWorth !== undefined && { pagesWorth: options.pagesWorth }),
          onWindow: options.onWindow ?? (() => {}),
        });
      } finally {
        await committer.flush();
        profile = reader.profile();
      }
    } catch (thrown) {
      // Recovery: an error that ends a real run ends this one; the state is that of the last commit.
      if (!(thrown instanceof Fault) && !options.isCrash?.(thrown)) throw thrown;
      error = thrown as Error;
    }
    const hasDoubts = asked !== undefined && unsettled(sink.ledger(), asked).length > 0;
    return { error, hasDoubts, requests: api.stats().requests - before, tally };
  }
  return { run, profile: () => profile };
}
