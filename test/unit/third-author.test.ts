import { DAY, HOUR, MINUTE } from '../support/sandbox-sync.ts';
import { plainly, type WrittenEvent } from '../support/written-service.ts';
import { ceil, floor, hash, paged, refuse, service, shard, sorted, whole, within } from './third-author.ts';

// Ranges, bounds and search engines, by a tester who did not know the code. `live`: sound, and complete within four polls. `stuck`:
// sound, but never complete (an expected failure). `unsound`: certifies rows that are missing (an expected failure).
const month = (at: number): string => new Date(at).toISOString().slice(0, 7);
const newYork = (at: number): number => (at >= Date.UTC(2026, 10, 1, 6) ? -5 : -4) * HOUR;

service('elasticsearch: page × limit > 10,000 refused', { live: 'heavy' }, (q, e) =>
  q.page * q.limit > 10_000 ? refuse(400, 'Result window is too large') : plainly(q, e),
);
service('result window of 10,000 silently empty beyond', { live: 'heavy' }, (q, e) =>
  paged(whole(q, e).slice(0, 10_000), q),
);
service('algolia: only 1,000 hits can be paged', { live: 'even', stuck: 'round' }, (q, e) =>
  paged(whole(q, e).slice(0, 1000), q),
);
service('result window of 5,000, pages beyond repeat the last', { live: 'even' }, (q, e) =>
  plainly({ ...q, page: Math.min(q.page, Math.floor(5000 / q.limit)) }, e),
);
service('terminate_after 2,000 in insertion order, then sorted', { live: 'even', unsound: 'round' }, (q, e) =>
  paged(sorted(within(q, e).slice(0, 2000), q), q),
);
service('terminate_after 500 on each of 3 shards', { soundIn: 'even' }, (q, e) =>
  paged(
    sorted(
      [0, 1, 2].flatMap((s) =>
        within(q, e)
          .filter((r) => shard(r, 3) === s)
          .slice(0, 500),
      ),
      q,
    ),
    q,
  ),
);
service('LIMIT BY: 400 rows per link and query', { live: 'even' }, (q, e) =>
  paged(
    sorted(
      [0, 1, 2, 3].flatMap((s) =>
        whole(q, e)
          .filter((r) => shard(r, 4) === s)
          .slice(0, 400),
      ),
      q,
    ),
    q,
  ),
);
service('refresh interval: visible after 45 seconds to 4 minutes, by shard', { live: 'sparse even' }, (q, e) =>
  plainly(
    q,
    e.filter((r) => r.at + 45_000 * (1 + (hash(r.id) % 5)) <= q.now),
  ),
);
service('weekly indices, names stepped by 7 days from start', { live: 'sparse', soundIn: 'round' }, (q, e) => {
  const weeks = new Set<number>();
  for (let at = q.start; at < q.end; at += 7 * DAY) weeks.add(floor(at, 7 * DAY));
  return plainly(
    q,
    e.filter(({ at }) => weeks.has(floor(at, 7 * DAY))),
  );
});
service('daily indices, names stepped by a day from start', { live: 'round' }, (q, e) => {
  const days = new Set<number>();
  for (let at = q.start; at < q.end; at += DAY) days.add(floor(at, DAY));
  return plainly(
    q,
    e.filter(({ at }) => days.has(floor(at, DAY))),
  );
});
service(
  'monthly tables: only the months of start and of end are read',
  { live: 'even', unsound: 'burst round' },
  (q, e) =>
    plainly(
      q,
      e.filter(({ at }) => [month(q.start), month(q.end)].includes(month(at))),
    ),
);
service('more than 5,000 rows in the window: one in ten', { live: 'round', soundIn: 'heavy' }, (q, e) => {
  const rows = whole(q, e);
  return paged(rows.length > 5000 ? rows.filter((r) => shard(r, 10) === 0) : rows, q);
});
service('a window of more than three days is sampled, one in four', { unsound: 'sparse' }, (q, e) =>
  plainly(q, q.end - q.start > 3 * DAY ? e.filter((r) => shard(r, 4) === 0) : e),
);
service('more than 31 days refused', { live: 'round', stuck: 'sparse' }, (q, e) =>
  q.end - q.start > 31 * DAY ? refuse(422, 'range too long') : plainly(q, e),
);
service('more than 7 days times out', { live: 'even', stuck: 'sparse' }, (q, e) =>
  q.end - q.start > 7 * DAY ? refuse(504, 'timeout') : plainly(q, e),
);
service('range clamped to the last 30 days before end', { live: 'even', stuck: 'sparse' }, (q, e) =>
  plainly({ ...q, start: Math.max(q.start, q.end - 30 * DAY) }, e),
);
service('range clamped to 14 days after start', { live: 'round', stuck: 'even' }, (q, e) =>
  plainly({ ...q, end: Math.min(q.end, q.start + 14 * DAY) }, e),
);
service('a range over 45 days falls back to the last 24 hours', { stuck: 'even' }, (q, e) =>
  plainly(q.end - q.start > 45 * DAY ? { ...q, start: q.now - DAY, end: q.now + 1 } : q, e),
);
service('hot and cold store, chosen by start', { soundIn: 'even', unsound: 'sparse' }, (q, e) => {
  const border = q.now - 30 * DAY;
  return plainly(
    q,
    e.filter(({ at }) => at < border === q.start < border),
  );
});
service('hot and cold store, chosen by end', { live: 'heavy' }, (q, e) => {
  const border = q.now - 14 * DAY;
  return plainly(
    q,
    e.filter(({ at }) => at < border === q.end < border),
  );
});
service(
  'today in memory, older on disk: a window over midnight sees only disk',
  { soundIn: 'even', unsound: 'sparse' },
  (q, e) => {
    const today = floor(q.now, DAY);
    return plainly(q, q.start >= today ? e : e.filter(({ at }) => at < today));
  },
);
service('streaming buffer: the last 90 minutes only if end is not in the past', { live: 'round' }, (q, e) =>
  plainly(q, q.end >= floor(q.now, 1000) ? e : e.filter(({ at }) => at < q.now - 90 * MINUTE)),
);
service('end in the future refused', { live: 'sparse' }, (q, e) =>
  q.end > q.now + 1000 ? refuse(422, 'end is in the future') : plainly(q, e),
);
service('start before the founding refused', { stuck: 'even' }, (q, e) =>
  q.start < Date.UTC(2026, 8, 20) ? refuse(422, 'before founding') : plainly(q, e),
);
service('nothing found is 404', { live: 'round', stuck: 'heavy' }, (q, e) => {
  const rows = plainly(q, e);
  return rows.length === 0 ? refuse(404, 'no events') : rows;
});
service('start exclusive, end inclusive', { live: 'round' }, (q, e) =>
  plainly({ ...q, start: q.start + 1, end: q.end + 1 }, e),
);
service('end minus one second', { live: 'round' }, (q, e) => plainly({ ...q, end: q.end - 1000 }, e));
service('start rounded up, end down to minutes', { live: 'burst round' }, (q, e) =>
  plainly({ ...q, start: ceil(q.start, MINUTE), end: floor(q.end, MINUTE) }, e),
);
service('bounds cut to dates, end exclusive', { live: 'burst round' }, (q, e) =>
  plainly({ ...q, start: floor(q.start, DAY), end: floor(q.end, DAY) }, e),
);
service('bounds are dates of New York, end inclusive', { live: 'sparse round' }, (q, e) => {
  const local = (at: number) => floor(at + newYork(at), DAY);
  return plainly(
    { ...q, start: Number.NEGATIVE_INFINITY, end: Number.POSITIVE_INFINITY },
    e.filter(({ at }) => local(at) >= local(q.start) && local(at) <= local(q.end)),
  );
});
service('bounds read as local time of New York, with its change of clocks', { live: 'round' }, (q, e) =>
  plainly({ ...q, start: q.start - newYork(q.start), end: q.end - newYork(q.end) }, e),
);
service('bounds as float32 seconds', { live: 'even' }, (q, e) =>
  plainly({ ...q, start: Math.fround(q.start / 1000) * 1000, end: Math.fround(q.end / 1000) * 1000 }, e),
);
service('shown rounded to seconds, filtered by milliseconds', { live: 'even' }, (q, e) =>
  paged(
    sorted(
      e.filter((r) => {
        const at = r.at - (hash(r.id) % 500);
        return at >= q.start && at < q.end;
      }),
      q,
    ),
    q,
  ),
);
service('filtered and sorted by arrival, up to 4 minutes after the time', { stuck: 'even' }, (q, e) => {
  const came = e.map((r) => ({ ...r, at: r.at + (hash(r.id) % (4 * MINUTE)) })).filter(({ at }) => at <= q.now);
  const shown = new Map(e.map((r) => [r.id, r]));
  return plainly(q, came).map(({ id }) => shown.get(id) as WrittenEvent);
});
service('end at most the last full five minutes', { live: 'sparse' }, (q, e) =>
  plainly({ ...q, end: Math.min(q.end, floor(q.now, 5 * MINUTE)) }, e),
);
