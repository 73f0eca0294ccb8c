import { expect, test } from 'vitest';
import { STREAMS } from '../../src/model/streams.ts';
import { HOUR_MS } from '../../src/model/window.ts';
import { columnsOf } from '../../src/sinks/files/partition-file.ts';
import { DAY, NOON } from '../support/sandbox-sync.ts';
import { createWrittenSync, flatten, plainly, spread, type WrittenEvent } from '../support/written-service.ts';

test.each([
  ['of twenty days', spread(5000, NOON - 20 * DAY, NOON - HOUR_MS)],
  ['of two hours', spread(7000, NOON - 2 * HOUR_MS, NOON - 1000)],
  ['of two days, few', spread(1500, NOON - 2 * DAY, NOON - HOUR_MS)],
  [
    'of one instant, and others',
    [...spread(300, NOON - DAY, NOON - HOUR_MS), ...spread(1200, NOON - 2 * DAY, NOON - 2 * DAY, 't')],
  ],
  ['three', spread(3, NOON - 2 * DAY, NOON - HOUR_MS)],
])('events %s whose content changes during a run are stored as last shown', async (_, events) => {
  const shown = new Map<string, { request: number }>();
  const sync = createWrittenSync(
    {
      events,
      answers: ({ request, ...query }, all) => {
        for (const { id } of plainly(query, all)) shown.set(id, { request });
        return plainly(query, all).map((event) => ({ ...event, request }));
      },
    },
    {
      flatten: (record) => {
        const { id, request = 0 } = record as WrittenEvent & { request?: number };
        return { ...flatten(record), extra: { id, request } };
      },
    },
  );
  const extra = columnsOf(STREAMS.clicks).findIndex(({ name }) => name === '_extra');
  for (let run = 1; run <= 3; run++) {
    expect((await sync.run()).error).toBeUndefined();
    const stored = sync.sink.rows.read(STREAMS.clicks).map((row) => JSON.parse(String(row[extra])));
    // The next run rereads what is too recent to be complete.
    const young = new Set(events.filter(({ at }) => at >= (sync.watermark() ?? 0)).map(({ id }) => id));
    const outdated = stored.filter(({ id, request }) => !young.has(id) && shown.get(id)?.request !== request);
    expect([stored.length, outdated]).toEqual([events.length, []]);
    sync.pass(HOUR_MS);
  }
});
