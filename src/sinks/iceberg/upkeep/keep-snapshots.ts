import { DAY_MS, HOUR_MS } from '../../../model/window.ts';
import { type Metadata, type Snapshot, withoutSnapshots } from '../format/metadata.ts';

/** How long snapshots are kept after they were replaced: this limits time travel and the duration of queries. */
export interface KeepSnapshots {
  /** Every snapshot is kept this long, in ms. */
  all: number;
  /** The last snapshot of each hour is kept this long. */
  hourly: number;
  /** The last snapshot of each UTC day is kept this long. */
  daily: number;
  /** At most this many, the newest, are kept. */
  most: number;
}

export const KEEP_SNAPSHOTS: KeepSnapshots = { all: HOUR_MS, hourly: DAY_MS, daily: 30 * DAY_MS, most: 500 };

/** Expiry commits a version of the table and scans for orphan files, so it waits until there is enough to expire. */
export const withPatience = ({ all, hourly, daily, most }: KeepSnapshots): KeepSnapshots => ({
  all: all + HOUR_MS,
  hourly: hourly + HOUR_MS,
  daily: daily + HOUR_MS,
  most: most + Math.ceil(most / 5),
});

/** A snapshot's age counts from when it was replaced: until then, a reader may have started on it. */
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
