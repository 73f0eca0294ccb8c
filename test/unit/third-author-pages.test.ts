import { DAY, HOUR, MINUTE, NOON } from '../support/sandbox-sync.ts';
import { plainly } from '../support/written-service.ts';
import {
  cached,
  ceil,
  counter,
  floor,
  hash,
  paged,
  refuse,
  remembering,
  service,
  shard,
  sorted,
  whole,
  within,
} from './third-author.ts';

// Pages, order, caches and outages, by a tester who did not know the code. `live`: sound, and complete within four polls. `stuck`: sound,
// but never complete (an expected failure). `unsound`: certifies rows that are missing (an expected failure).

service('limit capped at 250, offset by the limit asked for', { live: 'even' }, (q, e) => plainly(q, e).slice(0, 250));
service('limit over 500 refused', { live: 'even' }, (q, e) => (q.limit > 500 ? refuse(422, 'limit') : plainly(q, e)));
service('the last row of a full page is cut off', { live: 'even' }, (q, e) => plainly(q, e).slice(0, q.limit - 1));
service('joined rows doubled before the limit', { live: 'even', stuck: 'round' }, (q, e) =>
  paged(
    whole(q, e).flatMap((r) => [r, r]),
    q,
  ),
);
service('deleted links filtered after the limit: 3,000 rows in a row', { stuck: 'even' }, (q, e) => {
  const burst = Array.from({ length: 3000 }, (_, i) => ({ id: `gone${i}`, at: NOON - 9 * DAY + 7 }));
  return paged(whole(q, [...e, ...burst]), q).filter(({ id }) => !id.startsWith('gone'));
});
service('limit counts the rows of whole days, filtered by time afterwards', { live: 'even' }, (q, e) =>
  within(q, plainly({ ...q, start: floor(q.start, DAY), end: ceil(q.end, DAY) }, e)),
);
service('pages of 1 MB: 200 to 1,000 rows, each begins where the last ended', { live: 'even' }, (q, e) => {
  const rows = whole(q, e);
  for (let p = 1; p < q.page; p++) rows.splice(0, Math.min(q.limit, 200 + (hash(`${p}`) % 800)));
  return rows.slice(0, Math.min(q.limit, 200 + (hash(`${q.page}`) % 800)));
});
service('limit ignored, all rows up to 5,000; page 2 is empty', { stuck: 'burst' }, (q, e) =>
  q.page > 1 ? [] : whole(q, e).slice(0, 5000),
);
service('page ignored', { live: 'even' }, (q, e) => plainly({ ...q, page: 1 }, e));
service('a page beyond the end wraps to the first', { live: 'round' }, (q, e) => {
  const pages = Math.max(1, Math.ceil(within(q, e).length / q.limit));
  return plainly({ ...q, page: ((q.page - 1) % pages) + 1 }, e);
});
service('keyset by time alone: the rest of a tie is skipped', { live: 'even' }, (q, e) => {
  let rows = whole(q, e);
  for (let p = 1; p < q.page; p++) {
    const last = rows[q.limit - 1]?.at;
    rows = last === undefined ? [] : rows.filter(({ at }) => (q.sortOrder === 'asc' ? at > last : at < last));
  }
  return rows.slice(0, q.limit);
});
service('a pinned newest row on each page', { live: 'even sparse' }, (q, e) => {
  const newest = sorted(e, { ...q, sortOrder: 'desc' }).slice(0, 1);
  return [...newest, ...plainly({ ...q }, e)].slice(0, q.limit + 1);
});
service('the rows of today on top of the first page, beyond its limit', { soundIn: 'even burst' }, (q, e) => {
  const rows = whole(q, e);
  const today = rows.filter(({ at }) => at >= floor(q.now, DAY));
  const older = paged(
    rows.filter(({ at }) => at < floor(q.now, DAY)),
    q,
  );
  return q.page === 1 ? (q.sortOrder === 'desc' ? [...today, ...older] : [...older, ...today]) : older;
});
service('sortOrder ignored, always newest first', { stuck: 'even' }, (q, e) => plainly({ ...q, sortOrder: 'desc' }, e));
service('newest first by reversing each page of oldest first', { live: 'round' }, (q, e) => {
  const rows = plainly({ ...q, sortOrder: 'asc' }, e);
  return q.sortOrder === 'desc' ? rows.reverse() : rows;
});
service('pages in order, rows of a page the other way round', { stuck: 'even' }, (q, e) => plainly(q, e).reverse());
service('sorted by the text of a JavaScript Date', { stuck: 'even' }, (q, e) => {
  const rows = within(q, e)
    .map((r) => ({ r, text: new Date(r.at).toUTCString() }))
    .sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
  if (q.sortOrder === 'desc') rows.reverse();
  return paged(rows, q).map(({ r }) => r);
});
service('ties in another order for each page and limit', { live: 'round' }, (q, e) => {
  const sign = q.sortOrder === 'asc' ? 1 : -1;
  const keyed = within(q, e).map((r) => ({ r, h: hash(`${r.id}${q.page}/${q.limit}`) }));
  return paged(
    keyed.sort((a, b) => sign * (a.r.at - b.r.at) || a.h - b.h),
    q,
  ).map(({ r }) => r);
});
service('four shards, each gives a quarter of the page', { unsound: 'even heavy' }, (q, e) =>
  sorted(
    [0, 1, 2, 3].flatMap((s) =>
      paged(
        whole(q, e).filter((r) => shard(r, 4) === s),
        { ...q, limit: Math.max(1, Math.floor(q.limit / 4)) },
      ),
    ),
    q,
  ),
);
service('two regions one after the other, each in order', { soundIn: 'heavy' }, (q, e) => {
  const rows = whole(q, e);
  return paged([...rows.filter((r) => shard(r, 2) === 0), ...rows.filter((r) => shard(r, 2) === 1)], q);
});
service('batch rows first, the last hour appended behind them in any order', { live: 'round' }, (q, e) => {
  const rows = whole(q, e);
  return paged([...rows.filter(({ at }) => at < q.now - HOUR), ...rows.filter(({ at }) => at >= q.now - HOUR)], q);
});
remembering(
  'cached by address for 5 minutes',
  { live: 'even' },
  cached(5 * MINUTE + 1, (q) => [q.start, q.end, q.page, q.limit, q.sortOrder]),
);
remembering(
  'cache with its bounds cut to the minute, for 5 minutes',
  { live: 'even' },
  cached(5 * MINUTE, (q) => [floor(q.start, MINUTE), floor(q.end, MINUTE), q.page, q.limit, q.sortOrder]),
);
remembering(
  'the cache ignores start and end for newest first, for an hour',
  { unsound: 'sparse' },
  cached(HOUR, (q) =>
    q.sortOrder === 'desc' && q.page === 1 ? ['newest'] : [q.start, q.end, q.page, q.limit, q.sortOrder, q.now],
  ),
);
service('one of four shards silently missing on each fifth request', { soundIn: 'heavy', unsound: 'even' }, (q, e) =>
  plainly(q, q.request % 5 ? e : e.filter((r) => shard(r, 4) !== 0)),
);
service('over its quota it answers [], each ninth request', { live: 'even' }, (q, e) =>
  q.request % 9 ? plainly(q, e) : [],
);
service('each eighth request fails', { live: 'heavy' }, (q, e) => (q.request % 8 ? plainly(q, e) : refuse(503)));
service('blue and green: whole days, or exact with a cap of 100', { live: 'even' }, (q, e) =>
  q.request % 2
    ? plainly({ ...q, start: floor(q.start, DAY), end: ceil(q.end, DAY) }, e)
    : plainly({ ...q, limit: Math.min(q.limit, 100) }, e),
);
service('deploy in the middle: cap of 100 from the fifth request on', { live: 'even', stuck: 'burst' }, (q, e) =>
  plainly({ ...q, limit: q.request < 5 ? q.limit : Math.min(q.limit, 100) }, e),
);
remembering('stale replica during the third poll: two hours behind', { live: 'even' }, () => {
  const nth = counter();
  return (q, e) => plainly(q, nth(q) === 3 ? e.filter(({ at }) => at < q.now - 2 * HOUR) : e);
});
remembering('one of three shards down during the fourth poll, a day later', { unsound: 'sparse' }, () => {
  const nth = counter();
  return (q, e) => plainly(q, nth(q) === 4 ? e.filter((r) => shard(r, 3) !== 0) : e);
});
remembering('maintenance: [] to everything during the third poll', { live: 'sparse' }, () => {
  const nth = counter();
  return (q, e) => (nth(q) === 3 ? [] : plainly(q, e));
});
remembering('restored from a backup of yesterday during the fifth and sixth poll', { unsound: 'sparse' }, () => {
  const nth = counter();
  return (q, e) => plainly(q, [5, 6].includes(nth(q)) ? e.filter(({ at }) => at < q.now - 20 * HOUR) : e);
});
service('approximate: a page over 600 rows leaves out one in fifty', { unsound: 'burst even heavy round' }, (q, e) => {
  const rows = plainly(q, e);
  return rows.length > 600 ? rows.filter((r) => hash(`${r.id}!`) % 50) : rows;
});
service('answers over 300 rows too large', { live: 'even' }, (q, e) => {
  const rows = plainly(q, e);
  return rows.length > 300 ? refuse(413, 'too large') : rows;
});
service('poison: a row fails its page with 422 at any limit over 1', { stuck: 'sparse' }, (q, e) => {
  const rows = plainly(q, e);
  return rows.length > 1 && rows.some(({ id }) => id === 'c7' || id === 'e777') ? refuse(422) : rows;
});
