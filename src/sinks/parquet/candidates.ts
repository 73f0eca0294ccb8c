import type { Queryable } from '../../cursor/database.ts';
import type { Window } from '../../model/window.ts';
import type { Partition } from './partition.ts';
import type { Incoming } from './survey.ts';
import { findHomes, partitionsWithin } from './whereabouts.ts';

/** Where the index says that events may be; and the files of windows that were read whole, for what these no longer show. */
export async function candidatesIn(
  db: Queryable,
  track: number,
  incoming: readonly Incoming[],
  wholes: readonly Window[],
): Promise<Map<Partition, Incoming[]>> {
  const homes = await findHomes(
    db,
    track,
    incoming.map(({ key }) => key),
  );
  const candidates = new Map<Partition, Incoming[]>(
    (await partitionsWithin(db, track, wholes)).map((partition) => [partition, []]),
  );
  for (const one of incoming) {
    for (const partition of homes.get(one.key) ?? []) {
      const known = candidates.get(partition);
      if (known) known.push(one);
      else candidates.set(partition, [one]);
    }
  }
  return candidates;
}
