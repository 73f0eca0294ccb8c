import { expect, it } from 'vitest';
import { STREAM_NAMES, STREAMS } from '../../src/model/streams.ts';
import { createPostgresSink } from '../../src/sinks/postgres/postgres-sink.ts';
import { INDEXES } from '../../src/sinks/views/postgres-indexes.ts';
import { postgresPlace } from '../support/postgres-place.ts';

/** Indexes that the config requests, and that the views use. */

it.each(['none', 'month'] as const)('are created when requested, also later: partition %s', async (partition) => {
  const place = await postgresPlace({ schema: 'attribution', partition });
  try {
    const names = async (): Promise<string[]> =>
      (
        await place.db.query<{ name: string }>({
          text: `select c.relname as name from pg_class c join pg_index i on i.indexrelid = c.oid join pg_class t on t.oid = i.indrelid
            where t.relnamespace = 'attribution'::regnamespace and t.relname = any($1) order by 1`,
          values: [STREAM_NAMES],
        })
      ).map(({ name }) => name);
    const options = { name: 'warehouse', db: place.db, schema: 'attribution', state: place.state, partition };
    await createPostgresSink(options).prepare(STREAMS.clicks);
    const before = await names();
    expect(before).toHaveLength(9);
    for (const name of STREAM_NAMES) await createPostgresSink({ ...options, indexes: INDEXES }).prepare(STREAMS[name]);
    const asked = ['clicks_link', 'clicks_synced', 'leads_click', 'leads_customer', 'leads_link', 'leads_synced'];
    expect(await names()).toEqual(
      [...before, ...asked, ...asked.slice(2).map((name) => name.replace('leads', 'sales'))].sort(),
    );
    // One that is no longer requested stays: others may use it.
    await createPostgresSink(options).prepare(STREAMS.clicks);
    expect(await names()).toHaveLength(19);
    if (partition === 'month') return;

    const plan = await place.db.transaction(async (tx) => {
      // On empty tables any index is equally good: only this one is left.
      await tx.query({
        text: 'set local enable_seqscan = off; set local enable_hashagg = off; set local enable_sort = off; drop index attribution.clicks_date',
      });
      return tx.query<Record<string, string>>({
        text: `explain select * from attribution.funnel_by_link where date between '2026-10-01' and '2026-10-31'`,
      });
    });
    const text = plan.map((line) => line['QUERY PLAN']).join('\n');
    for (const index of ['clicks_link', 'leads_customer', 'sales_customer'])
      expect(text).toMatch(new RegExp(`Index Only Scan using ${index}`));
    // In index order: neither people nor clicks are sorted.
    expect(text).toMatch(/Merge Append.*\n.*\n +-> +Index Only Scan using leads_customer/);
    expect(text).not.toMatch(/Incremental Sort/);
  } finally {
    await place.close();
  }
});
