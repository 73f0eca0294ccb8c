import { UNKNOWN_SERVER } from '../cursor/profiles.ts';
import type { Row } from '../model/flatten.ts';
import { type Instant, toIso } from '../model/instant.ts';
import type { Window } from '../model/window.ts';
import type { RowFile } from '../sinks/export/row-file.ts';
import type { StreamJob, SyncProgress } from './job.ts';

/** What an export wrote, and how far it can be trusted. */
export interface ExportReport {
  rows: number;
  requests: number;
  /** The windows that could not be proven complete, each with its reason. None: every event is in the file, once. */
  doubts: ReadonlyArray<Window & { note: string }>;
  /** Records that could not be used; they are not in the file. */
  rejected: number;
  /** Events that came again with another content after their first one was written. */
  changed: number;
  /** Events younger than this may still arrive. */
  settledThrough: Instant;
}

export interface ExportRequest {
  window: Window;
  file: RowFile;
  signal: AbortSignal;
  onProgress(progress: SyncProgress): void;
}

/** Reads a window straight into a file, oldest first, with neither state nor database. The file is whole in the end, or not there. */
export async function exportStream(job: StreamJob, request: ExportRequest): Promise<ExportReport> {
  const { window, file } = request;
  try {
    const report = await readInto(job, request);
    const [from, to] = [toIso(window.start), toIso(window.end)];
    await file.finish({ stream: job.stream, from, to, certified: String(report.doubts.length === 0) });
    return report;
  } catch (error) {
    await file.abandon();
    throw error;
  }
}

async function readInto(job: StreamJob, { window, file, signal, onProgress }: ExportRequest): Promise<ExportReport> {
  const { source, stream } = job;
  const reader = job.createReader(UNKNOWN_SERVER, window.start);
  const written = createWritten();
  const ahead = new Map<string, Row>();
  const doubts: Array<Window & { note: string }> = [];
  let [rows, rejected, doneMs] = [0, 0, 0];

  const write = async (found: readonly Row[]): Promise<void> => {
    const news = found.filter((row) => written.isNew(row));
    rows += news.length;
    await file.write(news);
  };

  for await (const slice of reader.sweep({ window, lane: 'backfill', signal })) {
    rejected += slice.rejected.length;
    if (slice.window) {
      await write(slice.rows);
      doneMs += slice.window.end - slice.window.start;
      if (!slice.certified) doubts.push({ ...slice.window, note: slice.note ?? 'not proven' });
    } else {
      // Shown ahead of its turn: most of it comes again with its window, in order.
      for (const row of slice.rows) ahead.set(row.id, row);
    }
    const { requests } = job.requests();
    onProgress({
      source,
      stream,
      rows,
      requests,
      through: slice.window?.end,
      done: doneMs / (window.end - window.start),
    });
  }
  await write([...ahead.values()].filter((row) => row.at >= window.start && row.at < window.end));
  return {
    rows,
    requests: job.requests().requests,
    doubts,
    rejected,
    changed: written.changed(),
    settledThrough: reader.serverNow() - job.upkeep.settleMs,
  };
}

/** The ids of what is in the file: about 100 bytes an event, which bounds what one export should hold. */
function createWritten(): { isNew(row: Row): boolean; changed(): number } {
  const times = new Map<string, Instant>();
  let changed = 0;
  return {
    isNew({ id, at }) {
      const before = times.get(id);
      if (before === undefined) {
        times.set(id, at);
        return true;
      }
      if (before !== at) changed++;
      return false;
    },
    changed: () => changed,
  };
}
