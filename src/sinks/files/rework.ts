import { carryRows } from '../../cursor/holdings/window-rows.ts';
import type { Track } from '../../cursor/ledger.ts';
import type { Instant } from '../../model/instant.ts';
import type { FileColumn } from '../parquet/format/index.ts';
import type { Change } from './change.ts';
import { dropKeys, type Partition } from './event-index.ts';
import type { PartitionFile } from './partition-file.ts';
import type { Edits } from './write-file.ts';

/** The rewrite of a file that gets no new rows. */
export interface Rework {
  /** Absent: its own. */
  columns?: readonly FileColumn[];
  edits: Edits;
  /** Keys of events that are removed from the file. */
  dropped?: readonly bigint[];
  /** Their times, where the ledger counts them. */
  deleted?: readonly Instant[];
}

export type Visit<Wish = Rework> = (file: PartitionFile) => Promise<Wish | 'leave'>;

/** An index without this is not wrong: it only says where to look, and no event is new. */
export function recordRework(
  change: Change,
  track: Track,
  { id, partition }: { id: number | undefined; partition: Partition },
  { dropped = [], deleted = [] }: Rework,
): void {
  if (deleted.length > 0) change.later((tx) => carryRows(tx, track, { added: [], removed: deleted }));
  if (id !== undefined && dropped.length > 0) change.later(dropKeys(id, partition, dropped));
}
