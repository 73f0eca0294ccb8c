import type { Queryable } from '../../../cursor/database/index.ts';
import { instantOf, raw, sql } from '../../../cursor/database/sql.ts';
import { COVERAGE } from '../../../cursor/ledger.ts';
import { type Instant, toIso } from '../../../model/instant.ts';
import { LINKS, STREAMS, type StreamName } from '../../../model/streams.ts';
import { type Design, streamDesign } from '../../table-columns.ts';
import type { Metadata } from '../format/metadata.ts';
import { inDraft, type Warehouse } from '../warehouse.ts';

/**
 * The completeness that a table states: from `since` to `complete-through` it holds every event that passes `filters`, except `set-aside`
 * records in quarantine. Table properties state it per source, and for all sources together (the slowest one counts). They change with
 * every commit of rows, else every 15 minutes: a table version for each poll without rows would be most of the metadata.
 */
export type Proven = Readonly<Record<string, string>>;

const [SINCE, SET_ASIDE] = ['tributary.since', 'tributary.set-aside'];
const [FILTERS, THROUGH] = ['tributary.filters', 'tributary.complete-through'];
const STATEMENTS = [SINCE, SET_ASIDE, FILTERS, THROUGH];
const isStatement = (key: string): boolean => STATEMENTS.some((one) => key === one || key.startsWith(`${one}.`));

/** How far a table's statement may lag behind the ledger. */
const MAX_LAG_MS = 15 * 60_000;

/** No completeness is stated for customers, which are as last seen. Links have a cursor, and so a statement, only if they are listed. */
export const statesProgress = ({ isByDay, name }: Design): boolean => isByDay || name === LINKS.name;

export async function provenOf(tx: Queryable, { name: sink }: Warehouse, design: Design): Promise<Proven> {
  const cursors = await tx.query<Found & { source: string }>(sql`
    select source, ${instantOf('since')} as since, ${instantOf('complete_through')} as through,
      ${raw(COVERAGE.filters)} as filters, ${raw(COVERAGE.setAside)} as aside
    from tributary.cursors c where sink = ${sink} and stream = ${design.name} order by source`);
  if (cursors.length === 0) return {};
  const throughs = cursors.map(({ through }) => through);
  const all: Found = {
    since: Math.max(...cursors.map(({ since }) => since)),
    through: throughs.includes(null) ? null : Math.min(...throughs.map(Number)),
    filters: null,
    aside: cursors.reduce((sum, { aside }) => sum + Number(aside), 0),
  };
  const each = cursors.map(({ source, ...found }) => statement(found, `.${source}`));
  return Object.assign(statement(all), ...each);
}

interface Found {
  since: Instant;
  through: Instant | null;
  filters: string | null;
  aside: number;
}

const statement = ({ since, through, filters, aside }: Found, of = ''): Record<string, string> => ({
  [`${SINCE}${of}`]: toIso(since),
  [`${SET_ASIDE}${of}`]: String(aside),
  ...(filters !== null && { [`${FILTERS}${of}`]: filters }),
  ...(through !== null && { [`${THROUGH}${of}`]: toIso(through) }),
});

/** The statements for a snapshot's summary: of all sources together, and of the sources that it changes. */
export function summaryOf(proven: Proven, sources: readonly string[]): Proven {
  const keys = STATEMENTS.flatMap((one) => [one, ...sources.map((source) => `${one}.${source}`)]);
  return Object.fromEntries(Object.entries(proven).filter(([key]) => keys.includes(key)));
}

export function withProgress(metadata: Metadata, proven: Proven): Metadata {
  const others = Object.entries(metadata.properties).filter(([key]) => !isStatement(key));
  return { ...metadata, properties: { ...Object.fromEntries(others), ...proven } };
}

/** Whether the table's statement lags 15 minutes behind the ledger, or is wrong. */
function isDue({ properties }: Metadata, wanted: Proven): boolean {
  const keys = new Set([...Object.keys(properties).filter(isStatement), ...Object.keys(wanted)]);
  return [...keys].some((key) => {
    const [stated, proven] = [properties[key], wanted[key]];
    if (stated === proven) return false;
    if (!key.startsWith(THROUGH) || stated === undefined || proven === undefined) return true;
    const behind = Date.parse(proven) - Date.parse(stated);
    return behind < 0 || behind >= MAX_LAG_MS;
  });
}

/** After a run: updates the table's statement if it is due. This makes no snapshot. */
export async function publishProgress(warehouse: Warehouse, stream: StreamName): Promise<void> {
  const { state, catalog } = warehouse;
  const design = streamDesign(STREAMS[stream]);
  const findDue = async () => {
    const listed = await catalog.load(warehouse, stream);
    const proven = listed && (await provenOf(state, warehouse, design));
    return proven && isDue(listed.metadata, proven) ? { listed, proven } : undefined;
  };
  if (!(await findDue())) return;
  await inDraft(warehouse, stream, async (draft) => {
    const due = await findDue();
    if (due) await catalog.replace(draft, stream, due.listed, withProgress(due.listed.metadata, due.proven));
  });
}
