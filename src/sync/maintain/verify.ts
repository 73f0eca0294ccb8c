import { readEvolved } from '../../cursor/columns.ts';
import type { Database } from '../../cursor/database/index.ts';
import { withoutForgotten } from '../../cursor/forgotten.ts';
import { findMiscounts } from '../../cursor/holdings/window-rows.ts';
import { readLedger } from '../../cursor/ledger.ts';
import { createWorkspaceCheck } from '../../cursor/sources.ts';
import { createUndelivered, type Reader } from '../../extract/reader.ts';
import { ConfigError } from '../../model/errors.ts';
import { evolvedStream, promote } from '../../model/evolution.ts';
import type { Row } from '../../model/flatten.ts';
import { STREAMS, type Stream } from '../../model/streams.ts';
import { daysOf, describeRange, gaps, holds, type Window } from '../../model/window.ts';
import { abilityOf, countsIn, type Difference, type Sink } from '../../sinks/sink.ts';
import { createMeter } from '../estimate.ts';
import { foreignIn } from '../holdings/attest.ts';
import { readKnown } from '../holdings/before-run.ts';
import { refuseExpired } from '../holdings/retain.ts';
import type { StreamJob, SyncDeps } from '../job.ts';
import { feedsOf } from '../run.ts';
import {
  type Chunk,
  chunked,
  createVerifyResult,
  cutPages,
  type Found,
  type FromLedger,
  type VerifyResult,
} from './comparison.ts';

export const THE_SERVICE = 'the service';

/** Reads the service again and compares the rows with every sink. Writes nothing and takes no lease. */
export async function verifyStream(deps: SyncDeps, job: StreamJob, requested: Window): Promise<VerifyResult> {
  const { state, sinks, signal, onProgress } = deps;
  const { source, stream: name, policy } = job;
  refuseExpired(sinks, requested);
  const before = job.requests().requests;
  const { serverNow } = await job.probe(requested, { lane: 'repair', signal });
  const window = { start: requested.start, end: Math.min(requested.end, (serverNow ?? Date.now()) - policy.settleMs) };
  if (window.start >= window.end)
    throw new ConfigError(`no part of ${describeRange(requested)} is old enough to be compared`, {
      next: 'choose an earlier --to: more recent events may still arrive',
    });
  const { evolved, profile, hasShown, workspace } = await readKnown(state, feedsOf(deps, job));
  const stream = evolvedStream(STREAMS[name], evolved);
  const inShape = async (rows: readonly Row[]): Promise<Row[]> =>
    promote(STREAMS[name], evolved, await withoutForgotten(state, source, STREAMS[name], rows));
  const reader = job.createReader(profile, window.start, { hasShown });
  const result = createVerifyResult({
    source,
    stream: name,
    window,
    against: THE_SERVICE,
    sinks: await Promise.all(sinks.map((sink) => withLedger(state, source, stream, sink, window))),
  });

  const checkWorkspace = createWorkspaceCheck(state, job, workspace);
  // The ledger of the first sink already tells where the rows are.
  const feed = { source, stream: name, sink: sinks[0]?.name ?? '' };
  const meter = createMeter([window], await readLedger(state, feed, window.start));
  for await (const chunk of chunked(readWhole(reader, window, signal))) {
    await checkWorkspace(chunk.rows);
    const rows = await inShape(chunk.rows);
    for (const sink of sinks) {
      const found = await compare(sink, { stream, source, chunk, rows });
      // An event may have arrived between the two reads, so a difference counts only if a second read shows it too.
      const confirmed = found.length === 0 ? [] : await confirm(sink, found, chunk);
      result.add(sink.name, chunk, rows, confirmed);
    }
    const requests = job.requests().requests - before;
    const done = meter(chunk.window, chunk.rows.length);
    onProgress({ source, stream: name, rows: result.events(), requests, through: chunk.window.end, done });
  }
  return result.close(job.requests().requests - before);

  async function confirm(sink: Sink, found: readonly Difference[], { window: part }: Chunk): Promise<Difference[]> {
    const again: Difference[] = [];
    for await (const chunk of chunked(readWhole(reader, part, signal))) {
      again.push(...(await compare(sink, { stream, source, chunk, rows: await inShape(chunk.rows) })));
    }
    const seen = new Set(found.map(({ kind, id }) => `${kind} ${id}`));
    return again.filter(({ kind, id }) => seen.has(`${kind} ${id}`));
  }
}

/** Compares two sinks: looks up the rows of the first in the second. */
export async function verifyBetween(
  { state, signal }: Pick<SyncDeps, 'state' | 'signal'>,
  { source, stream: name }: Pick<StreamJob, 'source' | 'stream'>,
  window: Window,
  [first, second]: readonly [Sink, Sink],
): Promise<VerifyResult> {
  refuseExpired([first, second], window);
  const stream = evolvedStream(STREAMS[name], await readEvolved(state, name));
  const result = createVerifyResult({
    source,
    stream: name,
    window,
    against: first.name,
    sinks: [await withLedger(state, source, stream, second, window)],
  });
  for await (const chunk of chunked(cutPages(abilityOf(first, 'read')(stream, source, window), window))) {
    signal.throwIfAborted();
    result.add(second.name, chunk, chunk.rows, await compare(second, { stream, source, chunk, rows: chunk.rows }));
  }
  return result.close(0);
}

/** The ledger of the window in a sink, with windows whose row counts are wrong or that have rows of other writers. */
async function withLedger(
  state: Database,
  source: string,
  stream: Stream,
  sink: Sink,
  window: Window,
): Promise<{ name: string } & FromLedger> {
  const feed = { source, stream: stream.name, sink: sink.name };
  const days = daysOf(window).map((day) => ({ ...day, rows: 0 }));
  const held = (await sink.attest?.(stream, source, days)) ?? [];
  return {
    name: sink.name,
    neverRead: gaps(await readLedger(state, feed, window.start), window),
    miscounted: sink.attest ? await findMiscounts(state, feed, window, countsIn(sink, stream, source)) : [],
    foreign: foreignIn(days, held),
  };
}

const compare = (
  sink: Sink,
  { stream, source, chunk, rows }: { stream: Stream; source: string; chunk: Chunk; rows: readonly Row[] },
): Promise<Difference[]> =>
  abilityOf(sink, 'compare')({ stream, source, window: chunk.window, rows, isWhole: chunk.doubts.length === 0 });

/** Yields windows with all of their rows. A row that the reader delivered early is kept for the window it belongs to. */
async function* readWhole(reader: Reader, window: Window, signal: AbortSignal): AsyncGenerator<Found> {
  const ahead = new Map<string, Row>();
  const undelivered = createUndelivered(({ at }) => at);
  for await (const slice of reader.sweep({ window, lane: 'repair', signal })) {
    for (const row of slice.rows) if (holds(window, row.at)) ahead.set(row.id, row);
    if (!slice.window) continue;
    const { end } = slice.window;
    const found = [...ahead.values()].filter(({ at }) => at < end);
    for (const { id } of found) ahead.delete(id);
    yield {
      window: slice.window,
      // The pages of adjacent windows overlap.
      rows: undelivered(found),
      doubt: slice.certified ? undefined : (slice.note ?? 'not proven'),
    };
  }
}
