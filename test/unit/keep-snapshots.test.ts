import { afterEach, expect, it, vi } from 'vitest';
import { STREAMS } from '../../src/model/streams.ts';
import { DAY_MS, HOUR_MS } from '../../src/model/window.ts';
import { type Metadata, newMetadata, withoutSnapshots, withSnapshot } from '../../src/sinks/iceberg/format/metadata.ts';
import { expirable, KEEP_SNAPSHOTS } from '../../src/sinks/iceberg/upkeep/keep-snapshots.ts';
import { streamDesign } from '../../src/sinks/table-columns.ts';

const START = Date.UTC(2026, 0, 1);
afterEach(() => vi.restoreAllMocks());

/** A table with a snapshot at each interval, expired every hour as it grows. */
function grown(days: number, everyMs: number): Metadata {
  let metadata = newMetadata(streamDesign(STREAMS.clicks), 'file:///x', START);
  const clock = vi.spyOn(Date, 'now');
  for (let at = START, n = 1; at <= START + days * DAY_MS; at += everyMs, n++) {
    clock.mockReturnValue(at);
    metadata = withSnapshot(metadata, {
      ...{
        'snapshot-id': n,
        'sequence-number': n,
        'timestamp-ms': at,
        'manifest-list': 'x',
        summary: {},
        'schema-id': 0,
      },
    });
    if (at % HOUR_MS === 0) {
      const gone = new Set(expirable(metadata, KEEP_SNAPSHOTS));
      metadata = withoutSnapshots(metadata, (one) => gone.has(one));
    }
  }
  return metadata;
}

it('keeps every snapshot of the last hour, one an hour for a day, one a day for a month', () => {
  const { snapshots } = grown(60, 10 * 60_000);
  const ages = snapshots.map((one) => START + 60 * DAY_MS - one['timestamp-ms']);
  const within = (from: number, to: number): number => ages.filter((age) => age >= from && age < to).length;
  expect([within(0, HOUR_MS), within(HOUR_MS, DAY_MS), within(DAY_MS, 40 * DAY_MS)]).toEqual([6, 24, 30]);
  expect(Math.max(...ages)).toBeLessThan(31 * DAY_MS);
});

it('keeps only the newest up to the maximum', () => {
  const { snapshots } = grown(1 / 24, 1000);
  expect(snapshots).toHaveLength(KEEP_SNAPSHOTS.most);
  expect(snapshots.at(-1)?.['snapshot-id']).toBe(3601);
});

it('keeps the current snapshot, however old, and those named by a branch or tag', () => {
  const metadata = grown(2, HOUR_MS);
  const [first] = metadata.snapshots;
  vi.spyOn(Date, 'now').mockReturnValue(START + 999 * DAY_MS);
  const tagged = {
    ...metadata,
    refs: { ...metadata.refs, kept: { 'snapshot-id': first?.['snapshot-id'] ?? 0, type: 'tag' } },
  };
  const gone = expirable(tagged, KEEP_SNAPSHOTS);
  const left = tagged.snapshots.filter((one) => !gone.includes(one));
  expect(left).toEqual([first, metadata.snapshots.at(-1)]);
});
