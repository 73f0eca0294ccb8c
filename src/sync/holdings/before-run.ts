import { selectEvolved } from '../../cursor/columns.ts';
import { type CursorRow, cursorsOf, SELECT_CURSORS } from '../../cursor/cursors.ts';
import type { Queryable } from '../../cursor/database/index.ts';
import { defined, instantOf, type Nulled } from '../../cursor/database/sql.ts';
import { type Attestation, type ForeignRows, SELECT_ATTESTATIONS } from '../../cursor/holdings/attestations.ts';
import { entryOf, type Feeds, ledgersOf, type SinkLedgerRow, type Span, selectEntries } from '../../cursor/ledger.ts';
import { PROFILE, UNKNOWN_SERVER, type Workspace } from '../../cursor/sources.ts';
import type { Profile } from '../../extract/reader.ts';
import type { EvolvedColumn } from '../../model/evolution.ts';
import type { Instant } from '../../model/instant.ts';
import { type Entry, overlay } from '../../model/window.ts';

/** The state of a stream at the start of a run. Except for the columns, only the holder of the lease changes it. */
export type Known = Awaited<ReturnType<typeof readKnown>>;

/** One query, in the transaction that takes the lease: most polls need no further query of the state. */
export async function readKnown(db: Queryable, { source, stream, sinks }: Feeds) {
  const [found] = await db.query<Found>({ text: SELECT_KNOWN, values: [source, stream, sinks] });
  if (!found) throw new Error('a select without a table has one row');
  return {
    filters: found.filters ?? undefined,
    cursors: cursorsOf(sinks, found.cursors),
    /** The earliest of all sinks; undefined before the first sync. */
    since: found.cursors.length === 0 ? undefined : Math.min(...found.cursors.map(({ since }) => since)),
    ledgers: ledgersOf(sinks, found.entries) as ReadonlyMap<string, readonly Entry[]>,
    /** By sink: its attestation, and windows with rows of other writers. */
    attestations: new Map(found.attestations.map(({ sink, ...row }) => [sink, defined<Attestation>(row)])),
    foreign: new Map(sinks.map((name) => [name, found.foreign.filter(({ sink }) => sink === name)])),
    profile: { ...UNKNOWN_SERVER, ...found.profile } as Profile,
    workspace: found.workspace ?? undefined,
    hasShown: found.shown,
    /** Columns for undeclared fields. They belong to the table, which other sources may change at any time. */
    evolved: found.evolved,
  };
}

interface Found {
  filters: string | null;
  cursors: CursorRow[];
  entries: SinkLedgerRow[];
  attestations: Array<Nulled<Attestation> & { sink: string }>;
  foreign: Array<ForeignRows & { sink: string }>;
  profile: Partial<Profile> | null;
  workspace: Workspace | null;
  shown: boolean;
  evolved: EvolvedColumn[];
}

const listOf = (select: string): string => `(select coalesce(json_agg(one), '[]') from (${select}) one)`;

const KEY = 'source = $1 and stream = $2';

const SELECT_FOREIGN = `
  select sink, ${instantOf('start_at')} as start, ${instantOf('end_at')} as "end", what
  from tributary.foreign_rows where ${KEY} and sink = any($3) order by start_at`;

/** `shown`: whether rows were ever read with the current filters, as changing the filters resets newest_seen. */
const SELECT_KNOWN = `
  select (select filters from tributary.filters where ${KEY}) as filters, (select ${PROFILE} from tributary.profiles where ${KEY}) as profile,
    (select json_build_object('id', workspace, 'keyHash', key_hash) from tributary.sources where name = $1) as workspace,
    exists (select from tributary.cursors where ${KEY} and newest_seen is not null) as shown,
    ${listOf(SELECT_CURSORS)} as cursors, ${listOf(SELECT_ATTESTATIONS)} as attestations, ${listOf(SELECT_FOREIGN)} as foreign,
    ${listOf(selectEvolved('$2'))} as evolved,
    ${listOf(selectEntries(`coalesce((select min(to_timestamp(since / 1000)) from (${SELECT_CURSORS}) c), '-infinity')`))} as entries`;

/** The current ledger of each sink: as it was at the start of the run, overlaid with the run's own commits. */
export type Ledgers = ReturnType<typeof createLedgers>;

/** @param now The database's clock, which the ledger goes by. */
export function createLedgers(known: Known['ledgers'], runId: string, now: () => Instant) {
  const ledgers = new Map(known);
  return {
    of: (sink: string): readonly Entry[] => ledgers.get(sink) ?? [],
    add(sink: string, spans: readonly Span[]): void {
      const laidOver = (entries: readonly Entry[], span: Span): Entry[] =>
        overlay(entries, entryOf(span, runId, now()));
      ledgers.set(sink, spans.reduce<readonly Entry[]>(laidOver, ledgers.get(sink) ?? []));
    },
  };
}
