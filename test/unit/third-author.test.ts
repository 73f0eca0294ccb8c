import { DAY, HOUR, MINUTE } from '../support/sandbox-sync.ts';
import { plainly, type WrittenEvent } from '../support/written-service.ts';
import { ceil, check, floor, hash, paged, refuse, type Service, shard, sorted, whole, within } from './third-author.ts';

// Ranges, bounds and search engines, by a tester who has not read how it extracts. `live`: sound, and complete within four polls. `stuck`: sound, but never
// complete (an expected failure). `unsound`: certifies what it does not have (an expected failure).
const month = (at: number): string => new Date(at).toISOString().slice(0, 7);
const newYork = (at: number): number => (at >= Date.UTC(2026, 10, 1, 6) ? -5 : -4) * HOUR;

const SERVICES: Service[] = [
  {
    name: 'elasticsearch: page × limit > 10,000 refused',
    live: 'heavy',
    make: () => (q, e) => (q.page * q.limit > 10_000 ? refuse(400, 'Result window is too large') : plainly(q, e)),
  },
  {
    name: 'result window of 10,000 silently empty beyond',
    live: 'heavy',
    make: () => (q, e) => paged(whole(q, e).slice(0, 10_000), q),
  },
  {
    name: 'algolia: only 1,000 hits can be paged',
    live: 'even',
    stuck: 'round',
    make: () => (q, e) => paged(whole(q, e).slice(0, 1000), q),
  },
  {
    name: 'result window of 5,000, pages beyond repeat the last',
    live: 'even',
    make: () => (q, e) => plainly({ ...q, page: Math.min(q.page, Math.floor(5000 / q.limit)) }, e),
  },
  {
    name: 'terminate_after 2,000 in insertion order, then sorted',
    live: 'even',
    unsound: 'round',
    make: () => (q, e) => paged(sorted(within(q, e).slice(0, 2000), q), q),
  },
  {
    name: 'terminate_after 500 on each of 3 shards',
    soundIn: 'even',
    make: () => (q, e) =>
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
  },
  {
    name: 'LIMIT BY: 400 rows per link and query',
    live: 'even',
    make: () => (q, e) =>
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
  },
  {
    name: 'refresh interval: visible after 45 seconds to 4 minutes, by shard',
    live: 'sparse even',
    make: () => (q, e) =>
      plainly(
        q,
        e.filter((r) => r.at + 45_000 * (1 + (hash(r.id) % 5)) <= q.now),
      ),
  },
  {
    name: 'weekly indices, names stepped by 7 days from start',
    live: 'sparse',
    soundIn: 'round',
    make: () => (q, e) => {
      const weeks = new Set<number>();
      for (let at = q.start; at < q.end; at += 7 * DAY) weeks.add(floor(at, 7 * DAY));
      return plainly(
        q,
        e.filter(({ at }) => weeks.has(floor(at, 7 * DAY))),
      );
    },
  },
  {
    name: 'daily indices, names stepped by a day from start',
    live: 'round',
    make: () => (q, e) => {
      const days = new Set<number>();
      for (let at = q.start; at < q.end; at += DAY) days.add(floor(at, DAY));
      return plainly(
        q,
        e.filter(({ at }) => days.has(floor(at, DAY))),
      );
    },
  },
  {
    name: 'monthly tables: only the months of start and of end are read',
    live: 'even',
    unsound: 'burst round',
    make: () => (q, e) =>
      plainly(
        q,
        e.filter(({ at }) => [month(q.start), month(q.end)].includes(month(at))),
      ),
  },
  {
    name: 'more than 5,000 rows in the window: one in ten',
    live: 'round',
    soundIn: 'heavy',
    make: () => (q, e) => {
      const rows = whole(q, e);
      return paged(rows.length > 5000 ? rows.filter((r) => shard(r, 10) === 0) : rows, q);
    },
  },
  {
    name: 'a window of more than three days is sampled, one in four',
    unsound: 'sparse',
    make: () => (q, e) => plainly(q, q.end - q.start > 3 * DAY ? e.filter((r) => shard(r, 4) === 0) : e),
  },
  {
    name: 'more than 31 days refused',
    live: 'round',
    stuck: 'sparse',
    make: () => (q, e) => (q.end - q.start > 31 * DAY ? refuse(422, 'range too long') : plainly(q, e)),
  },
  {
    name: 'more than 7 days times out',
    live: 'even',
    stuck: 'sparse',
    make: () => (q, e) => (q.end - q.start > 7 * DAY ? refuse(504, 'timeout') : plainly(q, e)),
  },
  {
    name: 'range clamped to the last 30 days before end',
    live: 'even',
    stuck: 'sparse',
    make: () => (q, e) => plainly({ ...q, start: Math.max(q.start, q.end - 30 * DAY) }, e),
  },
  {
    name: 'range clamped to 14 days after start',
    live: 'round',
    stuck: 'even',
    make: () => (q, e) => plainly({ ...q, end: Math.min(q.end, q.start + 14 * DAY) }, e),
  },
  {
    name: 'a range over 45 days falls back to the last 24 hours',
    stuck: 'even',
    make: () => (q, e) => plainly(q.end - q.start > 45 * DAY ? { ...q, start: q.now - DAY, end: q.now + 1 } : q, e),
  },
  {
    name: 'hot and cold store, chosen by start',
    soundIn: 'even',
    unsound: 'sparse',
    make: () => (q, e) => {
      const border = q.now - 30 * DAY;
      return plainly(
        q,
        e.filter(({ at }) => at < border === q.start < border),
      );
    },
  },
  {
    name: 'hot and cold store, chosen by end',
    live: 'heavy',
    make: () => (q, e) => {
      const border = q.now - 14 * DAY;
      return plainly(
        q,
        e.filter(({ at }) => at < border === q.end < border),
      );
    },
  },
  {
    name: 'today in memory, older on disk: a window over midnight sees only disk',
    soundIn: 'even',
    unsound: 'sparse',
    make: () => (q, e) => {
      const today = floor(q.now, DAY);
      return plainly(q, q.start >= today ? e : e.filter(({ at }) => at < today));
    },
  },
  {
    name: 'streaming buffer: the last 90 minutes only if end is not in the past',
    live: 'round',
    make: () => (q, e) => plainly(q, q.end >= floor(q.now, 1000) ? e : e.filter(({ at }) => at < q.now - 90 * MINUTE)),
  },
  {
    name: 'end in the future refused',
    live: 'sparse',
    make: () => (q, e) => (q.end > q.now + 1000 ? refuse(422, 'end is in the future') : plainly(q, e)),
  },
  {
    name: 'start before the founding refused',
    stuck: 'even',
    make: () => (q, e) => (q.start < Date.UTC(2026, 8, 20) ? refuse(422, 'before founding') : plainly(q, e)),
  },
  {
    name: 'nothing found is 404',
    live: 'round',
    stuck: 'heavy',
    make: () => (q, e) => {
      const rows = plainly(q, e);
      return rows.length === 0 ? refuse(404, 'no events') : rows;
    },
  },
  {
    name: 'start exclusive, end inclusive',
    live: 'round',
    make: () => (q, e) => plainly({ ...q, start: q.start + 1, end: q.end + 1 }, e),
  },
  { name: 'end minus one second', live: 'round', make: () => (q, e) => plainly({ ...q, end: q.end - 1000 }, e) },
  {
    name: 'start rounded up, end down to minutes',
    live: 'burst round',
    make: () => (q, e) => plainly({ ...q, start: ceil(q.start, MINUTE), end: floor(q.end, MINUTE) }, e),
  },
  {
    name: 'bounds cut to dates, end exclusive',
    live: 'burst round',
    make: () => (q, e) => plainly({ ...q, start: floor(q.start, DAY), end: floor(q.end, DAY) }, e),
  },
  {
    name: 'bounds are dates of New York, end inclusive',
    live: 'sparse round',
    make: () => (q, e) => {
      const local = (at: number) => floor(at + newYork(at), DAY);
      return plainly(
        { ...q, start: Number.NEGATIVE_INFINITY, end: Number.POSITIVE_INFINITY },
        e.filter(({ at }) => local(at) >= local(q.start) && local(at) <= local(q.end)),
      );
    },
  },
  {
    name: 'bounds read as local time of New York, with its change of clocks',
    live: 'round',
    make: () => (q, e) => plainly({ ...q, start: q.start - newYork(q.start), end: q.end - newYork(q.end) }, e),
  },
  {
    name: 'bounds as float32 seconds',
    live: 'even',
    make: () => (q, e) =>
      plainly({ ...q, start: Math.fround(q.start / 1000) * 1000, end: Math.fround(q.end / 1000) * 1000 }, e),
  },
  {
    name: 'shown rounded to seconds, filtered by milliseconds',
    live: 'even',
    make: () => (q, e) =>
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
  },
  {
    name: 'filtered and sorted by arrival, up to 4 minutes after the time',
    stuck: 'even',
    make: () => (q, e) => {
      const came = e.map((r) => ({ ...r, at: r.at + (hash(r.id) % (4 * MINUTE)) })).filter(({ at }) => at <= q.now);
      const shown = new Map(e.map((r) => [r.id, r]));
      return plainly(q, came).map(({ id }) => shown.get(id) as WrittenEvent);
    },
  },
  {
    name: 'end at most the last full five minutes',
    live: 'sparse',
    make: () => (q, e) => plainly({ ...q, end: Math.min(q.end, floor(q.now, 5 * MINUTE)) }, e),
  },
];

check(SERVICES);
