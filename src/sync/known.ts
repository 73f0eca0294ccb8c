import { readEvolved } from '../cursor/columns.ts';
import { type Cursor, readCursors } from '../cursor/cursors.ts';
import type { Queryable } from '../cursor/database/index.ts';
import { entryOf, hasShownRows, readLedgers, type Span, type Tracks } from '../cursor/ledger.ts';
import { readFilters, readProfile } from '../cursor/sources.ts';
import type { Profile } from '../extract/reader.ts';
import type { EvolvedColumn } from '../model/evolution.ts';
import type { Instant } from '../model/instant.ts';
import { type Entry, overlay } from '../model/window.ts';

/** What a run knows of its stream before it reads. Only the holder of the lease changes it, but for the columns. */
export interface Known {
  filters: string | undefined;
  /** By sink; undefined where nothing was ever written. */
  cursors: ReadonlyMap<string, Cursor | undefined>;
  /** Where completeness was counted from; the ledgers begin there. */
  since: Instant | undefined;
  ledgers: ReadonlyMap<string, readonly Entry[]>;
  profile: Profile;
  /** Earlier runs with these filters saw rows. */
  hasShown: boolean;
  /** Columns of unknown fields. They belong to the table, which other sources may change at any time. */
  evolved: readonly EvolvedColumn[];
}

/** Everything at once, inside the transaction that takes the lease: most polls need no further look at the state. */
export async function readKnown(db: Queryable, tracks: Tracks): Promise<Known> {
  const { source, stream } = tracks;
  const cursors = await readCursors(db, tracks);
  const since = earliest([...cursors.values()]);
  return {
    cursors,
    since,
    ledgers: await readLedgers(db, tracks, since ?? 0),
    filters: await readFilters(db, source, stream),
    profile: await readProfile(db, source, stream),
    hasShown: await hasShownRows(db, tracks),
    evolved: await readEvolved(db, stream),
  };
}

const earliest = (cursors: ReadonlyArray<Cursor | undefined>): Instant | undefined => {
  const known = cursors.flatMap((cursor) => (cursor ? [cursor.since] : []));
  return known.length === 0 ? undefined : Math.min(...known);
};

/** The ledger of each sink as this run leaves it: what it was at the beginning, with the run's own commits laid over it. */
export interface Ledgers {
  of(sink: string): readonly Entry[];
  /** The sink has committed these windows. */
  add(sink: string, spans: readonly Span[]): void;
}

/** @param now The database's clock, which the ledger goes by. */
export function createLedgers(known: Known['ledgers'], runId: string, now: () => Instant): Ledgers {
  const ledgers = new Map(known);
  return {
    of: (sink) => ledgers.get(sink) ?? [],
    add(sink, spans) {
      const laidOver = (entries: readonly Entry[], span: Span): Entry[] =>
        overlay(entries, entryOf(span, runId, now()));
      ledgers.set(sink, spans.reduce<readonly Entry[]>(laidOver, ledgers.get(sink) ?? []));
    },
  };
}
