import { UNKNOWN_SERVER } from '../../cursor/sources.ts';
import { TOO_YOUNG } from '../../extract/reader.ts';
import type { Row } from '../../model/flatten.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import { holds, type Window } from '../../model/window.ts';
import type { RowFile, Spool } from '../../sinks/export.ts';
import { createMeter, estimateRows } from '../estimate.ts';
import type { StreamJob, SyncProgress } from '../job.ts';
import { addUnproven, type Unproven } from '../windows-to-read.ts';

export type ExportReport = Awaited<ReturnType<typeof readInto>>;

interface ExportRequest {
  window: Window;
  file: RowFile;
  /** Drops events of forgotten customers and clicks, which the service still returns. */
  scrub(rows: readonly Row[]): Promise<readonly Row[]>;
  /** Buffers rows until all are read, so that the newest version of each event is written; without it, the first one is. */
  spool?: Spool;
  signal: AbortSignal;
  onProgress(progress: SyncProgress): void;
  isWatched?: boolean;
}

/** Reads a window into a file, oldest first, without cursor or ledger. A failed export leaves no file. */
export async function exportStream(job: StreamJob, request: ExportRequest): Promise<ExportReport> {
  const { window, file, spool } = request;
  try {
    const report = await readInto(job, request);
    const [from, to] = [toIso(window.start), toIso(window.end)];
    await file.finish({ stream: job.stream, from, to, certified: String(report.certified) });
    return report;
  } catch (error) {
    await file.abandon();
    throw error;
  } finally {
    await spool?.remove();
  }
}

async function readInto(job: StreamJob, request: ExportRequest) {
  const { window, file, signal, onProgress, isWatched, scrub, spool } = request;
  const { source, stream } = job;
  // Without settle time, as the newest rows are exported as well; the report says from which time on they may still change.
  const reader = job.createReader(UNKNOWN_SERVER, window.start, { settleMs: 0 });
  const versions = createVersions();
  const ahead = new Map<string, Row>();
  const doubts: Unproven[] = [];
  let [rejected, done] = [0, 0];
  const probe = (part: Window) => job.probe(part, { lane: 'backfill', signal });
  const estimate = isWatched ? await estimateRows([window], await probe(window), window.start, probe) : undefined;
  const meter = createMeter([window], estimate?.parts ?? []);

  const take = async (found: readonly Row[]): Promise<void> => {
    const rows = await scrub(found);
    if (spool) {
      for (const row of rows) versions.add(row);
      await spool.add(rows);
    } else await file.write(rows.filter((row) => versions.add(row) === 'first'));
  };

  for await (const slice of reader.sweep({ window, lane: 'backfill', signal })) {
    rejected += slice.rejected.length;
    if (slice.window) {
      const { end } = slice.window;
      const own = slice.rows.filter((row) => holds(window, row.at));
      for (const { id } of own) ahead.delete(id);
      const early = [...ahead.values()].filter(({ id, at }) => at < end && !versions.has(id));
      for (const { id } of early) ahead.delete(id);
      await take(early.length === 0 ? own : [...early, ...own].sort((a, b) => a.at - b.at));
      done = meter(slice.window, own.length);
      if (!slice.certified && slice.note !== TOO_YOUNG)
        addUnproven(doubts, { ...slice.window, note: slice.note ?? 'not proven' });
    } else {
      // Rows delivered early are written with the window they belong to, in order.
      for (const row of slice.rows) if (holds(window, row.at)) ahead.set(row.id, row);
    }
    const { requests } = job.requests();
    onProgress({ source, stream, rows: versions.events(), requests, through: slice.window?.end, done });
  }
  await take([...ahead.values()].filter(({ id }) => !versions.has(id)));
  // If the service turns out to ignore a filter, windows that were already proven are in doubt as well.
  const doubt = reader.doubt();
  if (doubt) doubts.splice(0, Number.POSITIVE_INFINITY, { ...window, note: doubt });
  const isNewest = versions.createIsNewest();
  if (spool) for await (const rows of spool.replay()) await file.write(rows.filter(isNewest));
  const settledThrough = reader.serverNow() - job.policy.settleMs;
  return {
    /** True if the file has every event of the range exactly once: nothing is in doubt, rejected or too young. */
    certified: doubts.length === 0 && rejected === 0 && window.end <= settledThrough,
    rows: versions.events(),
    requests: job.requests().requests,
    doubts,
    rejected,
    /** Events that were read again with a different time. With a spool, the file has the last version, without it the first. */
    changed: versions.changed(),
    /** Events younger than this may still arrive. */
    settledThrough,
  };
}

/** Tracks the last version of each event. Takes about 100 bytes per event, which limits how many events one export should have. */
function createVersions() {
  const latest = new Map<string, number>();
  const times: Instant[] = [];
  let changed = 0;
  return {
    add({ id, at }: Row): 'first' | 'again' {
      const before = latest.get(id);
      latest.set(id, times.push(at) - 1);
      if (before === undefined) return 'first';
      if (times[before] !== at) changed++;
      return 'again';
    },
    has: (id: string): boolean => latest.has(id),
    events: (): number => latest.size,
    changed: (): number => changed,
    /** The returned function must be called with the rows in the order in which they were added. */
    createIsNewest(): (row: Row) => boolean {
      let n = 0;
      return ({ id }) => latest.get(id) === n++;
    },
  };
}
