import { RetryLater } from '../../src/model/errors.ts';
import { DAY, HOUR } from './sandbox-sync.ts';
import { serviceError } from './service-error.ts';
import { type Answers, type Asked, plainly } from './written-service.ts';

/** Services of a review that the reader once got wrong, read in memory and over HTTP by the built program. */

export const lengthOf = ({ start, end }: Asked): number => end - start;
const isWide = ({ start, end, now }: Asked): boolean => Math.min(end, now) - start > 7 * DAY;

/** A maximal range, applied silently: from its start, or back from its end. */
export const cutFirst =
  (ms: number): Answers =>
  (query, events) =>
    plainly({ ...query, end: Math.min(query.end, query.start + ms) }, events);
export const cutNewest =
  (ms: number): Answers =>
  (query, events) =>
    plainly({ ...query, start: Math.max(query.start, Math.min(query.end, query.now) - ms) }, events);

/** Three rows in ten of a wide range, or the first 900 rows. */
export const sampled: Answers = (q, all) => plainly(q, isWide(q) ? all.filter((_, i) => (i * 7) % 10 < 3) : all);
export const scanned: Answers = (q, all) => {
  const seen = plainly({ ...q, page: 1, limit: 1e9 }, all).slice(0, isWide(q) ? 900 : undefined);
  return seen.slice((q.page - 1) * q.limit, q.page * q.limit);
};

/** A start that is too old becomes the last day. */
export const lastDayBefore =
  (ms: number): Answers =>
  (q, all) =>
    plainly(q.start < q.now - ms ? { ...q, start: q.now - DAY, end: q.now } : q, all);

/** Shards each skip their share of the offset; bounds are whole days. */
export const sharded =
  (shards: number): Answers =>
  (q, all) => {
    const [start, end] = [Math.floor(q.start / DAY) * DAY, Math.ceil(q.end / DAY) * DAY];
    const offset = Math.floor(((q.page - 1) * q.limit) / shards);
    const found = Array.from({ length: shards }, (_, shard) => {
      const own = all.filter(({ id }) => ((Number(id.slice(1)) * 2654435761) % 97) % shards === shard);
      return plainly({ ...q, start, end, page: 1, limit: 1e9 }, own).slice(offset);
    }).flat();
    return plainly({ ...q, start, end, page: 1 }, found);
  };

export const staleNewestFirst: Answers = (q, all) =>
  plainly(q, q.sortOrder === 'desc' ? all.filter(({ at }) => at < q.now - 6 * HOUR) : all);

/** Refuses or fails if a condition holds. */
export const failing =
  (status: number, isFailing: (query: Asked) => boolean, message = 'refused'): Answers =>
  (query, events) => {
    if (isFailing(query)) throw serviceError(status, message);
    return plainly(query, events);
  };

/** An end in the future shows nothing. */
export const nothingAhead: Answers = (q, all) => (q.end > q.now + 1000 ? [] : plainly(q, all));

/** A proxy truncates the body above so many rows. */
export const truncated =
  (rows: number): Answers =>
  (q, all) => {
    const page = plainly(q, all);
    if (page.length <= rows) return page;
    const answer = { status: 200, code: 'not_json', message: 'a body that ends early' };
    throw new RetryLater('not JSON', { answer });
  };

/** Every row is twice on its page. */
export const twice: Answers = (q, all) => plainly(q, all).flatMap((one) => [one, one]);
