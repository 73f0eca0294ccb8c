import type { Queryable } from '../../cursor/database/index.ts';
import type { Track } from '../../cursor/ledger.ts';
import type { Row } from '../../model/flatten.ts';
import type { Stream } from '../../model/streams.ts';
import type { Window } from '../../model/window.ts';
import { filesWithin, findTrack, type Partition, partitionsWithin } from '../files/event-index.ts';
import { compareFiles } from '../files/merge.ts';
import { openPartition } from '../files/partition-file.ts';
import { countRows, readFiles } from '../files/read.ts';
import type { Comparison, Difference } from '../sink.ts';
import { filePath, type Lake } from './lake.ts';
import { lakeFiles } from './merge-batch.ts';

const opener = (lake: Lake, track: Track) => (partition: Partition) => () =>
  openPartition(lake.store, filePath(lake.scheme, track.stream, track.source, partition), track);

export async function* readLake(lake: Lake, stream: Stream, source: string, window: Window): AsyncGenerator<Row[]> {
  const track = { sink: lake.name, stream: stream.name, source };
  const id = await findTrack(lake.state, track);
  if (id === undefined) return;
  yield* readFiles(stream, window, async (part) =>
    (await partitionsWithin(lake.state, id, [part])).map(opener(lake, track)),
  );
}

export async function countLake(
  db: Queryable,
  lake: Lake,
  track: Track,
  windows: readonly Window[],
): Promise<number[]> {
  const id = await findTrack(db, track);
  const files = id === undefined ? [] : await filesWithin(db, id, windows);
  const open = opener(lake, track);
  return countRows(
    files.map((file) => ({ ...file, open: open(file.partition) })),
    windows,
  );
}

export async function compareLake(lake: Lake, comparison: Comparison): Promise<Difference[]> {
  const { stream, source } = comparison;
  const track = await findTrack(lake.state, { sink: lake.name, stream: stream.name, source });
  return compareFiles(comparison, lakeFiles(lake.state, { lake, track, stream, source }));
}
