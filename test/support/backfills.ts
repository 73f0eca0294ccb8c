import type { Config } from '../../src/config/index.ts';
import type { Queryable } from '../../src/cursor/database/index.ts';
import { sql } from '../../src/cursor/database/sql.ts';
import { readLedger } from '../../src/cursor/ledger.ts';
import { DAY_MS, gaps, startOfDay, type Window } from '../../src/model/window.ts';
import { type Engine, sourceOf } from './engine.ts';
import type { Sandbox } from './odd-service/service.ts';
import { at, smallSandbox } from './sandbox.ts';

/** A month of clicks, and what a backfill should have read of them. */

const TODAY = startOfDay(Date.now());
export const daysAgo = (days: number): number => TODAY - days * DAY_MS;
export const clicks = { streams: ['clicks'] } as const;

/** The windows of a queued backfill, in order. */
export const windowsOf = (db: Queryable, id: string) =>
  db.query<{ state: string; tries: number }>(
    sql`select state, tries from tributary.backfill_windows where backfill_id = ${id} order by start_at`,
  );

/** No click lies within a second of midnight: a backfill may include the neighbouring days' ones, depending on the clock. */
export async function monthOf(rows = 900): Promise<Sandbox> {
  const sandbox = await smallSandbox({ rows: { clicks: rows, leads: 1, sales: 1 }, days: 30 });
  for (const record of sandbox.service.events('clicks')) {
    const time = Date.parse(String(record.timestamp));
    if (Math.abs(time - startOfDay(time + DAY_MS / 2)) <= 1000)
      sandbox.service.remove('clicks', String(at(record, 'click.id')));
  }
  return sandbox;
}

export const inWindow = ({ service }: Sandbox, { start, end }: Window): string[] =>
  service
    .events('clicks')
    .filter((record) => Date.parse(String(record.timestamp)) >= start && Date.parse(String(record.timestamp)) < end)
    .map((record) => String(at(record, 'click.id')))
    .sort();

/** The unproven parts of the window. */
export async function uncovered({ db }: Engine, config: Config, window: Window): Promise<Window[]> {
  const feed = { source: sourceOf(config), stream: 'clicks', sink: 'warehouse' } as const;
  const certified = (await readLedger(db, feed, window.start)).filter((entry) => entry.certified);
  return gaps(certified, window);
}
