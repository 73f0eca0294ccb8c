import { DAY_MS, HOUR_MS } from '../../../model/window.ts';
import { type Metadata, type Snapshot, withoutSnapshots } from '../format/metadata.ts';

/** How long snapshots are kept after they were replaced: how far back readers can travel, and how long a query may take. */
export interface KeepSnapshots {
  /** Every one of them, */
  all: number;
  /** then the last one of each hour, */
  hourly: number;
  /** then the last one of each day, UTC. */
  daily: number;
  /** No more than this many in any case, the newest. */
  most: number;
}

export const KEEP_SNAPSHOTS: KeepSnapshots = { all: HOUR_MS, hourly: DAY_MS, daily: 30 * DAY_MS, most: 500 };

/** Expiry makes a version of the table, and looks for files that nothing names: it waits until it is worth it. */
export const withPatience = ({ all, hourly, daily, most }: KeepSnapshots): KeepSnapshots => ({
  all: all + HOUR_MS,
  hourly: hourly + HOUR_MS,
  daily: daily + HOUR_MS,
  most: most + Math.ceil(most / 5),
});

/** Their age counts from when they were replaced: until then, somebody may have begun to read them. */
export function expirable(metadata: Metadata, keep: KeepSnapshots): Snapshot[] {
  const inOrder = [...metadata.snapshots].sort((a, b) => a['sequence-number'] - b['sequence-number']);
  const kept = new Set(
    inOrder
      .filter((one, i) => {
        const next = inOrder[i + 1];
        const age = next ? Date.now() - next['timestamp-ms'] : Number.NEGATIVE_INFINITY;
        const isLastOf = (ms: number): boolean =>
          !next || Math.floor(one['timestamp-ms'] / ms) !== Math.floor(next['timestamp-ms'] / ms);
        return age < keep.all || (age < keep.hourly && isLastOf(HOUR_MS)) || (age < keep.daily && isLastOf(DAY_MS));
      })
      .slice(-keep.most),
  );
  const left = new Set(withoutSnapshots(metadata, (one) => !kept.has(one)).snapshots);
  return metadata.snapshots.filter((snapshot) => !left.has(snapshot));
}
