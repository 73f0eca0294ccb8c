import { expect, test } from 'vitest';
import { STREAMS } from '../../src/model/streams.ts';
import { HOUR_MS } from '../../src/model/window.ts';
import { columnsOf } from '../../src/sinks/files/partition-file.ts';
import { DAY, NOON } from '../support/sandbox-sync.ts';
import { createWrittenSync, flatten, plainly, spread, type WrittenEvent } from '../support/written-service.ts';

test('an event whose content changes while it is read: what was shown last', async () => {
  const events = spread(5000, NOON - 20 * DAY, NOON - HOUR_MS);
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
    const outdated = stored.filter(({ id, request }) => shown.get(id)?.request !== request);
    expect([stored.length, outdated]).toEqual([5000, []]);
    sync.pass(HOUR_MS);
  }
});
