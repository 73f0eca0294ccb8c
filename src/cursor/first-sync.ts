/**
 * Whether a stream has caught up once in a sink; SQL about a cursor `c`. It has where a sync ended well after the window that holds
 * `since` was proven. Nothing is stored for it, so what starts over is a first sync again by itself: other filters forget the
 * windows, an earlier `since` and a new sink are proven from their beginning by the run under way.
 */
export const CAUGHT_UP = `(
  coalesce((
    select r.finished_at from tributary.runs r
    where (r.source, r.stream, r.state) = (c.source, c.stream, 'done') and r.kind in ('sync', 're-sweep')
    order by r.started_at desc limit 1
  ) >= (
    select w.proven_at from tributary.windows w
    where (w.source, w.stream, w.sink) = (c.source, c.stream, c.sink) and w.start_at <= c.since and w.end_at > c.since
  ), false))`;

/** Without a target, a stream that is no further behind than this needs no first sync, whatever was read again of its beginning. */
const NEAR_MS = 3_600_000;

/** A first sync is under way, or is to come: the stream is far behind, and has never been anywhere else. */
export const isFirstSync = (
  { caughtUp, lagMs }: { caughtUp: boolean; lagMs: number | null },
  maxLagMs: number = NEAR_MS,
): boolean => !caughtUp && (lagMs === null || lagMs > maxLagMs);
