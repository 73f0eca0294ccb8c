import type { Queryable } from '../../cursor/database/index.ts';
import { instantOf } from '../../cursor/database/sql.ts';
import { COVERAGE } from '../../cursor/ledger.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import type { StreamName } from '../../model/streams.ts';

const THROUGH = 'tributary.complete-through';
const SINCE = 'tributary.since';
const FILTERS = 'tributary.filters';
const SET_ASIDE = 'tributary.set-aside';

/** The last commit of each source, by its name: every snapshot carries them on. */
export const COMMIT = 'tributary.commit.';

/**
 * What a snapshot says is proven: from `since` up to `complete-through` every event that `filters` let through is in it, but for
 * `set-aside` records that are in quarantine. For each source by name, and for all of them together as far as every one has come.
 */
export async function provenSummary(
  tx: Queryable,
  { sink, stream }: { sink: string; stream: StreamName },
): Promise<Record<string, string>> {
  type Found = { source: string; since: Instant; through: Instant | null; filters: string | null; aside: number };
  const cursors = await tx.query<Found>({
    text: `
      select source, ${instantOf('since')} as since, ${instantOf('complete_through')} as through,
        ${COVERAGE.filters} as filters, ${COVERAGE.setAside} as aside
      from tributary.cursors c where sink = $1 and stream = $2 order by source`,
    values: [sink, stream],
  });
  if (cursors.length === 0) return {};
  const throughs = cursors.map(({ through }) => through);
  const summary: Record<string, string> = {
    [SINCE]: toIso(Math.max(...cursors.map(({ since }) => since))),
    [SET_ASIDE]: String(cursors.reduce((sum, { aside }) => sum + aside, 0)),
    ...(throughs.every((through) => through !== null) && { [THROUGH]: toIso(Math.min(...throughs.map(Number))) }),
  };
  for (const { source, since, through, filters, aside } of cursors) {
    summary[`${SINCE}.${source}`] = toIso(since);
    summary[`${SET_ASIDE}.${source}`] = String(aside);
    if (filters !== null) summary[`${FILTERS}.${source}`] = filters;
    if (through !== null) summary[`${THROUGH}.${source}`] = toIso(through);
  }
  return summary;
}

/** Whether a snapshot says the same already. */
export const saysSame = (
  summary: Readonly<Record<string, string>>,
  proven: Readonly<Record<string, string>>,
): boolean => {
  const said = Object.keys(summary).filter((key) =>
    [THROUGH, SINCE, FILTERS, SET_ASIDE].some((one) => key.startsWith(one)),
  );
  return said.length === Object.keys(proven).length && said.every((key) => summary[key] === proven[key]);
};
