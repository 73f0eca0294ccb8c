import { lowestCursor } from '../cursor/cursors.ts';
import { readLedger } from '../cursor/ledger.ts';
import { readProfile, writeProfile } from '../cursor/profiles.ts';
import { STREAMS } from '../model/streams.ts';
import { describeWindow } from '../model/window.ts';
import { bringUpToDate } from './bring-up-to-date.ts';
import { createCommitter } from './committer.ts';
import { createEvolver, describeLesson } from './evolver.ts';
import type { StreamJob, SyncDeps } from './job.ts';
import { type StreamReport, withRun } from './run.ts';

/** Brings one stream of a source up to date in every sink. */
export const syncStream = (deps: SyncDeps, job: StreamJob): Promise<StreamReport> =>
  withRun(deps, job, async (run) => {
    const { state, sinks, log, signal, onProgress } = deps;
    const { source, stream, upkeep } = job;
    const names = sinks.map((sink) => sink.name);
    for (const sink of sinks) await sink.recover({ source, stream, epoch: run.epoch });
    const cursor = await lowestCursor(state, { source, stream, sinks: names });
    const since = await job.findSince(cursor?.since, signal);
    const reader = job.createReader(await readProfile(state, source, stream), since);
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
      base: { source, runId: run.id, epoch: run.epoch, since },
      tally: run.tally,
      serverNow: reader.serverNow,
      onCommit: (through) => onProgress({ source, stream, rows: run.tally.read, requests: run.requests(), through }),
    });
    const standing = {
      since,
      cursor,
      ledgers: () => Promise.all(names.map((sink) => readLedger(state, { source, stream, sink }, since))),
    };
    const onWindow: typeof run.enter = (window) => {
      log.debug({ source, stream, window: describeWindow(window) }, 'sweeping');
      run.enter(window);
    };
    try {
      await bringUpToDate({ upkeep, standing, reader, committer, signal, onWindow });
    } finally {
      // What was read and proven before an error or Ctrl-C is kept.
      await committer.flush();
      for (const sink of sinks) await sink.settled({ source, stream });
      await writeProfile(state, source, stream, reader.profile());
    }
    return committer.hasDoubts() ? 'incomplete' : 'done';
  });
