import { isDeepStrictEqual } from 'node:util';
import { type Cursor, readCursor } from '../cursor/cursors.ts';

import { hasShownRows, readLedger } from '../cursor/ledger.ts';
import { acceptFilters, readProfile, writeProfile } from '../cursor/sources.ts';

import type { Reader } from '../extract/reader.ts';
import type { Instant } from '../model/instant.ts';
import { STREAMS } from '../model/streams.ts';
import type { Window } from '../model/window.ts';
import { type Committer, createCommitter } from './committer.ts';
import { createEvolver, describeLesson } from './evolver.ts';
import type { StreamJob, SyncDeps } from './job.ts';
import { type Unproven, unsettled } from './plan.ts';
import type { Ended, OpenRun } from './run.ts';

/** A stream being read into its sinks: what a sync and a backfill have in common. */
export interface Reading {
  since: Instant;
  /** By sink, as they stood when the run began; undefined where nothing was ever written. */
  cursors: ReadonlyMap<string, Cursor | undefined>;
  reader: Reader;
  committer: Committer;
}

/** Opens reader and committer under the run's lease, and keeps what was read whatever happens in between. */
export async function withReading(
  deps: SyncDeps,
  job: StreamJob,
  run: OpenRun,
  work: (reading: Reading) => Promise<Window>,
): Promise<Ended> {
  const { state, sinks, log, signal, onProgress } = deps;
  const { source, stream } = job;
  for (const sink of sinks) await sink.recover?.({ source, stream, epoch: run.lease.epoch });
  if (await acceptFilters(state, { source, stream, epoch: run.lease.epoch }, job.filters)) {
    log.warn({ source, stream, filters: job.filters }, 'the filters have changed: what is complete is counted anew');
  }
  const cursors = new Map<string, Cursor | undefined>();
  for (const { name: sink } of sinks) cursors.set(sink, await readCursor(state, { source, stream, sink }));
  const since = await job.findSince(earliest([...cursors.values()]), signal);
  const known = await readProfile(state, source, stream);
  const reader = job.createReader(known, since, { hasShown: await hasShownRows(state, job) });
  const committer = createCommitter({
    sinks,
    evolver: createEvolver({
      state,
      stream: STREAMS[stream],
      source,
      runId: run.id,
      unknownFields: job.unknownFields,
      onLesson: (lesson) => void run.tally.schemaChanges.push(describeLesson(lesson)),
    }),
    base: () => ({ source, runId: run.id, epoch: run.lease.epoch, since }),
    tally: run.tally,
    serverNow: reader.serverNow,
    onCommit: (through) => onProgress({ source, stream, rows: run.tally.read, requests: run.requests(), through }),
  });
  let asked: Window = { start: since, end: since };
  try {
    asked = await work({ since, cursors, reader, committer });
  } finally {
    // What was read and proven before an error or Ctrl-C is kept.
    await committer.flush();
    for (const sink of sinks) await sink.publishProgress?.({ source, stream });
    const profile = reader.profile();
    if (!isDeepStrictEqual(profile, known)) await writeProfile(state, source, stream, profile);
  }
  const fault = committer.fault();
  if (fault) throw fault;
  // The ledger says what came of it, not this run alone: a window that waits for its next try is not complete either.
  const open = new Map<Instant, Unproven>();
  for (const { name: sink } of sinks) {
    const entries = await readLedger(state, { source, stream, sink }, asked.start);
    for (const part of unsettled(entries, asked)) open.set(part.start, part);
  }
  const unproven = [...open.values()].sort((a, b) => a.start - b.start);
  return { state: unproven.length > 0 ? 'incomplete' : 'done', unproven };
}

const earliest = (cursors: ReadonlyArray<Cursor | undefined>): Instant | undefined => {
  const known = cursors.flatMap((cursor) => (cursor ? [cursor.since] : []));
  return known.length === 0 ? undefined : Math.min(...known);
};
